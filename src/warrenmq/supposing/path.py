"""The publish path without a broker: what would become of a message, from definitions alone.

Duty: a verdict on one message, stage by stage in the order of ``broker/publish/stages.py``, with those very checks and
the broker's own router and interceptors. Not here: Spark (``table.py``, ``files.py``). Nothing is kept between two
messages, so verdicts can be given in any order and anywhere.

A verdict is about routing: it does not know how full a queue is (``x-overflow``), nor that a disk may fail.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from warrenmq.broker.access.access import Access, NoStore, Refused
from warrenmq.broker.definitions.router import Router, Topology
from warrenmq.broker.exchange.arguments import routing_keys_of
from warrenmq.broker.exchange.delayed import IMMEDIATE, delay_of, deliver_at_of
from warrenmq.broker.exchange.walk import route as walk
from warrenmq.broker.expiration import read_expiration
from warrenmq.broker.extensions.interceptor import ChannelView, load_interceptors
from warrenmq.broker.publish.publisher import Publisher
from warrenmq.broker.publish.stages import (
    check_delivery_mode,
    check_reply_to,
    check_size,
    check_topic_permission,
    check_user_id,
    check_write_permission,
    lookup_exchange,
    refuse_internal,
)
from warrenmq.broker.records import EXCHANGE, BasicMessage, Content, Exchange, Resource
from warrenmq.broker.services.clock import SystemClock
from warrenmq.broker.services.limits import MAX_MESSAGE_SIZE, Limits
from warrenmq.supposing.relevance import Relevance, relevance
from warrenmq.supposing.words import telling_words
from warrenmq.wire.content import Properties, encode_header
from warrenmq.wire.fields import Table
from warrenmq.wire.methods import SPECS_BY_NAME, Method
from warrenmq.wire.peek import Peek
from warrenmq.wire.properties import FLAG_DELIVERY_MODE
from warrenmq.wire.replies import NO_ROUTE, NOT_ALLOWED, AmqpError

DEFAULT_MAX_SIZE = MAX_MESSAGE_SIZE
CONFIRMED = "confirmed"
UNROUTABLE = "unroutable"  # returned if mandatory, else confirmed
REFUSED = "refused"
SCHEDULED = "scheduled"
GATES = 1 << 16  # remembered at most: a table may name any number of exchanges that do not exist
EMPTY = Content(encode_header(Properties(), 0), b"")


class Facts(NamedTuple):
    """Everything about a message that a verdict can depend on."""

    vhost: str
    user: str | None
    exchange: str
    routing_key: str
    headers: Table | None = None
    user_id: str | None = None
    expiration: str | None = None
    size: int = 0
    reply_to: str | None = None
    message_id: str | None = None
    correlation_id: str | None = None
    timestamp: str | None = None
    delivery_mode: int | None = None


class Verdict(NamedTuple):
    """The fate of one message: outcome, queues, and RabbitMQ's code and text when it is refused."""

    outcome: str
    queues: list[str]
    code: int | None = None
    text: str | None = None
    delay_ms: int | None = None
    due_ms: int | None = None


@dataclass
class Gate:
    """An exchange that this user may publish to."""

    publisher: Publisher
    topology: Topology
    exchange: Exchange


class PublishPath:
    """The publish path over definitions. Raises ValueError (one line) when the definitions or interceptors make no
    sense."""

    def __init__(
        self,
        definitions: Mapping[str, Any],
        *,
        max_message_size: int = DEFAULT_MAX_SIZE,
        interceptors: Sequence[str] = (),
    ) -> None:
        self.limits = Limits()
        self.limits.max_message_size = max_message_size
        self.interceptors = load_interceptors(interceptors, "warren@localhost", SystemClock())
        self.router = Router.from_definitions(definitions)
        self.access = load_access(definitions)
        # (vhost, user, exchange) -> what the stages that look at nothing else said: a refusal, or the way is open
        self._gates: dict[tuple[str, str | None, str], Verdict | Gate] = {}
        self._words: dict[tuple[str, str], frozenset[str] | None] = {}

    def relevance(self) -> Relevance:
        return relevance(self.router.vhosts, rerouted=bool(self.interceptors.of_methods))

    def judge(self, facts: Facts) -> Verdict:
        """The stages of ``broker/publish/stages.py`` in their order; the first that refuses decides."""
        try:
            return self._walk(facts)
        except AmqpError as refusal:
            return Verdict(REFUSED, [], refusal.code, refusal.text)

    def judge_plain(self, vhost: str, user: str | None, exchange: str, routing_key: str) -> Verdict:
        """The verdict on a message of which nothing else matters: most are so, and a gate once passed stays open."""
        gate = self._gates.get((vhost, user, exchange))
        if gate is None:
            gate = self._gate(vhost, user, exchange)
        if isinstance(gate, Verdict):
            return gate
        found = gate.exchange
        if user is not None and found.type == "topic":
            try:
                check_topic_permission(gate.publisher, found, routing_key)
            except AmqpError as refusal:
                return Verdict(REFUSED, [], refusal.code, refusal.text)
        message = BasicMessage(found.name, [routing_key], EMPTY, 0, False)
        routed = walk(found, message, gate.topology.exchanges, gate.topology.queues)
        queues = [queue.name.name for queue in routed.queues]
        return Verdict(CONFIRMED if queues else UNROUTABLE, queues)

    def words(self, vhost: str, user: str | None, exchange: str) -> frozenset[str] | None:
        """Those of a key that can change a verdict here, when all others can be taken for one another."""
        if self.interceptors.of_methods or self.interceptors.of_messages:
            return None
        gate = self._gates.get((vhost, user, exchange)) or self._gate(vhost, user, exchange)
        if isinstance(gate, Verdict):
            return frozenset()  # refused, whatever the key
        if (
            user is not None
            and (user, vhost, exchange) in self.access.topic_permissions
            and gate.exchange.type == "topic"
        ):
            return None
        if (vhost, exchange) not in self._words:
            self._words[(vhost, exchange)] = telling_words(gate.topology, gate.exchange)
        return self._words[(vhost, exchange)]

    def _gate(self, vhost: str, user: str | None, exchange: str) -> Verdict | Gate:
        gate: Verdict | Gate
        try:
            topology = self._vhost(vhost)
            publisher = self._publisher(topology, vhost, user)
            gate = Gate(publisher, topology, _exchange(publisher, Resource(vhost, EXCHANGE, exchange)))
        except AmqpError as refusal:
            gate = Verdict(REFUSED, [], refusal.code, refusal.text)
        if len(self._gates) >= GATES:
            self._gates.clear()
        self._gates[(vhost, user, exchange)] = gate
        return gate

    def _vhost(self, name: str) -> Topology:
        vhost = self.router.vhosts.get(name)
        if vhost is None:
            raise AmqpError(NOT_ALLOWED, f"vhost {name} not found")
        return vhost

    def _publisher(self, vhost: Topology, name: str, user: str | None) -> Publisher:
        return Publisher(user, name, vhost.exchanges, self.access, self.limits)

    def _walk(self, facts: Facts) -> Verdict:
        vhost = self._vhost(facts.vhost)
        exchange_name, routing_key = self._intercepted(facts)
        publisher = self._publisher(vhost, facts.vhost, facts.user)
        check_size(publisher, facts.size)
        exchange = _exchange(publisher, Resource(facts.vhost, EXCHANGE, exchange_name))
        check_topic_permission(publisher, exchange, routing_key)
        properties = Peek()
        properties.reply_to = facts.reply_to
        properties.user_id = facts.user_id
        check_reply_to(publisher, properties)
        check_user_id(publisher, properties)
        read_expiration(facts.expiration)
        headers = facts.headers
        keys, _ = routing_keys_of(routing_key, headers)
        if facts.delivery_mode is not None:
            properties.flags |= FLAG_DELIVERY_MODE
            properties.delivery_mode = facts.delivery_mode
        check_delivery_mode(properties)
        message = self._message(exchange, keys, headers, facts)
        if self.interceptors.of_messages:
            message = self.interceptors.amend(message)
        return self._route(vhost, exchange, message)

    def _intercepted(self, facts: Facts) -> tuple[str, str]:
        """Exchange and key as the channel interceptors leave them."""
        if not self.interceptors.of_methods:
            return facts.exchange, facts.routing_key
        values: dict[str, object] = {
            "ticket": 0,
            "exchange": facts.exchange,
            "routing_key": facts.routing_key,
            "mandatory": True,
            "immediate": False,
        }
        view = ChannelView(facts.vhost, facts.user or "", "spark", 1)
        method = self.interceptors.intercept(Method(SPECS_BY_NAME["basic.publish"], values), view)
        return method.str("exchange"), method.str("routing_key")

    def _message(self, exchange: Exchange, keys: list[str], headers: Table | None, facts: Facts) -> BasicMessage:
        content = EMPTY
        if headers or facts.message_id or facts.correlation_id or facts.timestamp:
            properties = Properties(
                headers=headers,
                message_id=facts.message_id,
                correlation_id=facts.correlation_id,
                timestamp=int(facts.timestamp) if facts.timestamp else None,
            )
            content = Content(encode_header(properties, 0), b"")
        return BasicMessage(exchange.name, keys, content, 0, False)

    def _route(self, vhost: Topology, exchange: Exchange, message: BasicMessage) -> Verdict:
        routed = walk(exchange, message, vhost.exchanges, vhost.queues)
        queues = [queue.name.name for queue in routed.queues]
        if not routed.scheduled:
            return Verdict(CONFIRMED if queues else UNROUTABLE, queues)
        headers = message.content.headers
        delay = delay_of(headers)
        due = deliver_at_of(headers) if delay == IMMEDIATE else IMMEDIATE
        later = walk(exchange, message, vhost.exchanges, vhost.queues, True)
        honest = all(_honest(each) for each in routed.scheduled)
        returned = not queues and (not later.queues if honest else True)
        return Verdict(
            CONFIRMED if queues else SCHEDULED,
            [queue.name.name for queue in later.queues],
            NO_ROUTE if returned else None,
            None,
            int(delay) if delay != IMMEDIATE else None,
            int(due) if due != IMMEDIATE else None,
        )


def _exchange(publisher: Publisher, name: Resource) -> Exchange:
    """Write permission, exchange lookup, internal."""
    check_write_permission(publisher, name)
    exchange = lookup_exchange(publisher, name)
    refuse_internal(exchange)
    return exchange


def load_access(definitions: Mapping[str, Any]) -> Access:
    """Users, permissions and topic permissions of an export."""
    access = Access(NoStore())
    for user in definitions.get("users", []):
        tags = user.get("tags", [])
        if isinstance(tags, str):
            tags = [tag.strip() for tag in tags.split(",") if tag.strip()]
        access.load(
            "user",
            {
                "name": user["name"],
                "password_hash": user.get("password_hash", ""),
                "hashing_algorithm": user.get("hashing_algorithm", "rabbit_password_hashing_sha256"),
                "tags": list(tags),
            },
        )
    for section, kind in (("permissions", "permission"), ("topic_permissions", "topic-permission")):
        for permission in definitions.get(section, []):
            try:
                access.load(kind, {"vhost": "/", **permission})
            except Refused as refused:
                raise ValueError(f"the definitions hold a permission that makes no sense: {refused.reason}") from None
    return access


def _honest(exchange: Exchange) -> bool:
    """True when a delayed exchange returns only what could not be routed."""
    argument = exchange.arguments.get("x-delayed-mandatory")
    value = argument.value if argument is not None else exchange.policy.definition.get("delayed-mandatory")
    return value == "honest"
