"""Queue arguments: which are known, what they may be, and what they come to together with a policy.

Duty: validate (with RabbitMQ 3.10's texts), compare for equivalence, merge. Not here: acting on them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.equivalence import INTEGER_KINDS, integer
from warrenmq.broker.records import Resource
from warrenmq.wire.fields import Field, Table, type_name
from warrenmq.wire.replies import AmqpError

MAX_EXPIRY: Final = 315_360_000_000  # ten years in ms, RabbitMQ's cap

CLASSIC: Final = "classic"
QUORUM: Final = "quorum"
STREAM: Final = "stream"

DROP_HEAD: Final = 0
REJECT_PUBLISH: Final = 1
REJECT_PUBLISH_DLX: Final = 2
OVERFLOW: Final = {"drop-head": DROP_HEAD, "reject-publish": REJECT_PUBLISH, "reject-publish-dlx": REJECT_PUBLISH_DLX}


def _integer(field: Field) -> str:
    return "" if field.kind in INTEGER_KINDS else f'"expected integer, got {type_name(field)}"'


def _number(field: Field, table: Table) -> str:
    return _integer(field)


def _non_negative(field: Field, table: Table) -> str:
    problem = _integer(field)
    if not problem and integer(field) < 0:
        return "{value_negative," + str(integer(field)) + "}"
    return problem


def _duration(field: Field, table: Table) -> str:
    problem = _non_negative(field, table)
    if not problem and integer(field) > MAX_EXPIRY:
        return "{value_too_large," + str(integer(field)) + "}"
    return problem


def _expires(field: Field, table: Table) -> str:
    problem = _integer(field)
    if not problem and integer(field) == 0:
        return "{value_zero,0}"
    return problem or _duration(field, table)


def _max_priority(field: Field, table: Table) -> str:
    problem = _non_negative(field, table)
    if not problem and integer(field) > 255:
        return "{max_value_exceeded," + str(integer(field)) + "}"
    return problem


def _string(field: Field, table: Table) -> str:
    return "" if field.kind == "S" else "{unacceptable_type," + type_name(field) + "}"


def _dead_letter_key(field: Field, table: Table) -> str:
    if field.kind == "S" and "x-dead-letter-exchange" not in table:
        return "routing_key_but_no_dlx_defined"
    return _string(field, table)


def _overflow(field: Field, table: Table) -> str:
    return _string(field, table) or ("" if field.value in OVERFLOW else "invalid_overflow")


def _bool(field: Field, table: Table) -> str:
    return "" if field.kind == "t" else "{unacceptable_type," + type_name(field) + "}"


def _mode(field: Field, table: Table) -> str:
    return _string(field, table) or (
        "" if field.value in ("default", "lazy") else f"\"unsupported queue mode '{field.value}'\""
    )


def _queue_version(field: Field, table: Table) -> str:
    problem = _integer(field)
    if not problem and integer(field) not in (1, 2):
        return f"\"unsupported queue version '{integer(field)}'\""
    return problem


def _queue_type(field: Field, table: Table) -> str:
    if field.kind != "S":
        return "{unacceptable_type," + type_name(field) + "}"
    return "" if field.value in (CLASSIC, QUORUM, STREAM) else f"\"unsupported queue type '{field.value}'\""


def _age(field: Field, table: Table) -> str:
    if field.kind != "S":
        return "{unacceptable_type," + type_name(field) + "}"
    return "" if max_age_ms(str(field.value)) >= 0 else "invalid_max_age"


_UNITS: Final = {"Y": 365 * 86400, "M": 30 * 86400, "D": 86400, "h": 3600, "m": 60, "s": 1}


def max_age_ms(text: str) -> int:
    """``7D`` as milliseconds, -1 when it is no age."""
    if len(text) < 2 or text[-1] not in _UNITS or not text[:-1].isdigit():
        return -1
    return int(text[:-1]) * _UNITS[text[-1]] * 1000


_CHECKS: Final[list[tuple[str, Callable[[Field, Table], str]]]] = [
    ("x-expires", _expires),
    ("x-message-ttl", _duration),
    ("x-dead-letter-exchange", _string),
    ("x-dead-letter-routing-key", _dead_letter_key),
    ("x-max-length", _non_negative),
    ("x-max-length-bytes", _non_negative),
    ("x-max-priority", _max_priority),
    ("x-overflow", _overflow),
    ("x-queue-mode", _mode),
    ("x-queue-version", _queue_version),
    ("x-single-active-consumer", _bool),
    ("x-queue-type", _queue_type),
    ("x-max-age", _age),
    ("x-stream-max-segment-size-bytes", _non_negative),
    ("x-delivery-limit", _number),
]

# what is compared when a queue is declared again
KNOWN: Final = [name for name, _ in _CHECKS]

_COMMON: Final = ["x-expires", "x-message-ttl", "x-dead-letter-exchange", "x-dead-letter-routing-key", "x-max-length"]
_COMMON_TOO: Final = ["x-max-length-bytes", "x-overflow", "x-single-active-consumer", "x-queue-type"]
OF_TYPE: Final[dict[str, list[str]]] = {
    CLASSIC: [*_COMMON, *_COMMON_TOO, "x-max-priority", "x-queue-mode", "x-queue-version"],
    QUORUM: [*_COMMON, *_COMMON_TOO, "x-delivery-limit"],
    STREAM: ["x-max-length-bytes", "x-queue-type", "x-max-age", "x-stream-max-segment-size-bytes"],
}


def queue_type(arguments: Table) -> str:
    field = arguments.get("x-queue-type")
    return str(field.value) if field is not None and field.kind == "S" else CLASSIC


def validate(name: Resource, arguments: Table, durable: bool, exclusive: bool, auto_delete: bool = False) -> None:
    """Raise 406 with RabbitMQ's text for the first argument that is not acceptable."""
    if queue_type(arguments) in (QUORUM, STREAM):
        if auto_delete:
            raise AmqpError(406, f"invalid property 'auto-delete' for {name}")
        if exclusive:
            raise AmqpError(406, f"invalid property 'exclusive-owner' for {name}")
        if not durable:
            raise AmqpError(406, f"invalid property 'non-durable' for {name}")
    type = queue_type(arguments)
    known = OF_TYPE.get(type, KNOWN)
    for key in KNOWN:
        if key in arguments and key not in known:
            raise AmqpError(406, f"invalid arg '{key}' for {name} of queue type rabbit_{type}_queue")
    for key, check in _CHECKS:
        field = arguments.get(key)
        if field is not None:
            problem = check(field, arguments)
            if problem:
                raise AmqpError(406, f"invalid arg '{key}' for {name}: {problem}")


@final
class QueueSettings:
    """What arguments and policy come to. -1 = not set."""

    def __init__(self) -> None:
        self.ttl: i64 = -1
        self.expires: i64 = -1
        self.max_length: i64 = -1
        self.max_bytes: i64 = -1
        self.overflow: i64 = DROP_HEAD
        self.dead_letter_exchange: str | None = None
        self.dead_letter_routing_key: str | None = None
        self.delivery_limit: i64 = -1
        self.consumer_timeout: i64 = -1
        self.max_age: i64 = -1
        self.segment_bytes: i64 = -1


def _least(arguments: Table, key: str, policy: dict[str, object], policy_key: str) -> i64:
    """Numeric limits: the smaller of argument and policy."""
    value: i64 = -1
    field = arguments.get(key)
    if field is not None and field.kind in INTEGER_KINDS:
        value = integer(field)
    other = policy.get(policy_key)
    if isinstance(other, int) and not isinstance(other, bool) and other >= 0 and (value < 0 or other < value):
        value = other
    return value


def _text(arguments: Table, key: str, policy: dict[str, object], policy_key: str) -> str | None:
    """Names: the argument beats the policy."""
    field = arguments.get(key)
    if field is not None and isinstance(field.value, str):
        return field.value
    other = policy.get(policy_key)
    return other if isinstance(other, str) else None


def settings(arguments: Table, policy: dict[str, object]) -> QueueSettings:
    s = QueueSettings()
    s.ttl = _least(arguments, "x-message-ttl", policy, "message-ttl")
    s.expires = _least(arguments, "x-expires", policy, "expires")
    s.max_length = _least(arguments, "x-max-length", policy, "max-length")
    s.max_bytes = _least(arguments, "x-max-length-bytes", policy, "max-length-bytes")
    s.overflow = OVERFLOW.get(_text(arguments, "x-overflow", policy, "overflow") or "drop-head", DROP_HEAD)
    s.dead_letter_exchange = _text(arguments, "x-dead-letter-exchange", policy, "dead-letter-exchange")
    s.dead_letter_routing_key = _text(arguments, "x-dead-letter-routing-key", policy, "dead-letter-routing-key")
    s.delivery_limit = _least(arguments, "x-delivery-limit", policy, "delivery-limit")
    s.consumer_timeout = _least(arguments, "x-consumer-timeout", policy, "consumer-timeout")
    age = _text(arguments, "x-max-age", policy, "max-age")
    s.max_age = -1 if age is None else max_age_ms(age)
    s.segment_bytes = _least(arguments, "x-stream-max-segment-size-bytes", policy, "stream-max-segment-size-bytes")
    return s


