"""/permissions and /topic-permissions: who may do what in which vhost."""

from __future__ import annotations

from collections.abc import Iterator

from warrenmq.http.endpoint import ADMINISTRATOR, Call, Endpoint, NoContent, put
from warrenmq.http.errors import bad_request, not_found
from warrenmq.http.in_order import by_key
from warrenmq.http.models import PermissionInfo, TopicPermissionInfo
from warrenmq.http.names import check_name
from warrenmq.http.requests import PermissionDeclaration, TopicPermissionDeclaration


def _both_exist(call: Call) -> tuple[str, str]:
    """User and vhost of a PUT."""
    user, vhost = call.path["user"], call.path["vhost"]
    if call.bridge.access.user(user) is None or vhost not in call.bridge.broker.vhosts:
        raise bad_request("vhost_or_user_not_found")
    return user, vhost


async def list_permissions(call: Call) -> Iterator[dict[str, object]]:
    return (one.to_dict() for one in await by_key(call.bridge.access.permissions))


async def get_permissions(call: Call) -> dict[str, object]:
    found = call.bridge.access.permissions.get((call.path["user"], call.path["vhost"]))
    if found is None:
        raise not_found()
    return found.to_dict()


async def put_permissions(call: Call) -> object:
    wanted = await call.body(PermissionDeclaration)
    user, vhost = _both_exist(call)
    access = call.bridge.access
    existed = access.vhost_allowed(user, vhost)
    await call.bridge.change(lambda: access.set_permissions(user, vhost, wanted.configure, wanted.write, wanted.read))
    return put(existed)


async def delete_permissions(call: Call) -> NoContent:
    user, vhost = call.path["user"], call.path["vhost"]
    if not call.bridge.access.vhost_allowed(user, vhost):
        raise not_found()
    await call.bridge.change(lambda: _clear(call, user, vhost))
    return NoContent()


def _clear(call: Call, user: str, vhost: str) -> None:
    call.bridge.access.clear_permissions(user, vhost)


async def list_topic_permissions(call: Call) -> Iterator[dict[str, object]]:
    return (one.to_dict() for one in await by_key(call.bridge.access.topic_permissions))


def _topic_permissions(call: Call) -> list[dict[str, object]]:
    user, vhost = call.path["user"], call.path["vhost"]
    found = call.bridge.access.topic_permissions
    mine = sorted([key for key in found if key[0] == user and key[1] == vhost])
    return [found[key].to_dict() for key in mine]


async def get_topic_permissions(call: Call) -> list[dict[str, object]]:
    shown = _topic_permissions(call)
    if not shown:
        raise not_found()
    return shown


async def put_topic_permissions(call: Call) -> object:
    wanted = await call.body(TopicPermissionDeclaration)
    check_name("exchange", wanted.exchange)
    user, vhost = _both_exist(call)
    access = call.bridge.access
    existed = bool(_topic_permissions(call))
    await call.bridge.change(
        lambda: access.set_topic_permissions(user, vhost, wanted.exchange, wanted.write, wanted.read)
    )
    return put(existed)


async def delete_topic_permissions(call: Call) -> NoContent:
    if not _topic_permissions(call):
        raise not_found()
    await call.bridge.change(lambda: _clear_topics(call, call.path.get("exchange")))
    return NoContent()


def _clear_topics(call: Call, exchange: str | None) -> None:
    call.bridge.access.clear_topic_permissions(call.path["user"], call.path["vhost"], exchange)


ENDPOINTS = [
    Endpoint("GET", "/permissions", ADMINISTRATOR, list_permissions, "All permissions", answer=list[PermissionInfo]),
    Endpoint(
        "GET",
        "/permissions/{vhost}/{user}",
        ADMINISTRATOR,
        get_permissions,
        "A user's permissions in a vhost",
        answer=PermissionInfo,
    ),
    Endpoint(
        "PUT",
        "/permissions/{vhost}/{user}",
        ADMINISTRATOR,
        put_permissions,
        "Set them",
        body=PermissionDeclaration,
        status=201,
    ),
    Endpoint("DELETE", "/permissions/{vhost}/{user}", ADMINISTRATOR, delete_permissions, "Take them away", status=204),
    Endpoint(
        "GET",
        "/topic-permissions",
        ADMINISTRATOR,
        list_topic_permissions,
        "All topic permissions",
        answer=list[TopicPermissionInfo],
    ),
    Endpoint(
        "GET",
        "/topic-permissions/{vhost}/{user}",
        ADMINISTRATOR,
        get_topic_permissions,
        "A user's topic permissions in a vhost",
        answer=list[TopicPermissionInfo],
    ),
    Endpoint(
        "PUT",
        "/topic-permissions/{vhost}/{user}",
        ADMINISTRATOR,
        put_topic_permissions,
        "Set them for an exchange",
        body=TopicPermissionDeclaration,
        status=201,
    ),
    Endpoint(
        "DELETE",
        "/topic-permissions/{vhost}/{user}",
        ADMINISTRATOR,
        delete_topic_permissions,
        "Lift them all",
        status=204,
    ),
    Endpoint(
        "DELETE",
        "/topic-permissions/{vhost}/{user}/{exchange}",
        ADMINISTRATOR,
        delete_topic_permissions,
        "Lift those on one exchange",
        status=204,
    ),
]
