"""What waits for the disk, and what happens when the log says that it got there, or that it cannot.

Duty: who waits (channels for confirms and answers, queues for the promise about deliveries, HTTP calls, credit) and
who is told in which order. What a publisher is told is decided in ``publish/outcomes.py``; the log's own work is in
``log/``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from librt.vecs import append
from mypy_extensions import i64, trait

from warrenmq.broker.delay.delays import Delays
from warrenmq.broker.durability.dropping import FEW, LetGo
from warrenmq.broker.durability.flow import Allowance
from warrenmq.broker.queue.office import Outstanding
from warrenmq.broker.queue.queue import Queue
from warrenmq.broker.services.services import Services
from warrenmq.broker.vhost.vhost import VHost
from warrenmq.log.causes import WITHDRAWN


@trait
class WaitsForLog:
    """A channel's publishes that wait for the log."""

    def log_synced(self, batch: i64) -> None:
        """What its publishers wait for is on disk up to this batch."""
        raise NotImplementedError

    def batch_failed(self, batch: i64, taken: dict[int, int]) -> None:
        """What its publishers wait for could not be written."""
        raise NotImplementedError

    def queue_lost(self, queue: Queue, deleted: bool) -> None:
        """A queue for which its publishers wait is gone."""
        raise NotImplementedError

    def waited(self) -> bool:
        """Does anything wait still?"""
        raise NotImplementedError


@trait
class Gated:
    """A channel's answers that wait for the log."""

    def release(self, synced: i64) -> bool:
        """Send the answers that waited. Says whether nothing is held any more."""
        raise NotImplementedError

    def log_failed(self) -> bool:
        """The disk fails: send what may go out. Says whether nothing is held any more."""
        raise NotImplementedError


@trait
class Charged:
    """A connection with credit outstanding."""

    def out_of_credit(self) -> bool:
        raise NotImplementedError

    def give_credit(self, batch: i64) -> bool:
        """Says whether none is outstanding any more."""
        raise NotImplementedError


@trait
class Clients(Outstanding):
    """The clients that are connected, as far as the log concerns them."""

    def update_alarms(self) -> None:
        """Measure; block publishers while an alarm is on, unblock them when the last one clears."""
        raise NotImplementedError


@final
class Durability:
    """The list of answers and credits that wait for a batch, settled when the log reports on it."""

    def __init__(self, services: Services, vhosts: dict[str, VHost], delay: Delays, clients: Clients) -> None:
        self._services: Final = services
        self._clients: Final = clients
        self._vhosts: Final = vhosts
        self._delay: Final = delay
        self.allowance: Final = Allowance()
        self.waiting: list[WaitsForLog] = []  # publishers wait for confirms there
        self.gated: list[Gated] = []  # answers are held there
        self._callbacks: list[tuple[int, Callable[[], None]]] = []
        self._charged: list[Charged] = []  # with credit outstanding
        self.problem: str = ""  # why the log cannot be written, "" while it can

    # -- waiting -----------------------------------------------------------------------------------------------

    def when_synced(self, callback: Callable[[], None]) -> None:
        """Call back when everything up to now is on disk (HTTP answers wait this way)."""
        self._services.turn.owed = True
        self._callbacks.append((self._services.log.batch, callback))

    def charged(self, connection: Charged) -> None:
        """The connection has credit outstanding."""
        self._charged.append(connection)

    # -- what the log says -------------------------------------------------------------------------------------

    def synced(self, batch: i64) -> None:
        """Batches up to this one are committed; what may be said of it to clients, the log knows."""
        promised = self._services.log.promised
        self._delay.synced(batch)
        if self._charged:
            self._give_credit(batch)
        if self.waiting:
            for channel in self.waiting:
                channel.log_synced(promised)
            self.waiting = [channel for channel in self.waiting if channel.waited()]
        if self.gated:
            self.gated = [answers for answers in self.gated if not answers.release(promised)]
        self._services.held_deliveries.synced()
        if self._callbacks:
            waiting = self._callbacks
            self._callbacks = [item for item in waiting if item[0] > promised]
            for number, callback in waiting:
                if number <= promised:
                    callback()

    def failed(self, batch: i64, reason: str) -> None:
        """The log could not write: take back what nobody has seen, nack what was waiting, say why."""
        services = self._services
        log = services.log
        services.pressure.log_failing = True
        self.problem = reason
        services.notes.event("error", "log_write_failed", {"reason": reason, "batch": int(batch)})
        taken: dict[int, int] = {}  # address -> from how many queues
        for vhost in self._vhosts.values():
            for queue in vhost.queues.values():
                if queue.durable:
                    for address in queue.take_back(log.synced + 1):
                        log.settle(queue.id, address, WITHDRAWN)
                        taken[address] = taken.get(address, 0) + 1
        self._delay.batch_failed(batch)
        self._give_credit(batch)
        for channel in self.waiting:
            channel.batch_failed(batch, taken)
        self.waiting = [channel for channel in self.waiting if channel.waited()]
        self.gated = [answers for answers in self.gated if not answers.log_failed()]
        services.held_deliveries.failed()
        self._clients.update_alarms()

    def recovered(self) -> None:
        services = self._services
        services.pressure.log_failing = False
        self.problem = ""
        services.notes.event("info", "log_recovered", {})
        self._clients.update_alarms()

    def _give_credit(self, batch: i64) -> None:
        used_up = False
        for connection in self._charged:
            used_up = used_up or connection.out_of_credit()
        self.allowance.synced(batch, self._services.turn.now, used_up)
        still: list[Charged] = []
        for connection in self._charged:
            if not connection.give_credit(batch):
                still.append(connection)
        self._charged = still

    # -- whole queues ------------------------------------------------------------------------------------------

    def drop(self, queue: Queue) -> None:
        """A durable queue goes: everything it still holds, waiting or with consumers."""
        services = self._services
        addresses = queue.logged_addresses()
        pieces = self._clients.pieces_with(queue)
        count: i64 = 0
        for some in pieces:
            count += len(some)
        if count <= FEW:
            for entry in self._clients.outstanding(queue):
                if queue.holds(entry.message):
                    addresses = append(addresses, entry.message.address)
            pieces.clear()
        services.jobs.add(LetGo(services, queue, addresses, pieces))
