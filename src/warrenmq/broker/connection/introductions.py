"""What clients say of themselves in ``connection.start-ok``, kept once for all that say it in the same octets.

Duty: that method with its table of client properties, which is most of it: the connections of one application send the
same one each time. Not here: what else is in the method, a password among it; nothing of that is kept.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.wire.fields import Table
from warrenmq.wire.methods import Method, decode_method
from warrenmq.wire.octets import read_long
from warrenmq.wire.replies import AmqpError

START_OK: Final = b"\x00\x0a\x00\x0b"
NOTHING: Final = b"\x00\x00\x00\x00"  # a table without entries
MOST: Final = 32  # tables that are kept
LONGEST: Final = 1024  # octets of one


@final
class Introductions:
    """The tables that clients have sent, by their octets. Nobody changes them."""

    def __init__(self) -> None:
        self._known: dict[bytes, Table] = {}

    def __len__(self) -> int:
        return len(self._known)

    def decoded(self, payload: bytes) -> Method:
        """A method of channel 0 before the login, as ``decode_method`` says it."""
        size: i64 = len(payload)
        if size < 8 or payload[:4] != START_OK:
            return decode_method(payload)
        end: i64 = 8 + read_long(payload, 4, size)
        if end > size or end > LONGEST:
            return decode_method(payload)
        said = payload[4:end]
        table = self._known.get(said)
        if table is not None:
            try:
                method = decode_method(START_OK + NOTHING + payload[end:])
            except AmqpError:
                return decode_method(payload)  # which says what is wrong with all of it
            method.set("client_properties", table)
            return method
        method = decode_method(payload)
        if len(self._known) >= MOST:
            self._known.clear()  # a stranger may send a new one each time
        self._known[said] = method.table("client_properties")
        return method
