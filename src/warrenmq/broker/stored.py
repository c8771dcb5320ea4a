"""A message read back from the log or the transient store. This is the one way: records in, messages out."""

from __future__ import annotations

from typing import final

from mypy_extensions import i64

from warrenmq.broker.message import Message, Origin, bcc_of, message_from, packed_keys_of, unpack_keys
from warrenmq.log.format import StoredMessage


@final
class Origins:
    """The origins of records; the last one is remembered, because the next has the same nearly always."""

    def __init__(self) -> None:
        self._last: Origin | None = None
        self._exchange: str = ""
        self._keys: bytes = b""

    def of(self, record: StoredMessage) -> Origin:
        keys = packed_keys_of(record)
        origin = self._last
        if origin is None or record.exchange != self._exchange or keys != self._keys:
            origin = Origin(record.exchange, unpack_keys(keys), bcc_of(record))
            self._last = origin
            self._exchange = record.exchange
            self._keys = keys
        return origin


def message_of(record: StoredMessage, origin: Origin, address: i64, persistent: bool) -> Message:
    """As it was published. ``address`` is where the log has it; below 0 the transient store does."""
    body = record.body
    message = message_from(origin, record.message_id, record.header, [body] if body else [], len(body), persistent)
    if address > 0:
        message.address = address
    return message
