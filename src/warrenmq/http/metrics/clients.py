"""What RabbitMQ's /metrics tells of connections and channels that are open, in all or of each.

Duty: the numbers, gathered in slices, and the lines of those of each. Not here: what outlives them
(``whole.py``), queues (``queues.py``).
"""

from __future__ import annotations

from warrenmq.broker.channel.channel import Channel
from warrenmq.broker.connection.connection import Connection
from warrenmq.broker.publish.confirms import Waiting
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
    "rabbitmq_channel_messages_published_total": "Total number of messages published into an exchange on a channel",
    "rabbitmq_channel_messages_confirmed_total": "Total number of messages published and confirmed on the channel",
    "rabbitmq_channel_messages_unroutable_returned_total": "Total number of mandatory messages returned as unroutable",
    "rabbitmq_channel_messages_unroutable_dropped_total": "Total number of messages dropped as unroutable",
    "rabbitmq_channel_get_ack_total": "Total number of messages fetched with basic.get in manual acknowledgement mode",
    "rabbitmq_channel_get_total": "Total number of messages fetched with basic.get in automatic acknowledgement mode",
    "rabbitmq_channel_messages_delivered_ack_total": "Total number of messages delivered to consumers that acknowledge",
    "rabbitmq_channel_messages_delivered_total": "Total number of messages delivered to consumers that do not",
    "rabbitmq_channel_messages_redelivered_total": "Total number of messages redelivered to consumers",
    "rabbitmq_channel_messages_acked_total": "Total number of messages acknowledged by consumers",
    "rabbitmq_channel_get_empty_total": "Total number of times basic.get operations fetched no message",
}


class Clients:
    """Sums in the order of the families, and the same of each by its name."""

    def __init__(self) -> None:
        self.connection_sums = [0] * len(CONNECTION_FAMILIES)
        self.channel_sums = [0] * len(CHANNEL_FAMILIES)
        self.connections: list[Row] = []
        self.channels: list[Row] = []
        self.publishers = 0
        self.consumers = 0
        # on confirming channels that are open
        self.numbered = 0
        self.confirmed = 0


async def clients(bridge: Bridge) -> Clients:
    found = Clients()
    pacer = Pacer()
    for connection in bridge.open_connections():
        values = of_connection(connection)
        found.connections.append((labels(connection=connection.name), values))
        found.connection_sums = [one + other for one, other in zip(found.connection_sums, values, strict=True)]
        for channel in list(connection.channels.values()):
            if not channel.publishing.over:
                _count(found, connection, channel)
            await pacer.breathe()
        await pacer.breathe()
    return found


def _count(found: Clients, connection: Connection, channel: Channel) -> None:
    values = of_channel(channel)
    found.channels.append((labels(channel=f"{connection.name} ({int(channel.number)})"), values))
    found.channel_sums = [one + other for one, other in zip(found.channel_sums, values, strict=True)]
    found.consumers += len(channel.consumers)
    publishing = channel.publishing
    found.publishers += publishing.published > 0
    found.numbered += int(publishing.confirmable()) - int(publishing.refused_numbered)
    found.confirmed += int(publishing.confirms.acked)


def of_connection(connection: Connection) -> list[int]:
    output = connection.output
    return [int(connection.input.received), int(output.sent), int(output.pending()), len(connection.channels)]


def of_channel(channel: Channel) -> list[int]:
    """In the order of CHANNEL_FAMILIES."""
    publishing, handed, tx = channel.publishing, channel.handed_out.all(), channel.tx
    return [
        len(channel.consumers),
        int(channel.outstanding.unacked.count),
        unconfirmed(publishing.confirms.waiting),
        0 if tx is None else int(tx.uncommitted()),
        0 if tx is None else int(tx.buffered_acks()),
        int(channel.consumers.global_prefetch),
        int(channel.consumers.prefetch),
        int(publishing.published),
        int(publishing.confirms.acked),
        int(publishing.returned),
        int(publishing.dropped),
        int(handed.fetched),
        int(handed.fetched_no_ack),
        int(handed.delivered),
        int(handed.delivered_no_ack),
        int(handed.redelivered),
        int(handed.acked),
        int(handed.fetched_nothing),
    ]


def unconfirmed(waiting: list[Waiting]) -> int:
    return sum(int(one.last) - int(one.first) + 1 for one in waiting)
