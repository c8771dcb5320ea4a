"""What exists, in RabbitMQ's definitions JSON. The other direction is ``definitions.py``.

As in 3.10: transient queues and exchanges are exported, exclusive queues (and what is bound to them) and the
predeclared exchanges are not. Only what RabbitMQ would not know is added: a vhost's metadata when it has any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, final

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
class Section:
    """One list: its objects, in the order in which they were found. They are written in that of ``order``, each as
    ``shown`` makes it; None: it is left out."""

    def __init__(
        self,
        objects: Iterable[Any],
        shown: Callable[[Any], dict[str, object] | None],
        order: Callable[[Any], Any],
    ) -> None:
        self.objects: Final[list[Any]] = list(objects)
        self.shown: Callable[[Any], dict[str, object] | None] = shown
        self.order: Final[Callable[[Any], Any]] = order


@final
class Export:
    """One document: its plain entries, and its lists, whose parts are put in order and made as they are written: there
    may be a hundred thousand.

    What is in it is settled when it is made; what clients delete while it is written is in it all the same.
    """

    def __init__(self, entries: dict[str, str]) -> None:
        self.entries: Final = entries
        self.sections: Final[dict[str, Section]] = {}


def export_definitions(broker: Core) -> Export:
    access = broker.registry.access
    vhosts = list(broker.vhosts.values())
    document = Export(
        {
            "rabbit_version": broker.node.rabbitmq_version,
            "rabbitmq_version": broker.node.rabbitmq_version,
            "product_name": "Warren",
            "product_version": broker.node.version,
        }
    )
    sections = document.sections
    sections["users"] = Section(access.users.values(), _user, _by_name)
    sections["vhosts"] = Section(vhosts, _vhost, _by_name)
    sections["permissions"] = Section(access.permissions.items(), _permission, _by_key)
    sections["topic_permissions"] = Section(access.topic_permissions.items(), _permission, _by_key)
    sections["parameters"] = Section(parameters.listing(broker), _parameter, parameters.order)
    sections["global_parameters"] = Section(broker.parameters.globally.items(), _global_parameter, _by_key)
    _vhosts_parts(broker, vhosts, document)
    return document


def export_vhost(broker: Core, vhost: VHost) -> Export:
    """One vhost's part, without naming it in queues, exchanges and bindings, so that it fits into another one."""
    document = Export({"rabbit_version": broker.node.rabbitmq_version})
    here = [one for one in parameters.listing(broker) if one[0][1] == vhost.name]
    document.sections["parameters"] = Section(here, _parameter, parameters.order)
    _vhosts_parts(broker, [vhost], document)
    for name in ("queues", "exchanges", "bindings"):
        section = document.sections[name]
        section.shown = _anywhere(section.shown)
    return document


def _vhosts_parts(broker: Core, vhosts: list[VHost], document: Export) -> None:
    policies: list[Policy] = []
    queues: list[Queue] = []
    exchanges: list[Exchange] = []
    bindings: list[Binding] = []
    for vhost in vhosts:
        policies.extend(broker.registry.policies.in_vhost(vhost.name))
        queues.extend(vhost.queues.values())
        exchanges.extend(vhost.exchanges.values())
    for exchange in exchanges:
        bindings.extend(exchange.bindings_out.values())
    document.sections["policies"] = Section(policies, _policy, _by_vhost)
    document.sections["queues"] = Section(queues, _queue, _by_resource)
    document.sections["exchanges"] = Section(exchanges, _exchange, _by_resource)
    document.sections["bindings"] = Section(bindings, _binding, _by_source)


# -- their order


def _by_name(one: Any) -> Any:
    return one.name


def _by_key(item: Any) -> Any:
    return item[0]


def _by_vhost(policy: Policy) -> str:
    return policy.vhost


def _by_resource(one: Any) -> Any:
    return one.name.virtual_host, one.name.name


def _by_source(binding: Binding) -> Any:
    return binding.source.name.virtual_host, binding.source.name.name


# -- what is written of each


def _user(user: User) -> dict[str, object] | None:
    return user.to_dict()


def _permission(item: Any) -> dict[str, object] | None:
    found: Permission | TopicPermission = item[1]
    return found.to_dict()


def _parameter(item: parameters.Item) -> dict[str, object] | None:
    return parameters.shown(item)


def _global_parameter(item: Any) -> dict[str, object] | None:
    return {"name": item[0], "value": item[1]}


def _policy(policy: Policy) -> dict[str, object] | None:
    return policy.to_dict()


def _anywhere(shown: Callable[[Any], dict[str, object] | None]) -> Callable[[Any], dict[str, object] | None]:
    def without_vhost(one: Any) -> dict[str, object] | None:
        part = shown(one)
        if part is not None:
            del part["vhost"]
        return part

    return without_vhost


def _vhost(vhost: VHost) -> dict[str, object] | None:
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


def _queue(queue: Queue) -> dict[str, object] | None:
    if queue.declared.exclusive_owner is not None:
        return None
    return {
        "name": queue.name.name,
        "vhost": queue.name.virtual_host,
        "durable": queue.durable,
        "auto_delete": queue.declared.auto_delete,
        "arguments": to_python(queue.arguments),
    }


def _exchange(exchange: Exchange) -> dict[str, object] | None:
    name = exchange.name.name
    if name == "" or name.startswith("amq."):
        return None
    return {
        "name": name,
        "vhost": exchange.name.virtual_host,
        "type": exchange.type,
        "durable": exchange.durable,
        "auto_delete": exchange.auto_delete,
        "internal": exchange.internal,
        "arguments": to_python(exchange.arguments),
    }


def _binding(binding: Binding) -> dict[str, object] | None:
    if _exclusive(binding):
        return None
    return {
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
