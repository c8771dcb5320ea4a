"""An ordered set of destinations that counts how many bindings point at each.

A destination may be bound several times (with other keys or other arguments) and must stay until the last of these
bindings is gone. Order is the order of the first binding, so routing is deterministic.
"""

from __future__ import annotations

from typing import final

from warrenmq.broker.records import Destination


@final
class Targets:
    """A set of destinations with their number of bindings."""

    def __init__(self) -> None:
        self.counts: dict[Destination, int] = {}

    def add(self, destination: Destination) -> None:
        self.counts[destination] = self.counts.get(destination, 0) + 1

    def remove(self, destination: Destination) -> None:
        count = self.counts[destination]
        if count > 1:
            self.counts[destination] = count - 1
        else:
            del self.counts[destination]
