"""Runtime parameters and global parameters: named JSON values that belong to components, kept and handed back.

Duty: change and persist them (the broker holds them), so that definitions of any RabbitMQ move through unchanged. Two
components have a home of their own and are only shown among the parameters: ``operator_policy`` (``policy.py``) and
``vhost-limits`` (``access.py``). Not here: acting on a parameter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from warrenmq.broker.access.access import store_key
from warrenmq.broker.policy.policy import Policy

if TYPE_CHECKING:
    from warrenmq.broker.core import Core

# kinds in the store
PARAMETER: Final = "parameter"
GLOBAL_PARAMETER: Final = "global_parameter"

OPERATOR_POLICY: Final = "operator_policy"
VHOST_LIMITS: Final = "vhost-limits"
LIMITS: Final = "limits"  # the name of them
CLUSTER_NAME: Final = "cluster_name"


Item = tuple[tuple[str, str, str], object]  # component, vhost and name; what is kept


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
    place = (component, vhost, name)
    if component == VHOST_LIMITS and name == LIMITS:
        limits = broker.registry.access.vhost_limits.get(vhost)
        if limits:
            return shown((place, limits))
    if component == OPERATOR_POLICY:
        policy = broker.registry.policies.get(vhost, name, True)
        if policy is not None:
            return shown((place, policy))
    kept = broker.parameters.of_vhosts
    return shown((place, kept[place])) if place in kept else None


def listing(broker: Core) -> list[Item]:
    """All of them, with those that live elsewhere, as they are found: ``order`` has RabbitMQ's order, ``shown`` one as
    it is listed."""
    found: list[Item] = []
    for vhost in broker.vhosts:
        limits = broker.registry.access.vhost_limits.get(vhost)
        if limits:
            found.append(((VHOST_LIMITS, vhost, LIMITS), limits))
        for policy in broker.registry.policies.in_vhost(vhost, True):
            found.append(((OPERATOR_POLICY, vhost, policy.name), policy))
    found.extend(broker.parameters.of_vhosts.items())
    return found


def order(item: Item) -> tuple[str, str, str]:
    """Those that live elsewhere are first: a vhost's limits, and its policies by precedence, as they were found."""
    place = item[0]
    if place[0] == VHOST_LIMITS or place[0] == OPERATOR_POLICY:
        return "", place[1], ""
    return place


def shown(item: Item) -> dict[str, object]:
    """One as it is listed."""
    component, vhost, name = item[0]
    kept = item[1]
    if component == OPERATOR_POLICY and isinstance(kept, Policy):
        value = kept.to_dict()
        del value["vhost"]
        del value["name"]
        kept = value
    elif component == VHOST_LIMITS and isinstance(kept, dict):
        kept = dict(kept)
    return {"value": kept, "vhost": vhost, "component": component, "name": name}
