"""/queues, with their bindings, contents and getting messages."""

from __future__ import annotations

import base64
import itertools
from functools import partial
from typing import Any

from starlette.responses import Response

from warrenmq.broker.channel.consumer import subscriptions
from warrenmq.broker.queue.classic import leases_of
from warrenmq.broker.queue.queue import Queue
from warrenmq.broker.vhost.vhost import VHost
from warrenmq.http.columns import of_queues
from warrenmq.http.direct import Direct, Got
from warrenmq.http.encoding import encode
from warrenmq.http.endpoint import ADMINISTRATOR, MANAGEMENT, VHOST, Call, Endpoint, NoContent, put, require
from warrenmq.http.errors import ApiError, bad_request, not_authorised, not_found
from warrenmq.http.fields import arguments_table
from warrenmq.http.figures.ages import ages, held_since
from warrenmq.http.figures.pairs import into, takers
from warrenmq.http.figures.rates import ranges
from warrenmq.http.in_order import by_key
from warrenmq.http.listing import Array, listing, plain_list, with_lists
from warrenmq.http.models import BindingInfo, MessageInfo, QueueInfo
from warrenmq.http.pacer import Pacer
from warrenmq.http.requests import GetRequest, QueueDeclaration
from warrenmq.http.views import binding_info, consumer_info, default_binding, queue_info
from warrenmq.wire.fields import to_python
from warrenmq.wire.replies import ACCESS_REFUSED, NOT_FOUND, AmqpError

# ackmode -> (take it for good at once, how to give it back)
SHOWN = 16 << 20  # octets of bodies in one answer; a request may be as long
ACK_MODES = {
    "ack_requeue_true": (False, True),
    "reject_requeue_true": (False, True),
    "ack_requeue_false": (True, False),
    "reject_requeue_false": (False, False),
}


def existing(call: Call) -> tuple[VHost, Queue]:
    vhost = call.bridge.vhost(call.path["vhost"])
    queue = vhost.queues.get(call.path["name"])
    if queue is None:
        raise not_found()
    return vhost, queue


def readable(call: Call) -> tuple[VHost, Queue]:
    """The queue of the path, if this user may consume from it."""
    vhost, queue = existing(call)
    if not call.bridge.access.allowed(call.user.name, vhost.name, "read", queue.name.name):
        raise not_authorised(f"access to {queue.name} refused for user '{call.user.name}'")
    vhost.check_exclusive(queue, None, False)
    return vhost, queue


def _name(queue: Queue) -> str:
    return queue.name.name


async def list_queues(call: Call) -> object:
    found: list[Queue] = []
    for vhost in call.bridge.visible_vhosts(call.user):
        found += await by_key(vhost.queues)
    return await _listed(call, found)


async def list_in_vhost(call: Call) -> object:
    return await _listed(call, await by_key(call.bridge.vhost(call.path["vhost"]).queues))


async def _listed(call: Call, found: list[Queue]) -> object:
    bridge = call.bridge
    wanted = ranges(call.query)
    held = await held_since(bridge)

    def view(queue: Queue) -> QueueInfo:
        shown = queue_info(bridge, queue, wanted)
        shown.ages = ages(bridge, queue, held, False)
        return shown

    return await listing(call, found, _name, view, of_queues(bridge, wanted))


async def get_queue(call: Call) -> object:
    bridge, wanted = call.bridge, ranges(call.query)
    held = await held_since(bridge)
    _, queue = existing(call)
    deliveries = await takers(bridge, queue, wanted.msg_rates)
    shown = queue_info(bridge, queue, wanted)
    shown.ages = ages(bridge, queue, held, True)
    incoming = into(bridge, queue, wanted.msg_rates)
    consumers = map(partial(consumer_info, bridge), subscriptions(queue))
    return await with_lists(call, shown, incoming=incoming, deliveries=deliveries, consumer_details=consumers)


async def put_queue(call: Call) -> object:
    vhost = call.bridge.vhost_for_change(call.path["vhost"])
    wanted = await call.body(QueueDeclaration)
    arguments = arguments_table(wanted.arguments)
    if wanted.node is not None and wanted.node != call.bridge.node:
        raise bad_request(f"Node {wanted.node} could not be contacted")
    name = call.path["name"]
    existed = name in vhost.queues
    async with call.bridge.direct(call.user, vhost) as channel:
        await channel.call(
            "queue.declare", queue=name, durable=wanted.durable, auto_delete=wanted.auto_delete, arguments=arguments
        )
    return put(existed)


def leased(queue: Queue) -> dict[str, str]:
    """Said when a queue is purged or deleted: how many of its messages are leased. A purge leaves them alone."""
    leases = leases_of(queue)
    return {"warren-leased": "0" if leases is None else str(int(leases.messages()))}


async def delete_queue(call: Call) -> NoContent:
    vhost, queue = existing(call)
    said = leased(queue)
    async with call.bridge.direct(call.user, vhost) as channel:
        await channel.call(
            "queue.delete", queue=queue.name.name, if_unused=call.flag("if-unused"), if_empty=call.flag("if-empty")
        )
    return NoContent(said)


async def purge(call: Call) -> NoContent:
    vhost, queue = existing(call)
    async with call.bridge.direct(call.user, vhost) as channel:
        await channel.call("queue.purge", queue=queue.name.name)
    return NoContent(leased(queue))


async def pause(call: Call) -> NoContent:
    return await _set_paused(call, True)


async def resume(call: Call) -> NoContent:
    return await _set_paused(call, False)


async def _set_paused(call: Call, paused: bool) -> NoContent:
    """By whoever may delete it too, as that stops its consumers as well."""
    vhost, queue = existing(call)
    if not call.bridge.access.allowed(call.user.name, vhost.name, "configure", queue.name.name):
        raise not_authorised(f"access to {queue.name} refused for user '{call.user.name}'")
    vhost.check_exclusive(queue, None, False)
    await call.bridge.change(lambda: vhost.pause_queue(queue, paused))
    said: dict[str, object] = {"queue": str(queue.name), "user": call.user.name}
    call.bridge.broker.services.notes.event("info", "queue_paused" if paused else "queue_resumed", said)
    return NoContent()


async def bindings(call: Call) -> Response:
    """Of a queue that is not there: none, as in RabbitMQ."""
    vhost = call.bridge.broker.vhosts.get(call.path["vhost"])
    queue = None if vhost is None else vhost.queues.get(call.path["name"])
    if queue is None:
        return await plain_list(call.query, [])
    bound = map(binding_info, [*queue.bindings_in.values()])
    return await plain_list(call.query, itertools.chain([default_binding(queue)], bound))


async def get_messages(call: Call) -> Response:
    vhost = call.bridge.vhost_for_messages(call.path["vhost"])
    wanted = await call.body_in(vhost, GetRequest)
    if not isinstance(wanted.encoding, str) or wanted.encoding not in ("auto", "base64"):
        raise bad_request("Unsupported encoding. Please use auto or base64.")
    if wanted.ackmode not in ACK_MODES:
        raise bad_request(f"Unsupported ackmode. Please use one of {', '.join(sorted(ACK_MODES))}.")
    async with call.bridge.direct(call.user, vhost) as channel:
        try:
            return await _take(channel, vhost, call.path["name"], wanted)
        except AmqpError as error:
            if error.code == ACCESS_REFUSED:
                raise not_authorised(error.text) from None
            if error.code == NOT_FOUND:
                raise ApiError(404, "not_found", error.text) from None
            raise bad_request(f"{error.code} {error.text}") from None


async def _take(channel: Direct, vhost: VHost, queue: str, wanted: GetRequest) -> Response:
    """Take up to ``count`` messages, then give back those that are to stay (ending the channel does that too).

    No more than ``SHOWN`` octets of bodies are shown. What does not fit stays in its queue: where that may happen,
    messages are acknowledged in the end and not when they are taken.
    """
    no_ack, requeue = ACK_MODES[wanted.ackmode]
    most = SHOWN if wanted.truncate is None else min(SHOWN, max(0, wanted.truncate))
    shown = Array()
    room = SHOWN
    last = 0  # of those that are to be settled
    pacer = Pacer()
    while shown.count != wanted.count:  # below zero there is no end but the queue's, as in RabbitMQ
        found = vhost.queues.get(queue)
        at_once = no_ack and found is not None and found.ready_bytes <= room
        got = await channel.get(queue, at_once, most)
        if got is None:
            break
        tag = got.method.int("delivery_tag")
        if len(got.body) > room or (len(got.body) < got.size and most == SHOWN):
            channel.send("basic.nack", delivery_tag=tag, requeue=True)
            if not shown.count:
                raise bad_request(
                    f"the message has {got.size} bytes, and no more than {SHOWN} are shown: give truncate, "
                    "or take it with an AMQP client"
                )
            break
        if not at_once:
            last = tag
        room -= len(got.body)
        shown.add(encode(message_info(got, wanted)))
        await pacer.breathe()
    if last and no_ack:
        channel.send("basic.ack", delivery_tag=last, multiple=True)
    elif last:
        channel.send("basic.nack", delivery_tag=last, multiple=True, requeue=requeue)
    return shown.pieces().json()


def message_info(got: Got, wanted: GetRequest) -> MessageInfo:
    payload, encoding = encode_payload(got.body, wanted.encoding)
    properties: dict[str, Any] = got.properties.present()
    if got.properties.headers is not None:
        properties["headers"] = to_python(got.properties.headers)
    return MessageInfo(
        payload_bytes=got.size,
        redelivered=got.method.bit("redelivered"),
        exchange=got.method.str("exchange"),
        routing_key=got.method.str("routing_key"),
        message_count=got.method.int("message_count"),
        properties=properties or [],
        payload=payload,
        payload_encoding=encoding,
    )


def encode_payload(body: bytes, encoding: str) -> tuple[str, str]:
    if encoding == "auto":
        try:
            return body.decode(), "string"
        except UnicodeDecodeError:
            pass
    return base64.b64encode(body).decode(), "base64"


async def action(call: Call) -> NoContent:
    """sync and cancel_sync concern mirrors, of which there are none."""
    existing(call)
    body = await call.json()
    require(body, ["action"])
    wanted = body["action"]
    if wanted not in ("sync", "cancel_sync"):
        raise bad_request(["unknown", wanted])
    return NoContent()


ENDPOINTS = [
    Endpoint("GET", "/queues", MANAGEMENT, list_queues, "Queues", answer=list[QueueInfo], listing=True),
    Endpoint("GET", "/queues/{vhost}", VHOST, list_in_vhost, "Queues of a vhost", answer=list[QueueInfo], listing=True),
    Endpoint("GET", "/queues/{vhost}/{name}", VHOST, get_queue, "One queue", answer=QueueInfo),
    Endpoint("PUT", "/queues/{vhost}/{name}", VHOST, put_queue, "Declare a queue", body=QueueDeclaration, status=201),
    Endpoint(
        "DELETE",
        "/queues/{vhost}/{name}",
        VHOST,
        delete_queue,
        "Delete it (?if-empty=true, ?if-unused=true)",
        status=204,
    ),
    Endpoint("DELETE", "/queues/{vhost}/{name}/contents", VHOST, purge, "Purge it", status=204),
    Endpoint(
        "PUT",
        "/queues/{vhost}/{name}/pause",
        VHOST,
        pause,
        "Hand nothing out of it: no consumer, basic.get or lease gets anything until it is resumed",
        status=204,
    ),
    Endpoint("PUT", "/queues/{vhost}/{name}/resume", VHOST, resume, "Hand messages out again", status=204),
    Endpoint("GET", "/queues/{vhost}/{name}/bindings", VHOST, bindings, "Bindings into it", answer=list[BindingInfo]),
    Endpoint(
        "POST",
        "/queues/{vhost}/{name}/get",
        VHOST,
        get_messages,
        "Take messages, or look at them",
        body=GetRequest,
        answer=list[MessageInfo],
    ),
    Endpoint("POST", "/queues/{vhost}/{name}/actions", ADMINISTRATOR, action, "Actions on mirrors: none", status=204),
]
