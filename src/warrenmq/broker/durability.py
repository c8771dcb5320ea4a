"""What waits for the disk, and what happens when the log says that it got there, or that it cannot.

Duty: who waits (channels for confirms and answers, queues for the promise about deliveries, HTTP calls, credit) and
who is told in which order. What a publisher is told is decided in ``publish/outcomes.py``; the log's own work is in
``log/``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, final

from librt.vecs import append
from mypy_extensions import i64

from warrenmq.broker.channel import Channel
from warrenmq.broker.dropping import FEW, LetGo
from warrenmq.broker.flow import Allowance
from warrenmq.broker.publish import outcomes
from warrenmq.broker.queue.queue import Queue
from warrenmq.broker.settling import pieces_with
from warrenmq.log.settings import Listener

if TYPE_CHECKING:
    from warrenmq.broker.broker import Broker
    from warrenmq.broker.connection import Connection


@final
class LogListener(Listener):
    """What the log says, handed on."""

    def __init__(self, broker: Broker) -> None:
        self._broker: Final = broker
        self._durability: Final = broker.durability

    def synced(self, batch: i64) -> None:
        self._durability.synced(batch)

    def failed(self, batch: i64, reason: str) -> None:
        self._durability.failed(batch, reason)

    def recovered_service(self) -> None:
        self._durability.recovered()

    def damaged(self, address: i64, problem: str) -> None:
        self._broker.damaged.found_by_scan(address, problem)

    def segment_damaged(self, segment: i64, problem: str) -> None:
        fields: dict[str, object] = {"segment": int(segment), "reason": problem}
        self._broker.notes.event("error", "segment_damaged", fields)


@final
class Durability:
    """The list of answers and credits that wait for a batch, settled when the log reports on it."""

    def __init__(self, broker: Broker) -> None:
        self._broker: Final = broker
        self.allowance: Final = Allowance()
        self.waiting: list[Channel] = []  # publishers wait for confirms there
        self.gated: list[Channel] = []  # answers are held there
        self._queues: list[Queue] = []  # deliveries wait there
        self._callbacks: list[tuple[int, Callable[[], None]]] = []
        self._charged: list[Connection] = []  # with credit outstanding
        self.problem: str = ""  # why the log cannot be written, "" while it can

    # -- waiting -----------------------------------------------------------------------------------------------

    def holds_up(self, queue: Queue) -> None:
        """Deliveries of this queue wait until the log has its promise."""
        self._broker.turn.owed = True
        if queue not in self._queues:
            self._queues.append(queue)

    def when_synced(self, callback: Callable[[], None]) -> None:
        """Call back when everything up to now is on disk (HTTP answers wait this way)."""
        self._broker.turn.owed = True
        self._callbacks.append((self._broker.log.batch, callback))

    def charged(self, connection: Connection) -> None:
        """The connection has credit outstanding."""
        self._charged.append(connection)

    # -- what the log says -------------------------------------------------------------------------------------

    def synced(self, batch: i64) -> None:
        """Batches up to this one are on disk."""
        self._broker.delay.synced(batch)
        if self._charged:
            self._give_credit(batch)
        if self.waiting:
            for channel in self.waiting:
                outcomes.synced(channel.publishing, batch)
            self.waiting = [channel for channel in self.waiting if channel.waited()]
        if self.gated:
            self.gated = [channel for channel in self.gated if not channel.release(batch)]
        if self._queues:
            still: list[Queue] = []
            for queue in self._queues:
                if queue.promise_kept():
                    queue.mark_dirty()
                else:
                    still.append(queue)
            self._queues = still
        if self._callbacks:
            waiting = self._callbacks
            self._callbacks = [item for item in waiting if item[0] > batch]
            for number, callback in waiting:
                if number <= batch:
                    callback()

    def failed(self, batch: i64, reason: str) -> None:
        """The log could not write: take back what nobody has seen, nack what was waiting, say why."""
        broker = self._broker
        log = broker.log
        broker.pressure.log_failing = True
        self.problem = reason
        broker.notes.event("error", "log_write_failed", {"reason": reason, "batch": int(batch)})
        taken: dict[int, int] = {}  # address -> from how many queues
        for vhost in broker.vhosts.values():
            for queue in vhost.queues.values():
                if queue.durable:
                    for address in queue.take_back(log.synced + 1):
                        log.settle(queue.id, address)
                        taken[address] = taken.get(address, 0) + 1
        broker.delay.batch_failed(batch)
        self._give_credit(batch)
        for channel in self.waiting:
            outcomes.batch_failed(channel.publishing, batch, taken)
        self.waiting = [channel for channel in self.waiting if channel.waited()]
        self.gated = [channel for channel in self.gated if not channel.log_failed()]
        for queue in self._queues:  # consumers go on, whatever the disk does
            queue.mark_dirty()
        broker.update_alarms()

    def recovered(self) -> None:
        broker = self._broker
        broker.pressure.log_failing = False
        self.problem = ""
        broker.notes.event("info", "log_recovered", {})
        broker.update_alarms()

    def _give_credit(self, batch: i64) -> None:
        used_up = False
        for connection in self._charged:
            used_up = used_up or connection.in_flow
        self.allowance.synced(batch, self._broker.turn.now, used_up)
        still: list[Connection] = []
        for connection in self._charged:
            if not connection.give_credit(batch):
                still.append(connection)
        self._charged = still

    # -- whole queues ------------------------------------------------------------------------------------------

    def purge(self, queue: Queue) -> None:
        self._broker.log.purge(queue.id, queue.logged_addresses())

    def drop(self, queue: Queue) -> None:
        """A durable queue goes: everything it still holds, waiting or with consumers."""
        broker = self._broker
        addresses = queue.logged_addresses()
        for address in queue.kept_addresses():
            addresses = append(addresses, address)
        if queue.aside is not None:
            addresses = queue.aside.addresses(addresses)
        pieces = pieces_with(broker, queue)
        count: i64 = 0
        for some in pieces:
            count += len(some)
        if count <= FEW:
            for entry in broker.outstanding(queue):
                if queue.holds(entry.message):
                    addresses = append(addresses, entry.message.address)
            pieces.clear()
        broker.jobs.add(LetGo(broker, queue, addresses, pieces))
