"""Answers as JSON. Duty: any octets a client may have sent have a form in it; names AMQP allows need not be UTF-8."""

from __future__ import annotations

from typing import Any

import msgspec

from warrenmq.wire.fields import printable


def encode(value: Any) -> bytes:
    """JSON; what is no UTF-8 (surrogate escapes stand for it) shows as U+FFFD, as in RabbitMQ's answers."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(_readable(msgspec.to_builtins(value)))


def _readable(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {_readable(key): _readable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_readable(item) for item in value]
    return value
