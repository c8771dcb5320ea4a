"""A router without a broker: the exchanges, queues and bindings of a definitions file, and where a message goes.

Duty: read RabbitMQ's export format (a whole node's or one virtual host's) into the same records and matchers the broker
uses. Not here: the walk (``walk.py``), the reasons (``explain.py``), and everything else the publish path checks.
Policies count as far as they steer routing: alternate exchanges and decorators.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

from warrenmq.broker.exchange import explain
from warrenmq.broker.exchange.arguments import alternate_of, routing_keys_of
from warrenmq.broker.exchange.bindings import identity
from warrenmq.broker.exchange.types import create
from warrenmq.broker.exchange.walk import Routed, route
from warrenmq.broker.extensions.decorator import DecoratorRegistry, decorators_for
from warrenmq.broker.policy.policy import Policy
from warrenmq.broker.records import EXCHANGE, QUEUE, BasicMessage, Binding, Content, Destination, Exchange, Resource
from warrenmq.broker.services.randomness import Randomness
from warrenmq.wire.content import Properties, encode_header
from warrenmq.wire.fields import Table, from_python
from warrenmq.wire.replies import NOT_ALLOWED, NOT_FOUND, AmqpError

# name, type, internal; a definitions file does not list them
PREDECLARED: Final = (
    ("", "direct", False),
    ("amq.direct", "direct", False),
    ("amq.fanout", "fanout", False),
    ("amq.headers", "headers", False),
    ("amq.match", "headers", False),
    ("amq.rabbitmq.trace", "topic", True),
    ("amq.topic", "topic", False),
)


class DefinitionsError(ValueError):
    """Definitions that cannot be read, with the reason in one line."""


@final
class Topology:
    """One virtual host's exchanges and queues."""

    def __init__(self, name: str) -> None:
        self.name: Final = name
        self.exchanges: dict[str, Exchange] = {}
        self.queues: dict[str, Destination] = {}
        self.policies: list[Policy] = []  # highest priority first


@final
class Router:
    """The topologies of a document, by virtual host."""

    def __init__(self, random: Randomness | None = None, registry: DecoratorRegistry | None = None) -> None:
        self.vhosts: dict[str, Topology] = {}
        self._random: Final = Randomness(0) if random is None else random
        self._registry: Final = DecoratorRegistry() if registry is None else registry

    @staticmethod
    def from_definitions(
        definitions: Mapping[str, object],
        random: Randomness | None = None,
        registry: DecoratorRegistry | None = None,
        vhost: str = "/",
    ) -> Router:
        """Read an export. ``vhost`` names the virtual host of entries that do not (the export of a single one)."""
        router = Router(random, registry)
        if not isinstance(definitions, Mapping) or not any(key in definitions for key in _SECTIONS):
            raise DefinitionsError(
                "these are no definitions in RabbitMQ's export format: there is no list of exchanges"
            )
        named = [_text(entry, "name", "vhost") for entry in _entries(definitions, "vhosts")]
        for section in ("policies", *_SECTIONS):
            named.extend([_home(entry, vhost) for entry in _entries(definitions, section)])
        for name in named or [vhost]:
            router.vhosts[name] = Topology(name)
        for entry in _entries(definitions, "policies"):
            router._add_policy(router.vhosts[_home(entry, vhost)], entry)
        for topology in router.vhosts.values():
            for name, type, internal in PREDECLARED:
                router._add_exchange(topology, name, type, True, False, internal, {})
        for entry in _entries(definitions, "exchanges"):
            router._read_exchange(router.vhosts[_home(entry, vhost)], entry)
        for entry in _entries(definitions, "queues"):
            topology = router.vhosts[_home(entry, vhost)]
            name = _text(entry, "name", "queue")
            topology.queues[name] = Destination(Resource(topology.name, QUEUE, name))
        for entry in _entries(definitions, "bindings"):
            router._read_binding(router.vhosts[_home(entry, vhost)], entry)
        return router

    def route(
        self,
        vhost: str,
        exchange: str,
        routing_key: str,
        headers: Mapping[str, object] | None = None,
        properties: Properties | None = None,
    ) -> Routed:
        """Where a message with this key and these headers (Python values or fields) goes.

        Raises AmqpError where the broker would refuse it for what routing looks at: no such virtual host or exchange,
        CC or BCC of another type than array, a delay that is no number.
        """
        topology, source, message = self._message(vhost, exchange, routing_key, headers, properties)
        return route(source, message, topology.exchanges, topology.queues)

    def explain(
        self,
        vhost: str,
        exchange: str,
        routing_key: str,
        headers: Mapping[str, object] | None = None,
        properties: Properties | None = None,
    ) -> explain.Step:
        """The way of a message as a tree, with the bindings that matched, and why others did not."""
        topology, source, message = self._message(vhost, exchange, routing_key, headers, properties)
        return explain.explain(source, message, topology.exchanges, topology.queues)

    # --- inside

    def _message(
        self,
        vhost: str,
        exchange: str,
        routing_key: str,
        headers: Mapping[str, object] | None,
        properties: Properties | None,
    ) -> tuple[Topology, Exchange, BasicMessage]:
        topology = self.vhosts.get(vhost)
        if topology is None:
            raise AmqpError(NOT_ALLOWED, f"vhost {vhost} not found")
        name = Resource(vhost, EXCHANGE, exchange)
        source = topology.exchanges.get(exchange)
        if source is None:
            raise AmqpError(NOT_FOUND, f"no {name}")
        properties = Properties() if properties is None else properties.copy()
        if headers is not None:
            properties.headers = from_python(headers)
        keys, _ = routing_keys_of(routing_key, properties.headers)
        content = Content(encode_header(properties, 0), b"")
        return topology, source, BasicMessage(name, keys, content, 0, properties.delivery_mode == 2)

    def _add_policy(self, topology: Topology, entry: Mapping[str, object]) -> None:
        name = _text(entry, "name", "policy")
        definition = entry.get("definition")
        priority = entry.get("priority", 0)
        if not isinstance(definition, dict) or not isinstance(priority, (int, float)):
            raise DefinitionsError(f"policy '{name}' has no valid definition or priority")
        apply_to = entry.get("apply-to", "all")
        pattern = _text(entry, "pattern", f"policy '{name}'")
        try:
            policy = Policy(topology.name, name, pattern, definition, float(priority), str(apply_to))
        except Exception as error:
            raise DefinitionsError(f"policy '{name}' has no valid pattern: {pattern}") from error
        place = 0
        while place < len(topology.policies) and _before(topology.policies[place], policy):
            place += 1
        topology.policies.insert(place, policy)

    def _read_exchange(self, topology: Topology, entry: Mapping[str, object]) -> None:
        name = _text(entry, "name", "exchange")
        what = f"exchange '{name}'"
        self._add_exchange(
            topology,
            name,
            _text(entry, "type", what),
            bool(entry.get("durable", True)),
            bool(entry.get("auto_delete", False)),
            bool(entry.get("internal", False)),
            _arguments(entry, what),
        )

    def _add_exchange(
        self, topology: Topology, name: str, type: str, durable: bool, auto_delete: bool, internal: bool, table: Table
    ) -> None:
        resource = Resource(topology.name, EXCHANGE, name)
        try:
            matcher = create(type, table, self._random)
            exchange = Exchange(resource, type, durable, auto_delete, internal, table, matcher)
            matcher.validate(exchange)
        except AmqpError as error:
            raise DefinitionsError(f"{resource}: {error.explanation}") from error
        for policy in topology.policies:
            if policy.applies(EXCHANGE, name, ""):
                exchange.policy.take(policy.name, None, policy.definition)
                break
        exchange.alternate = alternate_of(exchange)
        exchange.decorators = decorators_for(exchange, self._registry)
        topology.exchanges[name] = exchange

    def _read_binding(self, topology: Topology, entry: Mapping[str, object]) -> None:
        source_name = _text(entry, "source", "binding")
        if not source_name:
            return  # the default exchange's own, which some exports list
        destination_name = _text(entry, "destination", "binding")
        kind = entry.get("destination_type", QUEUE)
        what = f"the binding from exchange '{source_name}' to {kind} '{destination_name}' in vhost '{topology.name}'"
        source = topology.exchanges.get(source_name)
        destination: Destination | None
        if kind == EXCHANGE:
            destination = topology.exchanges.get(destination_name)
        else:
            destination = topology.queues.get(destination_name)
        if source is None or destination is None:
            raise DefinitionsError(f"{what} has an end that is not defined")
        key = entry.get("routing_key", "")
        binding = Binding(source, destination, key if isinstance(key, str) else "", _arguments(entry, what))
        name = identity(source.name, destination.name, binding.key, binding.arguments)
        if name in source.bindings_out:
            return
        try:
            source.matcher.validate_binding(binding)
        except AmqpError as error:
            raise DefinitionsError(f"{what}: {error.explanation}") from error
        source.bindings_out[name] = binding
        if isinstance(destination, Exchange):
            destination.bindings_in[name] = binding
        source.matcher.bind(binding)


_SECTIONS: Final = ("exchanges", "queues", "bindings")


def _before(one: Policy, other: Policy) -> bool:
    """The order in which policies are tried: as ``policies.py`` has it."""
    return (-one.priority, one.name) < (-other.priority, other.name)


def _entries(definitions: Mapping[str, object], section: str) -> list[Mapping[str, object]]:
    entries = definitions.get(section, [])
    if not isinstance(entries, list):
        raise DefinitionsError(f"'{section}' is no list")
    result: list[Mapping[str, object]] = []
    for entry in entries:
        if not isinstance(entry, dict):
            raise DefinitionsError(f"'{section}' holds something that is no object: {entry!r}")
        result.append(entry)
    return result


def _home(entry: Mapping[str, object], vhost: str) -> str:
    named = entry.get("vhost", vhost)
    return named if isinstance(named, str) else vhost


def _text(entry: Mapping[str, object], key: str, what: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str):
        raise DefinitionsError(f"{what} has no '{key}'")
    return value


def _arguments(entry: Mapping[str, object], what: str) -> Table:
    arguments = entry.get("arguments")
    if not arguments:
        return {}
    if not isinstance(arguments, dict):
        raise DefinitionsError(f"{what}: its arguments are no object")
    try:
        return from_python(arguments)
    except (TypeError, ValueError) as error:
        raise DefinitionsError(f"{what}: {error}") from error
