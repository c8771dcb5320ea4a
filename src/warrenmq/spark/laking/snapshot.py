"""What of a lake's folder counts: one line of JSON says so, and until that line is there nothing has changed.

Duty: the manifest, and reading what it names. Whoever has read a manifest sees what it names and nothing else, however
often the lake is written meanwhile: what was put out of use stays for a while. Not here: how a run changes it
(``job``).

    day=2026-05-01/vhost=%2F/run=7-0af3/part-….parquet     rows, in the order in which they were told
    _lake/manifest/run=7                                   the manifest behind run 7

A segment of a log in a lake has the address LAKE/_lake/NAME, NAME being that of the journal's file it was: nothing
stands there, but all that reads journals takes it for a file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any

from warrenmq.journal.files import REMOVED
from warrenmq.spark.auditing.listing import File, JournalError, named
from warrenmq.spark.laking.columns import FULL, of_parts
from warrenmq.spark.storage import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

VERSION = 1
INSIDE = "/_lake/"


@dataclass
class Taken:
    """A segment of a log in the lake, as the file of the journal that it was."""

    rows: int
    first: int  # µs; of one without events 0
    last: int
    gap: bool  # it says that what was before it is not told


@dataclass
class Written:
    """The rows that one run wrote of one day and vhost."""

    path: str  # in the lake
    day: str
    vhost: str | None
    octets: int
    files: dict[str, int]  # how many rows of which

    def rows(self) -> int:
        return sum(self.files.values())


@dataclass
class Removed:
    """The part of a log that retention took, here or in the journal: up to which segment, when, how many events."""

    end: int
    since: int
    until: int
    count: int


@dataclass
class Manifest:
    """The files and folders that count."""

    run: int = 0
    files: dict[str, Taken] = field(default_factory=dict)  # by name
    parts: list[Written] = field(default_factory=list)
    removed: dict[str, Removed] = field(default_factory=dict)  # by log
    unused: dict[str, int] = field(default_factory=dict)  # paths that counted before, and up to when (µs)

    def rows(self) -> int:
        return sum(one.rows for one in self.files.values())

    def octets(self) -> int:
        return sum(one.octets for one in self.parts)

    def listed(self, lake: str) -> list[File]:
        """As files of a journal, retention's too."""
        names = [*self.files, *(removed_name(log, one.end) for log, one in self.removed.items())]
        return named(f"{lake}{INSIDE}{name}" for name in names)

    def dump(self) -> str:
        return json.dumps({"version": VERSION, **asdict(self)}, sort_keys=True)

    @staticmethod
    def load(text: str) -> Manifest:
        said = json.loads(text)
        if said.pop("version") != VERSION:
            raise JournalError("the lake was written by another version of Warren, which this one cannot read")
        return Manifest(
            said["run"],
            {name: Taken(**one) for name, one in said["files"].items()},
            [Written(**one) for one in said["parts"]],
            {log: Removed(**one) for log, one in said["removed"].items()},
            said["unused"],
        )


def removed_name(log: str, end: int) -> str:
    """Of the file by which a journal tells that it removed all up to this segment."""
    return f"journal-{log}-{REMOVED:010d}-{0:010d}-{end:010d}.parquet"


def manifest_of(spark: SparkSession, lake: str) -> Manifest | None:
    """The one that counts now; None where there is no lake."""
    from pyspark.errors import AnalysisException

    place = lake.rstrip("/")
    if os.path.isdir(place) and not os.path.isdir(f"{place}{INSIDE}"):
        return None  # asked without Spark, as most folders are no lakes
    try:
        lines = spark.read.text(f"{literal(place)}{INSIDE}manifest").orderBy("run", ascending=False).limit(1)
        found = lines.collect()
    except AnalysisException as error:
        if "PATH_NOT_FOUND" in str(error) or "UNRESOLVED_COLUMN" in str(error):
            return None
        raise
    return Manifest.load(found[0]["value"]) if found else None


def lake_of(file: File) -> str | None:
    """The lake that a file is in."""
    lake, inside, _ = file.uri.partition(INSIDE)
    return lake if inside else None


def by_lake(files: Iterable[File]) -> tuple[list[File], dict[str, list[File]]]:
    """Files of journals; and those that are in lakes."""
    alone: list[File] = []
    lakes: dict[str, list[File]] = {}
    for file in files:
        lake = lake_of(file)
        (alone if lake is None else lakes.setdefault(lake, [])).append(file)
    return alone, lakes


def there(spark: SparkSession, lake: str) -> Manifest:
    """The manifest of what is a lake."""
    manifest = manifest_of(spark, lake)
    if manifest is None:
        raise JournalError(f"{lake} is no lake: it has no manifest")
    return manifest


def rows_of(spark: SparkSession, lake: str, manifest: Manifest, files: Sequence[File], schema: str = FULL) -> DataFrame:
    """The rows of these segments: with ``log``, ``file`` and ``row``, their number in it. What retention removed is a
    row that is made here."""
    names = [file.name for file in files if file.segment != REMOVED]
    for name in names:
        if name not in manifest.files:
            raise JournalError(f"{lake} has no {name} any more")
    wanted = set(names)
    frames = [_removed(spark, manifest, files, schema)]
    parts = [one.path for one in manifest.parts if not wanted.isdisjoint(one.files)]
    if parts:
        rows = of_parts(spark, lake, parts, schema)
        if len(wanted) < len(manifest.files):
            rows = rows.where(rows["file"].isin(names))
        frames.append(rows)
    return reduce(lambda one, other: one.unionByName(other), frames)


def counts(manifest: Manifest, files: Iterable[File]) -> dict[str, int]:
    """How many rows each has."""
    return {file.name: 1 if file.segment == REMOVED else manifest.files[file.name].rows for file in files}


def times(manifest: Manifest, file: File) -> tuple[int, int] | None:
    """The first and the last time of a segment; None of one without events."""
    taken = manifest.files.get(file.name)
    return (taken.first, taken.last) if taken is not None and taken.rows else None


def _removed(spark: SparkSession, manifest: Manifest, files: Sequence[File], schema: str) -> DataFrame:
    from pyspark.sql import functions as F

    rows: list[Any] = []
    for file in files:
        one = manifest.removed.get(file.log)
        if file.segment == REMOVED and one is not None:
            rows.append((file.log, file.name, one.since, one.until, one.count))
    told = spark.createDataFrame(rows, "log string, file string, since bigint, until bigint, number bigint")
    known = {
        "time": F.timestamp_micros("since"),
        "event": F.lit("gap"),
        "until": F.timestamp_micros("until"),
        "number": F.col("number"),
    }
    columns = [column.split() for column in schema.split(", ")]
    made = [known.get(name, F.lit(None)).cast(kind).alias(name) for name, kind in columns]
    return told.select(*made, "log", "file", F.lit(0).cast("bigint").alias("row"))
