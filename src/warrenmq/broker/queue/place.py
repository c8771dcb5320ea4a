"""Where in a queue a message waits, for somebody who only looks: its position, and where its content is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

if TYPE_CHECKING:
    from warrenmq.broker.message import Message


@final
class Place:
    """The content is in memory (``message``), in the log (a positive address) or in the transient store (negative)."""

    def __init__(
        self, position: i64, size: i64, redelivered: bool, expires_at: i64, address: i64, message: Message | None
    ) -> None:
        self.position: Final = position
        self.size: Final = size
        self.redelivered: Final = redelivered
        self.expires_at: Final = expires_at
        self.address: Final = address
        self.message: Final = message


def by_position(place: Place) -> int:
    return place.position
