"""The property ``expiration``: a text that must be a number of milliseconds."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from warrenmq.wire.erlang import pretty_pair, string_term
from warrenmq.wire.methods import refused_publish
from warrenmq.wire.replies import PRECONDITION_FAILED, AmqpError

MAX_EXPIRATION: Final = 315_360_000_000  # ten years


def read_expiration(text: str | None) -> i64:
    """Per-message TTL in ms, -1 when there is none; 406 with RabbitMQ's term when it is no number."""
    if text is None:
        return -1
    digits: i64 = 0
    sign: i64 = 1 if text[:1] in ("-", "+") else 0
    while sign + digits < len(text) and "0" <= text[sign + digits] <= "9":
        digits += 1
    if digits == 0:
        raise _bad_expiration(text, "no_integer")
    value = int(text[: sign + digits])
    rest = text[sign + digits :]
    if rest:
        raise _bad_expiration(text, "leftover_string", string_term(rest))
    if value < 0:
        raise _bad_expiration(text, "value_negative", str(value))
    if value > MAX_EXPIRATION:
        raise _bad_expiration(text, "value_too_large", str(value))
    return value


def _bad_expiration(text: str, term: str, value: str = "") -> AmqpError:
    said = f"invalid expiration '{text}': "
    return refused_publish(PRECONDITION_FAILED, pretty_pair(said, term, value) if value else said + term)
