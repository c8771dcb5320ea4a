"""What ``route`` has Spark call in a worker, with batches of facts in Arrow.

Duty: the two shapes in which Spark hands out batches. Not here: the verdicts (``blocks.py``).
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from warrenmq.spark.routing.blocks import known
from warrenmq.spark.routing.definitions import Plan
from warrenmq.spark.routing.outcome import VERDICT_NAMES


class Judge:
    """One column of the verdicts."""

    def __init__(self, plan: Plan, names: tuple[str, ...], wanted: int) -> None:
        self.plan = plan
        self.names = names
        self.wanted = wanted

    def column(self, *facts: pa.Array) -> pa.Array:
        return known(self.plan).column(facts, self.names, self.wanted)


class JudgeWhole:
    """All columns; the facts are the last of a batch and give way to the verdicts."""

    def __init__(self, plan: Plan, own: int, names: tuple[str, ...]) -> None:
        self.plan = plan
        self.own = own
        self.names = names

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            facts = pa.Table.from_arrays(batch.columns[self.own :], names=list(self.names))
            columns = [*batch.columns[: self.own], *known(self.plan).of(facts)]
            yield pa.RecordBatch.from_arrays(columns, names=[*batch.schema.names[: self.own], *VERDICT_NAMES])
