"""What exists, in RabbitMQ's definitions JSON. The other direction is ``definitions.py``.

As in 3.10: transient queues and exchanges are exported, exclusive queues (and what is bound to them) and the
predeclared exchanges are not. Only what RabbitMQ would not know is added: a vhost's metadata when it has any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warrenmq.broker import parameters
from warrenmq.broker.queue.queue import Queue
from warrenmq.broker.records import Binding, Exchange
from warrenmq.wire.fields import to_python

if TYPE_CHECKING:
    from warrenmq.broker.broker import Broker
    from warrenmq.broker.vhost import VHost


def export_definitions(broker: Broker) -> dict[str, object]:
    access = broker.access
    document: dict[str, object] = {
        "rabbit_version": broker.rabbitmq_version,
        "rabbitmq_version": broker.rabbitmq_version,
        "product_name": "Warren",
        "product_version": broker.version,
        "users": [access.users[name].to_dict() for name in sorted(access.users)],
        "vhosts": [_vhost(broker.vhosts[name]) for name in sorted(broker.vhosts)],
        "permissions": [access.permissions[key].to_dict() for key in sorted(access.permissions)],
        "topic_permissions": [access.topic_permissions[key].to_dict() for key in sorted(access.topic_permissions)],
        "parameters": parameters.listing(broker),
        "global_parameters": [
            {"name": name, "value": broker.global_parameters[name]} for name in sorted(broker.global_parameters)
        ],
    }
    policies: list[dict[str, object]] = []
    queues: list[dict[str, object]] = []
    exchanges: list[dict[str, object]] = []
    bindings: list[dict[str, object]] = []
    for name in sorted(broker.vhosts):
        vhost = broker.vhosts[name]
        policies.extend([policy.to_dict() for policy in broker.policies.in_vhost(name)])
        queues.extend(_queues(vhost))
        exchanges.extend(_exchanges(vhost))
        bindings.extend(_bindings(vhost))
    document["policies"] = policies
    document["queues"] = queues
    document["exchanges"] = exchanges
    document["bindings"] = bindings
    return document


def export_vhost(broker: Broker, vhost: VHost) -> dict[str, object]:
    """One vhost's part, without naming it in queues, exchanges and bindings, so that it fits into another one."""
    return {
        "rabbit_version": broker.rabbitmq_version,
        "parameters": [one for one in parameters.listing(broker) if one["vhost"] == vhost.name],
        "policies": [policy.to_dict() for policy in broker.policies.in_vhost(vhost.name)],
        "queues": _anywhere(_queues(vhost)),
        "exchanges": _anywhere(_exchanges(vhost)),
        "bindings": _anywhere(_bindings(vhost)),
    }


def _anywhere(parts: list[dict[str, object]]) -> list[dict[str, object]]:
    for part in parts:
        del part["vhost"]
    return parts


def _vhost(vhost: VHost) -> dict[str, object]:
    out: dict[str, object] = {"name": vhost.name}
    if vhost.description or vhost.tags or vhost.default_queue_type:
        metadata: dict[str, object] = {"description": vhost.description, "tags": list(vhost.tags)}
        if vhost.default_queue_type:
            metadata["default_queue_type"] = vhost.default_queue_type
        out["metadata"] = metadata
    return out


def _queues(vhost: VHost) -> list[dict[str, object]]:
    out: list[dict[str, object]] = []
    for name in sorted(vhost.queues):
        queue = vhost.queues[name]
        if queue.exclusive_owner is None:
            out.append(
                {
                    "name": name,
                    "vhost": vhost.name,
                    "durable": queue.durable,
                    "auto_delete": queue.auto_delete,
                    "arguments": to_python(queue.arguments),
                }
            )
    return out


def _exported(exchange: Exchange) -> bool:
    name = exchange.name.name
    return name != "" and not name.startswith("amq.")


def _exchanges(vhost: VHost) -> list[dict[str, object]]:
    out: list[dict[str, object]] = []
    for name in sorted(vhost.exchanges):
        exchange = vhost.exchanges[name]
        if _exported(exchange):
            out.append(
                {
                    "name": name,
                    "vhost": vhost.name,
                    "type": exchange.type,
                    "durable": exchange.durable,
                    "auto_delete": exchange.auto_delete,
                    "internal": exchange.internal,
                    "arguments": to_python(exchange.arguments),
                }
            )
    return out


def _bindings(vhost: VHost) -> list[dict[str, object]]:
    out: list[dict[str, object]] = []
    for name in sorted(vhost.exchanges):
        for binding in vhost.exchanges[name].bindings_out.values():
            if not _exclusive(binding):
                out.append(
                    {
                        "source": name,
                        "vhost": vhost.name,
                        "destination": binding.destination.name.name,
                        "destination_type": binding.destination.name.kind,
                        "routing_key": binding.key,
                        "arguments": to_python(binding.arguments),
                    }
                )
    return out


def _exclusive(binding: Binding) -> bool:
    destination = binding.destination
    return isinstance(destination, Queue) and destination.exclusive_owner is not None
