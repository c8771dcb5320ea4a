"""What clients are offered and allowed: settings that a reload may change while the broker runs."""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

MAX_MESSAGE_SIZE: Final = 128 << 20  # as RabbitMQ has it


@final
class Limits:
    """The numbers in force. What was negotiated with a connected client stays as it was."""

    def __init__(self) -> None:
        self.max_message_size: i64 = MAX_MESSAGE_SIZE
        self.channel_max: i64 = 2047
        self.frame_max: i64 = 131072
        self.heartbeat: i64 = 60  # seconds
        self.handshake_timeout: i64 = 10000  # ms
        self.connection_max: i64 = 0  # 0: no limit
        self.consumer_timeout: i64 = 1_800_000  # ms
        self.auth_mechanisms: list[str] = ["PLAIN", "AMQPLAIN", "EXTERNAL"]  # EXTERNAL where a certificate was shown
        self.loopback_users: list[str] = ["guest"]  # who may log in from this machine only
