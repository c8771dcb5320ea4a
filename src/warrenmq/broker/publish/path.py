"""The path of a published message: content in, through the stages in order, to its queues.

``publish`` is the whole of it, with its three ways: plain, when nothing but the publish frame decides and that is
known; delayed, when an exchange keeps it and nothing else is asked; and general, through every stage. Every message
takes this function, whatever frames it came in. The order is ``stages.STAGES``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from warrenmq.broker.delivering.delivering import queues_of
from warrenmq.broker.delivering.told_route import told_route
from warrenmq.broker.exchange.arguments import routing_keys_of
from warrenmq.broker.exchange.delayed import DelayedExchange, has_to_wait
from warrenmq.broker.exchange.walk import Routed, waiting_at
from warrenmq.broker.exchange.walk import route as walk
from warrenmq.broker.expiration import read_expiration
from warrenmq.broker.message import Message, Origin, with_properties
from warrenmq.broker.publish.accounting import deliver_as_wished
from warrenmq.broker.publish.amending import amend
from warrenmq.broker.publish.duplicates import deliver_once, found, mark_of, tell_duplicate
from warrenmq.broker.publish.marks import Mark
from warrenmq.broker.publish.outcomes import deliver, keep
from warrenmq.broker.publish.publishing import Publishing, Uncommitted
from warrenmq.broker.publish.routes import Route
from warrenmq.broker.publish.stages import (
    check_configure_permission,
    check_delivery_mode,
    check_reply_to,
    check_size,
    check_topic_permission,
    check_user_id,
    check_write_permission,
    delay_alone,
    is_ordinary,
    lookup_exchange,
    refuse_immediate,
    refuse_internal,
)
from warrenmq.broker.publish.unfinished import AT_ONCE, Unfinished
from warrenmq.broker.publish.wish import Wish, check_least, read_wish
from warrenmq.broker.queue.arguments import CLASSIC
from warrenmq.broker.records import DIRECT_REPLY, BasicMessage, Content, Exchange, Resource
from warrenmq.wire.constants import ID_BASIC_PUBLISH
from warrenmq.wire.content import Properties, encode_header
from warrenmq.wire.methods import decode_method
from warrenmq.wire.peek import (
    MARK_BCC,
    MARK_CC,
    MARK_DELAY_OTHER,
    MARK_LEAST,
    MARK_RECEIPT,
    Peek,
)
from warrenmq.wire.replies import AmqpError

if TYPE_CHECKING:
    from warrenmq.broker.queue.queue import Queue

BASIC_PUBLISH: Final = ID_BASIC_PUBLISH.to_bytes(4, "big")
EMPTY_CONTENT: Final = Content(encode_header(Properties(), 0), b"")
_WISHES: Final = MARK_RECEIPT | MARK_LEAST


def publish(publishing: Publishing, arguments: bytes, message: Message) -> None:
    """One message through all stages: the publish frame's arguments, and its content as it arrived. Who calls it tells
    ``publishing`` when it was refused."""
    publishing.tally.published += 1
    publishing.tally.sizes.add(message.size, 1)
    memo = publishing.memo
    properties = memo.properties(message)
    route = memo.route(arguments)
    if route is None or message.size > publishing.publisher.limits.max_message_size:
        route = resolve(publishing, arguments, message.size)
    message.persistent = properties.delivery_mode == 2
    if publishing.is_plain():
        if route.plain and is_ordinary(properties):
            message.origin = route.origin
            message.id = publishing.services.ids.message()
            number = publishing.take_number(route.mandatory)
            deliver(publishing, route.exchange, message, route.queues, None, route.told, route.mandatory, number)
            return
        if route.waits and route.window is None and delay_alone(properties) > 0:
            message.origin = route.origin
            message.id = publishing.services.ids.message()
            number = publishing.take_number(route.mandatory)
            keep(publishing, route.exchange, message, properties.delay, route.mandatory, number)
            return
    check_reply_to(publishing.publisher, properties)
    check_user_id(publishing.publisher, properties)
    expiration = read_expiration(properties.expiration)
    number = publishing.take_number(route.mandatory)
    message = _with_routing_keys(publishing, route, message, properties)
    message.expiration = expiration
    message.priority = properties.priority if properties.priority > 0 else 0
    check_delivery_mode(properties)
    wish: Wish | None = None
    if (properties.marks & _WISHES) != 0:
        sequence: i64 = number - publishing.confirms.offset if publishing.numbered else 0
        known = publishing.vhost.queues
        wish = read_wish(publishing.publisher, known, message, properties, publishing.sender.confirms, sequence)
    if publishing.broker.interceptors.of_messages:
        came = message
        message = amend(publishing.broker.interceptors, publishing.vhost.name, came)
        if message.size > AT_ONCE and message.chunks is not came.chunks and goes_to_log(route, message.persistent):
            publishing.put_off(number)
            publishing.teller.finish_later(
                Unfinished(publishing.services, arguments, came.size, properties, message, number, wish)
            )
            return
    _spread(publishing, route, message, properties, number, wish)


def finish(publishing: Publishing, unfinished: Unfinished) -> None:
    """The log has the body that an interceptor made: on with the message, by the routes of now."""
    message = unfinished.message
    publishing.go_on(unfinished.number)
    publishing.large_body = unfinished.body
    try:
        route = resolve(publishing, unfinished.arguments, unfinished.size)
        _spread(publishing, route, message, unfinished.properties, unfinished.number, unfinished.wish)
    except AmqpError as error:
        before = publishing.last_number - 1 if unfinished.number else publishing.last_number
        publishing.refused(before, unfinished.arguments, message, error)
        raise
    finally:
        if publishing.take_large_body() is not None:  # else a transaction has it
            unfinished.body.abandon()  # unless a queue or a schedule took it


def goes_to_log(route: Route, persistent: bool) -> bool:
    """Will a body that goes there be logged? Then its pieces may go to the log before the message does."""
    if route.waits and route.exchange.durable:
        return True
    for queue in route.queues:
        if queue.kind != CLASSIC or (persistent and queue.durable):  # the others log transient messages too
            return True
    return persistent and not route.static  # whose it is shows when it is routed


def _spread(
    publishing: Publishing, route: Route, message: Message, properties: Peek, number: i64, wish: Wish | None
) -> None:
    """The stages behind the interceptors."""
    mark: Mark | None = None
    if route.window is not None:
        mark = mark_of(route.window, publishing.publisher, properties)
        if mark is not None and publishing.uncommitted is None and found(publishing, mark):
            tap(publishing, message, [])
            receipt = tell_duplicate(publishing, route.exchange, message, mark, number, wish)
            if receipt is not None:
                publishing.broker.receipts.owe(receipt, receipt.batch > 0)
            return
    routed = None
    queues = route.queues
    told = route.told
    if not route.static or message.origin is not route.origin:
        routed = find_queues(publishing, route.exchange, message)
        queues = queues_of(routed)
        told = told_route(publishing.services.log, routed)
        if routed.scheduled and (properties.marks & MARK_DELAY_OTHER) != 0:
            for owned in publishing.broker.delay.check(publishing.sender, routed):
                check_configure_permission(publishing.publisher, owned)
        if wish is not None:
            check_least(wish, routed)
    tap(publishing, message, queues)
    if publishing.uncommitted is not None:
        body = publishing.take_large_body()
        waiting = Uncommitted(route.exchange, message, queues, routed, told, route.mandatory, number, body, wish, mark)
        publishing.uncommitted.append(waiting)
        publishing.tally.transacted += 1
    elif wish is not None:
        receipt = deliver_as_wished(
            publishing, route.exchange, message, queues, routed, told, route.mandatory, number, wish, mark, False
        )
        if receipt is not None:
            publishing.broker.receipts.owe(receipt, receipt.on_disk())
    elif mark is not None:
        deliver_once(publishing, route.exchange, message, queues, routed, told, route.mandatory, number, mark)
    else:
        deliver(publishing, route.exchange, message, queues, routed, told, route.mandatory, number)


def resolve(publishing: Publishing, arguments: bytes, size: i64) -> Route:
    """The stages that depend on the publish frame alone: as they came out for an identical publish, or asked now."""
    publisher = publishing.publisher
    route = publishing.memo.route(arguments)
    if route is not None:
        if size > publisher.limits.max_message_size:
            check_size(publisher, size)
        return route
    method = decode_method(BASIC_PUBLISH + arguments)
    exchange_name = method.str("exchange")
    routing_key = method.str("routing_key")
    refuse_immediate(method.bit("immediate"))
    check_size(publisher, size)
    name = Resource(publisher.virtual_host, "exchange", exchange_name)
    check_write_permission(publisher, name)
    exchange = lookup_exchange(publisher, name)
    refuse_internal(exchange)
    check_topic_permission(publisher, exchange, routing_key)
    route = Route(exchange, Origin(exchange_name, [routing_key]), method.bit("mandatory"))
    route.window = publishing.broker.deduplication.window_of(exchange)
    _remember(publishing, arguments, route)
    return route


def _remember(publishing: Publishing, arguments: bytes, route: Route) -> None:
    """Route an ordinary message once, and keep the result while nothing it depends on changes."""
    vhost = publishing.vhost
    exchange = route.exchange
    key = route.origin.routing_keys[0]
    if exchange.name.name == "" and key.startswith(DIRECT_REPLY):
        return  # replies go to channels, not queues
    probe = BasicMessage(exchange.name, route.origin.routing_keys, EMPTY_CONTENT, 0, False)
    routed = walk(exchange, probe, vhost.exchanges, vhost.queues, tell=True)
    publishing.services.pacing.looked(probe.looks)
    if vhost.watched:
        return
    route.waits = isinstance(exchange.matcher, DelayedExchange)
    if routed.cacheable:  # else what was checked holds, but each message is routed for itself
        route.queues = queues_of(routed)
        route.told = told_route(publishing.services.log, routed)
        route.static = True
        route.plain = route.window is None
    publishing.memo.remember(arguments, route)
    if exchange.name.name == "":
        vhost.queue_routes.add(key, route)
    for visited in routed.visited:
        vhost.exchange_routes.add(visited.name.name, route)
    for missing in routed.missing:
        vhost.exchange_routes.add(missing, route)


def _with_routing_keys(publishing: Publishing, route: Route, message: Message, seen: Peek) -> Message:
    """The message with its origin: the publish key, then CC and BCC.

    BCC is taken out of what is delivered, and a direct reply-to is replaced by the address that it stands for.
    """
    message.origin = route.origin
    message.id = publishing.services.ids.message()
    copied = (seen.marks & (MARK_CC | MARK_BCC)) != 0
    replies = len(publishing.publisher.reply_address) > 0 and seen.reply_to == DIRECT_REPLY
    if not copied and not replies:
        return message
    properties = Content(message.header(), b"").properties
    changed = False
    if copied:
        headers = {} if properties.headers is None else properties.headers
        keys, hidden = routing_keys_of(route.origin.routing_keys[0], headers)
        if len(keys) > 1:
            message.origin = Origin(route.origin.exchange, keys, hidden)
        if "BCC" in headers:
            properties = properties.copy()
            properties.headers = {name: value for name, value in headers.items() if name != "BCC"}
            changed = True
    if replies:
        properties = properties.copy()
        properties.reply_to = publishing.publisher.reply_address
        changed = True
    return with_properties(message, properties) if changed else message


def find_queues(publishing: Publishing, exchange: Exchange, message: Message) -> Routed:
    """Route one message: its type, decorators, exchange-to-exchange bindings and alternate exchanges."""
    vhost = publishing.vhost
    now = publishing.services.turn.now
    if exchange.name.name == "":
        for key in message.origin.routing_keys:
            if key.startswith(DIRECT_REPLY + "."):
                publishing.broker.replies.deliver(key, message)
    if isinstance(exchange.matcher, DelayedExchange):
        headers = Content(message.header(), b"").headers
        if has_to_wait(headers, now):  # where to is asked when it is due
            return waiting_at(exchange, headers)
    record = message.basic_message(vhost.name)
    routed = walk(exchange, record, vhost.exchanges, vhost.queues, False, now, True)
    publishing.services.pacing.looked(record.looks)
    return routed


def tap(publishing: Publishing, message: Message, queues: list[Queue]) -> None:
    """The firehose: a copy of what is published, when the vhost is traced; and a witness, where there is one."""
    if publishing.vhost.watched:
        publishing.broker.firehose.published(publishing.sender, publishing.vhost, message, queues)
