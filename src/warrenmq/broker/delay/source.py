"""Something where messages wait for their time, as whoever looks around knows it."""

from __future__ import annotations

from mypy_extensions import i64, trait

from warrenmq.log.format import StoredMessage
from warrenmq.log.log import Log


@trait
class Source:
    """Messages in order of (due time, key): the schedule of an exchange, or what waits in a queue for its retry."""

    def number(self) -> i64:
        """Tells it from all others."""
        raise NotImplementedError

    def waiting(self) -> i64:
        """How many wait."""
        raise NotImplementedError

    def after(self, due: i64, key: i64, most: i64) -> list[tuple[int, int]]:
        """The (due, key) behind this one, which need not be there, in order, at most so many."""
        raise NotImplementedError

    def peek(self, key: i64, most: i64) -> StoredMessage:
        """The data, and of a long body no more than its first pieces, as many as make so many octets. Raises LogError
        when it cannot be read."""
        raise NotImplementedError

    def id_of(self, due: i64, key: i64) -> str:
        """What the outside world calls it."""
        raise NotImplementedError


def peek_at(log: Log, address: i64, most: i64) -> StoredMessage:
    """What the log has there, and of a long body no more than its first pieces, as many as make so many octets."""
    parts = log.body_parts(address)
    if len(parts) == 0:
        return log.read(address)
    head = log.read_head(address)
    pieces: list[bytes] = []
    size: i64 = 0
    while size < most and len(pieces) < len(parts):
        piece = log.read_part(address, parts[len(pieces)])
        pieces.append(piece)
        size += len(piece)
    return StoredMessage(head.message_id, head.header, b"".join(pieces), head.exchange, head.routing_keys, head.flags)
