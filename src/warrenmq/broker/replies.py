"""Direct reply-to: who listens for replies, by address. There is no queue: a reply goes straight to the channel."""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import trait

from warrenmq.broker.message import Message
from warrenmq.broker.records import DIRECT_REPLY
from warrenmq.broker.services.ids import Ids


@trait
class Listener:
    """A channel that gets replies."""

    def listen_for_replies(self, address: str, tag: str) -> None:
        raise NotImplementedError

    def stop_listening_for_replies(self) -> str:
        """Returns the address at which it listened."""
        raise NotImplementedError

    def deliver_reply(self, message: Message) -> None:
        raise NotImplementedError


@final
class DirectReplies:
    """The channels that listen for replies, by address."""

    def __init__(self, ids: Ids) -> None:
        self._ids: Final = ids
        self._channels: Final[dict[str, Listener]] = {}

    def __len__(self) -> int:
        return len(self._channels)

    def __contains__(self, address: object) -> bool:
        return address in self._channels

    def listen(self, channel: Listener, tag: str) -> None:
        address = self._ids.name(DIRECT_REPLY + ".")
        channel.listen_for_replies(address, tag)
        self._channels[address] = channel

    def stop(self, channel: Listener) -> None:
        self._channels.pop(channel.stop_listening_for_replies(), None)

    def deliver(self, address: str, message: Message) -> None:
        channel = self._channels.get(address)
        if channel is not None:
            channel.deliver_reply(message)
