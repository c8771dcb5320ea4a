"""A small, fast, synchronous AMQP 0-9-1 client on the broker's own wire code.

Duty: the command line, benchmarks, Spark and tests. Works with Warren and RabbitMQ alike. One thread per connection;
nothing runs in the background.
Not here: reconnecting, heartbeats while the caller is busy elsewhere (ask for heartbeat=0), or an event loop.
"""

from warrenmq.client.channel import Channel
from warrenmq.client.connection import Connection
from warrenmq.client.errors import ChannelClosed, ClientError, ConnectError, ConnectionClosed, Timeout
from warrenmq.client.messages import Acked, Cancelled, Event, Message, Nacked, Returned
from warrenmq.wire.content import Properties
from warrenmq.wire.fields import Field, Table

__all__ = [
    "Acked",
    "Cancelled",
    "Channel",
    "ChannelClosed",
    "ClientError",
    "ConnectError",
    "Connection",
    "ConnectionClosed",
    "Event",
    "Field",
    "Message",
    "Nacked",
    "Properties",
    "Returned",
    "Table",
    "Timeout",
]
