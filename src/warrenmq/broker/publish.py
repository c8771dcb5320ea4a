"""The publish path: the stages a basic.publish goes through, in order. This page is the order.

    interceptors            frame_loop.py, when the method comes: they may rewrite or refuse any channel method
    immediate               540
    size                    406; refused from the content header on, before a body is buffered
    write permission        403
    exchange lookup         404
    internal                403
    topic permission        403, on the key of the publish; CC and BCC are not looked at, as in RabbitMQ
    reply-to                406
    user-id                 406
    expiration              406
    sequence number         for mandatory, confirm and tx alike
    CC and BCC              406
    delivery mode           406
    message interceptors    they may amend the message
    route                   decorators, exchange-to-exchange, alternate exchanges
    firehose                when the vhost is traced
    deliver                 to the queues, or to the transaction until its commit
    outcome                 outcomes.py: the only place that returns, acks or nacks

A test reads this list and the one in docs/publishing.md and follows a message through the code.

The stages up to the topic permission, and the routing of a message with ordinary properties, depend on nothing but the
publish frame: their result is remembered as a ``Route`` (route.py) and an identical publish starts behind them. With
properties that no later stage looks at (``is_ordinary``), or nothing but a delay (``delay_alone``), it goes right on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from warrenmq.broker import outcomes
from warrenmq.broker.exchange.delayed import DelayedExchange, has_to_wait
from warrenmq.broker.exchange.walk import Routed, waiting_at
from warrenmq.broker.exchange.walk import route as walk
from warrenmq.broker.message import Message, Origin, message_from
from warrenmq.broker.records import BasicMessage, Content, Exchange, Resource
from warrenmq.broker.route import CACHE_LIMIT, Route
from warrenmq.wire.content import (
    FLAG_DELIVERY_MODE,
    FLAG_EXPIRATION,
    FLAG_PRIORITY,
    FLAG_USER_ID,
    Properties,
    encode_header,
)
from warrenmq.wire.erlang import pretty_pair
from warrenmq.wire.fields import Field, type_name
from warrenmq.wire.glance import MARK_DELAY, MARK_DELAY_OTHER, MARK_DELIVER_AT, Quick
from warrenmq.wire.methods import decode_method
from warrenmq.wire.replies import AmqpError

if TYPE_CHECKING:
    from warrenmq.broker.channel import Channel
    from warrenmq.broker.queue.queue import Queue
    from warrenmq.broker.vhost import VHost

# properties that some stage always looks at; headers and reply-to only with certain values
LOOKED_AT: Final = FLAG_EXPIRATION | FLAG_USER_ID | FLAG_PRIORITY
BASIC_PUBLISH: Final = b"\x00\x3c\x00\x28"  # class and method
DIRECT_REPLY: Final = "amq.rabbitmq.reply-to"
MAX_EXPIRATION: Final = 315_360_000_000
_DELAY_HEADERS: Final = MARK_DELAY | MARK_DELAY_OTHER | MARK_DELIVER_AT


@final
class Arrived:
    """A message's content as it came off the wire: two frames verbatim, or header and body chunks."""

    def __init__(self, frames: bytes, channel: i64, header_size: i64, header: bytes, chunks: list[bytes], size: i64):
        self.frames: Final = frames
        self.channel: Final = channel
        self.header_size: Final = header_size
        self._header: Final = header
        self.chunks: Final = chunks
        self.size: Final = size

    def header(self) -> bytes:
        if self.frames:
            return self.frames[7 : 7 + self.header_size]
        return self._header

    def message(self, origin: Origin, id: i64, persistent: bool) -> Message:
        if self.frames:
            return Message(origin, id, self.frames, self.channel, self.header_size, self.size, persistent)
        return message_from(origin, id, self._header, self.chunks, self.size, persistent)


def publish(channel: Channel, arguments: bytes, properties: Quick, arrived: Arrived) -> None:
    """One message through all stages: the publish frame's arguments, what was read of its properties, its content."""
    route = known_route(channel, arguments, arrived.size)
    if route.static and is_ordinary(properties) and channel.is_plain():
        persistent = properties.delivery_mode == 2
        publish_plain(channel, route, arrived.message(route.origin, channel.broker.next_id(), persistent))
        return
    if route.waits and delay_alone(properties) > 0 and channel.is_plain():
        persistent = properties.delivery_mode == 2
        message = arrived.message(route.origin, channel.broker.next_id(), persistent)
        schedule_plain(channel, route, message, properties.delay)
        return
    check_reply_to(channel, properties)
    check_user_id(channel, properties)
    expiration = read_expiration(properties)
    seq = channel.take_seqno(route.mandatory)
    message = read_routing_keys(channel, route, arrived, properties, properties.delivery_mode == 2)
    message.expiration = expiration
    message.priority = properties.priority if properties.priority > 0 else 0
    check_delivery_mode(properties)
    if channel.broker.interceptors.of_messages:
        message = channel.broker.amend(channel, message)
    routed = None
    queues = route.queues
    if not route.static or message.origin is not route.origin or (properties.marks & _DELAY_HEADERS) != 0:
        routed = find_queues(channel, route.exchange, message)
        queues = queues_of(routed)
        if routed.scheduled and (properties.marks & MARK_DELAY_OTHER) != 0:
            channel.broker.delay.check(channel, routed)
    tap(channel, message, queues)
    if channel.tx is not None:
        channel.tx.publish(route.exchange, message, queues, routed, route.mandatory, seq)
        return
    outcomes.publish(channel, route.exchange, message, queues, routed, route.mandatory, seq)


def is_ordinary(properties: Quick) -> bool:
    """Has no stage anything to do with these properties? Then a message needs no more than its publish frame."""
    return properties.marks == 0 and _ordinary_but_for_headers(properties)


def delay_alone(properties: Quick) -> i64:
    """The delay that these properties ask for, when they are ordinary but for that; else -1."""
    if properties.marks != MARK_DELAY or not _ordinary_but_for_headers(properties):
        return -1
    return properties.delay


def _ordinary_but_for_headers(properties: Quick) -> bool:
    flags = properties.flags
    if (flags & LOOKED_AT) != 0:
        return False
    if (flags & FLAG_DELIVERY_MODE) != 0 and not 1 <= properties.delivery_mode <= 2:
        return False
    reply_to = properties.reply_to
    return reply_to is None or not reply_to.startswith(DIRECT_REPLY)


def schedule_plain(channel: Channel, route: Route, message: Message, delay: i64) -> None:
    """No stage has anything to do but the delayed exchange it was published to."""
    seq = channel.take_seqno(route.mandatory)
    outcomes.schedule(channel, message, route.exchange, delay, route.mandatory, seq)


def publish_plain(channel: Channel, route: Route, message: Message) -> None:
    """The message has no property that any stage looks at, and its route is known: straight to the queues."""
    seq: i64 = 0
    if channel.numbered or route.mandatory or route.logged or message.persistent:
        seq = channel.take_seqno(route.mandatory)
        outcomes.publish(channel, route.exchange, message, route.queues, None, route.mandatory, seq)
        return
    channel.published += 1
    exchange = route.exchange
    exchange.messages_in += 1
    queues = route.queues
    if not queues:
        outcomes.settle(channel, exchange, message, queues, outcomes.NO_ROUTE, False, 0)
        return
    exchange.messages_out += len(queues)
    for queue in queues:
        if queue.eager and queue.refuses(message):
            queue.refused(message)
        else:
            queue.publish(message, 0 if queue.settings.ttl < 0 else queue.expiry_for(message))


# -- the stages that depend on the publish frame alone -----------------------------------------------------------


def known_route(channel: Channel, arguments: bytes, size: i64) -> Route:
    """The route of an identical publish before, or the stages up to the topic permission, in order."""
    broker = channel.broker
    connection = channel.connection
    route = connection.routes.get(arguments)
    if route is not None and route.valid:
        if size > broker.max_message_size:
            check_size(channel, size)
        return route
    method = decode_method(BASIC_PUBLISH + arguments)
    exchange_name = method.str("exchange")
    routing_key = method.str("routing_key")
    refuse_immediate(method.bit("immediate"))
    check_size(channel, size)
    vhost = connection.open_vhost()
    name = Resource(vhost.name, "exchange", exchange_name)
    check_write_permission(channel, name)
    exchange = lookup_exchange(vhost, name)
    refuse_internal(exchange)
    check_topic_permission(channel, exchange, routing_key)
    route = Route(exchange, Origin(exchange_name, [routing_key]), method.bit("mandatory"))
    remember(channel, vhost, arguments, route)
    return route


def refuse_immediate(immediate: bool) -> None:
    if immediate:
        raise AmqpError(540, "immediate=true", 60, 40)


def check_size(channel: Channel, size: i64) -> None:
    limit = channel.broker.max_message_size
    if size > limit:
        raise AmqpError(406, f"message size {size} is larger than configured max size {limit}", 60, 40)


def check_write_permission(channel: Channel, name: Resource) -> None:
    channel.check("write", name, 60, 40)


def lookup_exchange(vhost: VHost, name: Resource) -> Exchange:
    exchange = vhost.exchanges.get(name.name)
    if exchange is None:
        raise AmqpError(404, f"no {name}", 60, 40)
    return exchange


def refuse_internal(exchange: Exchange) -> None:
    if exchange.internal:
        raise AmqpError(403, f"cannot publish to internal {exchange.name}", 60, 40)


def check_topic_permission(channel: Channel, exchange: Exchange, routing_key: str) -> None:
    if exchange.type == "topic":
        channel.check_topic("write", exchange, routing_key, 60, 40)


def remember(channel: Channel, vhost: VHost, arguments: bytes, route: Route) -> None:
    """Route an ordinary message once, and keep the result while nothing it depends on changes."""
    connection = channel.connection
    exchange = route.exchange
    key = route.origin.routing_keys[0]
    if exchange.name.name == "" and key.startswith(DIRECT_REPLY):
        return  # replies go to channels, not queues
    probe = BasicMessage(exchange.name, route.origin.routing_keys, EMPTY_CONTENT, 0, False)
    routed = walk(exchange, probe, vhost.exchanges, vhost.queues)
    if vhost.tracing:
        return
    route.waits = isinstance(exchange.matcher, DelayedExchange)
    if routed.cacheable:  # else what was checked holds, but each message is routed for itself
        route.queues = queues_of(routed)
        route.static = True
    for queue in route.queues:
        if queue.keeps_all:
            route.logged = True
    if len(connection.routes) >= CACHE_LIMIT:
        for old in connection.routes.values():
            old.valid = False
        connection.routes.clear()
    connection.routes[arguments] = route
    if exchange.name.name == "":
        vhost.queue_routes.add(key, route)
    for visited in routed.visited:
        vhost.exchange_routes.add(visited.name.name, route)
    for missing in routed.missing:
        vhost.exchange_routes.add(missing, route)


# -- the stages that look at the message -------------------------------------------------------------------------


def check_reply_to(channel: Channel, properties: Quick) -> None:
    """Direct reply-to is replaced by the channel's own address later; it must have one."""
    reply_to = properties.reply_to
    if reply_to is not None and reply_to == DIRECT_REPLY and channel.reply_consumer is None:
        raise AmqpError(406, "fast reply consumer does not exist", 60, 40)


def check_user_id(channel: Channel, properties: Quick) -> None:
    claimed = properties.user_id
    if claimed is None:
        return
    actual = channel.connection.username
    if claimed != actual and not channel.connection.impersonator():
        raise AmqpError(
            406, f"user_id property set to '{claimed}' but authenticated user was '{actual}'", 60, 40
        )


def read_expiration(properties: Quick) -> i64:
    """Per-message TTL in ms, -1 when there is none; 406 with RabbitMQ's term when it is no number."""
    text = properties.expiration
    if text is None:
        return -1
    digits: i64 = 0
    sign: i64 = 1 if text[:1] in ("-", "+") else 0
    while sign + digits < len(text) and "0" <= text[sign + digits] <= "9":
        digits += 1
    if digits == 0:
        raise _bad_expiration(text, "no_integer")
    value = int(text[: sign + digits])
    rest = text[sign + digits :]
    if rest:
        raise _bad_expiration(text, "leftover_string", '"' + rest + '"')
    if value < 0:
        raise _bad_expiration(text, "value_negative", str(value))
    if value > MAX_EXPIRATION:
        raise _bad_expiration(text, "value_too_large", str(value))
    return value


def _bad_expiration(text: str, term: str, value: str = "") -> AmqpError:
    said = f"invalid expiration '{text}': "
    return AmqpError(406, pretty_pair(said, term, value) if value else said + term, 60, 40)


def read_routing_keys(channel: Channel, route: Route, arrived: Arrived, quick: Quick, persistent: bool) -> Message:
    """The message with its routing keys: the publish key, then CC and BCC. BCC is taken out of what is delivered."""
    id = channel.broker.next_id()
    mask = quick.marks
    reply = channel.reply_consumer is not None and quick.reply_to == DIRECT_REPLY
    if (mask & 3) == 0 and not reply:
        return arrived.message(route.origin, id, persistent)
    header = arrived.header()
    content = Content(header, b"")
    properties = content.properties
    keys = list(route.origin.routing_keys)
    changed = False
    bcc: i64 = 0
    if mask & 3:
        headers = content.headers
        for name in ("CC", "BCC"):
            field = headers.get(name)
            if field is not None:
                more = _keys_in(name, field)
                keys.extend(more)
                bcc = len(more) if name == "BCC" else 0
        if "BCC" in headers:
            headers = dict(headers)
            del headers["BCC"]
            properties = properties.copy()
            properties.headers = headers
            changed = True
    if reply:
        properties = properties.copy()
        properties.reply_to = channel.reply_address
        changed = True
    origin = route.origin if len(keys) == 1 else Origin(route.origin.exchange, keys, bcc)
    if not changed:
        return arrived.message(origin, id, persistent)
    header = encode_header(properties, arrived.size)
    whole = arrived.message(origin, id, persistent)
    chunks = whole.chunks
    if chunks is None:
        chunks = [whole.body()] if whole.size else []
    return message_from(origin, id, header, chunks, whole.size, persistent)


def _keys_in(name: str, field: Field) -> list[str]:
    if field.kind != "A" or not isinstance(field.value, list):
        raise AmqpError(
            406, 'invalid message: {unacceptable_type_in_header,"' + name + '",' + type_name(field) + "}", 60, 40
        )
    keys: list[str] = []
    for item in field.value:
        if isinstance(item, Field) and item.kind == "S":
            key = item.value
            if isinstance(key, str):
                keys.append(key)
            elif isinstance(key, bytes):  # no UTF-8, and a routing key all the same
                keys.append(key.decode("utf-8", "surrogateescape"))
    return keys


def check_delivery_mode(properties: Quick) -> None:
    """Last of all, where RabbitMQ makes its message record."""
    if (properties.flags & FLAG_DELIVERY_MODE) != 0 and not 1 <= properties.delivery_mode <= 2:
        raise AmqpError(406, "invalid message: {delivery_mode_unknown," + str(properties.delivery_mode) + "}", 60, 40)


def find_queues(channel: Channel, exchange: Exchange, message: Message) -> Routed:
    """Route one message: its type, decorators, exchange-to-exchange bindings and alternate exchanges."""
    vhost = channel.connection.open_vhost()
    if exchange.name.name == "":
        for key in message.origin.routing_keys:
            if key.startswith(DIRECT_REPLY + "."):
                channel.broker.deliver_reply(key, message)
    if isinstance(exchange.matcher, DelayedExchange):
        headers = Content(message.header(), b"").headers
        if has_to_wait(headers, channel.broker.now):  # where to is asked when it is due
            return waiting_at(exchange, headers)
    return walk(exchange, message.basic_message(vhost.name), vhost.exchanges, vhost.queues, False, channel.broker.now)


def queues_of(routed: Routed) -> list[Queue]:
    queues: list[Queue] = []
    if not routed.queues:
        return queues
    from warrenmq.broker.queue.queue import Queue as QueueClass

    for destination in routed.queues:
        if isinstance(destination, QueueClass):
            queues.append(destination)
    return queues


def tap(channel: Channel, message: Message, queues: list[Queue]) -> None:
    """The firehose: a copy of what is published, when the vhost is traced."""
    vhost = channel.connection.open_vhost()
    if vhost.tracing:
        channel.broker.firehose.published(channel, vhost, message, queues)


EMPTY_CONTENT: Final = Content(encode_header(Properties(), 0), b"")
