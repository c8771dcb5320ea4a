"""What channels that are over and queues that are gone have counted in one vhost, for the management API.

Duty: the numbers. RabbitMQ's figures of a vhost never fall because a channel was closed or a queue deleted; those of
what is still there are added by whoever asks. Nothing is decided by them.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.services.deliveries import Deliveries


@final
class Past:
    """The counters of one vhost that outlive what counted."""

    def __init__(self) -> None:
        # of channels
        self.published: i64 = 0
        self.confirmed: i64 = 0
        self.returned: i64 = 0
        self.dropped: i64 = 0
        # of connections, in octets
        self.received: i64 = 0
        self.sent: i64 = 0
        self.deliveries: Final = Deliveries()  # of queues

    def channel_over(self, published: i64, confirmed: i64, returned: i64, dropped: i64) -> None:
        self.published += published
        self.confirmed += confirmed
        self.returned += returned
        self.dropped += dropped
