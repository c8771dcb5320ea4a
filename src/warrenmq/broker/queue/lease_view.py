"""Reading a lease: ``basic.consume`` with the argument ``x-lease``. Delivers its messages in order, from the start."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from mypy_extensions import i64

from warrenmq.broker.message import Message
from warrenmq.broker.queue.lease import Lease, entry_from
from warrenmq.broker.queue.replay import ReplayQueue
from warrenmq.log.damage import RecordDamaged

if TYPE_CHECKING:
    from warrenmq.broker.queue.entry import Consumer


@final
class LeaseView(ReplayQueue):
    """A queue for one consumer's eyes; settled slots are passed over."""

    lease: Lease | None = None

    def _leased(self) -> Lease:
        assert self.lease is not None
        return self.lease

    def start_of(self, consumer: Consumer) -> i64:
        return 0

    def readable_end(self) -> i64:
        return self._leased().count()

    def skip(self, at: i64) -> i64:
        lease = self._leased()
        while at < lease.count() and lease.addresses[at] == 0:
            at += 1
        return at

    def flags_redelivered(self, at: i64) -> bool:
        return self._leased().redelivered(at)

    def read_messages(self, start: i64, count: i64) -> list[Message]:
        lease = self._leased()
        addresses: list[i64] = []
        first = start
        while count > 0 and start < lease.count() and lease.addresses[start] != 0:
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
                    lease.queue.leases.set_aside(lease, first + len(out))
                    break
                out.append(entry_from(self, record, 1, 0).message)
            return out
        for address in addresses:
            try:
                stored = self.broker.log.read(address) if address > 0 else self.broker.transient.get(-address)
            except RecordDamaged:
                lease.queue.leases.set_aside(lease, first + len(out))
                break
            out.append(entry_from(self, stored, 1, 0).message)
        return out
