"""Reading a lease: ``basic.consume`` with the argument ``x-lease``. Delivers its messages in order, from the start."""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.message import Message, message_from
from warrenmq.broker.queue.classic import lease_of
from warrenmq.broker.queue.lease import Lease, LeaseError
from warrenmq.broker.queue.leases import entry_from
from warrenmq.broker.queue.paging import LONG, parts_of
from warrenmq.broker.queue.queue import Consumer, Declaration, Queue
from warrenmq.broker.queue.replay import READ_BYTES, ReplayQueue
from warrenmq.broker.stored import Origins, message_of
from warrenmq.log.damage import RecordDamaged
from warrenmq.log.format import StoredMessage
from warrenmq.wire.fields import Table
from warrenmq.wire.replies import NOT_FOUND, PRECONDITION_FAILED, AmqpError


@final
class LeaseView(ReplayQueue):
    """A queue for one consumer's eyes; settled slots are passed over."""

    def __init__(self, queue: Queue, lease: Lease) -> None:
        super().__init__(queue.vhost, Declaration(queue.name, 0, "", False, None, False, {}))
        self._lease: Final = lease

    def start_of(self, consumer: Consumer) -> i64:
        return 0

    def readable_end(self) -> i64:
        return self._lease.count()

    def skip(self, at: i64) -> i64:
        lease = self._lease
        while at < lease.count() and lease.addresses[at] == 0:
            at += 1
        return at

    def flags_redelivered(self, at: i64) -> bool:
        return self._lease.redelivered(at)

    def read_messages(self, start: i64, count: i64) -> list[Message]:
        lease = self._lease
        addresses: list[i64] = []
        first = start
        room: i64 = READ_BYTES
        while count > 0 and start < lease.count() and lease.addresses[start] != 0:
            room -= lease.size_of(start)
            if addresses and room < 0:
                break
            addresses.append(lease.addresses[start])
            start += 1
            count -= 1
        out: list[Message] = []
        spilled = False
        for address in addresses:
            if address < 0:
                spilled = True
        if not spilled:
            for record in self.broker.log.read_many(addresses):
                if record is None:
                    lease.lessor.set_aside(lease, first + len(out))
                    break
                out.append(self._shown(record))
            return out
        for address in addresses:
            try:
                stored = self.broker.log.read(address) if address > 0 else self.broker.transient.get(-address)
            except RecordDamaged:
                lease.lessor.set_aside(lease, first + len(out))
                break
            out.append(self._shown(stored))
        return out

    def _shown(self, record: StoredMessage) -> Message:
        """A message that is looked at under its lease: it has no place here, and no delivery of it is told."""
        return message_of(record, Origins().of(record), 0, True)

    def long_at(self, at: i64) -> i64:
        lease = self._lease
        if lease.size_of(at) <= LONG:
            return 0
        address = lease.addresses[at]
        return address if len(parts_of(self.broker, address)) > 0 else 0

    def read_with(self, at: i64, body: list[bytes]) -> Message:
        address = self._lease.addresses[at]
        broker = self.broker
        head = broker.log.read_head(address) if address > 0 else broker.transient.get_head(-address)
        bare = entry_from(self, head, 1, 0).message
        return message_from(bare.origin, bare.id, head.header, body, self._lease.size_of(at), bare.persistent)

    def unreadable(self, at: i64) -> None:
        self._lease.lessor.set_aside(self._lease, at)


def view_of(queue: Queue, arguments: Table) -> Queue:
    """What basic.consume with x-lease reads. With x-lease-left, only if so many of its messages are left.

    A reader that was told a number would wait for ever for messages that are gone: transient ones go with a crash.
    """
    try:
        lease = lease_of(queue, str(arguments["x-lease"].value))
    except LeaseError as error:
        raise AmqpError(NOT_FOUND, error.reason) from None
    expected = arguments.get("x-lease-left")
    if expected is not None and str(expected.value) != str(int(lease.left)):
        said = f"x-lease-left is {expected.value}"
        raise AmqpError(PRECONDITION_FAILED, f"lease {lease.id} of {queue.name} has {lease.left} messages left, {said}")
    return LeaseView(queue, lease)
