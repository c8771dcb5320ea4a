"""What was handed to clients, by the way it took, and what of it they acknowledged: counters, for the management API.

Duty: the numbers under one set of names, for a channel, for a queue, and for those that are gone. Nothing is decided by
them.
"""

from __future__ import annotations

from typing import final

from mypy_extensions import i64


@final
class Deliveries:
    """The counters of what one channel, one queue or many together handed out."""

    def __init__(self) -> None:
        self.delivered: i64 = 0  # to consumers who acknowledge
        self.delivered_no_ack: i64 = 0
        self.fetched: i64 = 0  # by basic.get
        self.fetched_no_ack: i64 = 0
        self.fetched_nothing: i64 = 0  # basic.get of an empty queue
        self.redelivered: i64 = 0  # of all these, those that had been delivered before
        self.acked: i64 = 0

    def fetch(self, no_ack: bool, redelivered: bool) -> None:
        """basic.get got a message."""
        if no_ack:
            self.fetched_no_ack += 1
        else:
            self.fetched += 1
        if redelivered:
            self.redelivered += 1

    def all(self) -> i64:
        """How many messages, in whatever way."""
        return self.delivered + self.delivered_no_ack + self.fetched + self.fetched_no_ack

    def any(self) -> bool:
        """Was anything asked for or handed out?"""
        return self.all() > 0 or self.fetched_nothing > 0 or self.acked > 0

    def add(self, other: Deliveries) -> None:
        self.delivered += other.delivered
        self.delivered_no_ack += other.delivered_no_ack
        self.fetched += other.fetched
        self.fetched_no_ack += other.fetched_no_ack
        self.fetched_nothing += other.fetched_nothing
        self.redelivered += other.redelivered
        self.acked += other.acked
