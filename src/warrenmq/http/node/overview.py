"""/overview, /whoami, /version, /cluster-name, /extensions, /auth: about the broker as a whole."""

from __future__ import annotations

import platform

from msgspec import UNSET

from warrenmq.broker.access.passwords import hash_password, new_salt
from warrenmq.broker.definitions import parameters
from warrenmq.broker.exchange.types import TYPES
from warrenmq.http.bridge import ADMINISTRATOR, MONITORING, Bridge
from warrenmq.http.endpoint import ADMINISTRATOR as ADMINISTRATORS
from warrenmq.http.endpoint import MANAGEMENT, Call, Endpoint, NoContent
from warrenmq.http.figures.rates import ranges
from warrenmq.http.figures.sampler import churn
from warrenmq.http.figures.stats import sums_of
from warrenmq.http.listing import with_columns
from warrenmq.http.models import Context, ExchangeTypeInfo, Listener, ObjectTotals, Overview, Who
from warrenmq.http.names import check_name
from warrenmq.http.requests import Name
from warrenmq.http.views import queue_totals, vhost_stats

DESCRIPTIONS = {
    "direct": "AMQP direct exchange, as per the AMQP specification",
    "fanout": "AMQP fanout exchange, as per the AMQP specification",
    "headers": "AMQP headers exchange, as per the AMQP specification",
    "topic": "AMQP topic exchange, as per the AMQP specification",
    "x-consistent-hash": "Consistent Hashing Exchange",
    "x-random": "Random Exchange",
    "x-delayed-message": "Delayed Message Exchange.",
}
RETENTION = {"global": [600, 3600, 28800, 86400], "basic": [600, 3600], "detailed": [600]}


def exchange_types() -> list[ExchangeTypeInfo]:
    return [ExchangeTypeInfo(name, DESCRIPTIONS.get(name, "")) for name in sorted(TYPES)]


def listeners(bridge: Bridge) -> list[Listener]:
    return [Listener(bridge.node, protocol, host, port) for protocol, host, port in bridge.listeners()]


def contexts(bridge: Bridge) -> list[Context]:
    places = bridge.server.http_addresses
    return [Context(bridge.node, "Warren Management", "/", host, str(port)) for host, port in places]


async def overview(call: Call) -> object:
    bridge = call.bridge
    broker = bridge.broker
    tags = call.user.tags
    vhosts = bridge.visible_vhosts(call.user)
    connections = bridge.visible_connections(call.user)
    everything = ADMINISTRATOR in tags or MONITORING in tags
    wanted = ranges(call.query)
    runtime = f"Python {platform.python_version()}"
    sums = await sums_of(vhosts, bridge.broker.connections)
    shown = Overview(
        management_version=broker.node.rabbitmq_version,
        rates_mode="detailed",
        sample_retention_policies=RETENTION,
        exchange_types=exchange_types(),
        product_version=broker.node.version,
        product_name="Warren",
        rabbitmq_version=broker.node.rabbitmq_version,
        cluster_name=broker.node.cluster_name,
        erlang_version="",
        erlang_full_version=runtime,
        disable_stats=False,
        enable_queue_totals=False,
        message_stats=vhost_stats(bridge, sums, vhosts, wanted),
        churn_rates=bridge.rates("node", "", bridge.node).stats(churn(broker), wanted.msg_rates),
        queue_totals=queue_totals(bridge, sums, vhosts, wanted),
        object_totals=ObjectTotals(
            channels=sum(len(one.channels) for one in connections),
            connections=len(connections),
            exchanges=sum(len(vhost.exchanges) for vhost in vhosts),
            queues=sum(len(vhost.queues) for vhost in vhosts),
            consumers=sum(one.consumers for one in sums.values()) if everything else UNSET,
        ),
        statistics_db_event_queue=0,
        node=bridge.node if everything else UNSET,
        listeners=listeners(bridge) if everything else UNSET,
        contexts=contexts(bridge) if everything else UNSET,
    )
    return with_columns(call, shown)


async def whoami(call: Call) -> Who:
    return Who(call.user.name, list(call.user.tags))


async def cluster_name(call: Call) -> Name:
    return Name(call.bridge.broker.node.cluster_name)


async def set_cluster_name(call: Call) -> NoContent:
    wanted = await call.body(Name)
    check_name("name", wanted.name)
    broker = call.bridge.broker
    await call.bridge.change(lambda: parameters.put_global(broker, parameters.CLUSTER_NAME, wanted.name))
    return NoContent()


async def version(call: Call) -> dict[str, str]:
    broker = call.bridge.broker
    return {"version": broker.node.version, "rabbitmq_version": broker.node.rabbitmq_version}


async def extensions(call: Call) -> list[dict[str, str]]:
    return []


async def authentication(call: Call) -> dict[str, object]:
    return {"enable_uaa": False, "uaa_client_id": "", "uaa_location": ""}


async def password_hash(call: Call) -> dict[str, str]:
    return {"ok": hash_password(call.path["password"], new_salt())}


async def empty_list(call: Call) -> list[object]:
    return []


async def nothing_to_do(call: Call) -> NoContent:
    """Statistics are counters that nobody resets, and there is one node to balance queues over."""
    return NoContent()


ENDPOINTS = [
    Endpoint("GET", "/overview", MANAGEMENT, overview, "The broker as a whole", answer=Overview),
    Endpoint("GET", "/whoami", MANAGEMENT, whoami, "The user who asks", answer=Who),
    Endpoint("GET", "/version", MANAGEMENT, version, "Versions of Warren and of the RabbitMQ it behaves like"),
    Endpoint("GET", "/cluster-name", MANAGEMENT, cluster_name, "Name of the broker", answer=Name),
    Endpoint("PUT", "/cluster-name", ADMINISTRATORS, set_cluster_name, "Name the broker", body=Name, status=204),
    Endpoint("GET", "/extensions", MANAGEMENT, extensions, "Extensions of the management page: none"),
    Endpoint("GET", "/auth", MANAGEMENT, authentication, "How to log in: Basic authentication only"),
    Endpoint(
        "GET", "/auth/hash_password/{password}", ADMINISTRATORS, password_hash, "A password as it would be stored"
    ),
    Endpoint("GET", "/deprecated-features", ADMINISTRATORS, empty_list, "Deprecated features: none"),
    Endpoint("GET", "/deprecated-features/used", ADMINISTRATORS, empty_list, "Deprecated features in use: none"),
    Endpoint("POST", "/rebalance/queues", ADMINISTRATORS, nothing_to_do, "Nothing to do on one node", status=204),
    Endpoint("DELETE", "/reset", ADMINISTRATORS, nothing_to_do, "Reset statistics: there are none", status=204),
    Endpoint(
        "DELETE",
        "/reset/{node}",
        ADMINISTRATORS,
        nothing_to_do,
        "Reset them on one node",
        status=204,
    ),
]
