"""The publish path without a broker: what would become of a message, from definitions alone.

Duty: hold the exchanges, queues, users and policies of a definitions file and give a verdict on one message, stage by
stage in the order of ``broker/publish.py``, with the broker's own matchers, walk, permissions and validators. Not here:
Spark (``routing.py``). Nothing is kept between two messages, so verdicts can be given in any order and anywhere.

A verdict is about routing: it does not know how full a queue is (``x-overflow``), nor that a disk may fail.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from warren.broker.access import Access, NoStore
from warren.broker.exchange import types
from warren.broker.exchange.arguments import alternate_of, routing_keys_of
from warren.broker.exchange.bindings import identity
from warren.broker.exchange.delayed import IMMEDIATE, delay_of, deliver_at_of
from warren.broker.exchange.random import Randomness
from warren.broker.exchange.walk import route as walk
from warren.broker.policy import Policies, parse_policy
from warren.broker.publish import DIRECT_REPLY, read_expiration, refuse_internal
from warren.broker.records import EXCHANGE, QUEUE, BasicMessage, Binding, Content, Destination, Exchange, Resource
from warren.spark.headers import from_maps
from warren.wire.content import Properties, Quick, encode_header
from warren.wire.fields import Table, from_python
from warren.wire.replies import AmqpError

CONFIRMED = "confirmed"
UNROUTABLE = "unroutable"  # returned if mandatory, else confirmed
REFUSED = "refused"
SCHEDULED = "scheduled"
PREDECLARED = (
    ("", "direct", False), ("amq.direct", "direct", False), ("amq.fanout", "fanout", False),
    ("amq.headers", "headers", False), ("amq.match", "headers", False), ("amq.topic", "topic", False),
    ("amq.rabbitmq.trace", "topic", True),
)  # fmt: skip
IMPERSONATOR = "impersonator"


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything about a message that a verdict can depend on. ``headers`` is the fingerprint of ``routing.py``."""

    vhost: str
    user: str | None
    exchange: str
    routing_key: str
    headers: str | None = None
    user_id: str | None = None
    expiration: str | None = None
    size: int = 0
    reply_to: str | None = None
    message_id: str | None = None
    correlation_id: str | None = None
    timestamp: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    outcome: str
    queues: list[str] = field(default_factory=list)
    code: int | None = None
    text: str | None = None
    delay_ms: int | None = None
    due_ms: int | None = None


@dataclass(frozen=True)
class Relevance:
    """Which columns can change a verdict, so that the others need not take part in the search for distinct messages."""

    headers: frozenset[str]  # names some exchange looks at
    always: tuple[str, ...]  # names the path itself looks at
    header_exchanges: tuple[str, ...]  # from these, an exchange that looks at headers can be reached
    key_ignored: tuple[str, ...]  # from these, only exchanges that do not look at keys can be reached
    random: tuple[str, ...]  # from these, x-random can be reached: equal messages get different verdicts
    hashed_by: dict[str, tuple[str, ...]]  # property -> exchanges from which a hash over it can be reached


class VHostModel:
    """The exchanges and queues of one vhost."""

    def __init__(self) -> None:
        self.exchanges: dict[str, Exchange] = {}
        self.queues: dict[str, Destination] = {}


class PublishPath:
    def __init__(
        self, definitions: Mapping[str, Any], *, max_message_size: int = 134_217_728, interceptors: Sequence[str] = ()
    ) -> None:
        self.max_message_size = max_message_size
        self.interceptors = [_imported(name) for name in interceptors]
        self.access = Access(NoStore())
        self.policies = Policies(NoStore())
        self.random = Randomness(0)  # seeded: the same table gives the same verdicts
        self.vhosts: dict[str, VHostModel] = {}
        self._load(definitions)

    # --- the verdict

    def judge(self, facts: Facts) -> Verdict:
        """The stages of ``broker/publish.py`` in their order; the first that refuses decides."""
        try:
            return self._walk(facts)
        except AmqpError as refusal:
            return Verdict(REFUSED, [], refusal.code, refusal.text)

    def _walk(self, facts: Facts) -> Verdict:
        exchange_name, routing_key = facts.exchange, facts.routing_key
        headers = parse_fingerprint(facts.headers)
        for interceptor in self.interceptors:
            exchange_name, routing_key, headers = interceptor(facts, exchange_name, routing_key, headers)
        vhost = self.vhosts.get(facts.vhost)
        if vhost is None:
            raise AmqpError(530, f"vhost {facts.vhost} not found")
        self._check_size(facts.size)
        name = Resource(facts.vhost, EXCHANGE, exchange_name.replace("\r", "").replace("\n", ""))
        self._check_write(facts.user, name)
        exchange = vhost.exchanges.get(name.name)
        if exchange is None:
            raise AmqpError(404, f"no {name}")
        refuse_internal(exchange)
        self._check_topic(facts.user, exchange, [routing_key])
        if facts.reply_to == DIRECT_REPLY:
            raise AmqpError(406, "fast reply consumer does not exist")
        self._check_user_id(facts.user, facts.user_id)
        quick = Quick()
        quick.expiration = facts.expiration
        read_expiration(quick)
        keys = routing_keys_of(routing_key, headers)
        if len(keys) > 1:
            self._check_topic(facts.user, exchange, keys[1:])
        return self._route(vhost, exchange, keys, headers, facts)

    def _route(
        self, vhost: VHostModel, exchange: Exchange, keys: list[str], headers: Table | None, facts: Facts
    ) -> Verdict:
        content = EMPTY
        if headers or facts.message_id or facts.correlation_id or facts.timestamp:
            properties = Properties(
                headers=headers, message_id=facts.message_id, correlation_id=facts.correlation_id,
                timestamp=int(facts.timestamp) if facts.timestamp else None,
            )  # fmt: skip
            content = Content(encode_header(properties, 0), b"")
        message = BasicMessage(exchange.name, keys, content, 0, False)
        routed = walk(exchange, message, vhost.exchanges, vhost.queues)
        queues = [queue.name.name for queue in routed.queues]
        if not routed.scheduled:
            return Verdict(CONFIRMED if queues else UNROUTABLE, queues)
        delay = delay_of(headers or {})
        due = deliver_at_of(headers or {}) if delay == IMMEDIATE else IMMEDIATE
        later = walk(exchange, message, vhost.exchanges, vhost.queues, True)
        honest = all(_honest(each) for each in routed.scheduled)
        returned = not queues and (not later.queues if honest else True)
        return Verdict(
            CONFIRMED if queues else SCHEDULED,
            [queue.name.name for queue in later.queues],
            312 if returned else None,
            None,
            int(delay) if delay != IMMEDIATE else None,
            int(due) if due != IMMEDIATE else None,
        )

    # --- stages

    def _check_size(self, size: int) -> None:
        if size > self.max_message_size:
            limit = self.max_message_size
            raise AmqpError(406, f"message size {size} is larger than configured max size {limit}")

    def _check_write(self, user: str | None, name: Resource) -> None:
        if user is not None and not self.access.allowed(user, name.virtual_host, "write", name.name):
            raise AmqpError(403, f"access to {_shown(name)} refused for user '{user}'")

    def _check_topic(self, user: str | None, exchange: Exchange, keys: Iterable[str]) -> None:
        if user is None or exchange.type != "topic":
            return
        name = exchange.name
        for key in keys:
            if not self.access.topic_allowed(user, name.virtual_host, name.name, "write", key):
                raise AmqpError(403, f"access to topic '{key}' in {name} refused for user '{user}'")

    def _check_user_id(self, user: str | None, claimed: str | None) -> None:
        if user is None or claimed is None or claimed == user or self.access.has_tag(user, IMPERSONATOR):
            return
        raise AmqpError(406, f"user_id property set to '{claimed}' but authenticated user was '{user}'")

    # --- what matters

    def relevance(self) -> Relevance:
        names: set[str] = set()
        by_headers: set[tuple[str, str]] = set()
        hashed: dict[str, set[tuple[str, str]]] = {}
        by_key: set[tuple[str, str]] = set()
        by_chance: set[tuple[str, str]] = set()
        for vhost, model in self.vhosts.items():
            for exchange in model.exchanges.values():
                here = (vhost, exchange.name.name)
                inner = types.delayed_type(exchange.arguments) if exchange.type == types.DELAYED else exchange.type
                if exchange.type == types.DELAYED:
                    names.update(("x-delay", "x-deliver-at"))
                    by_headers.add(here)
                if inner == "headers":
                    names.update(*[binding.arguments.keys() for binding in exchange.bindings_out.values()], ())
                    by_headers.add(here)
                elif inner == "x-consistent-hash":
                    by_key.add(here)
                    header = exchange.arguments.get("hash-header")
                    if header is not None:
                        names.add(str(header.value))
                        by_headers.add(here)
                    hashed_property = exchange.arguments.get("hash-property")
                    if hashed_property is not None:
                        hashed.setdefault(str(hashed_property.value), set()).add(here)
                elif inner == "x-random":
                    by_chance.add(here)
                elif inner != "fanout":
                    by_key.add(here)
        return Relevance(
            frozenset(names),
            ("BCC", "CC"),
            tuple(sorted({name for _, name in self._sources_of(by_headers)})),
            # Only names that ignore keys in every vhost: the table may not say which vhost a message is for.
            tuple(
                sorted(
                    {name for model in self.vhosts.values() for name in model.exchanges}
                    - {name for _, name in self._sources_of(by_key)}
                )
            ),
            tuple(sorted({name for _, name in self._sources_of(by_chance)})),
            {key: tuple(sorted({name for _, name in self._sources_of(found)})) for key, found in hashed.items()},
        )

    def _sources_of(self, targets: set[tuple[str, str]]) -> set[tuple[str, str]]:
        """These exchanges and every exchange from which one of them can be reached."""
        reached = set(targets)
        pending = list(targets)
        while pending:
            vhost, name = pending.pop()
            model = self.vhosts[vhost]
            before = {binding.source.name.name for binding in model.exchanges[name].bindings_in.values()}
            before.update(other.name.name for other in model.exchanges.values() if name and other.alternate == name)
            for source in before:
                if (vhost, source) not in reached:
                    reached.add((vhost, source))
                    pending.append((vhost, source))
        return reached

    # --- loading

    def _load(self, definitions: Mapping[str, Any]) -> None:
        alone = str(definitions.get("vhost", "/"))  # an export of one vhost leaves the name out of its entries
        for policy in definitions.get("policies", []):
            vhost = str(policy.get("vhost", alone))
            self.policies.set(parse_policy(vhost, str(policy["name"]), dict(policy), False))
        listed = [str(entry["name"]) for entry in definitions.get("vhosts", [])]
        used = {str(entry.get("vhost", alone)) for key in SECTIONS for entry in definitions.get(key, [])}
        for vhost in [*listed, *sorted(used.difference(listed)), *([] if listed or used else ["/"])]:
            model = self.vhosts[vhost] = VHostModel()
            for name, kind, internal in PREDECLARED:
                self._exchange(model, vhost, name, kind, internal, {})
        for user in definitions.get("users", []):
            tags = user.get("tags", [])
            tags = [tag.strip() for tag in tags.split(",") if tag.strip()] if isinstance(tags, str) else list(tags)
            self.access.load("user", {
                "name": user["name"], "password_hash": user.get("password_hash", ""),
                "hashing_algorithm": user.get("hashing_algorithm", "rabbit_password_hashing_sha256"), "tags": tags,
            })  # fmt: skip
        for permission in definitions.get("permissions", []):
            self.access.load("permission", {"vhost": alone, **permission})
        for permission in definitions.get("topic_permissions", []):
            self.access.load("topic-permission", {"vhost": alone, **permission})
        for exchange in definitions.get("exchanges", []):
            vhost = str(exchange.get("vhost", alone))
            self._exchange(
                self.vhosts[vhost], vhost, str(exchange["name"]), str(exchange["type"]),
                bool(exchange.get("internal", False)), from_python(exchange.get("arguments") or {}),
            )  # fmt: skip
        for queue in definitions.get("queues", []):
            vhost = str(queue.get("vhost", alone))
            resource = Resource(vhost, QUEUE, str(queue["name"]))
            self.vhosts[vhost].queues[resource.name] = Destination(resource)
        for binding in definitions.get("bindings", []):
            self._bind(self.vhosts[str(binding.get("vhost", alone))], binding)

    def _exchange(self, model: VHostModel, vhost: str, name: str, kind: str, internal: bool, arguments: Table) -> None:
        matcher = types.create(kind, arguments, self.random)
        exchange = Exchange(Resource(vhost, EXCHANGE, name), kind, True, False, internal, arguments, matcher)
        policy, _, definition = self.policies.effective(vhost, EXCHANGE, name)
        exchange.policy = policy
        exchange.policy_definition = definition
        exchange.alternate = alternate_of(exchange)
        model.exchanges[name] = exchange

    def _bind(self, model: VHostModel, entry: Mapping[str, Any]) -> None:
        source = model.exchanges.get(str(entry["source"]))
        target = str(entry["destination"])
        to_exchange = entry.get("destination_type", QUEUE) == EXCHANGE
        destination: Destination | None = model.exchanges.get(target) if to_exchange else model.queues.get(target)
        if source is None or destination is None:
            missing = (
                f"exchange '{entry['source']}'"
                if source is None
                else f"{entry.get('destination_type', QUEUE)} '{target}'"
            )
            raise ValueError(f"the definitions bind {missing}, which they do not define")
        key = str(entry.get("routing_key", ""))
        arguments = from_python(entry.get("arguments") or {})
        name = identity(source.name, destination.name, key, arguments)
        if name in source.bindings_out or not source.name.name:
            return  # exports may list the default exchange's implicit bindings
        binding = Binding(source, destination, key, arguments)
        source.bindings_out[name] = binding
        if isinstance(destination, Exchange):
            destination.bindings_in[name] = binding
        source.matcher.bind(binding)


EMPTY = Content(encode_header(Properties(), 0), b"")
SECTIONS = ("permissions", "topic_permissions", "policies", "exchanges", "queues", "bindings")


def parse_fingerprint(text: str | None) -> Table | None:
    """The headers of a fingerprint: a JSON list of name, text and wire letter."""
    if text is None:
        return None
    entries = json.loads(text)
    return from_maps(
        {entry["n"]: entry.get("v") for entry in entries},
        {entry["n"]: entry["t"] for entry in entries if entry.get("t")},
    )


def _honest(exchange: Exchange) -> bool:
    """True when a delayed exchange returns only what could not be routed (spec.md §18)."""
    argument = exchange.arguments.get("x-delayed-mandatory")
    value = argument.value if argument is not None else exchange.policy_definition.get("delayed-mandatory")
    return value == "honest"


def _shown(name: Resource) -> str:
    return str(name) if name.name else str(Resource(name.virtual_host, name.kind, "amq.default"))


def _imported(name: str) -> Any:
    module, _, attribute = name.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError):
        raise ValueError(f"interceptor '{name}' cannot be imported; expected package.module:object") from None
