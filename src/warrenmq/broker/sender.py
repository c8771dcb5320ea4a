"""Who sent a message, as schedules, the firehose, interceptors and the log's events name it."""

from __future__ import annotations

import json
from json.encoder import encode_basestring_ascii as quoted
from typing import Final, final

from mypy_extensions import i64

from warrenmq.log.events import Named


@final
class Sender:
    """The channel that published, by its names; nothing of it can be reached from here."""

    def __init__(
        self, username: str, connection_name: str, channel_name: str, channel_number: i64, named: Named
    ) -> None:
        self.username: Final = username
        self.connection_name: Final = connection_name
        self.channel_name: Final = channel_name  # as RabbitMQ names channels
        self.channel_number: Final = channel_number
        self.named: Final = named  # as the log's events name it
        self.confirms: bool = False  # has it asked for confirms?


def channel_text(user: str, vhost: str, connection: str, channel: i64) -> bytes:
    """A channel's name in the log's events: JSON, put together here because every channel is named."""
    return (
        f'{{"user": {quoted(user)}, "vhost": {quoted(vhost)}, '
        f'"connection": {quoted(connection)}, "channel": {channel}}}'
    ).encode()


def consumer_text(sender: Sender, vhost: str, tag: str) -> bytes:
    """A consumer's name there."""
    names = {"user": sender.username, "vhost": vhost, "connection": sender.connection_name}
    return json.dumps(names | {"channel": int(sender.channel_number), "consumer": tag}).encode()
