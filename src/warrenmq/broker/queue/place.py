"""Where in a queue a message is, for somebody who only looks: its position, its content, and who has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

if TYPE_CHECKING:
    from warrenmq.broker.message import Message


@final
class Held:
    """Why a message does not wait for its turn: somebody has it, or it waits for something else."""

    def __init__(self, state: str, since: i64, about: dict[str, object]) -> None:
        self.state: Final = state
        self.since: Final = since  # 0: that is not known
        self.about: Final = about


@final
class Place:
    """The content is in memory (``message``), in the log (a positive address) or in the transient store (negative)."""

    def __init__(
        self,
        position: i64,
        size: i64,
        redelivered: bool,
        expires_at: i64,
        address: i64,
        message: Message | None,
        held: Held | None = None,
    ) -> None:
        self.position: Final = position
        self.size: Final = size
        self.redelivered: Final = redelivered
        self.expires_at: Final = expires_at
        self.address: Final = address
        self.message: Final = message
        self.held: Final = held  # None: it waits


def by_position(place: Place) -> int:
    return place.position
