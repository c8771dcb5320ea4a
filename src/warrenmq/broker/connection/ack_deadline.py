"""Deliveries that missed the deadline of their queue: each goes back by itself, and its channel goes on.

Duty: one look at all channels, a bounded number of deliveries at a time. The default, a channel that is closed after
the consumer timeout, is ``ack_timeout.py``.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.connection.connections import Connections
from warrenmq.broker.services.deadlines import Sweeper
from warrenmq.broker.services.services import Services

LOOKS: Final = 20_000  # deliveries looked at in one turn, at most
LATE: Final = 1000  # deliveries given back in one turn, at most


@final
class AckDeadlines(Sweeper):
    """The look at what all clients hold."""

    def __init__(self, services: Services, connections: Connections) -> None:
        self._services: Final = services
        self._connections: Final = connections

    def sweep(self) -> i64:
        services = self._services
        now = services.turn.now
        looks: i64 = LOOKS
        late: i64 = LATE
        found: i64 = -1
        for connection in list(self._connections):
            for channel in list(connection.channels.values()):
                outstanding = channel.outstanding
                if outstanding.unacked.count == 0:
                    continue
                watch = outstanding.watched()
                looks -= watch.look(services.deadlines.generation, looks)
                tags = watch.take_late(now, late)
                late -= len(tags)
                if tags:
                    services.deadlines.missed += len(tags)
                    outstanding.give_back_late(tags)
                if looks <= 0 or late <= 0:
                    return 0
                due = watch.next_due()
                if due >= 0 and (found < 0 or due < found):
                    found = due
        return found
