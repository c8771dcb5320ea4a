"""A transaction: publishes and acknowledgements kept until tx.commit, then applied all or nothing.

Publishes are validated and routed when they come. Duty: what is kept, and forgetting it. How a commit is
carried out is ``committing.py``.
"""

from __future__ import annotations

from typing import Final, final

from librt.vecs import vec
from mypy_extensions import i64

from warrenmq.broker.channel.acks import METHOD_ACK, Taken, Unacked, unknown_tag
from warrenmq.broker.publish.publishing import Publishing, Uncommitted, forget
from warrenmq.broker.queue.queue import Entry
from warrenmq.broker.records import Delivery
from warrenmq.wire.methods import MethodSpec
from warrenmq.wire.replies import CHANNEL_ERROR, AmqpError

ACK: Final = 0
REQUEUE: Final = 1
REJECT: Final = 2

NACK_OR_REJECT: Final = "basic.nack and basic.reject"  # as RabbitMQ names them together


def command_while_committing(spec: MethodSpec) -> AmqpError:
    """No command is taken on a channel between tx.commit and its answer."""
    return AmqpError(CHANNEL_ERROR, "unexpected command while processing 'tx.commit'", spec.class_id, spec.method_id)


@final
class BufferedAck:
    """Acknowledgements or rejections that wait for the commit, one behind the other, with the deliveries they took."""

    def __init__(self, what: i64, taken: Taken) -> None:
        self.what: Final = what
        self.taken: Final = taken


@final
class Transaction:
    """The open transaction of one channel: its publishes and its acknowledgements, in order."""

    def __init__(self, publishing: Publishing, unacked: Unacked) -> None:
        self._publishing: Final = publishing
        self._unacked: Final = unacked
        self._acks: list[BufferedAck] = []

    def _publishes(self) -> list[Uncommitted]:
        publishes = self._publishing.uncommitted
        return [] if publishes is None else publishes

    def ack(self, tag: i64, multiple: bool) -> None:
        self._take(ACK, tag, multiple, METHOD_ACK)

    def nack(self, tag: i64, multiple: bool, requeue: bool, method_id: i64) -> None:
        self._take(REQUEUE if requeue else REJECT, tag, multiple, method_id)

    def _take(self, what: i64, tag: i64, multiple: bool, method_id: i64) -> None:
        if multiple:
            if tag != 0 and not self._unacked.contains(tag) and not self._unacked.is_late(tag):
                raise unknown_tag(tag, method_id)
            self._acks.append(BufferedAck(what, self._unacked.take_tagged_up_to(tag)))
            return
        entry = self._unacked.take(tag)
        if entry is not None:
            if not self._acks or self._acks[-1].what != what:
                self._acks.append(BufferedAck(what, Taken(vec[i64](), [])))
            self._acks[-1].taken.add(tag, entry)  # a million of them are one object, as they are to RabbitMQ
        elif not self._unacked.is_late(tag):
            raise unknown_tag(tag, method_id)

    def deliveries(self) -> list[Delivery]:
        """What waits for the commit, as records (for inspection)."""
        vhost = self._publishing.vhost.name
        return [
            Delivery(p.mandatory, False, self._publishing.teller, p.message.basic_message(vhost), p.number, False)
            for p in self._publishes()
        ]

    def uncommitted(self) -> i64:
        return len(self._publishes())

    def buffered_acks(self) -> i64:
        total: i64 = 0
        for ack in self._acks:
            total += len(ack.taken.entries)
        return total

    def pieces(self) -> list[list[Entry | None]]:
        """Deliveries that are outstanding still, for all but this channel: copies."""
        return [[*ack.taken.entries] for ack in self._acks]

    def take_publishes(self) -> list[Uncommitted]:
        """For a commit: the next transaction begins with none."""
        publishes = self._publishes()
        self._publishing.uncommitted = []
        return publishes

    def take_acks(self) -> list[BufferedAck]:
        acks = self._acks
        self._acks = []
        return acks

    def rollback(self) -> None:
        """Forget the publishes; the acknowledged deliveries are outstanding again."""
        publishes = self.take_publishes()
        self._publishing.tally.rolled_back += len(publishes)
        forget(publishes)
        self._publishing.broker.services.freeing.add(publishes)
        self.put_back(self.take_acks())

    def put_back(self, acks: list[BufferedAck]) -> None:
        """Nobody else needs the list any more."""
        if acks:
            freeing = self._publishing.broker.services.freeing
            for unneeded in self._unacked.put_back([ack.taken for ack in acks]):
                freeing.add(unneeded)
            freeing.add(acks)
