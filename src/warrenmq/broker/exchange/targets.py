"""An ordered set of destinations, each with the bindings that point at it.

A destination may be bound several times (with other keys or other arguments) and must stay until the last of these
bindings is gone. Order is the order of the first binding, so routing is deterministic.
"""

from __future__ import annotations

from typing import final

from warrenmq.broker.records import Binding, Destination, Matches


@final
class Targets:
    """A set of destinations. Nearly all are bound once: the others' further bindings stand apart."""

    def __init__(self) -> None:
        self.first: dict[Destination, Binding] = {}
        self._further: dict[Destination, dict[Binding, bool]] | None = None

    def add(self, binding: Binding) -> None:
        destination = binding.destination
        if destination not in self.first:
            self.first[destination] = binding
            return
        if self._further is None:
            self._further = {}
        self._further.setdefault(destination, {})[binding] = True

    def remove(self, binding: Binding) -> None:
        """Take a binding away: the object itself that was added."""
        destination = binding.destination
        further = None if self._further is None else self._further.get(destination)
        if further is None:
            del self.first[destination]
            return
        if self.first[destination] is binding:
            self.first[destination] = further.popitem()[0]
        else:
            del further[binding]
        if not further and self._further is not None:
            del self._further[destination]

    def tell(self, matches: Matches) -> None:
        """All of them match. However many lead to one destination, they are only counted."""
        for destination, binding in self.first.items():
            further = None if self._further is None else self._further.get(destination)
            matches.add(binding, 0 if further is None else len(further))
