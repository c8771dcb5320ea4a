"""A turn: everything between two waits of the event loop, and its end.

Duty: the time that holds for all of it, how much may be done in it, who has to be seen to at its end, and in which
order: what became deliverable is delivered and dead letters published, confirms go out, the log's batch is closed,
output is flushed. Who they are is not known here: each kind has its small interface.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64, trait

from warrenmq.broker.services.clock import Clock
from warrenmq.log.log import Log

EXPIRIES: Final = 1000  # messages that expire in one turn; every 4 KiB of a body count as one more
SLICE: Final = 16384  # messages settled in a turn
WORK: Final = 20_000  # what is done for clients in a turn, in about microseconds; see ``pacing.py``


@trait
class Delivering:
    """A queue that may have something to deliver."""

    def deliver_now(self) -> None:
        raise NotImplementedError


@trait
class Cancelled:
    """A consumer whose queue is gone: it is told behind the answer to the method that caused it."""

    def tell_cancelled(self) -> None:
        raise NotImplementedError


@trait
class Answering:
    """A channel that owes its client confirms."""

    def flush_confirms(self) -> None:
        raise NotImplementedError


@trait
class Committed:
    """A channel that owes its client the answer to a commit."""

    def release(self, synced: i64) -> bool:
        raise NotImplementedError


@trait
class Concluding:
    """Something that tells the log once what a whole turn has brought it."""

    def conclude(self) -> None:
        raise NotImplementedError


@trait
class Flushing:
    """A connection with output."""

    def flush_now(self) -> None:
        raise NotImplementedError


@trait
class Letters:
    """Dead letters that wait to be published."""

    def pending(self) -> bool:
        raise NotImplementedError

    def publish_all(self) -> None:
        raise NotImplementedError


@final
class NoLetters(Letters):
    """The dead letters where nobody gives a message up."""

    def pending(self) -> bool:
        return False

    def publish_all(self) -> None:
        pass


@final
class Turn:
    """The turn that is under way."""

    def __init__(self, clock: Clock, log: Log) -> None:
        self._clock: Final = clock
        self._log: Final = log
        self.letters: Letters = NoLetters()  # until somebody publishes some
        self.now: i64 = clock.now_ms()
        log.time = clock.now_us()  # of what a start brings, before the first turn begins
        self.expiries_left: i64 = EXPIRIES
        self.settles_left: i64 = SLICE
        self.work_left: i64 = WORK
        self.owed: bool = False  # somebody waits for the log: it commits as soon as may be
        self.dirty: list[Delivering] = []
        self.cancelled: list[Cancelled] = []
        self.owing: list[Answering] = []
        self.committed: list[Committed] = []  # their tx.commit is answered before what it gave back is delivered
        self.concluding: list[Concluding] = []
        self.flushing: list[Flushing] = []

    def begin(self) -> None:
        """Read the clock once for everything that happens until the end."""
        time = self._clock.now_us()
        self.now = time // 1000
        self._log.time = time
        self.expiries_left = EXPIRIES
        self.settles_left = SLICE
        self.work_left = WORK

    def end(self) -> None:
        """Deliver, confirm, commit, flush: once for everything the turn brought."""
        if self.committed:
            committed = self.committed
            self.committed = []
            for answers in committed:
                answers.release(self._log.promised)
        self.settle_down()
        self._flush_confirms()
        if self.concluding:
            concluding = self.concluding
            self.concluding = []
            for one in concluding:
                one.conclude()
        owed = self.owed
        self.owed = False
        self._log.end_turn(owed)
        while self.owing or self.dirty:  # an inline log has synced already
            self.settle_down()
            self._flush_confirms()
        flushing = self.flushing
        if flushing:
            self.flushing = []
            for connection in flushing:
                connection.flush_now()

    def settle_down(self) -> None:
        """Deliver from queues that changed and publish dead letters, until nothing moves any more."""
        while self.dirty or self.cancelled or self.letters.pending():
            if self.cancelled:
                cancelled = self.cancelled
                self.cancelled = []
                for consumer in cancelled:
                    consumer.tell_cancelled()
            dirty = self.dirty
            if dirty:
                self.dirty = []
                for queue in dirty:
                    queue.deliver_now()
            if self.letters.pending():
                self.letters.publish_all()

    def _flush_confirms(self) -> None:
        while self.owing:
            owing = self.owing
            self.owing = []
            for channel in owing:
                channel.flush_confirms()
