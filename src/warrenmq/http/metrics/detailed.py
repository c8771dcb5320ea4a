"""/metrics/detailed: the families that are asked for by ``family=``, of each object, as RabbitMQ 3.10 groups them.

Without ``family`` nothing but who is asked. ``vhost=`` leaves queues of other vhosts out, and nothing else: so does
RabbitMQ 3.10. What is not known is left out without a word, as there; docs/monitoring.md has the groups.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection

from starlette.datastructures import QueryParams
from starlette.responses import Response

from warrenmq.http.bridge import Bridge
from warrenmq.http.listing import let_go
from warrenmq.http.metrics import node
from warrenmq.http.metrics.clients import (
    CHANNEL_EXCHANGE_FAMILIES,
    CHANNEL_FAMILIES,
    CHANNEL_QUEUE_FAMILIES,
    CONNECTION_FAMILIES,
    clients,
)
from warrenmq.http.metrics.page import Collected
from warrenmq.http.metrics.queues import QUEUE_FAMILIES, rows_of
from warrenmq.http.metrics.text import Row, head, labels, line, lines
from warrenmq.http.pacer import Pacer
from warrenmq.http.pieces import Pieces

Rows = Callable[[Bridge, Collection[str]], Awaitable[list[Row]]]


async def render(bridge: Bridge, query: QueryParams) -> Response:
    from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

    asked, vhosts = set(query.getlist("family")), query.getlist("vhost")
    page = Pieces(generate_latest(Collected(node.infos(bridge, "detailed"))))
    for families, rows, groups in GROUPS:
        wanted = {name: detailed(name) for group in groups if group in asked for name in groups[group]}
        if wanted:
            found = await rows(bridge, vhosts)
            await lines(page, families, found, wanted)
            await let_go(found, Pacer())
    for group, (name, text, add) in CLUSTER.items():
        if group in asked:
            page.add(head(name, text))
            await add(page, bridge, name)
    return page.answer(CONTENT_TYPE_LATEST)


def detailed(name: str) -> str:
    return name.replace("rabbitmq_", "rabbitmq_detailed_", 1)


async def _queues(bridge: Bridge, vhosts: Collection[str]) -> list[Row]:
    return list(await rows_of(bridge, vhosts))


async def _published(bridge: Bridge, _: Collection[str]) -> list[Row]:
    """By queue and exchange, under RabbitMQ's names of labels, which are others than elsewhere; there it is by channel
    too."""
    rows: list[Row] = []
    pacer = Pacer()
    for vhost in list(bridge.broker.vhosts.values()):
        for queue in list(vhost.queues.values()):
            for exchange, count in queue.counters.by_exchange().items() if not queue.gone else ():
                if count:
                    to = labels(
                        queue_vhost=vhost.name,
                        queue=queue.name.name,
                        exchange_vhost=vhost.name,
                        exchange=exchange.name.name,
                    )
                    rows.append((to, [count]))
            await pacer.breathe()
    return rows


async def _connections(bridge: Bridge, _: Collection[str]) -> list[Row]:
    return (await clients(bridge)).connections


async def _channels(bridge: Bridge, _: Collection[str]) -> list[Row]:
    return (await clients(bridge)).channels


async def _channel_exchanges(bridge: Bridge, _: Collection[str]) -> list[Row]:
    return (await clients(bridge, each=True)).channel_exchanges


async def _channel_queues(bridge: Bridge, _: Collection[str]) -> list[Row]:
    return (await clients(bridge, each=True)).channel_queues


async def _churn(bridge: Bridge, _: Collection[str]) -> list[Row]:
    return [("", node.churn(bridge.broker))]


async def _limits(bridge: Bridge, _: Collection[str]) -> list[Row]:
    return [("", node.limits(bridge))]


async def _used(bridge: Bridge, _: Collection[str]) -> list[Row]:
    return [("", node.used(bridge))]


async def _disk(bridge: Bridge, _: Collection[str]) -> list[Row]:
    return [("", node.disk(bridge))]


async def _logins(bridge: Bridge, _: Collection[str]) -> list[Row]:
    return node.logins(bridge)


async def _vhosts(page: Pieces, bridge: Bridge, name: str) -> None:
    pacer = Pacer()
    for vhost in bridge.all_vhosts():
        page.add(line(name, labels(vhost=vhost.name), not vhost.leaving))
        await pacer.breathe()


async def _exchange_names(page: Pieces, bridge: Bridge, name: str) -> None:
    await _exchanges(page, bridge, name, lambda bindings: 1)


async def _exchange_bindings(page: Pieces, bridge: Bridge, name: str) -> None:
    await _exchanges(page, bridge, name, lambda bindings: bindings)


async def _exchanges(page: Pieces, bridge: Bridge, name: str, value: Callable[[int], int]) -> None:
    """Of each but the default ones and the internal one for the firehose."""
    pacer = Pacer()
    for vhost in bridge.all_vhosts():
        for exchange in list(vhost.exchanges.values()):
            called = exchange.name.name
            if called and not exchange.internal:
                who = labels(vhost=vhost.name, exchange=called, type=exchange.type)
                page.add(line(name, who, value(len(exchange.bindings_out))))
            await pacer.breathe()


_PUBLISHED = "rabbitmq_queue_messages_published_total"
_OF_QUEUES = tuple(QUEUE_FAMILIES)
_OF_CONNECTIONS = tuple(CONNECTION_FAMILIES)

#: families, where their samples come from, and which of them each name of a group stands for
GROUPS: tuple[tuple[dict[str, str], Rows, dict[str, tuple[str, ...]]], ...] = (
    (node.CHURN, _churn, {"connection_churn_metrics": tuple(node.CHURN)}),
    (node.LIMITS, _limits, {"node_metrics": tuple(node.LIMITS)}),
    (node.USED, _used, {"node_coarse_metrics": tuple(node.USED)}),
    (node.DISK, _disk, {"node_persister_metrics": tuple(node.DISK)}),
    (node.LOGINS, _logins, {"auth_attempt_metrics": tuple(node.LOGINS)}),
    (
        QUEUE_FAMILIES,
        _queues,
        {
            "queue_coarse_metrics": _OF_QUEUES[:3],
            "queue_metrics": _OF_QUEUES[3:7],
            "queue_consumer_count": _OF_QUEUES[3:4],
        },
    ),
    (
        CONNECTION_FAMILIES,
        _connections,
        {"connection_coarse_metrics": _OF_CONNECTIONS[:2], "connection_metrics": _OF_CONNECTIONS[2:]},
    ),
    (CHANNEL_FAMILIES, _channels, {"channel_metrics": tuple(CHANNEL_FAMILIES)}),
    (
        CHANNEL_EXCHANGE_FAMILIES,
        _channel_exchanges,
        {"channel_exchange_metrics": tuple(CHANNEL_EXCHANGE_FAMILIES)},
    ),
    (CHANNEL_QUEUE_FAMILIES, _channel_queues, {"channel_queue_metrics": tuple(CHANNEL_QUEUE_FAMILIES)}),
    ({_PUBLISHED: QUEUE_FAMILIES[_PUBLISHED]}, _published, {"channel_queue_exchange_metrics": (_PUBLISHED,)}),
)
CLUSTER: dict[str, tuple[str, str, Callable[[Pieces, Bridge, str], Awaitable[None]]]] = {
    "vhost_status": ("rabbitmq_cluster_vhost_status", "Whether a given vhost is running", _vhosts),
    "exchange_names": ("rabbitmq_cluster_exchange_name", "Enumerates exchanges, 1 for each", _exchange_names),
    "exchange_bindings": (
        "rabbitmq_cluster_exchange_bindings",
        "Number of bindings of an exchange",
        _exchange_bindings,
    ),
}
