"""Declaring again: are these arguments equivalent to those that are there? With RabbitMQ's texts when not.

Duty: comparison and wording. Not here: which arguments a queue type knows.
"""

from __future__ import annotations

from mypy_extensions import i64

from warrenmq.broker.records import Resource
from warrenmq.wire.erlang import atom, field_term
from warrenmq.wire.field_types import INTEGER_KINDS
from warrenmq.wire.fields import Field, Table, type_name
from warrenmq.wire.replies import PRECONDITION_FAILED, AmqpError


def integer(field: Field) -> i64:
    value = field.value
    return value if isinstance(value, int) else 0


def _same(a: Field, b: Field) -> bool:
    if a.kind in INTEGER_KINDS and b.kind in INTEGER_KINDS:
        return a.value == b.value
    if a.kind in "fd" and b.kind in "fd":
        return a.value == b.value
    return a.kind == b.kind and a.value == b.value


def _inequivalent(key: str, name: Resource, new: str, old: str) -> AmqpError:
    return AmqpError(PRECONDITION_FAILED, f"inequivalent arg '{key}' for {name}: received {new} but current is {old}")


def _property(value: object) -> str:
    """A flag or a type: both are atoms to RabbitMQ."""
    return f"'{atom(str(value).lower() if isinstance(value, bool) else str(value))}'"


def check_property(name: Resource, key: str, old: object, new: object) -> None:
    if old != new:
        raise _inequivalent(key, name, _property(new), _property(old))


def check_arguments(name: Resource, old: Table, new: Table, keys: list[str]) -> None:
    """Raise 406 for the first of the keys whose values are not equivalent."""
    for key in keys:
        a = old.get(key)
        b = new.get(key)
        if a is None and b is None:
            continue
        if a is not None and b is not None:
            if _same(a, b):
                continue
            raise _inequivalent(key, name, _value(b), _value(a))
        if key == "x-queue-type":
            present = a if a is not None else b
            if present is not None and present.value == "classic":
                continue
        raise _inequivalent(key, name, "none" if b is None else _with_type(b), "none" if a is None else _with_type(a))


def _value(field: Field) -> str:
    return "none" if field.kind == "V" else f"'{shown(field)}'"


def _with_type(field: Field) -> str:
    return f"the value '{shown(field)}' of type '{type_name(field)}'"


def shown(field: Field) -> str:
    """Text and octets as they are, everything else as Erlang prints it."""
    value = field.value
    if isinstance(value, str):
        return value
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else field_term(field)
