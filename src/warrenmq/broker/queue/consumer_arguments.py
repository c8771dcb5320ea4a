"""Arguments of ``basic.consume``: which a kind of queue has, and what they may be, with RabbitMQ 3.10's texts.

Duty: validate. Not here: acting on them; arguments that are Warren's own (``x-lease``), which every kind lets pass.
"""

from __future__ import annotations

from typing import Final

from warrenmq.broker.queue.arguments import CLASSIC, QUORUM, STREAM, interval_ms
from warrenmq.broker.records import Resource
from warrenmq.wire.erlang import field_term
from warrenmq.wire.field_types import INTEGER_KINDS
from warrenmq.wire.fields import Field, Table, type_name
from warrenmq.wire.replies import PRECONDITION_FAILED, AmqpError

PRIORITY: Final = "x-priority"
CANCEL_ON_FAILOVER: Final = "x-cancel-on-ha-failover"
STREAM_OFFSET: Final = "x-stream-offset"

OF_TYPE: Final[dict[str, list[str]]] = {
    CLASSIC: [PRIORITY, CANCEL_ON_FAILOVER],
    QUORUM: [PRIORITY],
    STREAM: [STREAM_OFFSET],
}
_KNOWN: Final = (CANCEL_ON_FAILOVER, PRIORITY, STREAM_OFFSET)

PLACES: Final = ("first", "last", "next")


def validate(queue: Resource, type: str, arguments: Table) -> None:
    """Raise 406 for a value that is not acceptable, then for an argument that this type of queue does not have."""
    if not arguments:
        return
    has = OF_TYPE[type]
    for key in has:
        field = arguments.get(key)
        if field is not None:
            problem = _problem(key, field)
            if problem:
                raise AmqpError(PRECONDITION_FAILED, f"invalid arg '{key}' for {queue}: {problem}")
    for key in arguments:  # in the client's order
        if key in _KNOWN and key not in has:
            raise AmqpError(PRECONDITION_FAILED, f"invalid arg '{key}' for {queue} of queue type rabbit_{type}_queue")


def _problem(key: str, field: Field) -> str:
    if key == PRIORITY:
        return "" if field.kind in INTEGER_KINDS else f'"expected integer, got {type_name(field)}"'
    if key == CANCEL_ON_FAILOVER:
        return "" if field.kind == "t" else "{unacceptable_type," + type_name(field) + "}"
    return _offset_problem(field)


def _offset_problem(field: Field) -> str:
    if field.kind == "T" or field.kind in INTEGER_KINDS:
        return ""
    text = offset_text(field)
    if text is not None and (text in PLACES or interval_ms(text) > 0):
        return ""
    problem = "{invalid_stream_offset_arg,{" + type_name(field) + "," + field_term(field) + "}}"
    if text is not None and "0" <= text[:1] <= "9":
        return problem
    # here RabbitMQ dies, so the text is ours
    return problem + "; expected first, last, next, an offset, a timestamp or an interval such as 1h"


def offset_text(field: Field) -> str | None:
    """An offset in words: a place or an interval (RabbitMQ takes octets for text as well)."""
    value = field.value
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return value if isinstance(value, str) else None
