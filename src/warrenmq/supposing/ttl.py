"""The time to live that a message has of its own."""

from __future__ import annotations

from warrenmq.broker.expiration import read_expiration
from warrenmq.wire.replies import AmqpError


def ttl_of(text: str | None) -> int | None:
    """In ms; None: it does not expire, or was refused for it and is in no queue."""
    try:
        ttl = int(read_expiration(text))
    except AmqpError:
        return None
    return None if ttl < 0 else ttl
