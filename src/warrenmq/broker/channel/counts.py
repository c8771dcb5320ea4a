"""What left one channel and what came back: counters under the names that queues count by."""

from __future__ import annotations

from typing import final

from mypy_extensions import i64


@final
class Counts:
    """The counters of one channel, for the management API."""

    def __init__(self) -> None:
        self.delivered: i64 = 0
        self.delivered_no_ack: i64 = 0
        self.fetched: i64 = 0
        self.fetched_no_ack: i64 = 0
        self.fetched_nothing: i64 = 0  # basic.get of an empty queue
        self.redelivered: i64 = 0
        self.acked: i64 = 0
