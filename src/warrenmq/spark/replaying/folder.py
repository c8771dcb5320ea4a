"""A replay in a folder: what is to be sent, what became of it, which steps are done.

Duty: rows are planned once and cut into steps; until the line that names the replay is there, nothing was sent and all
is planned anew; a step is done when its line is there, and is sent again, with the same ids, when it is not. Spark
writes and reads all of it, so that the folder may be wherever Spark can write. Not here: sending (``job``).

    plan/step=N        the rows, in the order of their times
    replay             one line of JSON: the name of the replay, when it began, what was asked for
    outcomes/step=N    what became of each row
    done/step=N        how many of each outcome
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from warrenmq.spark.routing.definitions import InputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Replay:
    """The choices that all runs over one folder have in common."""

    key: str  # what all ids begin with
    began: int  # ms since 1970: nothing was sent before
    rows: int
    steps: int
    asked: dict[str, Any]


class Folder:
    """The folder of one replay."""

    def __init__(self, spark: SparkSession, out: str) -> None:
        self.spark = spark
        self.out = out.rstrip("/")

    def replay(self, asked: Mapping[str, Any]) -> Replay | None:
        """What is planned here; what is asked for now must be the same."""
        found = self._lines("replay")
        if not found:
            return None
        replay = Replay(**json.loads(found[0]))
        for name in sorted({*asked, *replay.asked}):
            if asked.get(name) != replay.asked.get(name):
                raise InputError(
                    f"{self.out} has a replay with {name} {replay.asked.get(name)!r}, and now it is "
                    f"{asked.get(name)!r}: go on with what was asked for, or give another folder"
                )
        return replay

    def plan(self, rows: DataFrame) -> DataFrame:
        path, schema = f"{self.out}/plan", rows.schema
        rows.write.mode("overwrite").partitionBy("step").parquet(path)
        return self.spark.read.schema(schema).parquet(path)

    def begin(self, replay: Replay) -> None:
        self._line("replay", json.dumps(asdict(replay)))

    def step(self, number: int) -> DataFrame:
        rows = self.spark.read.parquet(f"{self.out}/plan")
        return rows.where(rows["step"] == number).drop("step")

    def write_outcomes(self, number: int, rows: DataFrame) -> DataFrame:
        path = f"{self.out}/outcomes/step={number}"
        rows.write.mode("overwrite").parquet(path)
        return self.spark.read.parquet(path)

    def outcomes(self) -> DataFrame:
        return self.spark.read.parquet(f"{self.out}/outcomes")

    def finish(self, number: int, counts: Mapping[str, int]) -> None:
        self._line(f"done/step={number}", json.dumps(dict(counts)))

    def done(self) -> dict[int, Counter[str]]:
        """The steps that are done, with their outcomes."""
        rows = self._table("done")
        if rows is None:
            return {}
        return {row["step"]: Counter(json.loads(row["value"])) for row in rows.collect()}

    def _line(self, name: str, text: str) -> None:
        line = self.spark.createDataFrame([(text,)], "value string")
        line.coalesce(1).write.mode("overwrite").text(f"{self.out}/{name}")

    def _lines(self, name: str) -> list[str]:
        rows = self._table(name)
        return [] if rows is None else [row["value"] for row in rows.collect()]

    def _table(self, name: str) -> DataFrame | None:
        """None where nothing was finished."""
        from pyspark.errors import AnalysisException

        try:
            rows = self.spark.read.text(f"{self.out}/{name}")
            columns = rows.columns  # over Spark Connect nothing is looked for before somebody asks
            return rows if name != "done" or "step" in columns else None
        except AnalysisException as error:
            if "PATH_NOT_FOUND" in str(error):
                return None
            raise
