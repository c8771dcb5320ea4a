"""Names in methods: the queue declared last stands in for an empty one, CR and LF are not part of a name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warrenmq.broker.records import Resource
from warrenmq.wire.replies import ACCESS_REFUSED, NOT_FOUND, AmqpError

if TYPE_CHECKING:
    from warrenmq.broker.channel.channel import Channel


def strip(name: str) -> str:
    return name.replace("\r", "").replace("\n", "")


def queue_name(channel: Channel, name: str) -> str:
    """The name, or the queue last declared on this channel."""
    if name:
        return strip(name)
    if channel.last_queue is None:
        raise AmqpError(NOT_FOUND, "no previously declared queue")
    return channel.last_queue


def refuse_default_exchange(name: Resource) -> None:
    if name.kind == "exchange" and not name.name:
        raise AmqpError(ACCESS_REFUSED, "operation not permitted on the default exchange")
