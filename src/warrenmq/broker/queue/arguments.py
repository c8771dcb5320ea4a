"""Queue arguments: which are known, what they may be, and what they come to together with a policy.

Duty: validate (with RabbitMQ 3.10's texts), compare for equivalence, merge. Not here: acting on them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.equivalence import integer
from warrenmq.broker.records import Resource
from warrenmq.log.levels import level_of
from warrenmq.wire.field_types import INTEGER_KINDS
from warrenmq.wire.fields import Field, Table, type_name
from warrenmq.wire.replies import PRECONDITION_FAILED, AmqpError

MAX_EXPIRY: Final = 315_360_000_000  # ten years in ms, RabbitMQ's cap
MAX_NUMBER: Final = 1 << 61  # a policy may say more; a time so far away fits into 64 bits

CLASSIC: Final = "classic"
QUORUM: Final = "quorum"
STREAM: Final = "stream"

DROP_HEAD: Final = 0
REJECT_PUBLISH: Final = 1
REJECT_PUBLISH_DLX: Final = 2
OVERFLOW: Final = {"drop-head": DROP_HEAD, "reject-publish": REJECT_PUBLISH, "reject-publish-dlx": REJECT_PUBLISH_DLX}


MAX_SEGMENT_BYTES: Final = 3_000_000_000  # of a stream
MAX_AGE: Final = 1 << 53  # ms; more is for ever as well
UNITS: Final = {"Y": 365 * 86400, "M": 30 * 86400, "D": 86400, "h": 3600, "m": 60, "s": 1}
LEADER_LOCATORS: Final = ("client-local", "balanced", "random", "least-leaders")
MASTER_LOCATORS: Final = ("client-local", "min-masters", "random")
DEAD_LETTER_STRATEGIES: Final = ("at-most-once", "at-least-once")


def _integer(field: Field) -> str:
    return "" if field.kind in INTEGER_KINDS else f'"expected integer, got {type_name(field)}"'


def _non_negative(field: Field, table: Table) -> str:
    problem = _integer(field)
    if not problem and integer(field) < 0:
        return "{value_negative," + str(integer(field)) + "}"
    return problem


def _positive(field: Field, table: Table) -> str:
    problem = _integer(field)
    if not problem and integer(field) == 0:
        return "{value_zero,0}"
    return problem or _non_negative(field, table)


def _duration(field: Field, table: Table) -> str:
    problem = _non_negative(field, table)
    if not problem and integer(field) > MAX_EXPIRY:
        return "{value_too_large," + str(integer(field)) + "}"
    return problem


def _expires(field: Field, table: Table) -> str:
    return _positive(field, table) or _duration(field, table)


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


def _dead_letter_strategy(field: Field, table: Table) -> str:
    return _string(field, table) or ("" if field.value in DEAD_LETTER_STRATEGIES else "invalid_dlx_strategy")


def _overflow(field: Field, table: Table) -> str:
    return _string(field, table) or ("" if field.value in OVERFLOW else "invalid_overflow")


def _bool(field: Field, table: Table) -> str:
    return "" if field.kind == "t" else "{unacceptable_type," + type_name(field) + "}"


def _mode(field: Field, table: Table) -> str:
    return _string(field, table) or (
        "" if field.value in ("default", "lazy") else f"\"unsupported queue mode '{field.value}'\""
    )


def _queue_version(field: Field, table: Table) -> str:
    problem = _non_negative(field, table)
    if not problem and integer(field) not in (1, 2):
        return f"\"unsupported queue version '{integer(field)}'\""
    return problem


def _queue_type(field: Field, table: Table) -> str:
    return _string(field, table) or (
        "" if field.value in (CLASSIC, QUORUM, STREAM) else f"\"unsupported queue type '{field.value}'\""
    )


def _age(field: Field, table: Table) -> str:
    return _string(field, table) or ("" if interval_ms(str(field.value)) > 0 else "invalid_max_age")


def _leader_locator(field: Field, table: Table) -> str:
    return _string(field, table) or ("" if field.value in LEADER_LOCATORS else "invalid_queue_locator_arg")


def _master_locator(field: Field, table: Table) -> str:
    """RabbitMQ does not look, and dies of what it does not know."""
    return _string(field, table) or ("" if field.value in MASTER_LOCATORS else "invalid_queue_locator_arg")


def interval_ms(text: str) -> int:
    """``7D`` as milliseconds, -1 when it is no interval."""
    number = text[:-1]
    if not number or text[-1] not in UNITS or not (number.isascii() and number.isdigit()):
        return -1
    if len(number) > 18:
        return MAX_AGE
    return min(int(number) * UNITS[text[-1]] * 1000, MAX_AGE)


_CHECKS: Final[list[tuple[str, Callable[[Field, Table], str]]]] = [
    ("x-expires", _expires),
    ("x-message-ttl", _duration),
    ("x-dead-letter-exchange", _string),
    ("x-dead-letter-routing-key", _dead_letter_key),
    ("x-dead-letter-strategy", _dead_letter_strategy),
    ("x-max-length", _non_negative),
    ("x-max-length-bytes", _non_negative),
    ("x-max-in-memory-length", _non_negative),
    ("x-max-in-memory-bytes", _non_negative),
    ("x-max-priority", _max_priority),
    ("x-overflow", _overflow),
    ("x-queue-mode", _mode),
    ("x-queue-version", _queue_version),
    ("x-single-active-consumer", _bool),
    ("x-max-age", _age),
    ("x-stream-max-segment-size-bytes", _non_negative),
    ("x-initial-cluster-size", _positive),
    ("x-quorum-initial-group-size", _positive),
    ("x-queue-leader-locator", _leader_locator),
    ("x-queue-master-locator", _master_locator),
    ("x-ack-deadline", _expires),
]

# The arguments that each type has, in the order in which they are compared when a queue is declared again.
# ``x-delivery-limit`` may have any value; one that is no number is no limit.
OF_TYPE: Final[dict[str, list[str]]] = {
    CLASSIC: [
        "x-expires",
        "x-message-ttl",
        "x-dead-letter-exchange",
        "x-dead-letter-routing-key",
        "x-max-length",
        "x-max-length-bytes",
        "x-max-priority",
        "x-overflow",
        "x-queue-mode",
        "x-queue-version",
        "x-single-active-consumer",
        "x-queue-type",
        "x-queue-master-locator",
        "x-ack-deadline",
    ],
    QUORUM: [
        "x-dead-letter-exchange",
        "x-dead-letter-routing-key",
        "x-dead-letter-strategy",
        "x-expires",
        "x-max-length",
        "x-max-length-bytes",
        "x-max-in-memory-length",
        "x-max-in-memory-bytes",
        "x-overflow",
        "x-single-active-consumer",
        "x-queue-type",
        "x-quorum-initial-group-size",
        "x-delivery-limit",
        "x-message-ttl",
        "x-queue-leader-locator",
        "x-ack-deadline",
    ],
    STREAM: [
        "x-max-length-bytes",
        "x-queue-type",
        "x-max-age",
        "x-stream-max-segment-size-bytes",
        "x-initial-cluster-size",
        "x-queue-leader-locator",
    ],
}

_KNOWN: Final = frozenset([key for keys in OF_TYPE.values() for key in keys])


def queue_type(arguments: Table) -> str:
    field = arguments.get("x-queue-type")
    return str(field.value) if field is not None and field.kind == "S" else CLASSIC


def validate(name: Resource, arguments: Table, durable: bool, exclusive: bool, auto_delete: bool = False) -> None:
    """Raise 406 with RabbitMQ's text for the first thing that is not acceptable, in RabbitMQ's order: the type, the
    values of the arguments the type has, arguments it does not have, flags it does not have."""
    _check("x-queue-type", _queue_type, name, arguments)
    type = queue_type(arguments)
    has = OF_TYPE[type]
    for key, check in _CHECKS:
        if key in has:
            _check(key, check, name, arguments)
    for key in arguments:  # in the client's order
        if key in _KNOWN and key not in has:
            raise AmqpError(PRECONDITION_FAILED, f"invalid arg '{key}' for {name} of queue type rabbit_{type}_queue")
    if type in (QUORUM, STREAM):
        if auto_delete:
            raise AmqpError(PRECONDITION_FAILED, f"invalid property 'auto-delete' for {name}")
        if exclusive:
            raise AmqpError(PRECONDITION_FAILED, f"invalid property 'exclusive-owner' for {name}")
        if not durable:
            raise AmqpError(PRECONDITION_FAILED, f"invalid property 'non-durable' for {name}")
    segment = arguments.get("x-stream-max-segment-size-bytes")
    if segment is not None and integer(segment) > MAX_SEGMENT_BYTES:
        raise AmqpError(PRECONDITION_FAILED, "Exceeded max value for x-stream-max-segment-size-bytes")


def _check(key: str, check: Callable[[Field, Table], str], name: Resource, arguments: Table) -> None:
    field = arguments.get(key)
    if field is not None:
        problem = check(field, arguments)
        if problem:
            raise AmqpError(PRECONDITION_FAILED, f"invalid arg '{key}' for {name}: {problem}")


@final
class QueueSettings:
    """The settings that arguments and policy come to. -1 = not set."""

    def __init__(self) -> None:
        self.ttl: i64 = -1
        self.expires: i64 = -1
        self.max_length: i64 = -1
        self.max_bytes: i64 = -1
        self.overflow: i64 = DROP_HEAD
        self.dead_letter_exchange: str | None = None
        self.dead_letter_routing_key: str | None = None
        self.at_least_once: bool = False  # the strategy that is asked for; whether it can be had is the queue's to say
        self.delivery_limit: i64 = -1
        self.consumer_timeout: i64 = -1
        self.ack_deadline: i64 = -1
        self.retry_delay: i64 = -1
        self.retry_max_delay: i64 = -1
        self.retry_jitter: i64 = -1  # percent
        self.retry_limit: i64 = -1
        self.max_age: i64 = -1
        self.segment_bytes: i64 = -1
        self.journal: i64 = -1  # a level of the journal
        self.journal_sample: i64 = -1


def _least(arguments: Table, key: str, policy: dict[str, object], policy_key: str) -> i64:
    """Numeric limits: the smaller of argument and policy."""
    value: i64 = -1
    field = arguments.get(key)
    if field is not None and field.kind in INTEGER_KINDS:
        value = integer(field)
    other = policy.get(policy_key)
    if isinstance(other, int) and not isinstance(other, bool) and other >= 0 and (value < 0 or other < value):
        value = min(other, MAX_NUMBER)
    return value


def _text(arguments: Table, key: str, policy: dict[str, object], policy_key: str) -> str | None:
    """Names: the argument beats the policy."""
    field = arguments.get(key)
    if field is not None and isinstance(field.value, str):
        return field.value
    other = policy.get(policy_key)
    return other if isinstance(other, str) else None


def _delivery_limit(arguments: Table, policy: dict[str, object]) -> i64:
    """As ``_least``, with what RabbitMQ makes of the values that it does not check: a count is never above what is no
    number, is above a fraction when it is above its whole part, and is always above a negative number."""
    field = arguments.get("x-delivery-limit")
    if field is None or field.kind not in INTEGER_KINDS + "fd":
        return _least({}, "", policy, "delivery-limit")
    given = field.value
    whole = min(max(given, 0), MAX_EXPIRY) if isinstance(given, (int, float)) and given == given else 0
    return _least({"": Field("l", int(whole))}, "", policy, "delivery-limit")


def settings(arguments: Table, policy: dict[str, object]) -> QueueSettings:
    s = QueueSettings()
    s.ttl = _least(arguments, "x-message-ttl", policy, "message-ttl")
    s.expires = _least(arguments, "x-expires", policy, "expires")
    s.max_length = _least(arguments, "x-max-length", policy, "max-length")
    s.max_bytes = _least(arguments, "x-max-length-bytes", policy, "max-length-bytes")
    s.overflow = OVERFLOW.get(_text(arguments, "x-overflow", policy, "overflow") or "drop-head", DROP_HEAD)
    s.dead_letter_exchange = _text(arguments, "x-dead-letter-exchange", policy, "dead-letter-exchange")
    s.dead_letter_routing_key = _text(arguments, "x-dead-letter-routing-key", policy, "dead-letter-routing-key")
    s.at_least_once = _text(arguments, "x-dead-letter-strategy", policy, "dead-letter-strategy") == "at-least-once"
    s.delivery_limit = _delivery_limit(arguments, policy)
    s.consumer_timeout = _least(arguments, "x-consumer-timeout", policy, "consumer-timeout")
    s.retry_delay = min(_least({}, "", policy, "retry-delay"), MAX_EXPIRY)
    s.retry_max_delay = min(_least({}, "", policy, "retry-max-delay"), MAX_EXPIRY)
    s.retry_jitter = _least({}, "", policy, "retry-jitter")
    s.retry_limit = _least({}, "", policy, "retry-limit")
    s.journal = level_of(policy.get("journal"))
    s.journal_sample = _least({}, "", policy, "journal-sample")
    s.ack_deadline = _least(arguments, "x-ack-deadline", policy, "ack-deadline")
    age = _text(arguments, "x-max-age", policy, "max-age")
    s.max_age = -1 if age is None else interval_ms(age)
    s.segment_bytes = _least(arguments, "x-stream-max-segment-size-bytes", policy, "stream-max-segment-size-bytes")
    return s
