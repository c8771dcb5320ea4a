"""/cluster/...: what an operator asks of a cluster, on its leader. 409 says why it is not done, and what would help."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from warrenmq.http.endpoint import ADMINISTRATOR, Call, Endpoint
from warrenmq.http.errors import ApiError
from warrenmq.http.node.cluster import NO_CLUSTER
from warrenmq.server.cluster_orders import OrderRefused, Orders


class TransferRequest(Struct):
    """The name of the node that is to lead; it is in sync."""

    to: str


class PauseRequest(Struct):
    """The wish that nobody takes over by himself, or that they do again."""

    paused: bool


class RemoveRequest(Struct):
    """A removal; with ``anyway`` also if publishers have to wait afterwards, as too few are in sync."""

    anyway: bool = False


class Done(Struct):
    """An order that was carried out, and the node it was about."""

    done: str
    node: str = ""


class NewNode(Struct):
    """Settings that a new node has to have; its secret or certificate is not told."""

    cluster: str
    cluster_node: str
    cluster_etcd: list[str]
    cluster_min_in_sync: int
    cluster_ttl: int
    cluster_ack_timeout: float


def _orders(call: Call) -> Orders:
    found = call.bridge.orders()
    if found is None:
        raise ApiError(404, "not_found", NO_CLUSTER)
    return found


def _refused(error: OrderRefused) -> ApiError:
    return ApiError(409, "refused", str(error))


async def transfer(call: Call) -> object:
    orders = _orders(call)
    wanted = await call.body(TransferRequest)
    try:
        await orders.transfer(wanted.to)
    except OrderRefused as error:
        raise _refused(error) from None
    return Done("transferred", wanted.to)


async def pause(call: Call) -> object:
    orders = _orders(call)
    wanted = await call.body(PauseRequest)
    try:
        await orders.pause(wanted.paused)
    except OrderRefused as error:
        raise _refused(error) from None
    return Done("paused" if wanted.paused else "unpaused")


async def upgrade(call: Call) -> object:
    orders = _orders(call)
    try:
        version = await orders.upgrade()
    except OrderRefused as error:
        raise _refused(error) from None
    return Done(f"upgraded to version {version}")


async def add(call: Call) -> object:
    orders = _orders(call)
    try:
        found: dict[str, Any] = await orders.add(call.path["name"])
    except OrderRefused as error:
        raise _refused(error) from None
    return NewNode(**found)


async def remove(call: Call) -> object:
    orders = _orders(call)
    wanted = await call.body(RemoveRequest)
    try:
        await orders.remove(call.path["name"], wanted.anyway)
    except OrderRefused as error:
        raise _refused(error) from None
    return Done("removed", call.path["name"])


ENDPOINTS = [
    Endpoint(
        "POST",
        "/cluster/transfer",
        ADMINISTRATOR,
        transfer,
        "Let another node lead",
        body=TransferRequest,
        answer=Done,
    ),
    Endpoint(
        "PUT",
        "/cluster/pause",
        ADMINISTRATOR,
        pause,
        "Let nobody take over by himself, or let them again",
        body=PauseRequest,
        answer=Done,
    ),
    Endpoint(
        "POST",
        "/cluster/upgrade",
        ADMINISTRATOR,
        upgrade,
        "Let the nodes use the latest version that all of them know",
        answer=Done,
    ),
    Endpoint(
        "PUT",
        "/cluster/nodes/{name}",
        ADMINISTRATOR,
        add,
        "Let a node come, and say what its settings need",
        answer=NewNode,
    ),
    Endpoint(
        "DELETE",
        "/cluster/nodes/{name}",
        ADMINISTRATOR,
        remove,
        "A node counts no longer and may not come back",
        body=RemoveRequest,
        answer=Done,
    ),
]
