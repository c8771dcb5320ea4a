"""watch: findings of a journal while it is written.

Duty: the streaming query of ``source``, ``state`` and ``findings``, and its settings. Not here: each of these, the
command line.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from warrenmq.spark.auditing.listing import JournalError
from warrenmq.spark.jobs.ingest import follow
from warrenmq.spark.options import OptionError, parse
from warrenmq.spark.routing.definitions import InputError
from warrenmq.spark.watching.findings import SCHEMA, Findings
from warrenmq.spark.watching.folders import Journals
from warrenmq.spark.watching.judging import FOUND, NO_FINDINGS, SECOND, Rules
from warrenmq.spark.watching.source import NAME, Reading, WatchedSource
from warrenmq.spark.watching.state import TOLD, Watching

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

STORE = "spark.sql.streaming.stateStore.providerClass"
ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
BEHIND = 10 * SECOND  # three intervals of the journal
OWN = ("batchkey", "batchbegan", "checkpointlocation", "messageids", "routingkey")


@dataclass
class Watched:
    """The finds of the runs over one folder so far."""

    table: DataFrame
    batches: int

    def counts(self) -> dict[tuple[str, str], int]:
        """How many rows of which kind and state."""
        rows = self.table.groupBy("what", "state").count().collect()
        return {(row["what"], row["state"]): row["count"] for row in rows}

    def open(self) -> DataFrame:
        """Findings that were not mended, nor became unknown."""
        over = self.table.where(self.table["state"] != FOUND).select("finding")
        found = self.table.where((self.table["state"] == FOUND) & ~self.table["what"].isin(*NO_FINDINGS))
        return found.join(over, "finding", "left_anti")


def watch(
    spark: SparkSession,
    paths: str | Sequence[str],
    out: str,
    *,
    rules: Rules | None = None,
    send: Mapping[str, str] | None = None,
    once: bool = False,
    latest: bool = False,
    behind: int = BEHIND,
    interval: str = "2 seconds",
    checkpoint: str | None = None,
    progress: Callable[[str], None] | None = None,
    timeout: float | None = None,
) -> Watched:
    """Watch the journals in these folders, and write what is found to the folder ``out``.

    ``send``: options of ``format("amqp")`` with an ``exchange`` that findings go to. ``once``: look at what is there
    and end. ``latest``: what is there when the folder is watched for the first time is not looked at. ``behind``: µs
    that a journal may be behind the clock while nothing comes.
    """
    query = start(
        spark,
        paths,
        out,
        rules=rules,
        send=send,
        once=once,
        latest=latest,
        behind=behind,
        interval=interval,
        checkpoint=checkpoint,
    )
    done = follow(query, progress, timeout)
    return Watched(table(spark, out), done.batches)


def start(
    spark: SparkSession,
    paths: str | Sequence[str],
    out: str,
    *,
    rules: Rules | None = None,
    send: Mapping[str, str] | None = None,
    once: bool = False,
    latest: bool = False,
    behind: int = BEHIND,
    interval: str = "2 seconds",
    checkpoint: str | None = None,
    step: Callable[[str], None] | None = None,
) -> StreamingQuery:
    """As a query that runs until it is stopped, or has come to the end of what is there."""
    rules = rules or Rules()
    folders = [paths] if isinstance(paths, str) else list(paths)
    _check(folders, rules, send, once)
    place = checkpoint or f"{out.rstrip('/')}/_checkpoint"
    tick = max(SECOND, min(rules.confirm, rules.ack, rules.never, rules.window) // 4)
    rest = rules.longest() + 2 * tick
    reading = Reading(folders, rules.window, rest, tick, behind, latest)
    spark.dataSource.register(WatchedSource)
    rows = spark.readStream.format(NAME).option("reading", json.dumps(asdict(reading))).load()
    judged = rows.groupBy("log", "bucket").transformWithStateInPandas(Watching(rules), TOLD, "Append", "None")
    writing = judged.writeStream.outputMode("append").option("checkpointLocation", place)
    writing = writing.trigger(availableNow=True) if once else writing.trigger(processingTime=interval)
    with _rocks(spark):
        return writing.foreachBatch(Findings(out.rstrip("/"), place, send, step)).start()


def table(spark: SparkSession, out: str) -> DataFrame:
    """All that was found; without a row where nothing was."""
    from pyspark.errors import AnalysisException

    try:
        return spark.read.schema(SCHEMA).option("pathGlobFilter", "findings-*.parquet").parquet(out)
    except AnalysisException as error:
        if "PATH_NOT_FOUND" not in str(error):
            raise
        return spark.createDataFrame([], SCHEMA)


def _check(folders: Sequence[str], rules: Rules, send: Mapping[str, str] | None, once: bool) -> None:
    none = [folder for folder in folders if not Journals([folder]).listing()]  # one that is not there is told here
    for name, value in asdict(rules).items():
        if not value > 0:
            raise InputError(f"'{name}' is {value}; expected more than 0")
    if none and once:  # else it is waited for
        raise JournalError(f"{none[0]} has no journal: no file there is named journal-LOG-SEGMENT-FROM-TO.parquet")
    if send is None:
        return
    for name in send:
        if name.lower() in OWN:
            raise OptionError(f"option '{name}' is not for a watch, which names its messages itself")
    if parse(dict(send), writing=True).exchange is None:
        raise OptionError("findings are sent to an exchange: name it")


@contextmanager
def _rocks(spark: SparkSession) -> Iterator[None]:
    """A query takes the settings that hold when it starts: state of this kind is kept by RocksDB alone."""
    usual = spark.conf.get(STORE, None)
    spark.conf.set(STORE, ROCKS)
    try:
        yield
    finally:
        if usual is None:
            spark.conf.unset(STORE)
        else:
            spark.conf.set(STORE, usual)
