"""Runtime parameters and global parameters: named JSON values that belong to components, kept and handed back.

Duty: change and persist them (the broker holds them), so that definitions of any RabbitMQ move through unchanged. Two
components have a home of their own and are only shown among the parameters: ``operator_policy`` (``policy.py``) and
``vhost-limits`` (``access.py``). Not here: acting on a parameter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from warrenmq.broker.access.access import store_key

if TYPE_CHECKING:
    from warrenmq.broker.core import Core

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


def listing(broker: Core) -> list[dict[str, object]]:
    """All of them as RabbitMQ lists them, with those that live elsewhere."""
    out: list[dict[str, object]] = []
    for vhost in sorted(broker.vhosts):
        limits = broker.registry.access.vhost_limits.get(vhost)
        if limits:
            out.append({"value": dict(limits), "vhost": vhost, "component": VHOST_LIMITS, "name": "limits"})
        for policy in broker.registry.policies.in_vhost(vhost, True):
            value = policy.to_dict()
            del value["vhost"]
            del value["name"]
            out.append({"value": value, "vhost": vhost, "component": OPERATOR_POLICY, "name": policy.name})
    for (component, vhost, name), kept in sorted(broker.parameters.of_vhosts.items(), key=_key):
        out.append({"value": kept, "vhost": vhost, "component": component, "name": name})
    return out


def _key(item: tuple[tuple[str, str, str], object]) -> tuple[str, str, str]:
    return item[0]
