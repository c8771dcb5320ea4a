"""`warren pipeline whatif`: recorded traffic under changed definitions.

Duty: options in, one job, what would change and a status for whoever deploys. Not here: the job.
"""

from __future__ import annotations

from typing import Annotated

import typer

from warrenmq.cli._command import Json
from warrenmq.cli.pipeline.facts import of_whatif, show
from warrenmq.cli.pipeline.job import Conf, Master, job_session, table_of, tell


def whatif(
    traffic: Annotated[list[str], typer.Argument(help="Folders of journals; with --format, a table of messages.")],
    before: Annotated[str, typer.Option(help="Definitions file that holds now.")],
    after: Annotated[str, typer.Option(help="Definitions file that is to hold.")],
    out: Annotated[str | None, typer.Option(help="Folder for the tables changes and summary.")] = None,
    any: Annotated[bool, typer.Option("--any", help="Status 1 also when nothing is worse, only otherwise.")] = False,
    max_message_size: Annotated[int, typer.Option(help="The broker's limit, in bytes.")] = 134_217_728,
    format: Annotated[str | None, typer.Option("--format", help="Of a table: parquet, json, csv, …")] = None,
    master: Master = None,
    conf: Conf = None,
    as_json: Json = False,
) -> None:
    """Which recorded messages would fare otherwise under other definitions. The exit status is 1 when any is worse."""

    def check() -> None:
        from warrenmq.spark.routing import InputError, load_definitions

        if format is not None and len(traffic) > 1:
            raise InputError("with --format one table is read")
        for each in (before, after):
            load_definitions(each)

    with job_session(master, conf, check) as spark:
        from warrenmq.spark.supposing import whatif as job
        from warrenmq.spark.supposing.text import text

        source = traffic if format is None else table_of(spark, traffic[0], format)
        found = job(spark, source, before, after, out, max_message_size=max_message_size, progress=tell)
        show(as_json, of_whatif(found) if as_json else None, "" if as_json else text(found))
        found.close()
    if found.worse or (any and found.changed):
        raise typer.Exit(1)
