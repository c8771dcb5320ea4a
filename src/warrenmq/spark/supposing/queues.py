"""Limits and times to live of the queues of a definitions file.

Duty: arguments, policies and operator policies of each queue, put together by the broker's own code. Not here: what
they do to messages (``waiting``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from warrenmq.broker.access.access import NoStore, Refused
from warrenmq.broker.policy.policies import Policies
from warrenmq.broker.policy.policy import OPERATOR_POLICY, POLICY
from warrenmq.broker.queue.arguments import DROP_HEAD, STREAM, settings
from warrenmq.broker.records import QUEUE
from warrenmq.spark.routing.definitions import InputError
from warrenmq.wire.fields import from_python

Place = tuple[str, str]  # vhost, queue


@dataclass(frozen=True)
class Bounds:
    """What may wait in a queue, and how long; -1: without a bound."""

    ttl: int = -1  # ms
    max_length: int = -1
    max_bytes: int = -1
    drop_head: bool = True  # else what comes is refused

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
    """The queues of a document: their bounds, and those whose order is another than that of publishing."""

    bounds: dict[Place, Bounds]
    untold: frozenset[Place]  # streams and priority queues: who waits longest does not go first


@dataclass(frozen=True)
class Seen:
    """A queue that messages come to, before or after."""

    place: Place
    moved: bool  # others come than before
    expiring: bool  # with times to live of their own
    wait: int | None  # ms until a consumer took one, in the middle


def worth_it(seen: Iterable[Seen], before: Queues, after: Queues) -> tuple[list[Seen], list[Place]]:
    """Which queues have to be played through, and those of which that cannot be done.

    A queue that neither gets other messages nor has other bounds does what it did. But where any may refuse what comes,
    all that may are looked at: a message that one of them refused before is nacked, whatever another does now.
    """
    looked: list[Seen] = []
    refusing: list[Seen] = []
    untold: list[Place] = []
    nacks = False
    for one in seen:
        bounds = [each.bounds.get(one.place, Bounds()) for each in (before, after)]
        refuses = any(each.refuse for each in bounds)
        if one.place in before.untold or one.place in after.untold:
            untold.append(one.place)
        elif (one.moved or bounds[0] != bounds[1]) and (any(each.exist for each in bounds) or one.expiring):
            looked.append(one)
            nacks = nacks or refuses
        elif refuses:
            refusing.append(one)
    return [*looked, *(refusing if nacks else ())], sorted(untold)


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
        if type == STREAM or "x-max-priority" in arguments:
            untold.add((vhost, name))
            continue
        drop = found.overflow == DROP_HEAD
        bounds[vhost, name] = Bounds(int(found.ttl), int(found.max_length), int(found.max_bytes), drop)
    return Queues(bounds, frozenset(untold))


def _load(policies: Policies, kind: str, value: Mapping[str, Any]) -> None:
    try:
        policies.load(kind, {"vhost": "/", **value})
    except Refused as refused:
        raise InputError(f"the definitions hold a policy that makes no sense: {refused.reason}") from None
