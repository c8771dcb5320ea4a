"""What if, without Spark: messages under two documents, a message at a time, for as many as memory holds.

Duty: the stages that ``job`` takes through Spark, over lists: the broker's publish path, the queues that are worth it,
how both differ. Not here: which messages, and who may see what comes out (``journal/supposed.py``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median_low
from typing import Any, NamedTuple

from warrenmq.broker.exchange.arguments import routing_keys_of
from warrenmq.broker.message import Message
from warrenmq.supposing.letters import LetterWays, linked_queues, published, with_ways
from warrenmq.supposing.outcomes import ABSENT, NACKED, ROUTED, THERE, badness, told
from warrenmq.supposing.path import DEFAULT_MAX_SIZE, Facts, PublishPath, Verdict
from warrenmq.supposing.playing import Arrival, Playing, Stay
from warrenmq.supposing.queues import Place, Seen, queues_of, worth_it
from warrenmq.supposing.ttl import ttl_of
from warrenmq.wire.content import Properties


@dataclass
class Recorded:
    """A message as it was published, and what became of it."""

    message: str  # its name
    number: int  # the order of those of one time
    published_at: int  # µs
    vhost: str
    user: str | None
    exchange: str
    routing_key: str
    size: int
    properties: Properties
    stays: dict[str, list[Stay]] = field(default_factory=dict)
    id: int | None = None  # the broker's

    def content(self) -> Message:
        keys, hidden = routing_keys_of(self.routing_key, self.properties.headers)
        return published(self.exchange, keys, hidden, self.properties.copy(), self.size)


class Change(NamedTuple):
    """The difference for one message: in a queue, or (None) to its publisher."""

    of: Recorded
    queue: str | None
    before: str
    after: str

    @property
    def worse(self) -> bool:
        return badness(self.after) > badness(self.before)


class Side:
    """One document, and what it makes of every message."""

    def __init__(self, definitions: Mapping[str, Any], max_message_size: int = DEFAULT_MAX_SIZE) -> None:
        self.path = PublishPath(definitions, max_message_size=max_message_size)
        self.queues, self.targets = with_ways(queues_of(definitions), self.path.router.vhosts)
        self.knows_users = bool(definitions.get("users"))
        self.verdicts: list[Verdict] = []
        self.fates: dict[tuple[str, str], str] = {}
        self.nacked: set[str] = set()

    def judge(self, one: Recorded, with_user: bool) -> Verdict:
        given = one.properties
        time = None if given.timestamp is None else str(given.timestamp)
        return self.path.judge(
            Facts(
                one.vhost,
                one.user if with_user else None,
                one.exchange,
                one.routing_key,
                given.headers,
                given.user_id if with_user else None,
                given.expiration,
                one.size,
                given.reply_to,
                given.message_id,
                given.correlation_id,
                time,
                given.delivery_mode,
            )
        )

    def play(
        self,
        messages: Sequence[Recorded],
        recorded: Sequence[Verdict],
        chosen: Mapping[Place, int | None],
        until: int,
        wanted: Callable[[], bool],
    ) -> None:
        """Through the queues that are ``chosen``, with how long messages waited there; in the others they are there."""
        waits: dict[str, dict[str, int | None]] = defaultdict(dict)
        for (vhost, queue), wait in chosen.items():
            waits[vhost][queue] = wait
        coming: list[tuple[int, int, Recorded, list[str], list[str]]] = []
        for one, verdict, was in zip(messages, self.verdicts, recorded, strict=True):
            some = [queue for queue in verdict.queues if (one.vhost, queue) in chosen]
            for queue in verdict.queues:
                self.fates[one.message, queue] = THERE
            if some:
                coming.append((_at(one, verdict), one.number, one, some, was.queues))
        coming.sort(key=lambda each: each[:2])
        playing: dict[str, Playing] = {}
        for at, _, one, some, was_there in coming:
            if not wanted():
                return
            if one.vhost not in playing:
                letter_ways = LetterWays(one.vhost, self.path.router.vhosts[one.vhost], self.queues.bounds)
                playing[one.vhost] = Playing(letter_ways, waits[one.vhost])
            ttl, priority = ttl_of(one.properties.expiration), one.properties.priority or 0
            playing[one.vhost].comes(
                Arrival(one.message, at, some, one.size, ttl, priority, one.content, one.stays, was_there)
            )
        for each in playing.values():
            each.until(until)
            self.fates |= each.fates
            self.nacked |= each.nacked

    def told(self, one: Recorded, verdict: Verdict) -> str:
        said = told(verdict)
        return NACKED if said == ROUTED and one.message in self.nacked else said


def compare(
    messages: Sequence[Recorded], before: Side, after: Side, wanted: Callable[[], bool] = lambda: True
) -> tuple[list[Change], list[Place]]:
    """How these messages would fare otherwise, and queues whose limits were not looked at. It is not whole when it is
    not ``wanted`` any more."""
    with_user = before.knows_users and after.knows_users
    for side in (before, after):
        for one in messages:
            if not wanted():
                return [], []
            side.verdicts.append(side.judge(one, with_user))
    linked = linked_queues(before.targets, after.targets)
    looked, untold = worth_it(_seen(messages, before, after), before.queues, after.queues, linked)
    chosen = {one.place: one.wait for one in looked}
    until = _until(messages, before, after)
    for side in (before, after):
        side.play(messages, before.verdicts, chosen, until, wanted)
    return _changes(messages, before, after), untold


def _at(one: Recorded, verdict: Verdict) -> int:
    """ms: when it gets to its queues."""
    now = one.published_at // 1000
    if verdict.due_ms is not None:
        return verdict.due_ms
    return now if verdict.delay_ms is None else now + verdict.delay_ms


def _seen(messages: Sequence[Recorded], before: Side, after: Side) -> list[Seen]:
    moved: set[Place] = set()
    expiring: set[Place] = set()
    gives_back: set[Place] = set()
    waits: dict[Place, list[int]] = defaultdict(list)
    seen: dict[Place, None] = {}
    for one, was, now in zip(messages, before.verdicts, after.verdicts, strict=True):
        for queue in dict.fromkeys((*was.queues, *now.queues, *one.stays)):
            place = (one.vhost, queue)
            seen[place] = None
            there = queue in was.queues
            if there != (queue in now.queues):
                moved.add(place)
            if one.properties.expiration is not None:
                expiring.add(place)
            stays = one.stays.get(queue)
            if not stays:
                continue
            if stays[0].given_back is not None:
                gives_back.add(place)
            if stays[0].left is not None and (there or stays[0].entered is not None):
                since = stays[0].entered if stays[0].entered is not None else _at(one, now)
                waits[place].append(stays[0].left - since)
    middle = {place: median_low(some) for place, some in waits.items()}
    return [Seen(place, place in moved, place in expiring, middle.get(place), place in gives_back) for place in seen]


def _until(messages: Sequence[Recorded], before: Side, after: Side) -> int:
    """Until when (ms) it is known what became of them."""
    last = 0
    for one, was, now in zip(messages, before.verdicts, after.verdicts, strict=True):
        last = max(last, _at(one, was), _at(one, now))
        for stays in one.stays.values():
            for stay in stays:
                last = max(last, stay.left or 0, stay.given_back or 0)
    return last


def _changes(messages: Sequence[Recorded], before: Side, after: Side) -> list[Change]:
    names: dict[str, dict[str, None]] = defaultdict(dict)
    for side in (before, after):
        for message, queue in side.fates:
            names[message][queue] = None
    found: list[Change] = []
    for one, was, now in zip(messages, before.verdicts, after.verdicts, strict=True):
        said = before.told(one, was), after.told(one, now)
        if said[0] != said[1]:
            found.append(Change(one, None, *said))
        for queue in names.get(one.message, ()):
            fates = [side.fates.get((one.message, queue), ABSENT) for side in (before, after)]
            if fates[0] != fates[1]:
                found.append(Change(one, queue, fates[0], fates[1]))
    return found
