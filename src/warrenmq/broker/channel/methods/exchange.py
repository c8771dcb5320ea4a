"""exchange.*: declare, delete, bind, unbind. The order of checks is RabbitMQ 3.10's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warrenmq.broker.channel.methods.names import refuse_default_exchange, strip
from warrenmq.broker.exchange import types
from warrenmq.broker.extensions.named import check_named
from warrenmq.wire.methods import Method, method_frame
from warrenmq.wire.replies import ACCESS_REFUSED, AmqpError

if TYPE_CHECKING:
    from warrenmq.broker.channel.channel import Channel


def declare(channel: Channel, method: Method) -> None:
    connection = channel.connection
    vhost = connection.open_vhost()
    name = connection.resource("exchange", strip(method.str("exchange")))
    ok = b"" if method.bit("nowait") else method_frame(channel.number, "exchange.declare-ok")
    if method.bit("passive"):
        refuse_default_exchange(name)
        found = vhost.exchange(name.name)
        channel.answers.reply_when_synced(ok, found.durable)
        return
    type = method.str("type")
    arguments = method.table("arguments")
    types.known(type)
    refuse_default_exchange(name)
    channel.check("configure", name)
    if name.name not in vhost.exchanges:
        if name.name.startswith("amq."):
            raise AmqpError(ACCESS_REFUSED, f"exchange name '{name.name}' contains reserved prefix 'amq.*'")
        check_named(channel.broker.registry.access, channel.connection.username, name, type, arguments)
        vhost.check_forgotten(name)
    vhost.declare_exchange(
        name.name,
        type,
        method.bit("durable"),
        method.bit("auto_delete"),
        method.bit("internal"),
        arguments,
        connection.username,
    )
    channel.answers.reply_when_synced(ok, method.bit("durable"))


def delete(channel: Channel, method: Method) -> None:
    connection = channel.connection
    name = connection.resource("exchange", strip(method.str("exchange")))
    refuse_default_exchange(name)
    if name.name.startswith("amq."):
        raise AmqpError(ACCESS_REFUSED, f"deletion of system {name} not allowed")
    channel.check("configure", name)
    connection.open_vhost().delete_exchange(name.name, method.bit("if_unused"))
    channel.answers.reply_when_synced(
        b"" if method.bit("nowait") else method_frame(channel.number, "exchange.delete-ok")
    )


def _ends(channel: Channel, method: Method) -> tuple[str, str]:
    """Destination and source, allowed to this user."""
    connection = channel.connection
    destination = connection.resource("exchange", strip(method.str("destination")))
    source = connection.resource("exchange", strip(method.str("source")))
    channel.check("write", destination)
    refuse_default_exchange(destination)
    refuse_default_exchange(source)
    channel.check("read", source)
    exchange = connection.open_vhost().exchanges.get(source.name)
    if exchange is not None and exchange.type == "topic":
        channel.check_topic("read", exchange, method.str("routing_key"))
    return destination.name, source.name


def bind(channel: Channel, method: Method) -> None:
    destination, source = _ends(channel, method)
    vhost = channel.connection.open_vhost()
    origin = vhost.exchange(source)
    target = vhost.exchange(destination)
    vhost.bind(origin, target, method.str("routing_key"), method.table("arguments"))
    ok = b"" if method.bit("nowait") else method_frame(channel.number, "exchange.bind-ok")
    channel.answers.reply_when_synced(ok, origin.durable and target.durable)


def unbind(channel: Channel, method: Method) -> None:
    destination, source = _ends(channel, method)
    vhost = channel.connection.open_vhost()
    if source in vhost.exchanges and destination in vhost.exchanges:
        vhost.unbind(
            vhost.exchange(source), vhost.exchange(destination), method.str("routing_key"), method.table("arguments")
        )
    channel.answers.reply_when_synced(
        b"" if method.bit("nowait") else method_frame(channel.number, "exchange.unbind-ok")
    )
