"""Who sent a message, as schedules, the firehose and interceptors name it."""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64


@final
class Sender:
    """The channel that published, by its names; nothing of it can be reached from here."""

    def __init__(self, username: str, connection_name: str, channel_name: str, channel_number: i64) -> None:
        self.username: Final = username
        self.connection_name: Final = connection_name
        self.channel_name: Final = channel_name  # as RabbitMQ names channels
        self.channel_number: Final = channel_number
        self.confirms: bool = False  # has it asked for confirms?
