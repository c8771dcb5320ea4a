"""Direct reply-to: who listens for replies, by address. There is no queue: a reply goes straight to the channel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from warrenmq.broker.ids import Ids
from warrenmq.broker.message import Message
from warrenmq.broker.publish.stages import DIRECT_REPLY

if TYPE_CHECKING:
    from warrenmq.broker.channel import Channel


@final
class DirectReplies:
    """The channels that listen."""

    def __init__(self, ids: Ids) -> None:
        self._ids: Final = ids
        self._channels: Final[dict[str, Channel]] = {}

    def __len__(self) -> int:
        return len(self._channels)

    def __contains__(self, address: object) -> bool:
        return address in self._channels

    def listen(self, channel: Channel, tag: str) -> None:
        address = self._ids.name(DIRECT_REPLY + ".")
        channel.listen_for_replies(address, tag)
        self._channels[address] = channel

    def stop(self, channel: Channel) -> None:
        self._channels.pop(channel.publishing.publisher.reply_address, None)
        channel.stop_listening_for_replies()

    def deliver(self, address: str, message: Message) -> None:
        channel = self._channels.get(address)
        if channel is not None:
            channel.deliver_reply(message)
