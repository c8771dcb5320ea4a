"""queue.*: declare, delete, purge, bind, unbind. The order of checks is RabbitMQ 3.10's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warrenmq.broker.channel.methods.names import queue_name, refuse_default_exchange, strip
from warrenmq.broker.extensions.named import check_named
from warrenmq.broker.queue.arguments import CLASSIC, QUORUM, STREAM, queue_type
from warrenmq.broker.queue.classic import emptied
from warrenmq.broker.records import DIRECT_REPLY, Binding
from warrenmq.wire.fields import Field, Table
from warrenmq.wire.methods import Method, method_frame
from warrenmq.wire.replies import ACCESS_REFUSED, NOT_FOUND, PRECONDITION_FAILED, AmqpError

if TYPE_CHECKING:
    from warrenmq.broker.channel.channel import Channel
    from warrenmq.broker.queue.queue import Queue


def declare(channel: Channel, method: Method) -> None:
    name = strip(method.str("queue"))
    if name == DIRECT_REPLY or name.startswith(DIRECT_REPLY + "."):
        _probe_reply(channel, method, name)
    elif method.bit("passive"):
        _declare_passive(channel, method, name)
    else:
        _declare(channel, method, name)


def _declare(channel: Channel, method: Method, name: str) -> None:
    connection = channel.connection
    vhost = connection.open_vhost()
    arguments = _with_default_type(vhost.default_queue_type, method)
    owner = connection if method.bit("exclusive") else None
    if not name:
        type = queue_type(arguments)
        if type in (QUORUM, STREAM):
            raise AmqpError(PRECONDITION_FAILED, f"Cannot declare a server-named queue for type rabbit_{type}_queue")
        name = channel.services.ids.name("amq.gen-")
    elif name.startswith("amq."):
        raise AmqpError(ACCESS_REFUSED, f"queue name '{name}' contains reserved prefix 'amq.*'")
    resource = connection.resource("queue", name)
    channel.check("configure", resource)
    if name in vhost.queues:
        vhost.queues[name].check_whole()
    else:
        check_named(channel.broker.registry.access, channel.connection.username, resource, "", arguments)
        vhost.check_forgotten(resource)
    queue = vhost.declare_queue(name, method.bit("durable"), owner, method.bit("auto_delete"), arguments)
    channel.last_queue = name
    _declared(channel, method, queue)


def _with_default_type(default: str, method: Method) -> Table:
    """The type the vhost names for queues that name none, where that type takes the queue's flags."""
    arguments = method.table("arguments")
    if default not in (CLASSIC, QUORUM, STREAM) or "x-queue-type" in arguments:
        return arguments
    plain = method.bit("durable") and not method.bit("exclusive") and not method.bit("auto_delete")
    if default != CLASSIC and not plain:
        return arguments
    augmented = dict(arguments)
    augmented["x-queue-type"] = Field("S", default)
    return augmented


def _declare_passive(channel: Channel, method: Method, name: str) -> None:
    connection = channel.connection
    vhost = connection.open_vhost()
    queue = vhost.queue(name)
    vhost.check_exclusive(queue, connection, False)
    queue.check_whole()
    queue.touch()
    channel.last_queue = name
    _declared(channel, method, queue)


def _declared(channel: Channel, method: Method, queue: Queue) -> None:
    if method.bit("nowait"):
        channel.answers.hold_until_synced(queue.durable)
        return
    channel.answers.reply_when_synced(
        method_frame(
            channel.number,
            "queue.declare-ok",
            queue=queue.name.name,
            message_count=queue.ready,
            consumer_count=queue.consumer_count(),
        ),
        queue.durable,
    )


def _probe_reply(channel: Channel, method: Method, name: str) -> None:
    """Declaring a direct reply-to name asks whether somebody listens there."""
    if name != DIRECT_REPLY and name not in channel.broker.replies:
        raise AmqpError(NOT_FOUND, f"no {channel.connection.resource('queue', name)}")
    if not method.bit("nowait"):
        channel.answers.reply(
            method_frame(channel.number, "queue.declare-ok", queue=name, message_count=0, consumer_count=1)
        )


def delete(channel: Channel, method: Method) -> None:
    connection = channel.connection
    vhost = connection.open_vhost()
    name = queue_name(channel, method.str("queue"))
    channel.check("configure", connection.resource("queue", name))
    count = 0
    queue = vhost.queues.get(name)
    if queue is not None:
        vhost.check_exclusive(queue, connection, False)
        queue.check_whole()
        count = vhost.delete_queue(queue, method.bit("if_unused"), method.bit("if_empty"))
    if method.bit("nowait"):
        channel.answers.hold_until_synced()
    else:
        channel.answers.reply_when_synced(method_frame(channel.number, "queue.delete-ok", message_count=count))


def purge(channel: Channel, method: Method) -> None:
    connection = channel.connection
    vhost = connection.open_vhost()
    name = queue_name(channel, method.str("queue"))
    channel.check("read", connection.resource("queue", name))
    found = vhost.queue(name)
    vhost.check_exclusive(found, connection, False)
    queue = emptied(found, "queue.purge")
    queue.check_whole()
    count = queue.purge()
    if method.bit("nowait"):
        channel.answers.hold_until_synced()
    else:
        channel.answers.reply_when_synced(method_frame(channel.number, "queue.purge-ok", message_count=count))


def _ends(channel: Channel, method: Method) -> tuple[str, str, str]:
    """Queue, exchange and routing key, allowed to this user."""
    connection = channel.connection
    key = method.str("routing_key")
    given = method.str("queue")
    name = queue_name(channel, given)
    if not given and not key:
        key = name
    source = connection.resource("exchange", strip(method.str("exchange")))
    channel.check("write", connection.resource("queue", name))
    refuse_default_exchange(source)
    channel.check("read", source)
    exchange = connection.open_vhost().exchanges.get(source.name)
    if exchange is not None and exchange.type == "topic":
        channel.check_topic("read", exchange, key)
    return name, source.name, key


def bind(channel: Channel, method: Method) -> None:
    connection = channel.connection
    vhost = connection.open_vhost()
    name, source, key = _ends(channel, method)
    exchange = vhost.exchange(source)
    queue = vhost.queue(name)
    arguments = method.table("arguments")
    exchange.matcher.validate_binding(Binding(exchange, queue, key, arguments))
    vhost.check_exclusive(queue, connection, False)
    vhost.bind(exchange, queue, key, arguments)
    ok = b"" if method.bit("nowait") else method_frame(channel.number, "queue.bind-ok")
    channel.answers.reply_when_synced(ok, exchange.durable and queue.durable)


def unbind(channel: Channel, method: Method) -> None:
    connection = channel.connection
    vhost = connection.open_vhost()
    name, source, key = _ends(channel, method)
    exchange = vhost.exchanges.get(source)
    queue = vhost.queues.get(name)
    arguments = method.table("arguments")
    if exchange is not None and queue is not None and vhost.is_bound(exchange, queue, key, arguments):
        vhost.check_exclusive(queue, connection, False)
        vhost.unbind(exchange, queue, key, arguments)
    channel.answers.reply_when_synced(method_frame(channel.number, "queue.unbind-ok"))
