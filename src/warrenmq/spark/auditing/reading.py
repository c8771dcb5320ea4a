"""The rows of a journal's files as a table of events.

Duty: find the files with Spark, so that they may be wherever Spark reads; look at what each says of itself; the
columns that an audit needs, with numbers for the events' names. What a file of an earlier version lacks is null. Not
here: which files count (``listing``), what the events mean (``lives``).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from warrenmq.journal.parquet import VERSION
from warrenmq.spark.auditing.kinds import CODES, kind_of
from warrenmq.spark.auditing.listing import File, JournalError, named
from warrenmq.spark.laking import snapshot
from warrenmq.spark.storage import literal
from warrenmq.spark.storage import named as named_path

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

SCHEMA = (
    "time timestamp, event string, message bigint, id bigint, vhost string, queue string, position bigint, "
    "user string, connection string, channel int, number bigint, redelivered boolean, until timestamp, "
    "exchange string, routing_keys array<string>, size bigint, message_id string, correlation_id string, "
    "code int, text string"
)
WITHOUT_RECORD = 1 << 62  # and its id: the number of a message that the log does not hold
MARK = b"warren.journal"  # where a file names the version of its schema


def find(spark: SparkSession, paths: Sequence[str]) -> list[File]:
    """All files of journals in these folders, and in folders within them, or named one by one; of a lake what is in
    it now, as such files."""
    found: list[File] = []
    for path in paths:
        manifest = snapshot.manifest_of(spark, path)
        if manifest is not None:
            found += manifest.listed(path.rstrip("/"))
            continue
        reader = spark.read.schema("time timestamp").option("recursiveFileLookup", "true")
        here = named(unquote(uri) for uri in reader.parquet(named_path(path)).inputFiles())
        if not here:
            raise JournalError(f"{path} has no journal: no file there is named journal-LOG-SEGMENT-FROM-TO.parquet")
        found += here
    return named(file.uri for file in found)


def check(spark: SparkSession, files: Iterable[File]) -> None:
    """What does each say that it is? Of files that only Spark can open the columns alone are looked at, of one."""
    seen = False
    for file in snapshot.by_lake(files)[0]:
        path = local(file.uri)
        if path is not None:
            _check_footer(file.name, path)
        elif not seen:
            seen = True
            columns = spark.read.parquet(literal(file.uri)).columns
            if not {"time", "event", "message"} <= set(columns):
                raise JournalError(f"{file.name} is no file of a journal: its columns are {', '.join(columns)}")


def local(uri: str) -> str | None:
    """Its path, where this process can open it."""
    parts = urlsplit(uri)
    path = uri.removeprefix("file://") if parts.scheme == "file" else uri
    return path if parts.scheme in ("", "file") and os.path.exists(path) else None


def _check_footer(name: str, path: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        footer = pq.read_metadata(path)
    except (OSError, pa.ArrowException) as error:
        raise JournalError(f"{name} cannot be read: {str(error).splitlines()[0]}") from None
    check_footer(name, footer)


def check_footer(name: str, footer: Any) -> None:
    """Does Parquet's footer say that it is a file of a journal, of a version that can be read?"""
    said = (footer.metadata or {}).get(MARK, b"").decode(errors="replace")
    if not said.isdigit():
        raise JournalError(f"{name} is no file of a journal: it names no version of the journal's schema")
    if int(said) > VERSION:
        raise JournalError(f"{name} has version {said} of the journal's schema, and this Warren reads up to {VERSION}")


def counts(spark: SparkSession, files: Sequence[File]) -> dict[str, int]:
    """How many rows each file has: Spark asks their footers."""
    from pyspark.sql import functions as F

    alone, lakes = snapshot.by_lake(files)
    found = dict.fromkeys((file.name for file in files), 0)
    for lake, some in lakes.items():
        found |= snapshot.counts(snapshot.there(spark, lake), some)
    if not alone:
        return found
    reading = spark.read.schema(SCHEMA).parquet(*(literal(file.uri) for file in alone))
    rows = reading.groupBy(F.col("_metadata.file_name").alias("name")).count().collect()
    return found | {unquote(row["name"]): row["count"] for row in rows}


def times(spark: SparkSession, files: Sequence[File]) -> dict[str, tuple[int, int]]:
    """The first and the last time of each that has events."""
    from pyspark.sql import functions as F

    alone, lakes = snapshot.by_lake(files)
    found: dict[str, tuple[int, int]] = {}
    for lake, some in lakes.items():
        manifest = snapshot.there(spark, lake)
        told = {file.name: snapshot.times(manifest, file) for file in some}
        found |= {name: time for name, time in told.items() if time is not None}
    if alone:
        rows = spark.read.schema("time timestamp").parquet(*(literal(file.uri) for file in alone))
        name, at = F.col("_metadata.file_name").alias("name"), F.unix_micros("time")
        for row in rows.groupBy(name).agg(F.min(at).alias("first"), F.max(at).alias("last")).collect():
            found[unquote(row["name"])] = (row["first"], row["last"])
    return found


def events(spark: SparkSession, parts: Sequence[tuple[File, int, int | None]], schema: str = SCHEMA) -> DataFrame:
    """Rows of these files, from and to: with ``log``, ``kind`` for the event, ``at`` in µs, and a number for every
    message, with a record or without (``record``). ``schema``: with more columns than an audit needs."""
    from pyspark.sql import functions as F

    reader = spark.read.schema(schema)
    frames: list[DataFrame] = []
    whole: dict[str, list[str]] = {}
    laked = [part for part in parts if snapshot.lake_of(part[0]) is not None]
    for file, first, last in parts:
        if snapshot.lake_of(file) is not None:
            continue
        if first == 0 and last is None:
            whole.setdefault(file.log, []).append(literal(file.uri))
            continue
        some = F.col("_metadata.row_index") >= first
        if last is not None:
            some = some & (F.col("_metadata.row_index") < last)
        frames.append(_of_log(reader.parquet(literal(file.uri)).where(some), file.log))
    frames += [_of_log(reader.parquet(*uris), log) for log, uris in whole.items()]
    frames += _of_lakes(spark, laked, schema)
    if not frames:
        frames = [spark.createDataFrame([], f"{schema}, log string, file string")]
    rows = frames[0]
    for frame in frames[1:]:
        rows = rows.unionByName(frame)
    rows = rows.select("*", kind_of(F.col("event")).alias("kind"), F.unix_micros("time").alias("at"))
    return rows.select(
        "*",
        _number().alias("record"),
    )


def _number() -> Column:
    """The record, or 2^62 and the id, as at the level `all`. A publish that was refused before it got an id is told
    apart by its channel and its time: that channel was closed for it. Other rows without both are of no message."""
    from pyspark.sql import functions as F

    channel = F.xxhash64("connection", "channel", "at", "number")
    refused = (F.col("kind") == CODES["refused"]) & F.col("connection").isNotNull()
    return (
        F.when(F.col("message").isNotNull(), F.col("message"))
        .when(F.col("id") > 0, F.col("id") + F.lit(WITHOUT_RECORD))
        .when(refused, -1 - F.pmod(channel, F.lit(WITHOUT_RECORD)))
    )


def _of_lakes(spark: SparkSession, parts: Sequence[tuple[File, int, int | None]], schema: str) -> list[DataFrame]:
    from pyspark.sql import functions as F

    frames = []
    for lake, files in snapshot.by_lake(file for file, _, _ in parts)[1].items():
        rows = snapshot.rows_of(spark, lake, snapshot.there(spark, lake), files, schema)
        for file, first, last in parts:
            if file in files and (first, last) != (0, None):
                inside = (F.col("row") >= first) & (F.col("row") < (1 << 62 if last is None else last))
                rows = rows.where((F.col("file") != file.name) | inside)
        frames.append(rows.drop("row"))
    return frames


def _of_log(rows: DataFrame, log: str) -> DataFrame:
    from pyspark.sql import functions as F

    return rows.select("*", F.lit(log).alias("log"), F.col("_metadata.file_name").alias("file"))
