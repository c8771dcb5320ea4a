"""The receipts of all publishers: held until what they say is true, then sent.

Duty: a receipt that speaks of the disk waits for the log's batch; it is sent a bounded number a turn, to a queue or
straight to the channel that listens for replies. A receipt is a message of the broker's own: it asks for nothing
itself, and when nobody takes it (the queue is gone or full, the channel closed) it is counted as lost.
Not here: what it says (``receipt.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from warrenmq.broker.delivering.delivering import move
from warrenmq.broker.durability.durability import Durability, WaitsForLog
from warrenmq.broker.message import Origin, message_from
from warrenmq.broker.queue.queue import Queue
from warrenmq.broker.receipts.receipt import Receipt
from warrenmq.broker.replies import DirectReplies
from warrenmq.broker.services.jobs import Job
from warrenmq.broker.services.services import Services
from warrenmq.broker.services.turn import Delivering
from warrenmq.log.causes import RECEIPT
from warrenmq.wire.content import encode_header

if TYPE_CHECKING:
    from warrenmq.broker.vhost.vhost import VHost

COST: Final = 32  # how many settled messages it counts for to send one; every four queues that it names are one more


@final
class Receipts(WaitsForLog, Delivering):
    """The receipts owed to those who asked what became of their publishes."""

    def __init__(
        self, services: Services, vhosts: dict[str, VHost], durability: Durability, replies: DirectReplies
    ) -> None:
        self._services: Final = services
        self._vhosts: Final = vhosts
        self._durability: Final = durability
        self._replies: Final = replies
        self._waiting: list[Receipt] = []  # for the log, in order of batches
        self._ready: list[Receipt] = []
        self._waits: bool = False  # does whoever hears of the log know of it?
        self._dirty: bool = False  # does the end of the turn?
        self._sending: bool = False  # a job sends the rest
        self.sent: i64 = 0
        self.lost: i64 = 0

    def owe(self, receipt: Receipt, logged: bool) -> None:
        """To be sent at the end of the turn, or, when ``logged``, when all that the log has got until now is on
        disk."""
        if not logged:
            self._is_ready(receipt)
            return
        receipt.batch = self._services.log.batch
        self._waiting.append(receipt)
        self._services.turn.owed = True
        if not self._waits:
            self._waits = True
            self._durability.waiting.append(self)

    def _is_ready(self, receipt: Receipt) -> None:
        self._ready.append(receipt)
        if not self._dirty and not self._sending:
            self._dirty = True
            self._services.turn.dirty.append(self)

    # -- what the log says -------------------------------------------------------------------------------------

    def log_synced(self, batch: i64) -> None:
        n: i64 = 0
        while n < len(self._waiting) and self._waiting[n].batch <= batch:
            self._is_ready(self._waiting[n])
            n += 1
        del self._waiting[:n]

    def batch_failed(self, batch: i64, taken: dict[int, int]) -> None:  # noqa: ARG002
        """What a transaction did stays, and comes to disk with what is written next: its receipts wait for that."""
        still: list[Receipt] = []
        for receipt in self._waiting:
            if receipt.committed or receipt.batch > batch:
                still.append(receipt)
            else:
                receipt.not_written(self._durability.problem)
                self._is_ready(receipt)
        self._waiting = still

    def queue_lost(self, queue: Queue, deleted: bool) -> None:
        """The receipt looks at its queues itself, when it is sent."""

    def waited(self) -> bool:
        self._waits = len(self._waiting) > 0
        return self._waits

    # -- sending -----------------------------------------------------------------------------------------------

    def deliver_now(self) -> None:
        self._dirty = False
        self._sending = True
        self._services.jobs.add(Sending(self))

    def send_some(self) -> bool:
        """As many as this turn may; says whether none is left."""
        turn = self._services.turn
        ready = self._ready
        n: i64 = 0
        while n < len(ready) and turn.settles_left > 0:
            receipt = ready[n]
            n += 1
            turn.settles_left -= COST + (len(receipt.places) >> 2)
            self._send(receipt)
        del ready[:n]
        self._sending = len(ready) > 0
        return not self._sending

    def _send(self, receipt: Receipt) -> None:
        properties, body = receipt.content(self._services.turn.now)
        origin = Origin("", [receipt.address or receipt.queue])
        header = encode_header(properties, len(body))
        id = self._services.ids.message()
        message = message_from(origin, id, header, [body], len(body), receipt.persistent)
        taken = False
        if receipt.address:
            taken = receipt.address in self._replies
            self._replies.deliver(receipt.address, message)
        else:
            vhost = self._vhosts.get(receipt.vhost)
            queue = None if vhost is None else vhost.queues.get(receipt.queue)
            taken = queue is not None and move(self._services, message, [queue], 0, RECEIPT)
        if taken:
            self.sent += 1
        else:
            self.lost += 1


@final
class Sending(Job):
    """Receipts on their way, when they are more than a turn takes."""

    def __init__(self, receipts: Receipts) -> None:
        super().__init__(None)
        self._receipts: Final = receipts

    def step(self) -> bool:
        return self._receipts.send_some()

    def subject(self) -> str:
        return "receipts"
