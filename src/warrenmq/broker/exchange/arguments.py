"""Arguments and headers that steer routing: the alternate exchange, and the keys a message is routed by."""

from __future__ import annotations

from typing import cast

from warrenmq.broker.records import Exchange, Resource
from warrenmq.wire.fields import Field, Table, type_name
from warrenmq.wire.replies import AmqpError


def check_alternate(name: Resource, arguments: Table) -> None:
    """Raise AmqpError when the argument ``alternate-exchange`` is no name."""
    field = arguments.get("alternate-exchange")
    if field is not None and field.kind != "S":
        raise AmqpError(406, f"invalid type '{type_name(field)}' for arg 'alternate-exchange' in {name}")


def alternate_of(exchange: Exchange) -> str:
    """The alternate exchange in force, "" for none: the argument beats the policy."""
    field = exchange.arguments.get("alternate-exchange")
    if field is not None:
        return field.value if isinstance(field.value, str) else ""
    value = exchange.policy_definition.get("alternate-exchange")
    return value if isinstance(value, str) else ""


def routing_keys_of(key: str, headers: Table | None) -> list[str]:
    """The publish key, then those of the headers CC and BCC, which must be arrays; elements that are no text drop out.

    Raises AmqpError for a header of another type.
    """
    keys = [key]
    if headers is not None:
        for name in ("CC", "BCC"):
            field = headers.get(name)
            if field is None:
                continue
            if field.kind != "A":
                raise AmqpError(406, f'invalid message: {{unacceptable_type_in_header,"{name}",{type_name(field)}}}')
            for item in cast(list[Field], field.value):
                if item.kind == "S" and isinstance(item.value, str):
                    keys.append(item.value)
    return keys
