"""A transaction: publishes and acknowledgements kept until tx.commit, then applied all or nothing.

Publishes are validated and routed when they come (spec §7.3). Duty: what is kept, and forgetting it. How a commit is
carried out is ``committing.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from warrenmq.broker.acks import Taken
from warrenmq.broker.exchange.walk import Routed
from warrenmq.broker.message import Entry, Message
from warrenmq.broker.records import Delivery, Exchange
from warrenmq.wire.replies import AmqpError

if TYPE_CHECKING:
    from warrenmq.broker.channel import Channel
    from warrenmq.broker.queue.queue import Queue

ACK: Final = 0
REQUEUE: Final = 1
REJECT: Final = 2

NACK_OR_REJECT: Final = "basic.nack and basic.reject"  # as RabbitMQ names them together


def command_while_committing(class_id: int, method_id: int) -> AmqpError:
    """No command is taken on a channel between tx.commit and its answer."""
    return AmqpError(504, "unexpected command while processing 'tx.commit'", class_id, method_id)


@final
class BufferedPublish:
    def __init__(
        self,
        exchange: Exchange,
        message: Message,
        queues: list[Queue],
        routed: Routed | None,
        mandatory: bool,
        seq: i64,
    ) -> None:
        self.exchange: Final = exchange
        self.message: Final = message
        self.queues: list[Queue] = queues  # at the commit, those that have these names then
        self.routed: Final = routed
        self.mandatory: Final = mandatory
        self.seq: Final = seq


@final
class BufferedAck:
    def __init__(self, what: i64, taken: Taken) -> None:
        self.what: Final = what
        self.taken: Final = taken


@final
class Transaction:
    def __init__(self, channel: Channel) -> None:
        self._channel: Final = channel
        self._publishes: list[BufferedPublish] = []
        self._acks: list[BufferedAck] = []

    def publish(
        self,
        exchange: Exchange,
        message: Message,
        queues: list[Queue],
        routed: Routed | None,
        mandatory: bool,
        seq: i64,
    ) -> None:
        self._publishes.append(BufferedPublish(exchange, message, queues, routed, mandatory, seq))

    def settle(self, what: i64, taken: Taken) -> None:
        self._acks.append(BufferedAck(what, taken))

    def deliveries(self) -> list[Delivery]:
        """What waits for the commit, as records (for inspection)."""
        vhost = self._channel.connection.open_vhost().name
        return [
            Delivery(p.mandatory, False, self._channel, p.message.basic_message(vhost), p.seq, False)
            for p in self._publishes
        ]

    def uncommitted(self) -> i64:
        return len(self._publishes)

    def buffered_acks(self) -> i64:
        total: i64 = 0
        for ack in self._acks:
            total += len(ack.taken.entries)
        return total

    def entries(self) -> list[Entry]:
        """Deliveries that are outstanding still, for all but this channel."""
        return [entry for ack in self._acks for entry in ack.taken.entries]

    def take_publishes(self) -> list[BufferedPublish]:
        """For a commit: the next transaction begins with none."""
        publishes = self._publishes
        self._publishes = []
        return publishes

    def take_acks(self) -> list[BufferedAck]:
        acks = self._acks
        self._acks = []
        return acks

    def rollback(self) -> None:
        """Forget the publishes; the acknowledged deliveries are outstanding again."""
        self._publishes = []
        self.put_back(self.take_acks())

    def put_back(self, acks: list[BufferedAck]) -> None:
        if acks:
            self._channel.unacked.put_back([ack.taken for ack in acks])
