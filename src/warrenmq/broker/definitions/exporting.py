"""What exists, in RabbitMQ's definitions JSON. The other direction is ``definitions.py``.

As in 3.10: transient queues and exchanges are exported, exclusive queues (and what is bound to them) and the
predeclared exchanges are not. Only what RabbitMQ would not know is added: a vhost's metadata when it has any.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, final

from warrenmq.broker.access.access import Permission, TopicPermission, User
from warrenmq.broker.definitions import parameters
from warrenmq.broker.policy.policy import Policy
from warrenmq.broker.queue.queue import Queue
from warrenmq.broker.records import Binding, Exchange
from warrenmq.wire.fields import to_python

if TYPE_CHECKING:
    from warrenmq.broker.core import Core
    from warrenmq.broker.vhost.vhost import VHost


@final
class Export:
    """One document: its plain entries, and its lists, whose parts are made one by one as they are written.

    What is in it is settled when it is made; what clients delete while it is written is in it all the same.
    """

    def __init__(self, entries: dict[str, str]) -> None:
        self.entries: Final = entries
        self.sections: Final[dict[str, Iterator[dict[str, object]]]] = {}


def export_definitions(broker: Core) -> Export:
    access = broker.registry.access
    vhosts = [broker.vhosts[name] for name in sorted(broker.vhosts)]
    document = Export(
        {
            "rabbit_version": broker.node.rabbitmq_version,
            "rabbitmq_version": broker.node.rabbitmq_version,
            "product_name": "Warren",
            "product_version": broker.node.version,
        }
    )
    sections = document.sections
    sections["users"] = _users([access.users[name] for name in sorted(access.users)])
    sections["vhosts"] = _each([_vhost(vhost) for vhost in vhosts])
    sections["permissions"] = _permissions([access.permissions[key] for key in sorted(access.permissions)])
    sections["topic_permissions"] = _topic_permissions(
        [access.topic_permissions[key] for key in sorted(access.topic_permissions)]
    )
    sections["parameters"] = _each(list(parameters.listing(broker)))
    sections["global_parameters"] = _each(
        [{"name": name, "value": broker.parameters.globally[name]} for name in sorted(broker.parameters.globally)]
    )
    _vhosts_parts(broker, vhosts, document)
    return document


def export_vhost(broker: Core, vhost: VHost) -> Export:
    """One vhost's part, without naming it in queues, exchanges and bindings, so that it fits into another one."""
    document = Export({"rabbit_version": broker.node.rabbitmq_version})
    document.sections["parameters"] = _each([one for one in parameters.listing(broker) if one["vhost"] == vhost.name])
    _vhosts_parts(broker, [vhost], document)
    for section in ("queues", "exchanges", "bindings"):
        document.sections[section] = _anywhere(document.sections[section])
    return document


def _vhosts_parts(broker: Core, vhosts: list[VHost], document: Export) -> None:
    policies: list[Policy] = []
    queues: list[Queue] = []
    exchanges: list[Exchange] = []
    bindings: list[Binding] = []
    for vhost in vhosts:
        policies.extend(broker.registry.policies.in_vhost(vhost.name))
        queues.extend([vhost.queues[name] for name in sorted(vhost.queues)])
        for name in sorted(vhost.exchanges):
            exchange = vhost.exchanges[name]
            exchanges.append(exchange)
            bindings.extend(exchange.bindings_out.values())
    document.sections["policies"] = _policies(policies)
    document.sections["queues"] = _queues(queues)
    document.sections["exchanges"] = _exchanges(exchanges)
    document.sections["bindings"] = _bindings(bindings)


def _each(parts: list[dict[str, object]]) -> Iterator[dict[str, object]]:
    yield from parts


def _users(users: list[User]) -> Iterator[dict[str, object]]:
    for user in users:
        yield user.to_dict()


def _permissions(permissions: list[Permission]) -> Iterator[dict[str, object]]:
    for permission in permissions:
        yield permission.to_dict()


def _topic_permissions(permissions: list[TopicPermission]) -> Iterator[dict[str, object]]:
    for permission in permissions:
        yield permission.to_dict()


def _policies(policies: list[Policy]) -> Iterator[dict[str, object]]:
    for policy in policies:
        yield policy.to_dict()


def _anywhere(parts: Iterator[dict[str, object]]) -> Iterator[dict[str, object]]:
    for part in parts:
        del part["vhost"]
        yield part


def _vhost(vhost: VHost) -> dict[str, object]:
    out: dict[str, object] = {"name": vhost.name}
    journal = not vhost.has_default_level()
    if vhost.description or vhost.tags or vhost.default_queue_type or vhost.nack_unroutable or journal:
        metadata: dict[str, object] = {"description": vhost.description, "tags": list(vhost.tags)}
        if vhost.default_queue_type:
            metadata["default_queue_type"] = vhost.default_queue_type
        if vhost.nack_unroutable:
            metadata["nack_unroutable"] = True
        if journal:
            metadata |= vhost.journal_metadata()
        out["metadata"] = metadata
    return out


def _queues(queues: list[Queue]) -> Iterator[dict[str, object]]:
    for queue in queues:
        if queue.declared.exclusive_owner is None:
            yield {
                "name": queue.name.name,
                "vhost": queue.name.virtual_host,
                "durable": queue.durable,
                "auto_delete": queue.declared.auto_delete,
                "arguments": to_python(queue.arguments),
            }


def _exported(exchange: Exchange) -> bool:
    name = exchange.name.name
    return name != "" and not name.startswith("amq.")


def _exchanges(exchanges: list[Exchange]) -> Iterator[dict[str, object]]:
    for exchange in exchanges:
        if _exported(exchange):
            yield {
                "name": exchange.name.name,
                "vhost": exchange.name.virtual_host,
                "type": exchange.type,
                "durable": exchange.durable,
                "auto_delete": exchange.auto_delete,
                "internal": exchange.internal,
                "arguments": to_python(exchange.arguments),
            }


def _bindings(bindings: list[Binding]) -> Iterator[dict[str, object]]:
    for binding in bindings:
        if not _exclusive(binding):
            yield {
                "source": binding.source.name.name,
                "vhost": binding.source.name.virtual_host,
                "destination": binding.destination.name.name,
                "destination_type": binding.destination.name.kind,
                "routing_key": binding.key,
                "arguments": to_python(binding.arguments),
            }


def _exclusive(binding: Binding) -> bool:
    destination = binding.destination
    return isinstance(destination, Queue) and destination.declared.exclusive_owner is not None
