"""channel.* and access.request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warrenmq.wire.methods import Method, method_frame
from warrenmq.wire.replies import CHANNEL_ERROR, NOT_IMPLEMENTED, AmqpError

if TYPE_CHECKING:
    from warrenmq.broker.channel.channel import Channel


def open(channel: Channel, method: Method) -> None:
    raise AmqpError(CHANNEL_ERROR, "second 'channel.open' seen")


def close(channel: Channel, method: Method) -> None:
    channel.connection.channel_closed(channel.number)


def flow(channel: Channel, method: Method) -> None:
    if not method.bit("active"):
        raise AmqpError(NOT_IMPLEMENTED, "active=false")
    channel.answers.reply(method_frame(channel.number, "channel.flow-ok", active=True))


def access_request(channel: Channel, method: Method) -> None:
    channel.answers.reply(method_frame(channel.number, "access.request-ok", ticket=1))
