"""What each publisher is still owed: the confirms of one channel.

Duty: every sequence number is settled exactly once, and what is settled goes out in as few frames as RabbitMQ's
coalescing rule allows. Not here: deciding what became of a message (``outcomes.py``).

Publishes that wait for the log are kept as ranges: consecutive numbers of one log batch with the same queues are
one ``Waiting`` however many messages they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from librt.strings import BytesWriter, write_i16_be, write_i32_be, write_i64_be
from mypy_extensions import i16, i32, i64

from warrenmq.broker.publish.by_exchange import Runs
from warrenmq.log.confirmed import Confirmed
from warrenmq.log.events import NOBODY, Named
from warrenmq.wire.constants import FRAME_END, FRAME_METHOD, ID_BASIC_ACK, ID_BASIC_NACK, SIZE_BASIC_ACK

if TYPE_CHECKING:
    from warrenmq.broker.queue.queue import Queue

NO_NUMBER: Final = 1 << 62  # above all of them


@final
class Waiting:
    """Publishes first..last that wait until ``batch`` is on disk in ``queues``, since a time in microseconds."""

    def __init__(self, first: i64, last: i64, batch: i64, queues: list[Queue], refused: bool, since: i64) -> None:
        self.first: i64 = first
        self.last: i64 = last
        self.batch: Final = batch
        self.queues: Final = queues
        self.refused: Final = refused  # some queue failed already: a nack it will be
        self.since: Final = since


def _by_number(waiting: Waiting) -> int:
    return waiting.first


@final
class Confirms:
    """The confirms of one channel. Numbers here are its ``publish_seqno``; ``offset`` turns them into the tags that the
    client counts."""

    def __init__(self, journal: Confirmed) -> None:
        self._journal: Final = journal
        self._who: Named = NOBODY  # whose they are, as the journal knows it
        self.offset: i64 = 0  # publish_seqno when confirm.select came
        self.waiting: list[Waiting] = []
        self.runs: Final = Runs()
        self.acked: i64 = 0  # told so
        self.nacked: i64 = 0
        self._run_first: i64 = 0  # acked numbers of this turn that follow one another
        self._run_last: i64 = 0
        self._acked: list[int] = []  # the others: none without a run
        self._nacked: list[int] = []
        self._late: Final[dict[int, str]] = {}  # why, of those that had been taken

    def select(self, who: Named, last: i64) -> None:
        """Each publish behind this one is confirmed."""
        self.offset = last
        self._who = who
        self._journal.select(who, last)

    def end(self) -> None:
        """Nobody is told anything any more."""
        self.waiting = []
        self._late.clear()
        self._who.unconfirmed = None

    def owed(self) -> bool:
        """Is there something to flush?"""
        return self._run_last != 0 or bool(self._nacked)

    def unanswered(self) -> i64:
        """How many wait for the log, or for the end of the turn."""
        count: i64 = len(self._acked) + len(self._nacked)
        if self._run_last:
            count += self._run_last - self._run_first + 1
        for waiting in self.waiting:
            if waiting.last > self.offset:
                count += waiting.last - max(waiting.first - 1, self.offset)
        return count

    def ack(self, seq: i64) -> None:
        if self._run_last == 0:
            self._run_first = seq
            self._run_last = seq
        elif seq == self._run_last + 1:
            self._run_last = seq
        else:
            self._acked.append(seq)

    def nack(self, seq: i64) -> None:
        """The journal was told why, when it was published."""
        self._nacked.append(seq)

    def nack_late(self, seq: i64, why: str) -> None:
        """It was taken, and is not safe after all."""
        self._nacked.append(seq)
        self._late[seq] = why

    def wait(self, seq: i64, batch: i64, queues: list[Queue], refused: bool, since: i64) -> None:
        waiting = self.waiting
        if waiting:
            tail = waiting[-1]
            if tail.batch == batch and tail.last + 1 == seq and tail.queues is queues and tail.refused == refused:
                tail.last = seq
                return
        waiting.append(Waiting(seq, seq, batch, queues, refused, since))

    def sort_waiting(self) -> None:
        """After some went back to waiting."""
        self.waiting.sort(key=_by_number)

    def take_synced(self, synced: i64) -> list[Waiting]:
        """Remove and return what was waiting for batches up to ``synced``."""
        waiting = self.waiting
        n: i64 = 0
        while n < len(waiting) and waiting[n].batch <= synced:
            n += 1
        taken = waiting[:n]
        del waiting[:n]
        return taken

    def take_queue(self, queue: Queue) -> list[Waiting]:
        """Remove and return what was waiting for this queue among others."""
        taken = [w for w in self.waiting if queue in w.queues]
        if taken:
            self.waiting = [w for w in self.waiting if queue not in w.queues]
        return taken

    def flush(self, w: BytesWriter, channel: i64) -> None:
        """Write acks, then nacks, of all that was settled since the last flush (coalescing)."""
        offset = self.offset
        if not self._acked and not self._nacked:
            # the common case: one unbroken run
            first = self._run_first
            last = self._run_last
            self._run_last = 0
            if last == 0:
                return
            self.acked += last - first + 1
            self._count(first, last)
            self.runs.forget(self.waiting[0].first if self.waiting else NO_NUMBER)
            if not self.waiting or self.waiting[0].first > last:
                self._write(w, channel, ID_BASIC_ACK, last - offset, last > first)
                return
            self._write_set(w, channel, ID_BASIC_ACK, list(range(first, last + 1)), self.waiting[0].first)
            return
        acked = self._acked
        nacked = self._nacked
        if self._run_last:
            acked.extend(range(self._run_first, self._run_last + 1))
            self._run_last = 0
        acked.sort()
        nacked.sort()
        self.acked += len(acked)
        self.nacked += len(nacked)
        self._acked = []
        self._nacked = []
        self._count_each(acked, nacked)
        cutoff: i64 = self.waiting[0].first if self.waiting else NO_NUMBER
        self.runs.forget(cutoff)
        self._write_set(w, channel, ID_BASIC_ACK, acked, min(cutoff, nacked[0]) if nacked else cutoff)
        # the acks of this flush have gone out by now, so nothing below a nack is open but what waits
        self._write_set(w, channel, ID_BASIC_NACK, nacked, min(cutoff, acked[0]) if acked else cutoff)

    def _count_each(self, acked: list[int], nacked: list[int]) -> None:
        first: i64 = 0
        last: i64 = 0
        for number in acked:
            if first and number == last + 1:
                last = number
                continue
            if first:
                self._count(first, last)
            first = number
            last = number
        if first:
            self._count(first, last)
        for number in nacked:
            self._journal.nacked(self._who, number, self._late.pop(number, ""))

    def _count(self, first: i64, last: i64) -> None:
        """These are told as acked."""
        self.runs.acked(first, last)
        self._journal.acked(self._who, first, last)

    def _write_set(self, w: BytesWriter, channel: i64, method: i64, numbers: list[int], cutoff: i64) -> None:
        below: i64 = 0
        while below < len(numbers) and numbers[below] < cutoff:
            below += 1
        if below > 0:  # multiple also for one, but not for an ack alone: as RabbitMQ
            alone = len(numbers) == 1 and method == ID_BASIC_ACK
            self._write(w, channel, method, numbers[below - 1] - self.offset, not alone)
        i: i64 = below
        while i < len(numbers):
            self._write(w, channel, method, numbers[i] - self.offset, False)
            i += 1

    def _write(self, w: BytesWriter, channel: i64, method: i64, tag: i64, multiple: bool) -> None:
        w.append(FRAME_METHOD)
        write_i16_be(w, i16(channel))
        write_i32_be(w, SIZE_BASIC_ACK)
        write_i32_be(w, i32(method))
        write_i64_be(w, tag)
        flags: i64 = 0 if method == ID_BASIC_ACK else 2  # requeue, which means nothing to a publisher and is always set
        w.append(flags + 1 if multiple else flags)
        w.append(FRAME_END)
