"""Deliveries that are never acknowledged: after the consumer timeout their channel is closed."""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.connection.connections import Connections
from warrenmq.broker.core import Core
from warrenmq.broker.services.timers import Timer
from warrenmq.wire.replies import PRECONDITION_FAILED, AmqpError

INTERVAL: Final = 60_000  # RabbitMQ looks once a minute


@final
class AckTimeout(Timer):
    """The timer that looks for deliveries held longer than the consumer timeout and closes their channels."""

    def __init__(self, core: Core, connections: Connections) -> None:
        super().__init__()
        self._core: Final = core
        self._connections: Final = connections

    def start(self) -> None:
        self._core.timers.arm(self, self._core.turn.now + INTERVAL)

    def fire(self) -> None:
        core = self._core
        for connection in self._connections:
            for channel in list(connection.channels.values()):
                oldest = channel.outstanding.unacked.oldest()
                if oldest is None:
                    continue
                timeout: i64 = core.limits.consumer_timeout
                own = oldest.queue.settings.consumer_timeout
                if own > 0:
                    timeout = own
                if timeout > 0 and core.turn.now - oldest.delivered_at > timeout:
                    error = AmqpError(
                        PRECONDITION_FAILED,
                        f"delivery acknowledgement on channel {channel.number} timed out. "
                        f"Timeout value used: {timeout} ms. This timeout value can be configured, "
                        "see consumers doc guide to learn more",
                    )
                    connection.close_channel(channel, error)
        self.start()
