"""/vhost-limits and /user-limits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from warrenmq.broker.access.access import ALL_VHOST_LIMITS, USER_LIMITS
from warrenmq.broker.definitions.importing import set_vhost_limits
from warrenmq.http.bridge import Bridge
from warrenmq.http.endpoint import ADMINISTRATOR, MANAGEMENT, VHOST_VISIBLE, Call, Endpoint, NoContent
from warrenmq.http.errors import bad_request, not_found
from warrenmq.http.in_order import by_key
from warrenmq.http.models import UserLimits, VhostLimits
from warrenmq.http.requests import Value
from warrenmq.wire.erlang import json_term, list_of_pairs, text_term


def _number(name: str, value: Any, known: tuple[str, ...], frame: str, component: str) -> int:
    """The limit, or RabbitMQ's complaint about it (``frame`` differs between the two kinds of limits)."""
    if name not in known:
        terms = list_of_pairs([(text_term(name), json_term(value))])
        raise bad_request(frame.format(f"Unrecognised terms {terms} in {component}"))
    if isinstance(value, bool) or not isinstance(value, int):
        raise bad_request(frame.format(f"{name} should be a number, actually was {json_term(value)}"))
    return value


def _of_vhost(bridge: Bridge, vhost: str) -> list[VhostLimits]:
    limits = bridge.access.vhost_limits.get(vhost)
    return [VhostLimits(vhost, dict(limits))] if limits else []


async def list_vhost_limits(call: Call) -> Iterator[VhostLimits]:
    vhosts = call.bridge.visible_vhosts(call.user)
    return (limits for vhost in vhosts for limits in _of_vhost(call.bridge, vhost.name))


async def get_vhost_limits(call: Call) -> list[VhostLimits]:
    return _of_vhost(call.bridge, call.bridge.vhost(call.path["vhost"]).name)


async def put_vhost_limit(call: Call) -> NoContent:
    vhost = call.bridge.vhost_for_change(call.path["vhost"])
    value = (await call.body(Value)).value
    name = call.path["name"]
    number = _number(name, value, ALL_VHOST_LIMITS, "Validation failed\n\n{}\n", "limits")
    bridge = call.bridge
    limits = dict(bridge.access.vhost_limits.get(vhost.name, {})) | {name: number}
    await bridge.change(lambda: set_vhost_limits(bridge.broker, vhost.name, limits))
    return NoContent()


async def delete_vhost_limit(call: Call) -> NoContent:
    bridge = call.bridge
    vhost = bridge.vhost(call.path["vhost"])
    limits = dict(bridge.access.vhost_limits.get(vhost.name, {}))
    if limits.pop(call.path["name"], None) is not None:
        await bridge.change(lambda: set_vhost_limits(bridge.broker, vhost.name, limits))
    return NoContent()


async def list_user_limits(call: Call) -> Iterator[UserLimits]:
    users = await by_key(call.bridge.access.users)
    return (UserLimits(user.name, dict(user.limits)) for user in users if user.limits)


async def get_user_limits(call: Call) -> list[UserLimits]:
    user = call.bridge.access.user(call.path["user"])
    if user is None:
        raise not_found()
    return [UserLimits(user.name, dict(user.limits))] if user.limits else []


async def put_user_limit(call: Call) -> NoContent:
    access = call.bridge.access
    user = call.path["user"]
    if access.user(user) is None:
        raise bad_request(["no_such_user", user])
    value = (await call.body(Value)).value
    name = call.path["name"]
    number = _number(name, value, USER_LIMITS, "{}", "user-limits")
    await call.bridge.change(lambda: access.set_user_limit(user, name, number))
    return NoContent()


async def delete_user_limit(call: Call) -> NoContent:
    access = call.bridge.access
    user = call.path["user"]
    if access.user(user) is None:
        raise not_found()
    await call.bridge.change(lambda: access.clear_user_limit(user, call.path["name"]))
    return NoContent()


ENDPOINTS = [
    Endpoint("GET", "/vhost-limits", MANAGEMENT, list_vhost_limits, "Limits of vhosts", answer=list[VhostLimits]),
    Endpoint(
        "GET", "/vhost-limits/{vhost}", VHOST_VISIBLE, get_vhost_limits, "Limits of a vhost", answer=list[VhostLimits]
    ),
    Endpoint(
        "PUT",
        "/vhost-limits/{vhost}/{name}",
        ADMINISTRATOR,
        put_vhost_limit,
        "Set max-connections or max-queues",
        body=Value,
        status=204,
    ),
    Endpoint("DELETE", "/vhost-limits/{vhost}/{name}", ADMINISTRATOR, delete_vhost_limit, "Lift a limit", status=204),
    Endpoint("GET", "/user-limits", MANAGEMENT, list_user_limits, "Limits of users", answer=list[UserLimits]),
    Endpoint("GET", "/user-limits/{user}", MANAGEMENT, get_user_limits, "Limits of a user", answer=list[UserLimits]),
    Endpoint(
        "PUT",
        "/user-limits/{user}/{name}",
        ADMINISTRATOR,
        put_user_limit,
        "Set max-connections or max-channels",
        body=Value,
        status=204,
    ),
    Endpoint("DELETE", "/user-limits/{user}/{name}", ADMINISTRATOR, delete_user_limit, "Lift a limit", status=204),
]
