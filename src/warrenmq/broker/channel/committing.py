"""tx.commit: what a transaction holds is applied, all of it or nothing, a slice a turn when it is much.

First every queue is asked: if one would refuse, nothing is applied. Then the publishes are offered to their
queues, which take them even if others have filled them meanwhile; then the acknowledgements. All of it is one batch of
the log, which keeps that open until the last slice (``Log.hold``): confirms of others wait as long, the others
themselves do not. One commit after the other does that, and each is on disk before the next begins, so that nobody's
confirm waits for two. The client's input waits for the end; should the client go meanwhile, it is applied all the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from warrenmq.broker.channel.settling import FEW
from warrenmq.broker.channel.transaction import ACK, NACK_OR_REJECT, REQUEUE, BufferedAck
from warrenmq.broker.delivering.told_route import told_by_name
from warrenmq.broker.publish.accounting import deliver_as_wished
from warrenmq.broker.publish.duplicates import deliver_once, found, is_unsynced, tell_duplicate
from warrenmq.broker.publish.outcomes import deliver
from warrenmq.broker.publish.publishing import Uncommitted, forget
from warrenmq.broker.queue.office import Unsettled
from warrenmq.broker.queue.queue import Entry, Queue
from warrenmq.broker.receipts.receipt import Receipt
from warrenmq.wire.methods import SPECS_BY_NAME, method_frame
from warrenmq.wire.replies import NOT_IMPLEMENTED, PRECONDITION_FAILED, AmqpError

if TYPE_CHECKING:
    from warrenmq.broker.channel.channel import Channel

ASK: Final = 2  # how many settled messages it counts for to ask the queues of one that is published
PUBLISH: Final = 8  # how many settled messages it counts for to publish one; every 4 KiB of it is one more


@final
class Commit(Unsettled):
    """One tx.commit under way: what has been asked, published and settled of it so far."""

    def __init__(self, channel: Channel, publishes: list[Uncommitted], acks: list[BufferedAck]) -> None:
        super().__init__(channel.connection)
        self._channel: Final = channel
        self._publishes: list[Uncommitted] = publishes
        self._acks: list[BufferedAck] = acks
        self._later: bool = False  # is this another turn than that of the method?
        # asking
        self._asked: i64 = 0  # publishes whose queues have been asked
        self._looked: i64 = 0  # acknowledgements looked through, and deliveries of the next one
        self._looked_entries: i64 = 0
        self._ready: bool = False
        self._logs: bool = False  # does the log know of any of it?
        self._length: dict[Queue, int] = {}  # what this commit itself adds, to queues that may refuse
        self._size: dict[Queue, int] = {}
        # applying
        self._holds: bool = False  # the log keeps its batch open for us
        self._queued: bool = False  # has a queue got a message?
        self._part: Unsettled | None = None  # the acknowledgement that takes several turns
        self._told: bool = False  # the answer stands in line
        self._receipts: list[Receipt] = []  # to be sent when all of it is done

    def step(self) -> bool:
        channel = self._channel
        broker = channel.broker
        later = self._later
        self._later = True
        if not self._ready:
            try:
                if not self._ask():
                    return False
            except AmqpError as error:
                self._give_up()
                if not later:
                    raise
                channel.connection.failed(channel.number, channel, error)
                return True
            self._ready = True
            self._publishes.reverse()  # what is done is let go, from the end: to free very many at once takes long
            self._acks.reverse()
        if not self._holds and not self._few():
            if not broker.services.jobs.hold_log():
                return False
            self._holds = True
        mark = broker.services.log.mark()
        over = self._publish() and self._settle()
        if over and self._queued and not self._told:
            broker.services.settle_down()
        if broker.services.log.mark() != mark:
            self._logs = True
        if over:
            if self._holds:
                broker.services.jobs.release_log()
            self._answer()
        return over

    def _few(self) -> bool:
        """Will the rest be done in this turn?"""
        left: i64 = self._channel.services.turn.settles_left - len(self._publishes) * PUBLISH
        for ack in self._acks:
            left -= len(ack.taken.entries)
            if left < 0 or len(ack.taken.entries) > FEW:
                return False
        for p in self._publishes:
            left -= p.message.size >> 12
            if left < 0:
                return False
        return left >= 0

    # -- asking ------------------------------------------------------------------------------------------------

    def _ask(self) -> bool:
        """Would any queue refuse, or is the log failing? Then raise what is to be said. Says whether all were asked."""
        broker = self._channel.broker
        known = self._channel.connection.open_vhost().queues
        before: Uncommitted | None = None  # the publish before, which went to ``routed``
        routed: list[Queue] = []
        while self._asked < len(self._publishes):
            if broker.services.turn.settles_left <= 0:
                return False
            broker.services.turn.settles_left -= ASK
            p = self._publishes[self._asked]
            self._asked += 1
            # a message is routed to names when it is published; which queues have them is asked at the commit
            if before is not None and p.queues is routed and p.message.origin is before.message.origin:
                p.queues = before.queues
            else:
                routed = p.queues
                names = [queue.name.name for queue in routed]
                if p.exchange.name.name == "":
                    names = list(dict.fromkeys(p.message.origin.routing_keys))
                p.queues = [known[name] for name in names if name in known]
            before = p
            if p.mark is not None and found(self._channel.publishing, p.mark):
                self._logs = self._logs or is_unsynced(self._channel.publishing, p.mark)
                continue  # it goes nowhere
            for queue in p.queues:
                if queue.eager or queue.failed:
                    self._ask_queue(queue, p.message.size)
                if queue.logs(p.message):
                    self._logs = True
        while self._looked < len(self._acks):
            if not self._look(self._acks[self._looked]):
                return False
            self._looked += 1
            self._looked_entries = 0
        if broker.services.pressure.log_failing and self._logs:
            raise partial()
        return True

    def _ask_queue(self, queue: Queue, size: i64) -> None:
        taken = queue.wanted_now() - queue.reserved()  # consumers that wait take these at once
        if queue.would_refuse(max(0, self._length.get(queue, 0) - taken), self._size.get(queue, 0), size):
            raise partial()
        length = self._length.get(queue, 0) + 1
        self._length[queue] = length
        if length > taken:
            self._size[queue] = self._size.get(queue, 0) + size

    def _look(self, ack: BufferedAck) -> bool:
        """A delivery that its queue does not take back ends the connection before anything is applied."""
        broker = self._channel.broker
        entries = ack.taken.entries
        end: i64 = self._looked_entries + max(0, broker.services.turn.settles_left)
        if end > len(entries):
            end = len(entries)
        broker.services.turn.settles_left -= end - self._looked_entries
        for entry in entries[self._looked_entries : end]:
            if ack.what != ACK:
                problem = entry.queue.refusal_problem(NACK_OR_REJECT)
                if problem:
                    raise AmqpError(NOT_IMPLEMENTED, problem)
            if entry.queue.holds(entry.message):
                self._logs = True
        self._looked_entries = end
        return end == len(entries)

    def _give_up(self) -> None:
        """Nothing is applied; the acknowledged deliveries are outstanding again."""
        tx = self._channel.tx
        if tx is not None:
            tx.put_back(self._acks)
        else:  # the channel is gone
            entries = [entry for ack in self._acks for entry in ack.taken.entries]
            self._channel.services.jobs.add(self._channel.outstanding.giving_back(entries, None))
            self._channel.services.freeing.add(self._acks)
        self._channel.publishing.tally.not_committed += len(self._publishes)
        forget(self._publishes)
        self._channel.services.freeing.add(self._publishes)
        self._acks = []
        self._publishes = []

    # -- applying ----------------------------------------------------------------------------------------------

    def _publish(self) -> bool:
        channel = self._channel
        broker = channel.broker
        publishes = self._publishes
        if not publishes:
            return True
        while publishes:
            if broker.services.turn.settles_left <= 0:
                return False
            p = publishes.pop()
            channel.publishing.tally.committed += 1
            broker.services.turn.settles_left -= PUBLISH + (p.message.size >> 12)
            queues = p.queues
            for queue in queues:
                if queue.gone:
                    queues = [queue for queue in queues if not queue.gone]
                    break
            self._queued = self._queued or len(queues) > 0
            p.message.moved = True  # with the rest of its transaction or not at all: a failing disk takes no part back
            channel.publishing.large_body = p.body
            self._publish_one(p, queues)
            channel.publishing.large_body = None
            if p.body is not None:
                p.body.abandon()  # unless a queue or a schedule took it
        if self._queued and self._acks:
            broker.services.settle_down()  # consumers get what was published before what goes back
        return True

    def _publish_one(self, p: Uncommitted, queues: list[Queue]) -> None:
        publishing = self._channel.publishing
        mark = p.mark
        receipt: Receipt | None = None
        if p.exchange.name.name == "":  # which names there are was asked anew
            p.route = told_by_name(publishing.services.log, p.exchange, queues)
        if mark is not None and found(publishing, mark):
            receipt = tell_duplicate(publishing, p.exchange, p.message, mark, 0, p.wish)
        elif p.wish is not None:
            receipt = deliver_as_wished(
                publishing, p.exchange, p.message, queues, p.routed, p.route, p.mandatory, 0, p.wish, mark, True
            )
        elif mark is not None:
            deliver_once(publishing, p.exchange, p.message, queues, p.routed, p.route, p.mandatory, 0, mark, True)
        else:
            deliver(publishing, p.exchange, p.message, queues, p.routed, p.route, p.mandatory, 0, True)
        if receipt is not None:
            self._receipts.append(receipt)

    def _settle(self) -> bool:
        while self._part is not None or self._acks:
            part = self._part
            if part is None:
                part = self._begin(self._acks.pop())
            if part is not None:
                if not part.step():
                    self._part = part
                    self._stand_in_line()
                    return False
                self._part = None
        return True

    def _begin(self, ack: BufferedAck) -> Unsettled | None:
        """Do it, or say how it is done in several turns."""
        channel = self._channel
        entries = ack.taken.entries
        what = ack.what
        if len(entries) <= FEW and channel.services.turn.settles_left > 0:
            channel.services.turn.settles_left -= len(entries)
            if what == ACK:
                channel.outstanding.settle(entries)
            else:
                channel.outstanding.refuse(entries, what == REQUEUE)
            return None
        if what == REQUEUE:
            return channel.outstanding.giving_back(entries, channel.connection)
        return channel.outstanding.settling(entries, what != ACK)

    # -- answering ---------------------------------------------------------------------------------------------

    def _stand_in_line(self) -> None:
        """What the acknowledgements make room for is delivered behind the answer."""
        if not self._told and self._open():
            self._told = True
            self._channel.answers.commit_goes_on(method_frame(self._channel.number, "tx.commit-ok"), self._queued)

    def _answer(self) -> None:
        """What was published is with its queues when commit-ok comes; what went back to them is delivered behind it."""
        channel = self._channel
        for receipt in self._receipts:
            receipt.committed = True
            channel.broker.receipts.owe(receipt, self._logs)
        if self._told:
            channel.answers.commit_is_over(self._logs)
            return
        if self._open():
            answer = method_frame(channel.number, "tx.commit-ok")
            if self._queued:
                channel.answers.reply_to_commit(answer, self._logs)
            elif self._logs:
                channel.answers.reply_behind_the_log(answer)
            else:
                channel.answers.reply(answer)

    def _open(self) -> bool:
        return self._channel.tx is not None

    def publishes_left(self) -> i64:
        return len(self._publishes)

    def entries_left(self) -> list[Entry]:
        """All of what is not settled for sure: what is passes for gone at its queue."""
        left: list[Entry] = []
        part = self._part
        if part is not None:
            left.extend(part.entries_left())
        for ack in self._acks:
            left.extend(ack.taken.entries)
        return left


COMMIT: Final = SPECS_BY_NAME["tx.commit"]


def partial() -> AmqpError:
    return AmqpError(PRECONDITION_FAILED, "partial tx completion", COMMIT.class_id, COMMIT.method_id)
