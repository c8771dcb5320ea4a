"""Arguments and headers that steer routing: the alternate exchange, and the keys a message is routed by."""

from __future__ import annotations

from warrenmq.broker.records import Exchange
from warrenmq.wire.fields import Field, Table, type_name
from warrenmq.wire.methods import refused_publish
from warrenmq.wire.replies import PRECONDITION_FAILED


def alternate_of(exchange: Exchange) -> str:
    """The alternate exchange in force, "" for none: the argument beats the policy."""
    field = exchange.arguments.get("alternate-exchange")
    if field is not None:
        return field.value if isinstance(field.value, str) else ""
    value = exchange.policy.definition.get("alternate-exchange")
    return value if isinstance(value, str) else ""


def routing_keys_of(key: str, headers: Table | None) -> tuple[list[str], int]:
    """The publish key, then those of the headers CC and BCC; and how many of them, at the end, nobody may see.

    The headers must be arrays, else AmqpError; elements that are no text drop out.
    """
    keys = [key]
    hidden = 0
    if headers is not None:
        for name in ("CC", "BCC"):
            field = headers.get(name)
            if field is not None:
                more = _keys_in(name, field)
                keys.extend(more)
                hidden = len(more) if name == "BCC" else 0
    return keys, hidden


def _keys_in(name: str, field: Field) -> list[str]:
    if field.kind != "A" or not isinstance(field.value, list):
        raise refused_publish(
            PRECONDITION_FAILED,
            'invalid message: {unacceptable_type_in_header,"' + name + '",' + type_name(field) + "}",
        )
    keys: list[str] = []
    for item in field.value:
        if isinstance(item, Field) and item.kind == "S":
            key = item.value
            if isinstance(key, str):
                keys.append(key)
            elif isinstance(key, bytes):  # no UTF-8, and a routing key all the same
                keys.append(key.decode("utf-8", "surrogateescape"))
    return keys
