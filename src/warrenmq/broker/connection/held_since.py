"""Since when each queue's deliveries are held: the oldest of each, over all channels.

Duty: to find it in steps. A channel's deliveries stand in the order in which they went out, so that mostly the first
look at a channel tells; only where it holds what no consumer of it accounts for (basic.get, a cancelled consumer) all
of it is looked at. Not here: leases and letters, which queues know themselves.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.channel.channel import Channel
from warrenmq.broker.connection.connections import Connections
from warrenmq.broker.queue.queue import Entry, Queue


@final
class HeldSince:
    """The search; when it is over, ``found`` has the time for every queue of which something is with a client."""

    def __init__(self, connections: Connections) -> None:
        self.found: Final[dict[Queue, int]] = {}
        self._channels: Final[list[Channel]] = []
        for connection in connections:
            self._channels.extend(connection.channels.values())
        self._channel: i64 = 0
        self._pieces: list[list[Entry | None]] = []  # of the channel that is looked at
        self._at: i64 = 0
        self._missing: set[Queue] | None = None  # the queues it has something of; None: that is not known

    def step(self, looks: i64) -> bool:
        """Look at so many deliveries; says whether that was all."""
        while True:
            while self._pieces:
                piece = self._pieces[len(self._pieces) - 1]
                while self._at < len(piece):
                    if looks <= 0:
                        return False
                    looks -= 1
                    entry = piece[self._at]
                    self._at += 1
                    if entry is not None and self._note(entry):
                        self._pieces = []
                        break
                if self._pieces:
                    self._pieces.pop()
                self._at = 0
            if self._channel == len(self._channels):
                return True
            looks -= 1
            self._begin(self._channels[self._channel])
            self._channel += 1

    def _begin(self, channel: Channel) -> None:
        unacked = channel.outstanding.unacked
        self._missing = None
        if channel.tx is not None:
            self._pieces = channel.tx.pieces()
        if unacked.count == 0:
            return
        self._pieces.append(unacked.copied())
        accounted: i64 = 0
        queues: set[Queue] = set()
        for consumer in channel.consumers.by_tag.values():
            if consumer.unacked > 0:
                accounted += consumer.unacked
                queues.add(consumer.queue)
        if accounted == unacked.count and len(self._pieces) == 1:
            self._missing = queues

    def _note(self, entry: Entry) -> bool:
        """Says whether nothing more is to be learnt from this channel."""
        queue = entry.queue
        known = self.found.get(queue)
        if known is None or entry.delivered_at < known:
            self.found[queue] = int(entry.delivered_at)
        missing = self._missing
        if missing is None:
            return False
        missing.discard(queue)
        return len(missing) == 0
