"""By which way each message of a batch came to its queues: what the log's events ``route`` and ``routed`` say.

Duty: for a message and a queue the number of a way, and the ways: the hops from the exchange of the publish to the
queue (``broker/exchange/hop.py``). Not here: words for it (``life``).
"""

from __future__ import annotations

import json
from typing import Any, Final, final

from librt.vecs import append, vec
from mypy_extensions import i64

from warrenmq.wire.fields import printable

NONE: Final = -1  # nobody said
WAY: Final = ("source", "binding_key", "binding_arguments", "route")  # columns that say it
NO_WAYS: Final[dict[int, int]] = {}


@final
class Ways:
    """The ways of some batches. ``texts``: of the routes, by their numbers in the segment."""

    def __init__(self, texts: dict[int, bytes]) -> None:
        self.ways: Final[list[bytes]] = []  # JSON, lists of hops, by number
        self._texts: Final = texts
        self._numbers: Final[dict[bytes, int]] = {}
        self._of_routes: Final[dict[int, dict[int, int]]] = {}  # ways by route and queue
        self._last: i64 = 0  # the route that was asked for last
        self._last_ways: dict[int, int] = NO_WAYS  # the ways of that route
        # runs of messages of this batch, in order
        self._first: vec[i64] = vec[i64]()
        self._end: vec[i64] = vec[i64]()
        self._route: vec[i64] = vec[i64]()
        self._at: i64 = 0  # where the last one was found
        self._others: Final[dict[int, list[int]]] = {}  # routes by message, of those that are not in order

    def route(self, route: i64, text: bytes) -> None:
        self._texts[route] = text
        self._of_routes.pop(route, None)
        self._last = 0

    def routed(self, route: i64, address: i64, count: i64) -> None:
        runs: i64 = len(self._end)
        if runs == 0 or address >= self._end[runs - 1]:
            self._first = append(self._first, address)
            self._end = append(self._end, address + count)
            self._route = append(self._route, route)
            return
        while count > 0:  # a message without a record and its dead letter have one number
            self._others.setdefault(address, []).append(route)
            address += 1
            count -= 1

    def batch_told(self) -> None:
        if len(self._first):
            self._first = vec[i64]()
            self._end = vec[i64]()
            self._route = vec[i64]()
            self._at = 0
        if self._others:
            self._others.clear()

    def way(self, address: i64, queue: i64) -> i64:
        """How the message came to the queue; NONE where it came by no exchange, or nobody said."""
        found: i64 = NONE
        if len(self._first):
            at = self._at
            if address < self._first[at] or address >= self._end[at]:
                at = self._find(address)
            if self._first[at] <= address < self._end[at]:
                found = self._in_route(self._route[at], queue)
        if found < 0 and self._others:
            for route in self._others.get(address, []):
                found = self._in_route(route, queue)
                if found >= 0:
                    break
        return found

    def _find(self, address: i64) -> i64:
        """The last run that does not begin behind it, else the first."""
        low: i64 = 0
        high: i64 = len(self._first)
        if self._at + 1 < high and self._first[self._at + 1] == address:  # mostly it is the next one
            self._at += 1
            return self._at
        while high - low > 1:
            middle = (low + high) >> 1
            if self._first[middle] <= address:
                low = middle
            else:
                high = middle
        if address < self._first[low]:
            return 0
        self._at = low
        return low

    def _in_route(self, route: i64, queue: i64) -> i64:
        if route != self._last:
            self._last_ways = self._ways_of(route)
            self._last = route
        return self._last_ways.get(queue, NONE)

    def _ways_of(self, route: i64) -> dict[int, int]:
        found = self._of_routes.get(route)
        if found is None:
            found = {}
            told: dict[str, Any] = json.loads(self._texts.get(route, b"{}"))
            for queue, hops in told.items():
                text = json.dumps(hops).encode()
                found[int(queue)] = self._numbers.setdefault(text, len(self.ways))
                if found[int(queue)] == len(self.ways):
                    self.ways.append(text)
            self._of_routes[route] = found
        return found


def shown_way(text: bytes) -> dict[str, str]:
    """A way as columns, those that it has."""
    hops: list[dict[str, Any]] = json.loads(text)
    last = hops[-1]
    shown: dict[str, str] = {"source": last["exchange"]}
    if "key" in last:
        shown["binding_key"] = last["key"]
    if "arguments" in last:
        shown["binding_arguments"] = json.dumps(last["arguments"])
    if len(hops) > 1 or "key" not in last or "bindings" in last:
        shown["route"] = json.dumps(hops)
    for name in shown:
        shown[name] = printable(shown[name])
    return shown
