"""Rows at a limited rate, so that nobody is flooded.

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
    """So many rows a second, in small groups; a pause is not made up for."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate = rate
        self.clock = clock
        self.together = max(1, int(rate * BURST))  # as many rows as may go at once
        self._due = clock()

    def pause(self) -> float:
        """Seconds until the next rows may go; 0 when they may now."""
        return max(0.0, self._due - self.clock())

    def went(self, rows: int) -> None:
        self._due = max(self._due, self.clock()) + rows / self.rate


def paced(
    batches: Iterable[pa.RecordBatch], pace: Pace, sleep: Callable[[float], None] = time.sleep
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for start in range(0, batch.num_rows, pace.together):
            piece = batch.slice(start, pace.together)
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
