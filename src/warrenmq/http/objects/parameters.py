"""/parameters and /global-parameters."""

from __future__ import annotations

from collections.abc import Iterator

from warrenmq.broker.access.access import ALL_VHOST_LIMITS
from warrenmq.broker.definitions import parameters, policy_changes
from warrenmq.broker.definitions.importing import set_vhost_limits
from warrenmq.broker.policy.policy import parse_policy
from warrenmq.http.endpoint import POLICYMAKER, POLICYMAKER_VHOST, Call, Endpoint, NoContent, put
from warrenmq.http.errors import bad_request, not_authorised, not_found
from warrenmq.http.in_order import in_order
from warrenmq.http.models import GlobalParameter, Parameter
from warrenmq.http.requests import Value

# components RabbitMQ knows when the plug-ins that bring them are on; kept here, acted on by nobody
COMPONENTS = {"federation-upstream", "federation-upstream-set", "shovel", "federation"}


async def list_parameters(call: Call) -> Iterator[dict[str, object]]:
    if "vhost" in call.path:
        call.bridge.vhost(call.path["vhost"])
    wanted = call.path
    vhosts = {vhost.name for vhost in call.bridge.visible_vhosts(call.user)}
    ordered = await in_order(parameters.listing(call.bridge.broker), parameters.order)
    return (one for one in map(parameters.shown, ordered) if _is_wanted(one, vhosts, wanted))


def _is_wanted(one: dict[str, object], vhosts: set[str], wanted: dict[str, str]) -> bool:
    return one["vhost"] in vhosts and all(one[key] == value for key, value in wanted.items())


def _found(call: Call) -> dict[str, object] | None:
    vhost = call.bridge.vhost(call.path["vhost"])
    if vhost not in call.bridge.visible_vhosts(call.user):
        return None
    return parameters.find(call.bridge.broker, call.path["component"], vhost.name, call.path["name"])


async def get_parameter(call: Call) -> dict[str, object]:
    found = _found(call)
    if found is None:
        raise not_found()
    return found


async def put_parameter(call: Call) -> object:
    component, name = call.path["component"], call.path["name"]
    vhost = call.bridge.vhost_for_change(call.path["vhost"])
    value = (await call.body(Value)).value
    broker = call.bridge.broker
    existed = _found(call) is not None
    if component == parameters.OPERATOR_POLICY:
        _administrators_only(call)
        if not isinstance(value, dict):
            raise bad_request("value should be an object")
        policy = parse_policy(vhost.name, name, value, True)
        await call.bridge.change_in_steps("policy", lambda: policy_changes.set_policy(broker, policy, True))
    elif component == parameters.VHOST_LIMITS:
        if not isinstance(value, dict) or not all(
            key in ALL_VHOST_LIMITS and isinstance(limit, int) and not isinstance(limit, bool)
            for key, limit in value.items()
        ):
            raise bad_request("Validation failed\n\nUnrecognised terms in limits\n")
        await call.bridge.change(lambda: set_vhost_limits(broker, vhost.name, value))
    elif component in COMPONENTS:
        await call.bridge.change(lambda: parameters.put(broker, component, vhost.name, name, value))
    else:
        raise bad_request(f"Validation failed\n\ncomponent {component} not found\n")
    return put(existed)


def _administrators_only(call: Call) -> None:
    if "administrator" not in call.user.tags:
        raise not_authorised("Not administrator user")


async def delete_parameter(call: Call) -> NoContent:
    await get_parameter(call)
    component, vhost, name = call.path["component"], call.path["vhost"], call.path["name"]
    broker = call.bridge.broker
    if component == parameters.OPERATOR_POLICY:
        _administrators_only(call)

        await call.bridge.change_in_steps("policy", lambda: policy_changes.delete_policy(broker, vhost, name, True))
    elif component == parameters.VHOST_LIMITS:
        await call.bridge.change(lambda: set_vhost_limits(broker, vhost, {}))
    else:
        await call.bridge.change(lambda: _delete(call))
    return NoContent()


def _delete(call: Call) -> None:
    parameters.delete(call.bridge.broker, call.path["component"], call.path["vhost"], call.path["name"])


async def list_global(call: Call) -> list[GlobalParameter]:
    values = call.bridge.broker.parameters.globally
    return [GlobalParameter(name, values[name]) for name in sorted(values)]


async def get_global(call: Call) -> GlobalParameter:
    values = call.bridge.broker.parameters.globally
    name = call.path["name"]
    if name not in values:
        raise not_found()
    return GlobalParameter(name, values[name])


async def put_global(call: Call) -> object:
    value = (await call.body(Value)).value
    broker = call.bridge.broker
    name = call.path["name"]
    existed = name in broker.parameters.globally
    await call.bridge.change(lambda: parameters.put_global(broker, name, value))
    return put(existed)


async def delete_global(call: Call) -> NoContent:
    await get_global(call)
    await call.bridge.change(lambda: _delete_global(call))
    return NoContent()


def _delete_global(call: Call) -> None:
    parameters.delete_global(call.bridge.broker, call.path["name"])


ENDPOINTS = [
    Endpoint("GET", "/parameters", POLICYMAKER, list_parameters, "Runtime parameters", answer=list[Parameter]),
    Endpoint(
        "GET", "/parameters/{component}", POLICYMAKER, list_parameters, "Those of a component", answer=list[Parameter]
    ),
    Endpoint(
        "GET",
        "/parameters/{component}/{vhost}",
        POLICYMAKER_VHOST,
        list_parameters,
        "Those of it in a vhost",
        answer=list[Parameter],
    ),
    Endpoint(
        "GET",
        "/parameters/{component}/{vhost}/{name}",
        POLICYMAKER_VHOST,
        get_parameter,
        "One parameter",
        answer=Parameter,
    ),
    Endpoint(
        "PUT",
        "/parameters/{component}/{vhost}/{name}",
        POLICYMAKER_VHOST,
        put_parameter,
        "Set a parameter",
        body=Value,
        status=201,
    ),
    Endpoint(
        "DELETE",
        "/parameters/{component}/{vhost}/{name}",
        POLICYMAKER_VHOST,
        delete_parameter,
        "Delete a parameter",
        status=204,
    ),
    Endpoint("GET", "/global-parameters", POLICYMAKER, list_global, "Global ones", answer=list[GlobalParameter]),
    Endpoint("GET", "/global-parameters/{name}", POLICYMAKER, get_global, "A global one", answer=GlobalParameter),
    Endpoint("PUT", "/global-parameters/{name}", POLICYMAKER, put_global, "Set a global one", body=Value, status=201),
    Endpoint("DELETE", "/global-parameters/{name}", POLICYMAKER, delete_global, "Delete a global one", status=204),
]
