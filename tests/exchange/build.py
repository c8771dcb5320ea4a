"""Small builders for routing tests: exchanges, queues, bindings and messages without a broker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warrenmq.broker.exchange import walk
from warrenmq.broker.exchange.arguments import alternate_of
from warrenmq.broker.exchange.bindings import identity
from warrenmq.broker.exchange.types import create
from warrenmq.broker.records import (
    EXCHANGE,
    QUEUE,
    BasicMessage,
    Binding,
    Content,
    Destination,
    Exchange,
    Resource,
)
from warrenmq.broker.services.randomness import Randomness
from warrenmq.wire.content import Properties, encode_header
from warrenmq.wire.fields import from_python

Arguments = Mapping[str, object]


def message(
    *keys: str, headers: Arguments | None = None, exchange: str = "x", properties: Properties | None = None
) -> BasicMessage:
    """A message with these routing keys and headers."""
    if properties is None:
        properties = Properties(headers=None if headers is None else from_python(headers))
    content = Content(encode_header(properties, 0), b"")
    return BasicMessage(Resource("/", EXCHANGE, exchange), list(keys) or [""], content, 1, False)


def exchange(name: str, type: str, arguments: Arguments | None = None, random: Randomness | None = None) -> Exchange:
    """An exchange that has passed its type's validation."""
    table = from_python(arguments or {})
    matcher = create(type, table, random or Randomness(1))
    made = Exchange(Resource("/", EXCHANGE, name), type, False, False, False, table, matcher)
    matcher.validate(made)
    made.alternate = alternate_of(made)
    return made


def queue(name: str) -> Destination:
    return Destination(Resource("/", QUEUE, name))


def bind(source: Exchange, destination: Destination, key: str = "", arguments: Arguments | None = None) -> Binding:
    """Bind as a virtual host does: validate, and bind each identity once."""
    binding = Binding(source, destination, key, from_python(arguments or {}))
    source.matcher.validate_binding(binding)
    name = identity(source.name, destination.name, key, binding.arguments)
    present = source.bindings_out.get(name)
    if present is not None:
        return present
    source.bindings_out[name] = binding
    source.matcher.bind(binding)
    return binding


def unbind(binding: Binding) -> None:
    name = identity(binding.source.name, binding.destination.name, binding.key, binding.arguments)
    if binding.source.bindings_out.pop(name, None) is not None:
        binding.source.matcher.unbind(binding)


def names(destinations: Sequence[Destination]) -> list[str]:
    return [destination.name.name for destination in destinations]


class Topology:
    """A few exchanges and queues by name."""

    def __init__(self) -> None:
        self.exchanges: dict[str, Exchange] = {"": exchange("", "direct")}
        self.queues: dict[str, Destination] = {}

    def exchange(self, name: str, type: str, arguments: Arguments | None = None) -> Exchange:
        self.exchanges[name] = exchange(name, type, arguments)
        return self.exchanges[name]

    def queue(self, name: str) -> Destination:
        self.queues[name] = queue(name)
        return self.queues[name]

    def bind(self, source: str, destination: str, key: str = "", arguments: Arguments | None = None) -> Binding:
        """Bind to the queue of this name, or else the exchange."""
        target = self.queues.get(destination) or self.exchanges[destination]
        return bind(self.exchanges[source], target, key, arguments)

    def route(
        self,
        source: str,
        *keys: str,
        headers: Arguments | None = None,
        due: bool = False,
        now_ms: int = 0,
        tell: bool = False,
    ) -> walk.Routed:
        sent = message(*keys, headers=headers, exchange=source)
        return walk.route(self.exchanges[source], sent, self.exchanges, self.queues, due, now_ms, tell)
