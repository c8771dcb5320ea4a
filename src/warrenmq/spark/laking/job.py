"""lake: journals' files into a table by day and vhost; small files joined; what is old removed.

Duty: one run: take what is sealed, join what is in pieces, remove what is too old, and each time write the manifest,
which is the moment at which that counts. A run that breaks off anywhere has changed nothing that counts; the next one
begins with removing what does not count. What is written is counted before it counts: as many rows of every file as
its footer says. Spark does all of it, without Python on the workers. Not here: what is decided (``keeping``), reading
(``snapshot``).

One run at a time may write to a lake.
"""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from glob import escape, glob
from typing import TYPE_CHECKING
from urllib.parse import unquote

from warrenmq.journal.files import REMOVED
from warrenmq.spark.auditing.listing import File, JournalError, Missing, counted
from warrenmq.spark.auditing.reading import check, counts, find
from warrenmq.spark.following import following
from warrenmq.spark.laking.columns import MOST_ROWS, PARTITIONS, in_order, of_files, of_parts
from warrenmq.spark.laking.keeping import Kept, gaps_of, joined, lacking, retained, sealed
from warrenmq.spark.laking.snapshot import (
    INSIDE,
    Manifest,
    Removed,
    Taken,
    Written,
    by_lake,
    manifest_of,
    rows_of,
    there,
)
from warrenmq.spark.storage import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SECOND = 1_000_000
TOGETHER = 64  # files that are taken between two manifests
PIECES = 8  # of a day and vhost, before they are joined
GRACE = 3600 * SECOND  # for whoever reads what was put out of use


@dataclass
class LakeResult:
    """The results of a run, and the contents of the lake."""

    manifest: Manifest
    files: int = 0  # taken
    rows: int = 0  # of these
    joined: int = 0  # pieces that were written anew
    removed: int = 0  # events that retention took
    missing: list[Missing] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Is there every segment of every log that was not removed on purpose?"""
        return not self.missing


def read(spark: SparkSession, lake: str) -> DataFrame:
    """All events of a lake as it is now: the journal's columns, with ``log``, ``file`` and ``row``."""
    place = lake.rstrip("/")
    manifest = there(spark, place)
    return rows_of(spark, place, manifest, manifest.listed(place))


def lake(
    spark: SparkSession,
    paths: str | Sequence[str],
    out: str,
    *,
    max_age: int = 0,
    max_bytes: int = 0,
    pieces: int = PIECES,
    grace: int = GRACE,
    now: Callable[[], float] = time.time,
    progress: Callable[[str], None] | None = None,
    step: Callable[[str], None] | None = None,
) -> LakeResult:
    """Take the sealed files of the journals in these folders into the lake ``out``, and keep it in order.

    ``max_age`` (µs): whole segments whose last event is older are removed; ``max_bytes``: the oldest ones, until the
    lake has no more; 0 is no limit. ``pieces``: a day of a vhost that is in more than so many is written anew as one.
    ``grace`` (µs): for so long files stay that were put out of use. ``step`` is told of each step.
    """
    run = Run(spark, out.rstrip("/"), grace, now, progress or (lambda _line: None), step or (lambda _name: None))
    folders = [paths] if isinstance(paths, str) else list(paths)
    present = counted(find(spark, folders)) if folders else []
    present, lakes = by_lake(present)
    if lakes:
        raise JournalError(f"{next(iter(lakes))} is a lake: name the folders of journals")
    done = LakeResult(run.manifest)
    new = sealed(present, run.manifest)
    check(spark, new)
    run.tell(f"{len(present):,} files, {len(new):,} of them sealed and new; the lake has {len(run.manifest.files):,}")
    removed = gaps_of(run.manifest, told_gaps(spark, present))
    if not new and removed != run.manifest.removed:
        run.take([], removed)
    for at in range(0, len(new), TOGETHER):
        some = new[at : at + TOGETHER]
        done.rows += run.take(some, removed)
        done.files += len(some)
    before = int(now() * SECOND) - max_age if max_age else None
    kept = retained(run.manifest, before, max_bytes or None)
    again = joined(kept, pieces)
    if again or kept.victims:
        done.removed = run.manifest.rows() - kept.manifest.rows()
        done.joined = len(again)
        run.rewrite(kept, again)
    done.manifest = run.manifest
    done.missing = lacking(run.manifest)
    return done


class Run:
    """One run over a lake; ``manifest`` is the one that counts."""

    def __init__(
        self,
        spark: SparkSession,
        place: str,
        grace: int,
        now: Callable[[], float],
        tell: Callable[[str], None],
        passes: Callable[[str], None],
    ) -> None:
        self.spark = spark
        self.place = place
        self.grace = grace
        self.now = now
        self.tell = tell
        self.passes = passes
        self.manifest = manifest_of(spark, place) or Manifest()
        self._tidy()

    def take(self, files: Sequence[File], removed: dict[str, Removed]) -> int:
        """Files of journals into the lake; how many events they had."""
        footers = counts(self.spark, files)
        taken = {file.name: Taken(0, 0, 0, gap=False) for file in files}
        parts: list[Written] = []
        if sum(footers.values()):
            rows = of_files(self.spark, [file.uri for file in files])
            parts = self._write(rows, footers, taken, "taking")
        self._commit(self.manifest.files | taken, [*self.manifest.parts, *parts], removed, [])
        return sum(footers.values())

    def rewrite(self, kept: Kept, again: Sequence[Written]) -> None:
        """Some pieces as one for each day and vhost, without what is removed."""
        parts: list[Written] = []
        expected: dict[str, int] = {}
        for one in again:
            for name, count in one.files.items():
                if name not in kept.victims:
                    expected[name] = expected.get(name, 0) + count
        if again:
            rows = of_parts(self.spark, self.place, [one.path for one in again])
            if kept.victims:
                rows = rows.where(~rows["file"].isin(sorted(kept.victims)))
            parts = self._write(rows, expected, {}, "joining")
        out = {one.path for one in (*again, *kept.dropped)}
        stay = [one for one in self.manifest.parts if one.path not in out]
        self._commit(kept.manifest.files, [*stay, *parts], kept.manifest.removed, sorted(out))

    def _write(
        self, rows: DataFrame, expected: Mapping[str, int], taken: Mapping[str, Taken], word: str
    ) -> list[Written]:
        """Rows into folders of their own, which count for nobody yet; and whether all of them are there."""
        name = f"{self.manifest.run + 1}-{uuid.uuid4().hex[:8]}"
        with following(self.spark, word, sum(expected.values()), self.tell):
            writing = in_order(rows, name).write.mode("append").option("compression", "zstd")
            writing.option("maxRecordsPerFile", MOST_ROWS).partitionBy(*PARTITIONS).parquet(self.place)
            self.passes("written")
            parts = self._written(name, taken)
        there: dict[str, int] = {}
        for part in parts:
            for file, count in part.files.items():
                there[file] = there.get(file, 0) + count
        for file, count in expected.items():
            if there.get(file, 0) != count:
                said = f"{file} has {count:,} events, and {there.get(file, 0):,} of them were written"
                raise JournalError(f"{said}: the lake is as it was")
        self.passes("counted")
        return parts

    def _written(self, name: str, taken: Mapping[str, Taken]) -> list[Written]:
        """What is in the folders of this run, read again."""
        from pyspark.sql import functions as F

        schema = "time timestamp, event string, number bigint, file string, day string, vhost string, run string"
        reading = self.spark.read.schema(schema).option("basePath", self.place)
        rows = reading.parquet(f"{literal(self.place)}/day=*/vhost=*/run={name}")
        at = F.unix_micros("time")
        found = rows.groupBy(F.col("_metadata.file_path").alias("uri"), "day", "vhost", "file").agg(
            F.count("*").alias("rows"),
            F.min(at).alias("first"),
            F.max(at).alias("last"),
            F.max((F.col("event") == "gap") & F.col("number").isNull()).alias("gap"),
            F.first("_metadata.file_size").alias("octets"),
        )
        parts: dict[str, Written] = {}
        sizes: dict[str, int] = {}
        for row in found.collect():
            uri = unquote(row["uri"])
            path = "/".join(uri.split("/")[-4:-1])
            part = parts.setdefault(path, Written(path, row["day"], row["vhost"], 0, {}))
            part.files[row["file"]] = part.files.get(row["file"], 0) + row["rows"]
            sizes[uri] = row["octets"]
            one = taken.get(row["file"])
            if one is not None:
                one.first = min(one.first, row["first"]) if one.rows else row["first"]
                one.last = max(one.last, row["last"])
                one.rows += row["rows"]
                one.gap = one.gap or bool(row["gap"])
        for uri, octets in sizes.items():
            parts["/".join(uri.split("/")[-4:-1])].octets += octets
        return [parts[path] for path in sorted(parts)]

    def _commit(
        self, files: dict[str, Taken], parts: list[Written], removed: dict[str, Removed], out: Sequence[str]
    ) -> None:
        """From now on this counts."""
        moment = int(self.now() * SECOND)
        unused = {path: since for path, since in self.manifest.unused.items() if since >= moment - self.grace}
        after = Manifest(self.manifest.run + 1, files, parts, removed, unused | dict.fromkeys(out, moment))
        line = self.spark.createDataFrame([(after.dump(),)], "value string").coalesce(1)
        line.write.mode("overwrite").text(f"{self.place}{INSIDE}manifest/run={after.run}")
        self.manifest = after
        self.passes("counts")

    def _tidy(self) -> None:
        """Where it is a folder of this machine, what does not count goes, unless it did a moment ago."""
        moment = int(self.now() * SECOND)
        used = {one.path for one in self.manifest.parts}
        used |= {path for path, since in self.manifest.unused.items() if since >= moment - self.grace}
        for folder in glob(f"{escape(self.place)}/day=*/vhost=*/run=*"):
            if "/".join(folder.split("/")[-3:]) not in used:
                shutil.rmtree(folder)
                self.passes("removed")
        for folder in glob(f"{escape(self.place)}/day=*/vhost=*") + glob(f"{escape(self.place)}/day=*"):
            if not os.listdir(folder):
                os.rmdir(folder)
        for folder in glob(f"{escape(self.place)}{INSIDE}manifest/run=*"):
            if int(folder.rpartition("=")[2]) < self.manifest.run:
                shutil.rmtree(folder)
                self.passes("removed")


def told_gaps(spark: SparkSession, present: Sequence[File]) -> dict[str, Removed]:
    """What journals say that they removed of each log."""
    from pyspark.sql import functions as F

    files = [file for file in present if file.segment == REMOVED]
    if not files:
        return {}
    rows = spark.read.schema("time timestamp, until timestamp, number bigint").parquet(
        *(literal(one.uri) for one in files)
    )
    name = F.col("_metadata.file_name").alias("name")
    told = rows.select(name, F.unix_micros("time").alias("since"), F.unix_micros("until").alias("until"), "number")
    by = {row["name"]: row for row in told.collect()}
    return {one.log: Removed(one.end, *(by[one.name][key] for key in ("since", "until", "number"))) for one in files}
