"""The firehose: copies of what is published and delivered, to amq.rabbitmq.trace, while a vhost is traced.

The copies are transient, carry the traced message's facts in headers, and are never traced themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from warrenmq.broker import outcomes
from warrenmq.broker.exchange.walk import route as walk
from warrenmq.broker.message import Entry, Message, Origin, message_from
from warrenmq.broker.records import Content
from warrenmq.wire.content import Properties, encode_header
from warrenmq.wire.fields import Field, Table, field_of

if TYPE_CHECKING:
    from warrenmq.broker.broker import Broker
    from warrenmq.broker.channel import Channel
    from warrenmq.broker.queue.queue import Queue
    from warrenmq.broker.vhost import VHost

TRACE: Final = "amq.rabbitmq.trace"


@final
class Firehose:
    def __init__(self, broker: Broker) -> None:
        self._broker: Final = broker

    def published(self, channel: Channel, vhost: VHost, message: Message, queues: list[Queue]) -> None:
        headers = self._headers(channel, vhost, message)
        headers["routed_queues"] = Field("A", [Field("S", queue.name.name) for queue in queues])
        self._send(vhost, "publish." + message.origin.exchange, headers, message)

    def delivered(self, channel: Channel, entry: Entry) -> None:
        vhost = channel.connection.vhost
        if vhost is None or not vhost.tracing:
            return
        headers = self._headers(channel, vhost, entry.message)
        headers["redelivered"] = Field("I", 1 if entry.redelivered else 0)
        self._send(vhost, "deliver." + entry.queue.name.name, headers, entry.message)

    def _headers(self, channel: Channel, vhost: VHost, message: Message) -> Table:
        properties: Table = {}
        for name, value in Content(message.header(), b"").properties.present().items():
            properties[name] = Field("F", value) if name == "headers" else field_of(value)
        return {
            "exchange_name": Field("S", message.origin.exchange),
            "routing_keys": Field("A", [Field("S", key) for key in message.origin.routing_keys]),
            "properties": Field("F", properties),
            "node": Field("S", self._broker.node_name),
            "vhost": Field("S", vhost.name),
            "connection": Field("S", channel.connection.name),
            "channel": Field("I", int(channel.number)),
            "user": Field("S", channel.connection.username),
        }

    def _send(self, vhost: VHost, key: str, headers: Table, message: Message) -> None:
        if message.origin.exchange == TRACE:
            return
        header = encode_header(Properties(headers=headers), message.size)
        chunks = message.chunks
        if chunks is None:
            chunks = [message.body()] if message.size else []
        copy = message_from(Origin(TRACE, [key]), self._broker.next_id(), header, chunks, message.size, False)
        routed = walk(vhost.exchanges[TRACE], copy.basic_message(vhost.name), vhost.exchanges, vhost.queues)
        targets = [vhost.queues[found.name.name] for found in routed.queues if found.name.name in vhost.queues]
        outcomes.offer(self._broker, copy, targets)
