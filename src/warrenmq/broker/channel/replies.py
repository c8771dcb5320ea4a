"""Direct reply-to on one channel: replies come straight to it under its own address, there is no queue.

Duty: the subscription, and a reply on the wire. Who listens at which address is in ``broker/replies.py``.
"""

from __future__ import annotations

from typing import Final, final

from warrenmq.broker.channel.deliver_frame import DeliverFrame
from warrenmq.broker.channel.output import Output
from warrenmq.broker.channel.outstanding import Outstanding
from warrenmq.broker.message import Message
from warrenmq.broker.publish.publishing import Publishing
from warrenmq.broker.records import DIRECT_REPLY
from warrenmq.broker.replies import Listener


@final
class Replies(Listener):
    """The subscription of a channel to amq.rabbitmq.reply-to, while there is one."""

    def __init__(self, publishing: Publishing, output: Output, outstanding: Outstanding) -> None:
        self._publishing: Final = publishing
        self._output: Final = output
        self._outstanding: Final = outstanding
        self._tag: str = ""
        self._frame: DeliverFrame | None = None  # basic.deliver under that tag; None while nobody listens

    def listen_for_replies(self, address: str, tag: str) -> None:
        self._publishing.publisher.reply_address = address
        self._tag = tag
        self._frame = DeliverFrame(self._publishing.sender.channel_number, tag)

    def stop_listening_for_replies(self) -> str:
        address = self._publishing.publisher.reply_address
        self._publishing.publisher.reply_address = ""
        self._frame = None
        return address

    def listening(self) -> bool:
        """Does somebody listen?"""
        return self._frame is not None

    def listens_as(self, tag: str) -> bool:
        """Is this the consumer tag under which replies come?"""
        return self._frame is not None and self._tag == tag

    def deliver_reply(self, message: Message) -> None:
        """A reply carries the channel's next delivery tag but does not use it up, as in RabbitMQ."""
        if self._frame is None:
            return
        self._frame.write(self._output, self._outstanding.coming_tag(), False, message)
        publishing = self._publishing
        if publishing.vhost.watched:
            publishing.broker.firehose.delivered(publishing.sender, publishing.vhost, DIRECT_REPLY, message, False)
