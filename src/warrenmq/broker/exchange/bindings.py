"""What makes two bindings the same one."""

from __future__ import annotations

from warrenmq.broker.exchange.terms import frozen
from warrenmq.broker.records import Resource
from warrenmq.wire.fields import Table


def identity(source: Resource, destination: Resource, key: str, arguments: Table) -> object:
    """A hashable value, equal for the same binding: source, destination, key and arguments (in any order).

    The wire types of the arguments count: RabbitMQ takes ``a=1`` as a 32 bit and as a 64 bit number for two bindings.
    """
    if not arguments:
        return (source.name, destination.kind, destination.name, key)
    return (source.name, destination.kind, destination.name, key, frozen(arguments))
