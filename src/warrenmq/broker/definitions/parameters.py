"""Runtime parameters and global parameters: named JSON values that belong to components, kept and handed back.

Duty: change and persist them (the broker holds them), so that definitions of any RabbitMQ move through unchanged. Two
components have a home of their own and are only shown among the parameters: ``operator_policy`` (``policy.py``) and
``vhost-limits`` (``access.py``). Not here: acting on a parameter.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from warrenmq.broker.access.access import store_key

if TYPE_CHECKING:
    from warrenmq.broker.core import Core
    from warrenmq.broker.policy.policy import Policy

# kinds in the store
PARAMETER: Final = "parameter"
GLOBAL_PARAMETER: Final = "global_parameter"

OPERATOR_POLICY: Final = "operator_policy"
VHOST_LIMITS: Final = "vhost-limits"
CLUSTER_NAME: Final = "cluster_name"


def put(broker: Core, component: str, vhost: str, name: str, value: object) -> None:
    broker.parameters.of_vhosts[(component, vhost, name)] = value
    broker.services.store.put(
        PARAMETER,
        store_key([component, vhost, name]),
        {"component": component, "vhost": vhost, "name": name, "value": value},
    )


def delete(broker: Core, component: str, vhost: str, name: str) -> bool:
    if (component, vhost, name) not in broker.parameters.of_vhosts:
        return False
    del broker.parameters.of_vhosts[(component, vhost, name)]
    broker.services.store.delete(PARAMETER, store_key([component, vhost, name]))
    return True


def put_global(broker: Core, name: str, value: object) -> None:
    broker.parameters.globally[name] = value
    broker.services.store.put(GLOBAL_PARAMETER, name, {"name": name, "value": value})
    if name == CLUSTER_NAME and isinstance(value, str):
        broker.node.cluster_name = value


def delete_global(broker: Core, name: str) -> bool:
    if name not in broker.parameters.globally:
        return False
    del broker.parameters.globally[name]
    broker.services.store.delete(GLOBAL_PARAMETER, name)
    if name == CLUSTER_NAME:
        broker.node.cluster_name = broker.node.name
    return True


def vhost_deleted(broker: Core, vhost: str) -> None:
    for component, owner, name in list(broker.parameters.of_vhosts):
        if owner == vhost:
            delete(broker, component, owner, name)


def find(broker: Core, component: str, vhost: str, name: str) -> dict[str, object] | None:
    """One as it is listed."""
    if component == VHOST_LIMITS and name == "limits":
        limits = broker.registry.access.vhost_limits.get(vhost)
        if limits:
            return _limits(vhost, limits)
    if component == OPERATOR_POLICY:
        policy = broker.registry.policies.get(vhost, name, True)
        if policy is not None:
            return _operator_policy(policy)
    kept = broker.parameters.of_vhosts
    key = (component, vhost, name)
    return {"value": kept[key], "vhost": vhost, "component": component, "name": name} if key in kept else None


def _limits(vhost: str, limits: dict[str, int]) -> dict[str, object]:
    return {"value": dict(limits), "vhost": vhost, "component": VHOST_LIMITS, "name": "limits"}


def _operator_policy(policy: Policy) -> dict[str, object]:
    value = policy.to_dict()
    del value["vhost"]
    del value["name"]
    return {"value": value, "vhost": policy.vhost, "component": OPERATOR_POLICY, "name": policy.name}


def listing(broker: Core) -> Iterator[dict[str, object]]:
    """All of them as RabbitMQ lists them, with those that live elsewhere; each is made when it is asked for. Theirs is
    the order of ``order``."""
    for vhost in broker.vhosts:
        limits = broker.registry.access.vhost_limits.get(vhost)
        if limits:
            yield _limits(vhost, limits)
        for policy in broker.registry.policies.in_vhost(vhost, True):
            yield _operator_policy(policy)
    for (component, vhost, name), kept in broker.parameters.of_vhosts.items():
        yield {"value": kept, "vhost": vhost, "component": component, "name": name}


def order(one: dict[str, object]) -> Any:
    """Those that live elsewhere are first: a vhost's limits, and its policies by precedence, as they come."""
    component = one["component"]
    if component == VHOST_LIMITS or component == OPERATOR_POLICY:
        return "", one["vhost"], ""
    return component, one["vhost"], one["name"]
