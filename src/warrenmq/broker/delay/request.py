"""What a message asks of a delayed exchange, read from its headers.

    x-delay           milliseconds to wait                  x-deliver-at   or the moment (``exchange/delayed.py``)
    x-delay-id        the publisher's own id; a second message with a live id replaces the first
    x-delay-cancel    take the message with this own id out of the schedule; nothing is routed
    x-delay-every     milliseconds between repetitions      x-delay-cron   or five fields, in the zone x-delay-timezone
    x-delay-count     how many deliveries in all            x-delay-missed what to do about missed ones: skip, catch-up

Duty: reading and refusing (406 that names the header and its value). Not here: who may (``delays.py``), waiting.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.delay.cron import Cron, CronError
from warrenmq.broker.exchange.delayed import IMMEDIATE, LONGEST, delay_of, deliver_at_of, shown
from warrenmq.wire.field_types import INTEGER_KINDS
from warrenmq.wire.fields import Table
from warrenmq.wire.methods import refused_publish
from warrenmq.wire.replies import PRECONDITION_FAILED, AmqpError

SKIP: Final = "skip"
CATCH_UP: Final = "catch-up"
LONGEST_NAME: Final = 255  # bytes


@final
class Request:
    """A publisher's wish: when, how often, under which name, and until when."""

    def __init__(self) -> None:
        self.due: i64 = 0
        self.name: str = ""
        self.cancel: str = ""
        self.every: i64 = 0
        self.cron: Cron | None = None
        self.count: i64 = 0  # 0: no end
        self.missed: str = ""  # "": as the exchange says

    def repeats(self) -> bool:
        return self.every > 0 or self.cron is not None

    def next_due(self, due: i64, now: i64, catch_up: bool) -> i64:
        """When the repetition after the one of ``due`` comes. Without catching up it is never in the past."""
        cron = self.cron
        if cron is not None:
            return cron.next_after(due if catch_up or due > now else now)
        following = due + self.every
        if following <= now and not catch_up:
            following += (now - following) // self.every * self.every + self.every
        return following


def read(headers: Table, now: i64) -> Request:
    """Everything the headers ask for. AmqpError 406 when some value makes no sense."""
    request = Request()
    request.due = due_of(headers, now)
    for name in headers:
        if name.startswith("x-delay-"):
            _read_others(request, headers, now)
            break
    return request


def read_due(headers: Table, now: i64) -> Request:
    """Only when: for messages the broker itself sends on, such as dead letters. Nonsense means now."""
    request = Request()
    try:
        request.due = due_of(headers, now)
    except AmqpError:
        request.due = now
    return request


def due_of(headers: Table, now: i64) -> i64:
    """When the message asks to be delivered; now at the earliest."""
    if "x-delay" in headers:
        delay = delay_of(headers)
        return now + delay if delay > 0 else now
    at = deliver_at_of(headers)
    return at if at > now else now


def _read_others(request: Request, headers: Table, now: i64) -> None:
    request.cancel = _name(headers, "x-delay-cancel")
    if request.cancel:
        return
    request.name = _name(headers, "x-delay-id")
    every = _count(headers, "x-delay-every")
    expression = _text(headers, "x-delay-cron")
    zone = _text(headers, "x-delay-timezone")
    if expression:
        if every:
            raise refused_publish(PRECONDITION_FAILED, "x-delay-every and x-delay-cron exclude one another")
        try:
            request.cron = Cron(expression, zone or "UTC")
        except CronError as error:
            raise refused_publish(PRECONDITION_FAILED, f"invalid x-delay-cron '{expression}': {error}") from None
    elif zone:
        raise refused_publish(PRECONDITION_FAILED, "x-delay-timezone needs x-delay-cron")
    request.every = every
    request.count = _count(headers, "x-delay-count")
    if request.count and not request.repeats():
        raise refused_publish(PRECONDITION_FAILED, "x-delay-count needs x-delay-every or x-delay-cron")
    request.missed = _text(headers, "x-delay-missed")
    if request.missed and request.missed != SKIP and request.missed != CATCH_UP:
        raise _invalid("x-delay-missed", request.missed, f"'{SKIP}' or '{CATCH_UP}'")
    if request.repeats() and delay_of(headers) == IMMEDIATE and deliver_at_of(headers) == IMMEDIATE:
        # no first time asked for: it begins with the first repetition
        cron = request.cron
        request.due = now + every if cron is None else cron.next_after(now)


def _invalid(name: str, shown: str, expected: str) -> AmqpError:
    return refused_publish(PRECONDITION_FAILED, f"invalid {name} '{shown}': expected {expected}")


def _text(headers: Table, name: str) -> str:
    field = headers.get(name)
    if field is None:
        return ""
    if field.kind != "S" or not isinstance(field.value, str) or not field.value:
        raise _invalid(name, shown(field), "a text")
    return field.value


def _name(headers: Table, name: str) -> str:
    text = _text(headers, name)
    if len(text.encode("utf-8", "surrogateescape")) > LONGEST_NAME:
        raise _invalid(name, text[:40] + "...", f"a text of at most {LONGEST_NAME} bytes")
    return text


def _count(headers: Table, name: str) -> i64:
    field = headers.get(name)
    if field is None:
        return 0
    value = field.value
    if field.kind == "S" and isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        value = int(value)
    elif field.kind not in INTEGER_KINDS:
        raise _invalid(name, shown(field), "a positive whole number")
    if not isinstance(value, int) or value <= 0 or value > LONGEST:
        raise _invalid(name, shown(field), "a positive whole number")
    return value
