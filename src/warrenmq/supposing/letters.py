"""Where what a queue gives up goes: to its dead-letter exchange, by the broker's own walk and its rule about circles.

Duty: one letter, with its history, and its targets; and, from definitions alone, which queues may give letters to one
another. Not here: when a queue gives a message up (``waiting``), what follows (``playing``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from warrenmq.broker.definitions.router import Topology
from warrenmq.broker.delivering.deaths import as_dead_letter, death_of, deaths_in, is_cycle
from warrenmq.broker.exchange.delayed import IMMEDIATE, delay_of, deliver_at_of
from warrenmq.broker.exchange.walk import route as walk
from warrenmq.broker.message import Message, Origin, message_from
from warrenmq.broker.records import EXCHANGE, QUEUE, BasicMessage, Content, Exchange, Resource
from warrenmq.supposing.queues import Bounds, Place, Queues
from warrenmq.wire.content import Properties, encode_header
from warrenmq.wire.fields import Field, to_python
from warrenmq.wire.replies import AmqpError

REJECTED = "rejected"
BY_KEY = ("direct", "topic", "fanout")  # of which the key alone says where a message goes
EMPTY = Content(encode_header(Properties(), 0), b"")


@dataclass
class Way:
    """A letter and where it goes: at once, or when it is due."""

    letter: Message
    exchange: str
    targets: list[str]
    due: int | None = None  # ms: a delayed exchange keeps it until then


class LetterWays:
    """The ways of the dead letters of one vhost."""

    def __init__(self, vhost: str, topology: Topology, bounds: Mapping[Place, Bounds]) -> None:
        self._vhost = vhost
        self._topology = topology
        self._bounds = bounds

    def bounds_of(self, queue: str) -> Bounds:
        return self._bounds.get((self._vhost, queue), Bounds())

    def way(self, queue: str, message: Message, reason: str, now: int) -> Way | None:
        """None: there is no such exchange. ``dead_letter.py`` does the same to what the broker has."""
        bounds = self.bounds_of(queue)
        if bounds.letters_to is None or bounds.letters_to not in self._topology.exchanges:
            return None
        properties = Content(message.header(), b"").properties.copy()
        death = death_of(message.origin, queue, reason, now)
        if properties.expiration is not None:
            death["original-expiration"] = Field("S", properties.expiration)
        properties.expiration = None
        letter = as_dead_letter(message, properties, bounds.letters_to, bounds.letters_key, death)
        return self._routed(letter, bounds.letters_to, reason, now, False)

    def due(self, way: Way, now: int) -> Way:
        """The letter when it has waited."""
        return self._routed(way.letter, way.exchange, REJECTED, now, True)

    def _routed(self, letter: Message, exchange: str, reason: str, now: int, due: bool) -> Way:
        topology = self._topology
        record = letter.basic_message(self._vhost)
        try:
            routed = walk(topology.exchanges[exchange], record, topology.exchanges, topology.queues, due, now)
        except AmqpError:  # a delay that is no number: it does not wait
            routed = walk(topology.exchanges[exchange], record, topology.exchanges, topology.queues, True, now)
        headers = record.content.headers
        deaths = deaths_in(headers)
        names = [found.name.name for found in routed.queues]
        way = Way(letter, exchange, [name for name in names if reason == REJECTED or not is_cycle(name, deaths)])
        if routed.scheduled and not due:
            delay = delay_of(headers)
            way.due = int(now + delay if delay != IMMEDIATE else deliver_at_of(headers))
        return way


def published(exchange: str, keys: list[str], hidden: int, properties: Properties, size: int) -> Message:
    """A message as the broker has it, for its letters: without its body."""
    headers = properties.headers
    if headers is not None and "BCC" in headers:
        properties.headers = {name: field for name, field in headers.items() if name != "BCC"}
    return message_from(Origin(exchange, keys, hidden), 0, encode_header(properties, size), [], size, True)


def with_ways(queues: Queues, vhosts: Mapping[str, Topology]) -> tuple[Queues, dict[Place, list[Place]]]:
    """With what letters find on their ways, so that other ways are other bounds; and which queues they may get to."""
    bounds = dict(queues.bounds)
    targets: dict[Place, list[Place]] = {}
    for place, one in queues.bounds.items():
        topology = vhosts.get(place[0])
        if one.letters_to is None or topology is None:
            continue
        names, ways = _reach(topology, one.letters_to, one.letters_key)
        bounds[place] = replace(one, ways=ways)
        targets[place] = [(place[0], name) for name in names]
    return Queues(bounds, queues.untold), targets


def linked_queues(*targets: Mapping[Place, list[Place]]) -> dict[Place, Place]:
    """Queues that may give letters to one another, before or after, by one of them."""
    parent: dict[Place, Place] = {}

    def root(place: Place) -> Place:
        parent.setdefault(place, place)
        while parent[place] != place:
            parent[place] = parent[parent[place]]
            place = parent[place]
        return place

    for each in targets:
        for place, some in each.items():
            for target in (place, *some):
                parent[root(target)] = root(place)
    return {place: root(place) for place in parent}


def _reach(topology: Topology, name: str, key: str | None) -> tuple[list[str], str]:
    """All queues that a letter to this exchange may get to, and all that says to which."""
    start = topology.exchanges.get(name)
    if start is None:
        return [], "there is no such exchange"
    if not name:
        return (sorted(topology.queues), "") if key is None else ([key] if key in topology.queues else [], "")
    exchanges: dict[str, Exchange] = {}
    pending = [start]
    queues: set[str] = set()
    said: list[str] = []
    while pending:
        here = pending.pop()
        if here.name.name in exchanges:
            continue
        exchanges[here.name.name] = here
        said.append(json.dumps([here.name.name, here.type, here.alternate, to_python(here.arguments)], default=repr))
        for kind, target, line in _ends(here):
            said.append(line)
            if kind == QUEUE:
                queues.add(target)
            elif target in topology.exchanges:
                pending.append(topology.exchanges[target])
        if here.decorators:
            queues |= set(topology.queues)
    if key is not None and all(one.type in BY_KEY and not one.decorators for one in exchanges.values()):
        message = BasicMessage(Resource(topology.name, EXCHANGE, name), [key], EMPTY, 0, False)
        queues = {found.name.name for found in walk(start, message, topology.exchanges, topology.queues).queues}
    return sorted(queues), "\n".join(sorted(said))


def _ends(exchange: Exchange) -> Iterator[tuple[str, str, str]]:
    """What its bindings and its alternate exchange lead to, and how they would be told."""
    for binding in exchange.bindings_out.values():
        end = binding.destination.name
        line = json.dumps(
            [exchange.name.name, end.kind, end.name, binding.key, to_python(binding.arguments)], default=repr
        )
        yield end.kind, end.name, line
    if exchange.alternate:
        yield EXCHANGE, exchange.alternate, ""
