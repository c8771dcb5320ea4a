"""What RabbitMQ's /metrics tells of connections and channels that are open, in all or of each.

Duty: the numbers, gathered in slices, and the lines of those of each. Not here: what outlives them
(``whole.py``), queues (``queues.py``).
"""

from __future__ import annotations

from warrenmq.broker.channel.channel import Channel
from warrenmq.broker.connection.connection import Connection
from warrenmq.broker.publish.by_exchange import Share
from warrenmq.broker.publish.confirms import Waiting
from warrenmq.broker.publish.publishing import Publishing
from warrenmq.broker.services.deliveries import Deliveries
from warrenmq.http.bridge import Bridge
from warrenmq.http.metrics.text import Row, labels
from warrenmq.http.pacer import Pacer

CONNECTION_FAMILIES = {
    "rabbitmq_connection_incoming_bytes_total": "Total number of bytes received on a connection",
    "rabbitmq_connection_outgoing_bytes_total": "Total number of bytes sent on a connection",
    "rabbitmq_connection_pending_packets": "Number of bytes waiting to be sent on a connection",
    "rabbitmq_connection_channels": "Channels on a connection",
}
CHANNEL_FAMILIES = {
    "rabbitmq_channel_consumers": "Consumers on a channel",
    "rabbitmq_channel_messages_unacked": "Delivered but not yet acknowledged messages",
    "rabbitmq_channel_messages_unconfirmed": "Published but not yet confirmed messages",
    "rabbitmq_channel_messages_uncommitted": "Messages received in a transaction but not yet committed",
    "rabbitmq_channel_acks_uncommitted": "Message acknowledgements in a transaction not yet committed",
    "rabbitmq_channel_prefetch": "Total limit of unacknowledged messages for all consumers on a channel",
    "rabbitmq_consumer_prefetch": "Limit of unacknowledged messages for each consumer",
}
CHANNEL_EXCHANGE_FAMILIES = {
    "rabbitmq_channel_messages_published_total": "Total number of messages published into an exchange on a channel",
    "rabbitmq_channel_messages_confirmed_total": "Total number of messages published and confirmed on the channel",
    "rabbitmq_channel_messages_unroutable_returned_total": "Total number of mandatory messages returned as unroutable",
    "rabbitmq_channel_messages_unroutable_dropped_total": "Total number of messages dropped as unroutable",
}
CHANNEL_QUEUE_FAMILIES = {
    "rabbitmq_channel_get_ack_total": "Total number of messages fetched with basic.get in manual acknowledgement mode",
    "rabbitmq_channel_get_total": "Total number of messages fetched with basic.get in automatic acknowledgement mode",
    "rabbitmq_channel_messages_delivered_ack_total": "Total number of messages delivered to consumers that acknowledge",
    "rabbitmq_channel_messages_delivered_total": "Total number of messages delivered to consumers that do not",
    "rabbitmq_channel_messages_redelivered_total": "Total number of messages redelivered to consumers",
    "rabbitmq_channel_messages_acked_total": "Total number of messages acknowledged by consumers",
    "rabbitmq_channel_get_empty_total": "Total number of times basic.get operations fetched no message",
}
ALL_CHANNEL_FAMILIES = CHANNEL_FAMILIES | CHANNEL_EXCHANGE_FAMILIES | CHANNEL_QUEUE_FAMILIES


class Clients:
    """Sums in the order of the families, and the same of each by its name."""

    def __init__(self) -> None:
        self.connection_sums = [0] * len(CONNECTION_FAMILIES)
        self.channel_sums = [0] * len(ALL_CHANNEL_FAMILIES)
        self.connections: list[Row] = []
        self.channels: list[Row] = []
        self.channel_exchanges: list[Row] = []  # each exchange that a channel published to
        self.channel_queues: list[Row] = []  # each queue that it got something from
        self.publishers = 0
        self.consumers = 0
        # on confirming channels that are open
        self.numbered = 0
        self.confirmed = 0


async def clients(bridge: Bridge, each: bool = False) -> Clients:
    """``each``: also by channel and exchange, and by channel and queue."""
    found = Clients()
    pacer = Pacer()
    for connection in bridge.open_connections():
        values = of_connection(connection)
        found.connections.append((labels(connection=connection.name), values))
        found.connection_sums = [one + other for one, other in zip(found.connection_sums, values, strict=True)]
        for channel in list(connection.channels.values()):
            if not channel.publishing.over:
                _count(found, channel)
                if each:
                    await _each(found, channel, pacer)
            await pacer.breathe()
        await pacer.breathe()
    return found


def _count(found: Clients, channel: Channel) -> None:
    values = [*of_channel(channel), *published(channel.publishing), *handed(channel.handed_out.all())]
    found.channels.append((labels(channel=_name(channel)), values))
    found.channel_sums = [one + other for one, other in zip(found.channel_sums, values, strict=True)]
    found.consumers += len(channel.consumers)
    publishing = channel.publishing
    found.publishers += publishing.published > 0
    found.numbered += int(publishing.confirmable()) - int(publishing.refused_numbered)
    found.confirmed += int(publishing.confirms.acked)


async def _each(found: Clients, channel: Channel, pacer: Pacer) -> None:
    """Of exchanges and queues that are there, as in RabbitMQ."""
    name, vhost = _name(channel), channel.publishing.vhost.name
    for exchange, share in list(channel.publishing.shares().items()):
        found.channel_exchanges.append(
            (labels(channel=name, vhost=vhost, exchange=exchange.name.name), published(share))
        )
        await pacer.breathe()
    for queue, counted in list(channel.handed_out.by_queue().items()):
        if counted.any():
            found.channel_queues.append((labels(channel=name, vhost=vhost, queue=queue.name.name), handed(counted)))
        await pacer.breathe()


def _name(channel: Channel) -> str:
    return f"{channel.connection.name} ({int(channel.number)})"


def of_connection(connection: Connection) -> list[int]:
    output = connection.output
    return [int(connection.input.received), int(output.sent), int(output.pending()), len(connection.channels)]


def of_channel(channel: Channel) -> list[int]:
    """In the order of CHANNEL_FAMILIES."""
    publishing, tx = channel.publishing, channel.tx
    return [
        len(channel.consumers),
        int(channel.outstanding.unacked.count),
        unconfirmed(publishing.confirms.waiting),
        0 if tx is None else int(tx.uncommitted()),
        0 if tx is None else int(tx.buffered_acks()),
        int(channel.consumers.global_prefetch),
        int(channel.consumers.prefetch),
    ]


def published(counted: Publishing | Share) -> list[int]:
    """In the order of CHANNEL_EXCHANGE_FAMILIES."""
    confirmed = counted.confirms.acked if isinstance(counted, Publishing) else counted.confirmed
    return [int(counted.published), int(confirmed), int(counted.returned), int(counted.dropped)]


def handed(counted: Deliveries) -> list[int]:
    """In the order of CHANNEL_QUEUE_FAMILIES."""
    return [
        int(counted.fetched),
        int(counted.fetched_no_ack),
        int(counted.delivered),
        int(counted.delivered_no_ack),
        int(counted.redelivered),
        int(counted.acked),
        int(counted.fetched_nothing),
    ]


def unconfirmed(waiting: list[Waiting]) -> int:
    return sum(int(one.last) - int(one.first) + 1 for one in waiting)
