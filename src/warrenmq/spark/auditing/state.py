"""What audits have found so far, in a folder: the next one reads only what is new.

Duty: the rows of ``lives`` by parts, the files that they were made of, and one line that says which of it counts. A run
writes the parts that its events touch, whole and under its own number, and then that line: until then nothing has
changed, so a run that breaks off is done again. Events that come late touch old parts. Not here: what the rows are.

    state/places/run=N/part=…    state/records/run=N/part=…    state/notes/run=N
    state/manifest/run=N         JSON: the files read, and of every part the run that wrote it last
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any

from warrenmq.spark.auditing.listing import File, JournalError
from warrenmq.spark.auditing.lives import PART, merged_places, merged_records, with_part
from warrenmq.spark.storage import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

VERSION = 1
MOST_RUNS = 16  # whose parts are read together: then all is written anew
MERGES: dict[str, Callable[[DataFrame], DataFrame]] = {"places": merged_places, "records": merged_records}


@dataclass
class Manifest:
    """The files that were read, and the places of what they said."""

    run: int = 0
    version: int = VERSION
    files: list[list[Any]] = field(default_factory=list)  # log, segment, begin, end, uri, rows
    parts: dict[str, dict[str, int]] = field(default_factory=lambda: {"places": {}, "records": {}})
    notes: list[int] = field(default_factory=list)  # runs

    def read(self) -> list[File]:
        return [File(*one[:5]) for one in self.files]

    def rows(self) -> dict[str, int]:
        """How many rows each file had, by its name."""
        return {File(*one[:5]).name: one[5] for one in self.files}

    def spans(self) -> dict[tuple[str, int], list[tuple[int, int, int]]]:
        """What was read, by log and segment: from, to, how many rows."""
        found: dict[tuple[str, int], list[tuple[int, int, int]]] = {}
        for log, segment, begin, end, _, rows in self.files:
            found.setdefault((log, segment), []).append((begin, end, rows))
        return found


class State:
    """The folder of an audit."""

    def __init__(self, spark: SparkSession, out: str) -> None:
        self.spark = spark
        self.out = out.rstrip("/")
        self.manifest = self._manifest()

    def places(self) -> DataFrame:
        return self._kept("places")

    def records(self) -> DataFrame:
        return self._kept("records")

    def notes(self) -> DataFrame:
        return self._union([self.spark.read.parquet(literal(self._path("notes", run))) for run in self.manifest.notes])

    def add(
        self,
        files: Sequence[tuple[File, int]],
        places: DataFrame,
        records: DataFrame,
        notes: DataFrame,
        passes: Callable[[], None],
    ) -> None:
        """New files, with their numbers of rows, and what the new rows in them say. ``passes``: called when one of the
        three is written."""
        run = self.manifest.run + 1
        parts: dict[str, dict[str, int]] = {}
        for name, rows in (("places", places), ("records", records)):
            parts[name] = self._add(name, with_part(rows), run)
            passes()
        notes.coalesce(1).write.mode("overwrite").parquet(self._path("notes", run))
        passes()
        listed = [[file.log, file.segment, file.begin, file.end, file.uri, rows] for file, rows in files]
        manifest = Manifest(run, VERSION, [*self.manifest.files, *listed], parts, [*self.manifest.notes, run])
        line = self.spark.createDataFrame([(json.dumps(asdict(manifest)),)], "value string")
        line.coalesce(1).write.mode("overwrite").text(self._path("manifest", run))
        self.manifest = manifest
        self._tidy()

    def _add(self, name: str, new: DataFrame, run: int) -> dict[str, int]:
        from pyspark.sql import functions as F

        kept = self.manifest.parts[name]
        path = self._path(name, run)
        if not kept:
            new.write.mode("overwrite").partitionBy(PART).parquet(path)
            written = self._parts(path)
        else:
            new = new.persist()
            try:
                touched = {row[PART] for row in new.select(PART).distinct().collect()}
                if len(set(kept.values())) > MOST_RUNS:
                    touched |= set(kept)
                again = self._kept(name).where(F.col(PART).isin(sorted(touched & set(kept))))
                rows = with_part(MERGES[name](again.unionByName(new)))
                rows.write.mode("overwrite").partitionBy(PART).parquet(path)
            finally:
                new.unpersist()
            written = touched
        return kept | dict.fromkeys(written, run)

    def _parts(self, path: str) -> set[str]:
        return {row[PART] for row in self.spark.read.parquet(literal(path)).select(PART).distinct().collect()}

    def _kept(self, name: str) -> DataFrame:
        from pyspark.sql import functions as F

        runs: dict[int, list[str]] = {}
        for part, run in self.manifest.parts[name].items():
            runs.setdefault(run, []).append(part)
        frames = [
            self.spark.read.parquet(literal(self._path(name, run))).where(F.col(PART).isin(sorted(parts)))
            for run, parts in runs.items()
        ]
        return self._union(frames or [self.spark.read.parquet(literal(self._path(name, self.manifest.run)))])

    def _union(self, frames: list[DataFrame]) -> DataFrame:
        return reduce(lambda one, other: one.unionByName(other), frames)

    def _path(self, name: str, run: int) -> str:
        return f"{self.out}/state/{name}/run={run}"

    def _manifest(self) -> Manifest:
        from pyspark.errors import AnalysisException

        try:
            rows = (
                self.spark.read.text(f"{literal(self.out)}/state/manifest")
                .orderBy("run", ascending=False)
                .limit(1)
                .collect()
            )
        except AnalysisException as error:
            if "PATH_NOT_FOUND" in str(error) or "UNRESOLVED_COLUMN" in str(error):
                return Manifest()  # nothing yet, or none that was finished
            raise
        if not rows:
            return Manifest()
        found = json.loads(rows[0]["value"])
        if found.get("version") != VERSION:
            raise JournalError(f"{self.out} was written by an audit of another version: give another --out")
        return Manifest(**found)

    def _tidy(self) -> None:
        """Where it is a folder of this machine, what no longer counts goes; elsewhere it stays."""
        for name, parts in self.manifest.parts.items():
            used = set(parts.values()) | {self.manifest.run}
            for run in range(1, self.manifest.run):
                path = self._path(name, run)
                if run not in used and os.path.isdir(path):
                    shutil.rmtree(path)
