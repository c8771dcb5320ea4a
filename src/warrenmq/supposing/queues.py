"""Limits, times to live and dead-letter exchanges of the queues of a definitions file.

Duty: arguments, policies and operator policies of each queue, put together by the broker's own code; which queues are
worth being played through. Not here: what they do to messages (``waiting``), where letters go (``letters``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from warrenmq.broker.access.access import NoStore, Refused
from warrenmq.broker.definitions.router import DefinitionsError
from warrenmq.broker.policy.policies import Policies
from warrenmq.broker.policy.policy import OPERATOR_POLICY, POLICY
from warrenmq.broker.queue.arguments import DROP_HEAD, REJECT_PUBLISH_DLX, STREAM, settings
from warrenmq.broker.records import QUEUE
from warrenmq.wire.fields import from_python

Place = tuple[str, str]  # vhost, queue


@dataclass(frozen=True)
class Bounds:
    """The bounds of what may wait in a queue, and how long; -1: without a bound."""

    ttl: int = -1  # ms
    max_length: int = -1
    max_bytes: int = -1
    drop_head: bool = True  # else what comes is refused
    letters_to: str | None = None  # the dead-letter exchange
    letters_key: str | None = None  # and the key; None: those that a message has
    refused_too: bool = False  # what is refused is dead-lettered all the same
    max_priority: int = 0  # what has a higher priority goes first, up to this one
    ways: str = ""  # what the letters find there (``letters``)

    @property
    def exist(self) -> bool:
        return self.ttl >= 0 or self.limited

    @property
    def limited(self) -> bool:
        return self.max_length >= 0 or self.max_bytes >= 0

    @property
    def refuse(self) -> bool:
        """May what comes be refused, so that its publisher is told?"""
        return self.limited and not self.drop_head


@dataclass(frozen=True)
class Queues:
    """The queues of a document: their bounds, and those in which nothing leaves for whoever takes it."""

    bounds: dict[Place, Bounds]
    untold: frozenset[Place]  # streams


@dataclass(frozen=True)
class Seen:
    """A queue that messages come to, before or after."""

    place: Place
    moved: bool  # others come than before
    expiring: bool  # with times to live of their own
    wait: int | None  # ms until a consumer took one, in the middle
    gives_back: bool = False  # a consumer rejected some, so there are letters without any bounds


def worth_it(
    seen: Iterable[Seen], before: Queues, after: Queues, linked: Mapping[Place, Place] | None = None
) -> tuple[list[Seen], list[Place]]:
    """Which queues have to be played through, and those of which that cannot be done. ``linked``: queues that may give
    letters to one another, by one of them; they are played through together.

    A queue that neither gets other messages nor has other bounds does what it did. But where any may refuse what comes,
    all that may are looked at: a message that one of them refused before is nacked, whatever another does now.
    """
    linked = linked or {}
    untold = before.untold | after.untold
    groups: dict[Place, list[Seen]] = {}
    skipped: list[Place] = []
    for one in seen:
        if one.place in untold:
            skipped.append(one.place)
        if one.place not in untold or one.place in linked:
            groups.setdefault(linked.get(one.place, one.place), []).append(one)
    places_of: dict[Place, list[Place]] = {}
    for place, group in linked.items():
        places_of.setdefault(group, []).append(place)
    looked: list[Seen] = []
    refusing: list[Seen] = []
    nacks = False
    for group, some in groups.items():
        bounds = [
            (before.bounds.get(place, Bounds()), after.bounds.get(place, Bounds()))
            for place in places_of.get(group, [one.place for one in some])
        ]
        differs = any(was != now for was, now in bounds) or any(one.moved for one in some)
        gives_up = any(each.exist for pair in bounds for each in pair) or any(one.expiring for one in some)
        letters = group in places_of and any(one.gives_back for one in some)
        refuses = any(each.refuse for pair in bounds for each in pair)
        if differs and (gives_up or letters):
            looked += some
            nacks = nacks or refuses
        elif refuses:
            refusing += some
    return [*looked, *(refusing if nacks else ())], sorted(skipped)


def queues_of(definitions: Mapping[str, Any]) -> Queues:
    policies = Policies(NoStore())
    for value in definitions.get("policies", []):
        _load(policies, POLICY, value)
    for value in definitions.get("parameters", []):
        if value.get("component") == "operator_policy":
            _load(policies, OPERATOR_POLICY, {**value.get("value", {}), **value})
    bounds: dict[Place, Bounds] = {}
    untold: set[Place] = set()
    for queue in definitions.get("queues", []):
        vhost, name = queue.get("vhost", "/"), queue["name"]
        arguments = from_python(queue.get("arguments") or {})
        kind = arguments.get("x-queue-type")
        type = str(kind.value) if kind is not None else str(queue.get("type", "classic"))
        found = settings(arguments, policies.effective(vhost, QUEUE, name, type)[2])
        if type == STREAM:
            untold.add((vhost, name))
            continue
        priorities = arguments.get("x-max-priority")
        bounds[vhost, name] = Bounds(
            int(found.ttl),
            int(found.max_length),
            int(found.max_bytes),
            found.overflow == DROP_HEAD,
            found.dead_letter_exchange,
            found.dead_letter_routing_key if found.dead_letter_exchange is not None else None,
            found.overflow == REJECT_PUBLISH_DLX and found.dead_letter_exchange is not None,
            int(priorities.value) if priorities is not None and isinstance(priorities.value, int) else 0,
        )
    return Queues(bounds, frozenset(untold))


def _load(policies: Policies, kind: str, value: Mapping[str, Any]) -> None:
    try:
        policies.load(kind, {"vhost": "/", **value})
    except Refused as refused:
        raise DefinitionsError(f"the definitions hold a policy that makes no sense: {refused.reason}") from None
