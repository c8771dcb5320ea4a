"""Rows at a limited rate, so that nobody is flooded; or when their like went before.

Duty: when the next rows may go, and how a read shares its limit among its tasks (option ``maxRowsPerSecond``). A task
of a write cannot know how many there are beside it: its limit is its own (``maxRowsPerSecondPerTask``). Not here: how
many rows a batch has (``gathering.py``, the readers).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import pyarrow as pa

BURST = 0.1  # seconds' worth of rows that may go at once

Reader = TypeVar("Reader", bound=type)


class Pace:
    """A pace of so many rows a second, in small groups; a pause is not made up for."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate = rate
        self.clock = clock
        self.together = max(1, int(rate * BURST))  # as many rows as may go at once
        self._due = clock()

    def pieces(self, batch: pa.RecordBatch, most: int) -> Iterator[pa.RecordBatch]:
        """What may go at once, one after the other."""
        step = min(most, self.together)
        for start in range(0, batch.num_rows, step):
            yield batch.slice(start, step)

    def pause(self) -> float:
        """Seconds until the next rows may go; 0 when they may now."""
        return max(0.0, self._due - self.clock())

    def went(self, rows: int) -> None:
        self._due = max(self._due, self.clock()) + rows / self.rate


class RecordedPace:
    """A pace that sends each row when its like went before, by the column ``at`` (µs), counted from the first one's:
    ``factor`` times as fast. Who is late sends at once until that is made up for. All tasks count from the driver's
    ``began``."""

    def __init__(self, first: int, began: float, factor: float, clock: Callable[[], float] = time.time) -> None:
        self.first = first
        self.began = began
        self.factor = factor
        self.clock = clock
        self._due = began

    def pieces(self, batch: pa.RecordBatch, most: int) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        due = [self._when(at) for at in batch.column("at").cast(pa.int64()).to_pylist()]
        start = 0
        for end in range(1, len(due) + 1):
            if end == len(due) or end - start == most or due[end] - due[start] > BURST:
                self._due = due[start]
                yield batch.slice(start, end - start)
                start = end

    def _when(self, at: int) -> float:
        return self.began + (at - self.first) / 1_000_000 / self.factor

    def pause(self) -> float:
        return min(1.0, max(0.0, self._due - self.clock()))

    def went(self, rows: int) -> None:
        """The next rows have a time of their own."""


def paced(
    batches: Iterable[pa.RecordBatch], pace: Pace, sleep: Callable[[float], None] = time.sleep
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for piece in pace.pieces(batch, pace.together):
            while (pause := pace.pause()) > 0:
                sleep(pause)
            pace.went(piece.num_rows)
            yield piece


def at_a_rate(reader: Reader) -> Reader:
    """A reader whose tasks keep to ``maxRowsPerSecond`` together: each partition gets an equal share when planned."""
    plan, read = reader.partitions, reader.read  # type: ignore[attr-defined]

    def partitions(self: Any, *offsets: Any) -> Any:
        found = plan(self, *offsets)
        if self.options.max_rows_per_second is not None:
            for partition in found:
                partition.rate = self.options.max_rows_per_second / len(found)
        return found

    def read_paced(self: Any, partition: Any) -> Iterator[pa.RecordBatch]:
        rate: float | None = getattr(partition, "rate", None)
        batches: Iterator[pa.RecordBatch] = read(self, partition)
        return batches if rate is None else paced(batches, Pace(rate))

    setattr(reader, "partitions", partitions)  # noqa: B010  (mypy forbids to assign a method)
    setattr(reader, "read", read_paced)  # noqa: B010
    return reader
