"""`warren pipeline project`: the audit as a declarative pipeline, in a folder that `spark-pipelines` runs.

Duty: options in, the folder out, and how it is run. Not here: what is in it (``spark/auditing/declared.py``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from warrenmq.cli._command import Json
from warrenmq.cli.pipeline.facts import show
from warrenmq.cli.pipeline.job import tell

RUN = "spark-pipelines --conf spark.sql.catalogImplementation=hive --conf spark.sql.warehouse.dir=tables run"


def project(
    folder: Annotated[Path, typer.Argument(help="The folder to be made.")],
    journal: Annotated[list[str], typer.Argument(help="Folders of journals, or of a lake of them.")],
    window: Annotated[str, typer.Option(help="Window of latencies and rates, such as '1 minute'.")] = "1 minute",
    redeliveries: Annotated[int, typer.Option(help="Messages delivered more often than this are listed.")] = 3,
    partial: Annotated[bool, typer.Option(help="What was before a log's first file is not missing.")] = False,
    require: Annotated[list[str] | None, typer.Option(help="Fail when this expectation, too, is broken.")] = None,
    as_json: Json = False,
) -> None:
    """The audit as a project of Spark's declarative pipelines: bronze, silver and gold, with expectations."""
    from warrenmq.spark.auditing.declared import write_project
    from warrenmq.spark.auditing.listing import JournalError

    journals = [path if "://" in path else str(Path(path).resolve()) for path in journal]
    try:
        write_project(
            folder, journals, window=window, redeliveries=redeliveries, partial=partial, required=require or ()
        )
    except (JournalError, OSError) as error:
        tell(f"warren pipeline: {error}")
        raise typer.Exit(2) from None
    tell(f"{folder} is a project of spark-pipelines; to run it (Spark 4.1 or newer, pip install 'pyspark[pipelines]'):")
    show(as_json, {"folder": str(folder), "run": RUN}, f"cd {folder} && {RUN}")
