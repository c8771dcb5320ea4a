"""x-delayed-message: an exchange of another type whose messages may wait.

Duty: which type is inside, and how long a message asks to wait. Not here: waiting. The walk only reports that a message
has to wait at this exchange; ``broker/delay`` keeps it and, when it is due, walks on from here.

Headers: ``x-delay`` in milliseconds, in any number type or as a decimal string; or ``x-deliver-at``, a timestamp (in
seconds) or an integer (in milliseconds since 1970). With both, ``x-delay`` counts. Where RabbitMQ's plugin differs
stands in ``docs/delayed.md``.
"""

from __future__ import annotations

import math
from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.records import BasicMessage, Binding, Destination, Exchange, ExchangeType, Matches
from warrenmq.wire.field_types import INTEGER_KINDS
from warrenmq.wire.fields import Field, Table
from warrenmq.wire.replies import PRECONDITION_FAILED, AmqpError

IMMEDIATE: Final = -1
# No cap a user could meet (73 million years); it keeps now + delay within 64 bits.
LONGEST: Final = 1 << 61
# arguments of the exchange and what they may say
_CHOICES: Final = {
    "x-delayed-mandatory": ["rabbitmq", "honest"],
    "x-delayed-header": ["keep", "negate"],
    "x-delayed-missed": ["skip", "catch-up"],
}


@final
class DelayedExchange(ExchangeType):
    """An exchange around one of another type, to which it leaves bindings and routing."""

    def __init__(self, inner: ExchangeType) -> None:
        self.inner: Final = inner

    def validate(self, exchange: Exchange) -> None:
        for name, choices in _CHOICES.items():
            field = exchange.arguments.get(name)
            if field is not None and field.value not in choices:
                said = f"invalid {name} '{shown(field)}': expected {' or '.join(choices)}"
                raise AmqpError(PRECONDITION_FAILED, said)
        self.inner.validate(exchange)

    def validate_binding(self, binding: Binding) -> None:
        self.inner.validate_binding(binding)

    def bind(self, binding: Binding) -> None:
        self.inner.bind(binding)

    def unbind(self, binding: Binding) -> None:
        self.inner.unbind(binding)

    def route(self, message: BasicMessage) -> list[Destination]:
        """Where a message goes that need not wait, or has waited."""
        return self.inner.route(message)

    def matched(self, message: BasicMessage) -> Matches:
        return self.inner.matched(message)

    def chooses(self) -> bool:
        return self.inner.chooses()

    def by_key_alone(self) -> bool:
        # whether it waits depends on headers
        return False


def delay_of(headers: Table) -> i64:
    """How many milliseconds the message asks to wait; ``IMMEDIATE`` when it does not. AmqpError when it is unclear."""
    field = headers.get("x-delay")
    if field is None:
        return IMMEDIATE
    return _milliseconds(field)


def deliver_at_of(headers: Table) -> i64:
    """When the message asks to be delivered, in milliseconds since 1970; ``IMMEDIATE`` when it does not ask."""
    field = headers.get("x-deliver-at")
    if field is None:
        return IMMEDIATE
    if field.kind == "T" and isinstance(field.value, int):
        return _bounded(field.value * 1000)
    if field.kind in INTEGER_KINDS and isinstance(field.value, int):
        return _bounded(field.value)
    said = f"invalid x-deliver-at '{shown(field)}': expected a timestamp or milliseconds since 1970"
    raise AmqpError(PRECONDITION_FAILED, said)


def has_to_wait(headers: Table, now_ms: i64) -> bool:
    """Whether a delayed exchange keeps this message at the given time, or does as it says (``delay/request.py``)."""
    if "x-delay-cancel" in headers or "x-delay-every" in headers or "x-delay-cron" in headers:
        return True
    if "x-delay-count" in headers or "x-delay-timezone" in headers:
        return True  # of a repetition that is not there: refused where the request is read
    if "x-delay" in headers:
        return delay_of(headers) > 0
    return deliver_at_of(headers) > now_ms


def _milliseconds(field: Field) -> i64:
    kind = field.kind
    value = field.value
    if kind in INTEGER_KINDS and isinstance(value, int):
        return _bounded(value)
    if (kind == "d" or kind == "f") and isinstance(value, float):
        if math.isnan(value) or value < 1.0:
            return IMMEDIATE
        return LONGEST if value >= LONGEST else _bounded(int(value))
    if kind == "S" or kind == "x":
        text = value if isinstance(value, str) else shown(field)
        digits = text[1:] if text.startswith(("+", "-")) else text
        if not digits.isascii() or not digits.isdigit():
            raise AmqpError(PRECONDITION_FAILED, f"invalid x-delay '{text}': expected a number of milliseconds")
        significant = digits.lstrip("0")
        if not significant or text.startswith("-"):
            return IMMEDIATE
        # however long, it is a number; but int() refuses more than a few thousand digits
        return LONGEST if len(significant) > 19 else _bounded(int(significant))
    return IMMEDIATE


def _bounded(value: int) -> i64:
    if value <= 0:
        return IMMEDIATE
    return LONGEST if value >= LONGEST else value


def shown(field: Field) -> str:
    value = field.value
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
