"""Queues that give letters to one another, from the first message to the last, in the order of time.

Duty: what comes enters its queues; what a queue gives up, or a consumer rejected then, goes to its dead-letter exchange
in the same moment and from there on, until nobody gives it up any more or it went round in a circle, which the broker
ends (``letters``). Not here: one queue (``waiting``), which messages come (``fates``, ``comparing``).
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from warrenmq.broker.message import Message
from warrenmq.supposing.letters import REJECTED, LetterWays, Way
from warrenmq.supposing.outcomes import DROPPED, EXPIRED, LETTER_LOST, REFUSED, THERE
from warrenmq.supposing.waiting import LONGEST, NEVER, Waiting

REASONS = {EXPIRED: "expired", DROPPED: "maxlen", REFUSED: "maxlen"}
MOST_HOPS = 1000  # of one message: consumers cannot have rejected it more often than that is recorded


class Stay(NamedTuple):
    """A message in a queue, as recorded; ms. What is None did not happen."""

    entered: int | None
    left: int | None  # by a consumer's or an operator's doing
    given_back: int | None = None  # when it then was rejected for good
    why: str = REJECTED


@dataclass
class Arrival:
    """A message that is published, and its queues in the order of the walk."""

    message: str  # its name
    at: int
    queues: Sequence[str]
    size: int
    ttl: int | None  # its own
    priority: int
    content: Callable[[], Message]  # asked for its letters alone
    stays: Mapping[str, Sequence[Stay]] = field(default_factory=dict)
    recorded: Sequence[str] = ()  # its queues when it was recorded: there it stays where no stay is told


@dataclass
class _Copy:
    """A message in one queue; ``message``: as a letter it is another."""

    arrival: Arrival
    size: int
    message: Message | None = None
    hops: int = 0

    def content(self) -> Message:
        if self.message is None:
            self.message = self.arrival.content()
        return self.message


class Playing:
    """The queues of one vhost under one document, while messages come."""

    def __init__(self, letter_ways: LetterWays, waits: Mapping[str, int | None]) -> None:
        self.fates: dict[tuple[str, str], str] = {}
        self.nacked: set[str] = set()  # messages that a queue refused, whatever became of their letters there
        self._letter_ways = letter_ways
        self._waits = waits
        self._queues: dict[str, Waiting] = {}
        self._copies: dict[str, list[_Copy]] = {}
        self._visits: dict[tuple[str, str], int] = {}
        self._alone: list[tuple[int, int, str]] = []  # when something happens in a queue by itself
        self._armed: dict[str, int] = {}  # which of these times counts, by queue
        self._later: list[tuple[int, int, str, int, str]] = []  # what consumers give back: at, tie, queue, number, why
        self._due: list[tuple[int, int, str, str, _Copy, Way]] = []  # letters in delayed exchanges, and whose they are
        self._given_up: deque[tuple[str, _Copy, str, str]] = deque()
        self._ties = 0

    def comes(self, arrival: Arrival) -> None:
        self.until(arrival.at)
        self._enter([(queue, arrival.ttl) for queue in arrival.queues], _Copy(arrival, arrival.size), arrival.at)
        self._send(arrival.at)

    def until(self, at: int) -> None:
        """What happens up to then, in order."""
        while True:
            now = min(heap[0][0] if heap else NEVER for heap in (self._alone, self._later, self._due))
            if now > at:
                return
            if self._alone and self._alone[0][0] == now:
                _, _, queue = heapq.heappop(self._alone)
                if self._armed.get(queue) == now:
                    del self._armed[queue]
                    self._queues[queue].until(now)
                    self._arm(queue)
            elif self._later and self._later[0][0] == now:
                _, _, queue, number, why = heapq.heappop(self._later)
                if self._queues[queue].fates[number] == THERE:
                    copy = self._copies[queue][number]
                    self.fates[copy.arrival.message, queue] = THERE
                    self._given_up.append((queue, copy, why, THERE))
            else:
                _, _, queue, fate, copy, way = heapq.heappop(self._due)
                self._arrive(queue, copy, self._letter_ways.due(way, now), fate, now)
            self._send(now)

    def _enter(self, places: Sequence[tuple[str, int | None]], copy: _Copy, at: int) -> bool:
        """Says whether any queue takes it. All are asked before the first has it."""
        for queue, _ in places:
            if queue not in self._queues:
                self._queues[queue] = Waiting(self._letter_ways.bounds_of(queue), self._giving(queue))
                self._copies[queue] = []
        taken = []
        for queue, ttl in places:
            if self._queues[queue].refuses(copy.size):
                if not copy.hops:
                    self.fates[copy.arrival.message, queue] = REFUSED
                    self.nacked.add(copy.arrival.message)
                if self._letter_ways.bounds_of(queue).refused_too:
                    self._given_up.append((queue, copy, REASONS[REFUSED], ""))
            else:
                taken.append((queue, ttl))
        for queue, ttl in taken:
            stay = self._stay(queue, copy, at)
            self.fates[copy.arrival.message, queue] = THERE
            number = len(self._copies[queue])
            self._copies[queue].append(copy)
            self._queues[queue].enters(at, copy.size, ttl, stay.left, copy.arrival.priority)
            if stay.given_back is not None:
                self._ties += 1
                heapq.heappush(self._later, (max(at, stay.given_back), self._ties, queue, number, stay.why))
            self._arm(queue)
        return bool(taken)

    def _stay(self, queue: str, copy: _Copy, at: int) -> Stay:
        """How long it is there, if the queue does not give it up: as recorded; what was not, as others were."""
        arrival = copy.arrival
        number = self._visits.get((arrival.message, queue), 0)
        self._visits[arrival.message, queue] = number + 1
        recorded = arrival.stays.get(queue, ())
        if number < len(recorded):
            stay = recorded[number]
            if stay.left is None or at <= stay.left:
                return stay
            left = at if stay.entered is None else at + stay.left - stay.entered
            back = None if stay.given_back is None else left + stay.given_back - stay.left
            return Stay(at, left, back, stay.why)
        wait = self._waits.get(queue)
        if wait is None or (queue in arrival.recorded and not copy.hops):
            return Stay(at, None)
        return Stay(at, at + wait)

    def _giving(self, queue: str) -> Callable[[int, str], None]:
        def give_up(number: int, fate: str) -> None:
            copy = self._copies[queue][number]
            self.fates[copy.arrival.message, queue] = fate
            if self._letter_ways.bounds_of(queue).letters_to is not None:
                self._given_up.append((queue, copy, REASONS[fate], fate))

        return give_up

    def _send(self, now: int) -> None:
        """All letters of this moment, and what comes of them, one after the other."""
        while self._given_up:
            queue, copy, reason, fate = self._given_up.popleft()
            if self._letter_ways.bounds_of(queue).letters_to is None:
                continue  # rejected, and gone
            way = self._letter_ways.way(queue, copy.content(), reason, now) if copy.hops < MOST_HOPS else None
            self._arrive(queue, copy, way, fate, now)

    def _arrive(self, queue: str, copy: _Copy, way: Way | None, fate: str, now: int) -> None:
        """A letter. ``fate``: what became of it in the queue that gave it up, "" where it never was in there."""
        taken = False
        if way is not None:
            letter = _Copy(copy.arrival, copy.size, way.letter, copy.hops + 1)
            taken = self._enter([(target, None) for target in way.targets], letter, now)
            if way.due is not None:
                taken = True
                self._ties += 1
                heapq.heappush(self._due, (way.due, self._ties, queue, fate, letter, way))
        if not taken and fate:
            self.fates[copy.arrival.message, queue] = fate + LETTER_LOST

    def _arm(self, queue: str) -> None:
        """For what happens next, as it is now: of two queues in which something happens at one time, the one that was
        armed for it first goes first, as in the broker."""
        when = self._queues[queue].next()
        if when < LONGEST and when != self._armed.get(queue):
            self._armed[queue] = when
            self._ties += 1
            heapq.heappush(self._alone, (when, self._ties, queue))


def play(letter_ways: LetterWays, waits: Mapping[str, int | None], arrivals: Iterable[Arrival], until: int) -> Playing:
    """What became of each message in each queue: the last that happened to it there, but that it was taken."""
    playing = Playing(letter_ways, waits)
    for arrival in arrivals:
        playing.comes(arrival)
    playing.until(until)
    return playing
