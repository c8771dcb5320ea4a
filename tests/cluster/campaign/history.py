"""What clients saw, in the order in which they saw it, and what a broker that keeps its promises never shows them.

Duty: the record, which any thread adds to, and the judgement (``problems``, ``not_linearizable``). No broker is asked
here: planted violations test it as well as real ones.

A key is (publisher, number); numbers of one publisher rise in the order in which it published. A session is one channel
of a consumer: what it has open when it ends comes back.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final

Key = tuple[str, int]

PUBLISHED: Final = "published"
CONFIRMED: Final = "confirmed"
DELIVERED: Final = "delivered"  # session, key, flagged as redelivered
SETTLING: Final = "settling"  # a commit of these was sent ...
SETTLED: Final = "settled"  # ... and answered


class History:
    """Events of messages: appending to a list is one step for every thread."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, Key, bool]] = []
        self.definitions: list[Operation] = []

    def published(self, key: Key) -> None:
        self.events.append((PUBLISHED, "", key, False))

    def confirmed(self, key: Key) -> None:
        self.events.append((CONFIRMED, "", key, False))

    def delivered(self, session: str, key: Key, flagged: bool) -> None:
        self.events.append((DELIVERED, session, key, flagged))

    def settling(self, session: str, keys: list[Key]) -> None:
        for key in keys:
            self.events.append((SETTLING, session, key, False))

    def settled(self, session: str, keys: list[Key]) -> None:
        for key in keys:
            self.events.append((SETTLED, session, key, False))


def problems(history: History, left: list[Key]) -> list[str]:
    """Everything that a client may complain about; ``left`` is what was in the queue at the end, in its order."""
    found: list[str] = []
    confirmed: set[Key] = set()
    published: set[Key] = set()
    delivered: set[Key] = set()
    unflagged: set[Key] = set()
    settling: set[Key] = set()
    settled: set[Key] = set()
    last_of: dict[tuple[str, str], int] = {}  # of a session and a publisher
    first_of: dict[str, int] = defaultdict(lambda: -1)  # the highest number of a publisher that was ever delivered
    for what, session, key, flagged in history.events:
        if what == PUBLISHED:
            published.add(key)
        elif what == CONFIRMED:
            confirmed.add(key)
        elif what == SETTLING:
            settling.add(key)
        elif what == SETTLED:
            settled.add(key)
        else:
            publisher, number = key
            if key not in published:
                found.append(f"{key} was delivered and never published")
            if key in settled:
                found.append(f"{key} was delivered to {session} after its settle was answered")
            if not flagged and key in unflagged:
                found.append(f"{key} was delivered twice without a flag, the second time to {session}")
            if number <= last_of.get((session, publisher), -1):
                found.append(f"{session} got {key} after {last_of[session, publisher]} of the same publisher")
            if key not in delivered and number < first_of[publisher]:
                found.append(f"{key} was delivered for the first time after {first_of[publisher]} of its publisher")
            last_of[session, publisher] = number
            first_of[publisher] = max(first_of[publisher], number)
            delivered.add(key)
            if not flagged:
                unflagged.add(key)
    found.extend(_at_the_end(left, published, confirmed, settling, settled))
    return found


def _at_the_end(
    left: list[Key], published: set[Key], confirmed: set[Key], settling: set[Key], settled: set[Key]
) -> list[str]:
    found: list[str] = []
    there: set[Key] = set()
    last: dict[str, int] = {}
    for key in left:
        publisher, number = key
        if key in there:
            found.append(f"{key} is in the queue twice")
        elif number <= last.get(publisher, -1):
            found.append(f"{key} stands in the queue behind {last[publisher]} of its publisher")
        if key in settled:
            found.append(f"{key} is in the queue after its settle was answered")
        if key not in published:
            found.append(f"{key} is in the queue and was never published")
        there.add(key)
        last[publisher] = number
    lost = sorted(confirmed - there - settling)
    if lost:
        found.append(f"{len(lost)} confirmed messages are missing, the first of them {lost[0]}")
    return found


# --- definitions

DECLARE: Final = "declare"
DELETE: Final = "delete"
FOUND: Final = "found"
MISSING: Final = "missing"


class Operation:
    """One call about a queue of this name: when it began, and when it was answered; never, if ``end`` is infinite."""

    def __init__(self, name: str, what: str, begin: float, end: float = float("inf")) -> None:
        self.name = name
        self.what = what
        self.begin = begin
        self.end = end

    def __repr__(self) -> str:
        return f"{self.what} {self.name} {self.begin:.3f}-{self.end:.3f}"


def not_linearizable(operations: list[Operation]) -> list[str]:
    """The names whose operations no order explains, in which each takes effect at one moment while it was under way.

    An unanswered change may take effect at any later moment, or never; an unanswered read says nothing.
    """
    by_name: dict[str, list[Operation]] = defaultdict(list)
    for operation in operations:
        if operation.end < float("inf") or operation.what in (DECLARE, DELETE):
            by_name[operation.name].append(operation)
    found = []
    for _, listed in sorted(by_name.items()):
        failed = _first_unexplained(listed)
        if failed is not None:
            found.append(f"no order explains {failed}")
    return found


World = tuple[bool, frozenset[int], int, int]
"""Whether the queue is there; which open operations have taken effect; unanswered declares and deletes not used yet."""


def _first_unexplained(operations: list[Operation]) -> Operation | None:
    moments: list[tuple[float, int, int]] = []  # when, end before begin at one moment, whose
    for number, operation in enumerate(operations):
        moments.append((operation.begin, 1, number))
        if operation.end < float("inf"):
            moments.append((operation.end, 0, number))
    worlds: set[World] = {(False, frozenset(), 0, 0)}
    under_way: set[int] = set()
    for _, begins, number in sorted(moments):
        operation = operations[number]
        if begins and operation.end < float("inf"):
            under_way.add(number)
        elif begins:
            declares, deletes = operation.what == DECLARE, operation.what == DELETE
            worlds = {(there, done, a + declares, b + deletes) for there, done, a, b in worlds}
        else:
            ways = _all_ways(worlds, operations, under_way)
            worlds = _best({(there, done - {number}, a, b) for there, done, a, b in ways if number in done})
            under_way.discard(number)
            if not worlds:
                return operation
    return None


def _best(worlds: set[World]) -> set[World]:
    """Without those that have no more left to happen than another one that is otherwise the same."""
    by_state: dict[tuple[bool, frozenset[int]], list[tuple[int, int]]] = defaultdict(list)
    for there, done, declares, deletes in sorted(worlds, key=lambda world: world[2:], reverse=True):
        kept = by_state[there, done]
        if not any(a >= declares and b >= deletes for a, b in kept):
            kept.append((declares, deletes))
    return {(there, done, a, b) for (there, done), kept in by_state.items() for a, b in kept}


def _all_ways(worlds: set[World], operations: list[Operation], under_way: set[int]) -> set[World]:
    """Every world into which those under way can lead."""
    seen = set(worlds)
    waiting = list(worlds)
    while waiting:
        there, done, declares, deletes = waiting.pop()
        ways: list[World] = []
        if declares and not there:
            ways.append((True, done, declares - 1, deletes))
        if deletes and there:
            ways.append((False, done, declares, deletes - 1))
        for number in under_way - done:
            what = operations[number].what
            if what in (DECLARE, DELETE) or there == (what == FOUND):
                after = there if what in (FOUND, MISSING) else what == DECLARE
                ways.append((after, done | {number}, declares, deletes))
        for way in ways:
            if way not in seen:
                seen.add(way)
                waiting.append(way)
    return seen
