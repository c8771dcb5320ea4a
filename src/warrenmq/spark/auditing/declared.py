"""The audit as a declarative pipeline, which ``spark-pipelines`` runs: bronze, silver and gold.

Duty: the tables of ``graph`` and the expectations, told to Spark as datasets; and the folder of a project that does so.
The functions are those that ``job`` calls. Not here: incremental sums (``state``): such a pipeline makes every table
anew, of the files that count now, because a journal's file may be replaced by a longer one that tells the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warrenmq.spark.auditing import expectations
from warrenmq.spark.auditing.graph import HOLES, REDELIVERIES, SUMS, WINDOW, check_settings, in_words
from warrenmq.spark.auditing.holes import holes_of, table_of
from warrenmq.spark.auditing.listing import JournalError
from warrenmq.spark.auditing.reading import events
from warrenmq.spark.recorded import parts_of
from warrenmq.spark.requirements import RequirementMissing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EXPECTED, KEPT = "expectations", "expectations_kept"
SPECIFICATION = """name: {name}
storage: {storage}
configuration:
  spark.sql.pipelines.maxFlowRetryAttempts: "0"
libraries:
  - glob:
      include: transformations/**
"""
PROGRAM = '''"""The audit of a journal, as datasets: see the page audit.md of Warren's documentation."""

from warrenmq.spark.auditing.declared import declare

declare(
    spark,  # noqa: F821  spark-pipelines puts it here
    {journals!r},
    window={window!r},
    redeliveries={redeliveries!r},
    partial={partial!r},
    required={required!r},
)
'''


def declare(
    spark: SparkSession,
    paths: str | Sequence[str],
    *,
    window: str = WINDOW,
    redeliveries: int = REDELIVERIES,
    partial: bool = False,
    required: Collection[str] = (),
) -> None:
    """Tell Spark of the tables, in a file of definitions that ``spark-pipelines`` loads.

    ``required``: expectations without which the run fails, beside those that always are.
    """
    pipelines = _pipelines()
    expectations.check(required)
    check_settings(window, redeliveries)
    parts = parts_of(spark, [paths] if isinstance(paths, str) else paths)
    files = [file for file, _, _ in parts]
    holes = holes_of(spark, files, SUMS["notes"].make(events(spark, parts)), partial)
    told, rows = table_of(spark, holes), events(spark, parts)

    def reading(of: Sequence[str], make: Callable[..., DataFrame]) -> Callable[[], DataFrame]:
        return lambda: make(*(spark.read.table(name) for name in of))

    pipelines.temporary_view(name="events", comment="bronze: the journal's rows")(lambda: rows)
    for layer, some in (("silver", SUMS), ("gold", in_words(window, redeliveries))):
        for name, table in some.items():
            kind = "silver" if name in ("places", "records") else layer
            made = pipelines.materialized_view(name=name, comment=f"{kind}: {table.says}")
            made(reading(table.of, table.make))
    pipelines.materialized_view(name=HOLES, comment="gold: what no file tells")(lambda: told)
    tables = sorted({one.table for one in expectations.EXPECTATIONS})
    counting = pipelines.materialized_view(name=EXPECTED, comment="gold: what must hold, and how many rows break it")
    counting(reading(tables, lambda *frames: expectations.counted(dict(zip(tables, frames, strict=True)))))
    keeping = pipelines.materialized_view(name=KEPT, comment="gold: fails where one that is required is broken")
    keeping(reading([EXPECTED], lambda rows: expectations.kept(rows, required)))


def write_project(
    folder: Path,
    journals: Sequence[str],
    *,
    window: str = WINDOW,
    redeliveries: int = REDELIVERIES,
    partial: bool = False,
    required: Collection[str] = (),
) -> None:
    """A folder that ``spark-pipelines run`` takes; what is there already is not overwritten."""
    expectations.check(required)
    check_settings(window, redeliveries)
    if folder.exists() and any(folder.iterdir()):
        raise JournalError(f"{folder} is not empty: name a folder for the project that is not there yet")
    (folder / "transformations").mkdir(parents=True)
    storage = (folder / "storage").resolve().as_uri()
    (folder / "spark-pipeline.yml").write_text(SPECIFICATION.format(name=folder.resolve().name, storage=storage))
    program = PROGRAM.format(
        journals=list(journals), window=window, redeliveries=redeliveries, partial=partial, required=list(required)
    )
    (folder / "transformations" / "audit.py").write_text(program)


def _pipelines() -> Any:
    try:
        from pyspark import pipelines
    except ImportError as error:
        raise RequirementMissing(
            f"declarative pipelines need Spark 4.1 or newer and pip install 'pyspark[pipelines]': {error}"
        ) from None
    return pipelines
