"""What the log says, handed on to whom it concerns."""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.core import Core
from warrenmq.log.damage import named
from warrenmq.log.settings import Listener


@final
class LogListener(Listener):
    """The broker's ear to the log."""

    def __init__(self, broker: Core) -> None:
        self._broker: Final = broker
        self._durability: Final = broker.durability

    def synced(self, batch: i64) -> None:
        self._durability.synced(batch)

    def failed(self, batch: i64, reason: str) -> None:
        self._durability.failed(batch, reason)

    def recovered_service(self) -> None:
        self._durability.recovered()

    def damaged(self, address: i64, problem: str) -> None:
        """Before anybody came to it: whoever holds it will set it aside."""
        fields: dict[str, object] = {
            "place": named(address),
            "queue": ", ".join(self._broker.names_of_damaged(address)),
            "reason": problem,
            "id": f"log-{address}",
        }
        self._broker.services.notes.event("error", "message_damaged", fields)

    def segment_damaged(self, segment: i64, problem: str) -> None:
        fields: dict[str, object] = {"segment": int(segment), "reason": problem}
        self._broker.services.notes.event("error", "segment_damaged", fields)
