"""/connections, /channels and /consumers: who is there."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from urllib.parse import unquote

from warrenmq.broker.channel.channel import Channel
from warrenmq.broker.channel.consumer import Subscription, subscriptions
from warrenmq.broker.connection.connection import Connection
from warrenmq.http.bridge import ADMINISTRATOR, MONITORING
from warrenmq.http.columns import of_channels, of_connections
from warrenmq.http.endpoint import ADMINISTRATOR as ADMINISTRATORS
from warrenmq.http.endpoint import MANAGEMENT, VHOST, Call, Endpoint, NoContent
from warrenmq.http.errors import not_authorised, not_found
from warrenmq.http.figures.pairs import publishes, takes
from warrenmq.http.figures.rates import ranges
from warrenmq.http.in_order import in_order
from warrenmq.http.listing import listing, with_columns, with_lists
from warrenmq.http.models import ChannelInfo, ConnectionInfo, ConsumerInfo
from warrenmq.http.pacer import Pacer
from warrenmq.http.views import channel_info, channel_name, connection_info, consumer_info
from warrenmq.wire.replies import CONNECTION_FORCED

CLOSED_BY = "Closed via management plugin"  # RabbitMQ's text when no reason is given


def _connection_name(connection: Connection) -> str:
    return connection.name


def _tag(consumer: Subscription) -> str:
    return consumer.tag


def _place(connection: Connection) -> tuple[str, str]:
    """By vhost and name, as RabbitMQ lists them and their channels."""
    return "" if connection.vhost is None else connection.vhost.name, connection.name


async def _connections(call: Call, found: list[Connection]) -> object:
    bridge = call.bridge
    wanted = ranges(call.query)
    view = partial(connection_info, bridge, wanted=wanted)
    return await listing(call, await in_order(found, _place), _connection_name, view, of_connections(bridge, wanted))


async def list_connections(call: Call) -> object:
    return await _connections(call, call.bridge.visible_connections(call.user))


async def connections_of_vhost(call: Call) -> object:
    vhost = call.bridge.vhost(call.path["vhost"])
    return await _connections(call, [one for one in call.bridge.visible_connections(call.user) if one.vhost is vhost])


async def connections_of_user(call: Call) -> object:
    if not {ADMINISTRATOR, MONITORING}.intersection(call.user.tags):
        raise not_authorised("Not administrator user")
    user = call.path["user"]
    return await _connections(call, [one for one in call.bridge.open_connections() if one.username == user])


def existing(call: Call, change: bool = False) -> Connection:
    """The connection of the path: one's own, any for monitoring, and any to close for administrators."""
    tags = call.user.tags
    everybody = ADMINISTRATOR in tags or (MONITORING in tags and not change)
    for connection in call.bridge.open_connections():
        if connection.name == call.path["name"] and (everybody or connection.username == call.user.name):
            return connection
    raise not_found()


async def get_connection(call: Call) -> object:
    return with_columns(call, connection_info(call.bridge, existing(call), ranges(call.query)))


async def close_connection(call: Call) -> NoContent:
    connection = existing(call, change=True)
    call.bridge.begin()
    connection.shut(CONNECTION_FORCED, call.request.headers.get("x-reason", CLOSED_BY))
    return NoContent()


async def close_of_user(call: Call) -> NoContent:
    found = [one for one in call.bridge.open_connections() if one.username == call.path["user"]]
    await call.bridge.steps("closing connections", _close(found, call.request.headers.get("x-reason", CLOSED_BY)))
    return NoContent()


def _close(connections: list[Connection], reason: str) -> Iterator[None]:
    for connection in connections:
        connection.shut(CONNECTION_FORCED, reason)
        yield


def _channels(connections: list[Connection]) -> list[Channel]:
    return [one.channels[number] for one in connections for number in sorted(one.channels)]


async def list_channels(call: Call) -> object:
    return await _listed_channels(call, call.bridge.visible_connections(call.user))


async def channels_of_vhost(call: Call) -> object:
    vhost = call.bridge.vhost(call.path["vhost"])
    there = [one for one in call.bridge.visible_connections(call.user) if one.vhost is vhost]
    return await _listed_channels(call, there)


async def channels_of_connection(call: Call) -> object:
    return await _listed_channels(call, [existing(call)])


async def _listed_channels(call: Call, connections: list[Connection]) -> object:
    bridge = call.bridge
    wanted = ranges(call.query)
    found = _channels(await in_order(connections, _place))
    view = partial(channel_info, bridge, wanted=wanted)
    return await listing(call, found, channel_name, view, of_channels(bridge, wanted))


async def get_channel(call: Call) -> object:
    wanted = {call.path["name"], unquote(call.path["name"])}
    its = {name.rpartition(" (")[0] for name in wanted}  # connection: there may be very many, with a thousand each
    for channel in _channels([one for one in call.bridge.visible_connections(call.user) if one.name in its]):
        if channel_name(channel) in wanted:
            bridge, asked = call.bridge, ranges(call.query)
            consumers = [one for one in channel.consumers.by_tag.values() if isinstance(one, Subscription)]
            return await with_lists(
                call,
                channel_info(bridge, channel, asked),
                publishes=publishes(bridge, channel, asked.msg_rates),
                deliveries=takes(bridge, channel, asked.msg_rates),
                consumer_details=map(partial(consumer_info, bridge), consumers),
            )
    raise not_found()


async def list_consumers(call: Call) -> object:
    """Like connections: everybody's for monitoring, one's own otherwise, whoever's vhost it is."""
    bridge = call.bridge
    everybodys = bool({ADMINISTRATOR, MONITORING}.intersection(call.user.tags))
    wanted = call.path.get("vhost")
    if wanted is not None:
        bridge.vhost(wanted)
    queues = [
        queue
        for vhost in bridge.all_vhosts()
        if wanted is None or vhost.name == wanted
        for queue in vhost.queues.values()
    ]
    found: list[Subscription] = []
    pacer = Pacer()
    for queue in queues:
        for consumer in subscriptions(queue):
            if everybodys or consumer.channel.connection.username == call.user.name:
                found.append(consumer)
        await pacer.breathe()
    return await listing(call, found, _tag, lambda one: consumer_info(bridge, one))


ENDPOINTS = [
    Endpoint(
        "GET",
        "/connections",
        MANAGEMENT,
        list_connections,
        "Connections (one's own without monitoring)",
        answer=list[ConnectionInfo],
        listing=True,
    ),
    Endpoint("GET", "/connections/{name}", MANAGEMENT, get_connection, "One connection", answer=ConnectionInfo),
    Endpoint("DELETE", "/connections/{name}", MANAGEMENT, close_connection, "Close it (header X-Reason)", status=204),
    Endpoint(
        "GET",
        "/connections/{name}/channels",
        MANAGEMENT,
        channels_of_connection,
        "Its channels",
        answer=list[ChannelInfo],
        listing=True,
    ),
    Endpoint(
        "GET",
        "/connections/username/{user}",
        MANAGEMENT,
        connections_of_user,
        "Connections of a user",
        answer=list[ConnectionInfo],
        listing=True,
    ),
    Endpoint(
        "DELETE", "/connections/username/{user}", ADMINISTRATORS, close_of_user, "Close all of a user", status=204
    ),
    Endpoint(
        "GET",
        "/vhosts/{vhost}/connections",
        VHOST,
        connections_of_vhost,
        "Connections to a vhost",
        answer=list[ConnectionInfo],
        listing=True,
    ),
    Endpoint("GET", "/channels", MANAGEMENT, list_channels, "Channels", answer=list[ChannelInfo], listing=True),
    Endpoint("GET", "/channels/{name}", MANAGEMENT, get_channel, "One channel", answer=ChannelInfo),
    Endpoint(
        "GET",
        "/vhosts/{vhost}/channels",
        VHOST,
        channels_of_vhost,
        "Channels in a vhost",
        answer=list[ChannelInfo],
        listing=True,
    ),
    Endpoint("GET", "/consumers", MANAGEMENT, list_consumers, "Consumers", answer=list[ConsumerInfo], listing=True),
    Endpoint(
        "GET",
        "/consumers/{vhost}",
        MANAGEMENT,
        list_consumers,
        "Consumers in a vhost",
        answer=list[ConsumerInfo],
        listing=True,
    ),
]
