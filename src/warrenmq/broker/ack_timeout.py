"""Deliveries that are never acknowledged: after the consumer timeout their channel is closed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from warrenmq.broker.timers import Timer
from warrenmq.wire.replies import AmqpError

if TYPE_CHECKING:
    from warrenmq.broker.broker import Broker

INTERVAL: Final = 60_000  # RabbitMQ looks once a minute


@final
class AckTimeout(Timer):
    """The timer that looks for deliveries held longer than the consumer timeout and closes their channels."""

    def __init__(self, broker: Broker) -> None:
        super().__init__()
        self._broker: Final = broker

    def start(self) -> None:
        self._broker.timers.arm(self, self._broker.turn.now + INTERVAL)

    def fire(self) -> None:
        broker = self._broker
        for connection in broker.connections:
            for channel in list(connection.channels.values()):
                oldest = channel.unacked.oldest()
                if oldest is None:
                    continue
                timeout: i64 = broker.limits.consumer_timeout
                own = oldest.queue.settings.consumer_timeout
                if own > 0:
                    timeout = own
                if timeout > 0 and broker.turn.now - oldest.delivered_at > timeout:
                    error = AmqpError(
                        406,
                        f"delivery acknowledgement on channel {channel.number} timed out. "
                        f"Timeout value used: {timeout} ms. This timeout value can be configured, "
                        "see consumers doc guide to learn more",
                    )
                    connection.close_channel(channel, error)
        self.start()
