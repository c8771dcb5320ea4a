"""A transaction: publishes and acknowledgements kept until tx.commit, then applied all or nothing.

Publishes are validated and routed when they come (spec §7.3); at commit they are offered to their queues, then the
acknowledgements are applied, all within one turn and so within one batch of the log. If a queue would refuse,
nothing is applied (spec §18).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from warrenmq.broker import outcomes
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
        self.queues: Final = queues
        self.routed: Final = routed
        self.mandatory: Final = mandatory
        self.seq: Final = seq


@final
class Transaction:
    def __init__(self, channel: Channel) -> None:
        self._channel: Final = channel
        self._publishes: list[BufferedPublish] = []
        self._acks: list[tuple[int, list[tuple[int, Entry]]]] = []  # (what, deliveries with their tags)

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

    def settle(self, what: i64, tagged: list[tuple[int, Entry]]) -> None:
        self._acks.append((what, tagged))

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
        for _, tagged in self._acks:
            total += len(tagged)
        return total

    def commit(self) -> bool:
        """Apply everything, or nothing and raise 406 when a queue would refuse. Says whether a queue got a message."""
        self._check()
        publishes = self._publishes
        acks = self._acks
        self._publishes = []
        self._acks = []
        channel = self._channel
        queued = False
        for p in publishes:
            queues = self._queues(p)
            queued = queued or len(queues) > 0
            p.message.moved = True  # with the rest of its transaction or not at all: a failing disk takes no part back
            outcomes.publish(channel, p.exchange, p.message, queues, p.routed, p.mandatory, 0)
        if queued and acks:
            channel.broker.settle_down()  # consumers get what was published before what goes back
        for what, tagged in acks:
            entries = [entry for _, entry in tagged]
            if what == ACK:
                channel.settle(entries)
            else:
                channel.refuse(entries, what == REQUEUE)
        return queued

    def _queues(self, p: BufferedPublish) -> list[Queue]:
        """A message is routed to names when it is published; which queues have them is asked at the commit."""
        names = [queue.name.name for queue in p.queues]
        if p.exchange.name.name == "":
            names = list(dict.fromkeys(p.message.origin.routing_keys))
        known = self._channel.connection.open_vhost().queues
        return [known[name] for name in names if name in known]

    def _check(self) -> None:
        """Would any queue refuse, or is the log failing? Counts what this commit itself adds."""
        if self._channel.broker.log_failing and self._needs_log():
            self._refuse()
        self._check_refusals()
        length: dict[Queue, int] = {}
        size: dict[Queue, int] = {}
        for p in self._publishes:
            for queue in self._queues(p):
                if not (queue.eager or queue.failed):
                    continue
                taken = queue.appetite()  # consumers that wait take these at once
                if queue.would_refuse(max(0, length.get(queue, 0) - taken), size.get(queue, 0), p.message.size):
                    self._refuse()
                length[queue] = length.get(queue, 0) + 1
                if length[queue] > taken:
                    size[queue] = size.get(queue, 0) + p.message.size

    def _check_refusals(self) -> None:
        """A delivery that its queue does not take back ends the connection before anything is applied."""
        for what, tagged in self._acks:
            if what != ACK:
                for _, entry in tagged:
                    problem = entry.queue.refusal_problem(NACK_OR_REJECT)
                    if problem:
                        self.rollback()
                        raise AmqpError(540, problem)

    def _refuse(self) -> None:
        self.rollback()
        raise AmqpError(406, "partial tx completion", 90, 20)

    def _needs_log(self) -> bool:
        for p in self._publishes:
            for queue in self._queues(p):
                if queue.logs(p.message):
                    return True
        for _, tagged in self._acks:
            for _, entry in tagged:
                if entry.queue.holds(entry.message):
                    return True
        return False

    def rollback(self) -> None:
        """Forget the publishes; the acknowledged deliveries are outstanding again."""
        self._publishes = []
        acks = self._acks
        self._acks = []
        if acks:
            self._channel.unacked.put_back([one for _, tagged in acks for one in tagged])
