"""Deliveries that are never acknowledged: after the consumer timeout their channel is closed."""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.connection.connections import Connections
from warrenmq.broker.services.services import Services
from warrenmq.broker.services.timers import Timer
from warrenmq.wire.replies import PRECONDITION_FAILED, AmqpError

INTERVAL: Final = 60_000  # RabbitMQ looks once a minute


@final
class AckTimeout(Timer):
    """The timer that looks for deliveries held longer than the consumer timeout and closes their channels."""

    def __init__(self, services: Services, connections: Connections) -> None:
        super().__init__()
        self._services: Final = services
        self._connections: Final = connections

    def start(self) -> None:
        self._services.timers.arm(self, self._services.turn.now + INTERVAL)

    def fire(self) -> None:
        services = self._services
        for connection in self._connections:
            for channel in list(connection.channels.values()):
                oldest = channel.outstanding.unacked.oldest()
                if oldest is None:
                    continue
                timeout: i64 = services.limits.consumer_timeout
                own = oldest.queue.settings.consumer_timeout
                if own > 0:
                    timeout = own
                if timeout > 0 and services.turn.now - oldest.delivered_at > timeout:
                    error = AmqpError(
                        PRECONDITION_FAILED,
                        f"delivery acknowledgement on channel {channel.number} timed out. "
                        f"Timeout value used: {timeout} ms. This timeout value can be configured, "
                        "see consumers doc guide to learn more",
                    )
                    connection.close_channel(channel, error)
        self.start()
