"""Dead letters whose bodies are so long that it takes several turns to read or to log them, and those behind them.

Duty: to spread that work. What the same queue gives up meanwhile waits in line, so that letters arrive in the order in
which they died. For the log each is in its queue until it is handed over, which is one batch: never lost, never
doubled. Not here: what a letter looks like and where it goes (``dead_letter.py``).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64, trait

from warrenmq.broker.delivering.large_body import BodyInLog, LoggedAhead
from warrenmq.broker.exchange.walk import Routed
from warrenmq.broker.message import Message
from warrenmq.broker.queue.office import GivesUp, Unsettled
from warrenmq.broker.queue.queue import Entry, Queue
from warrenmq.broker.queue.read_ahead import BodyReader
from warrenmq.log.causes import REASONS
from warrenmq.log.damage import RecordDamaged

AT_ONCE: Final = 8 << 20  # octets of a body that are logged in a turn


@final
class Way:
    """A dead letter and where it goes."""

    def __init__(self, dead: Message, routed: Routed, targets: list[Queue]) -> None:
        self.dead: Final = dead
        self.routed: Final = routed
        self.targets: list[Queue] = targets

    def is_logged_by_all(self) -> bool:
        """Does whoever gets it keep it in the log? Then nobody needs its body in memory."""
        for target in self.targets:
            if not target.logs(self.dead):
                return False
        for exchange in self.routed.scheduled:
            if not exchange.durable:
                return False
        return True

    def is_logged(self) -> bool:
        """Does somebody who gets it keep it in the log?"""
        for target in self.targets:
            if target.logs(self.dead):
                return True
        for exchange in self.routed.scheduled:
            if exchange.durable:
                return True
        return False


@trait
class Forwarder:
    """The one who knows where letters go."""

    def way_of(self, queue: Queue, message: Message, reason: str) -> Way | None:
        """The dead letter and where it goes now; None when the exchange is missing."""
        raise NotImplementedError

    def forward(self, queue: Queue, message: Message, cause: i64, way: Way | None, body: BodyInLog | None) -> None:
        """Hand it over. ``body``: what the log has of it already."""
        raise NotImplementedError

    def line_is_over(self, queue: Queue) -> None:
        raise NotImplementedError


@final
class Line(Unsettled):
    """The letters of one queue, of which the first takes long."""

    def __init__(self, forwarder: Forwarder, queue: Queue, keeper: GivesUp) -> None:
        super().__init__(None)
        self._forwarder: Final = forwarder
        self._queue: Final = queue
        self._keeper: Final = keeper
        self._waiting: Final[list[tuple[Entry, int] | None]] = []
        self._next: i64 = 0  # those before it are gone
        self._new: bool = True  # letters before the first are published at the end of this turn
        # of the first of them
        self._begun: bool = False
        self._way: Way | None = None
        self._reader: BodyReader | None = None
        self._ahead: LoggedAhead | None = None

    def add(self, entry: Entry, cause: i64) -> None:
        self._waiting.append((entry, int(cause)))

    def step(self) -> bool:
        turn = self._queue.broker.turn
        if self._new:
            self._new = False
            return False
        while self._next < len(self._waiting):
            waiting = self._waiting[self._next]
            assert waiting is not None
            entry, cause = waiting
            if turn.expiries_left <= 0:
                return False
            try:
                if not self._is_ready(entry.message, cause):
                    return False
                self._hand_over(entry, cause)
            except RecordDamaged:
                self._set_aside(entry)
            turn.expiries_left -= 1 + (min(entry.message.size, AT_ONCE) >> 12)
            self._waiting[self._next] = None
            self._next += 1
            self._begun = False
        self._forwarder.line_is_over(self._queue)
        return True

    def _is_ready(self, message: Message, cause: i64) -> bool:
        """Some more of what takes long; says whether there is no more of it."""
        if not self._begun:
            self._begin(message, cause)
        if self._reader is not None:
            return self._lost(message) or self._reader.read_some()
        if self._ahead is None:
            return True
        return self._queue.broker.jobs.may_log() and self._ahead.log_some(AT_ONCE)

    def _begin(self, message: Message, cause: i64) -> None:
        self._begun = True
        self._reader = None
        self._ahead = None
        way = self._forwarder.way_of(self._queue, message, REASONS[cause])
        self._way = way
        if way is None:
            return
        if is_read_first(way, message):
            self._reader = BodyReader(self._queue.broker, message.address)
        elif is_logged_first(way, self._queue, message):
            self._ahead = LoggedAhead(self._queue.broker.log, way.dead.pieces())

    def _lost(self, message: Message) -> bool:
        """Its queue was deleted, and the log has let go of the body."""
        return self._queue.gone and message.absent

    def _hand_over(self, entry: Entry, cause: i64) -> None:
        way = self._way
        if way is not None:
            way.targets = [target for target in way.targets if not target.gone]
            if self._reader is not None and not self._lost(entry.message):
                way.dead.chunks = self._reader.pieces
                way.dead.absent = False
            elif self._lost(entry.message):
                way = None
        self._forwarder.forward(self._queue, entry.message, cause, way, self._ahead)
        if self._ahead is not None:
            self._ahead.abandon()  # unless it was taken
        self._keeper.handed_over(entry, cause)

    def _set_aside(self, entry: Entry) -> None:
        message = entry.message
        self._queue.counters.dead_lettering(-1)
        self._queue.set_aside(
            message.address, entry.position, message.size, entry.redelivered, entry.expires_at, message.priority
        )

    def entries_left(self) -> list[Entry]:
        left: list[Entry] = []
        i = self._next
        while i < len(self._waiting):
            waiting = self._waiting[i]
            if waiting is not None:
                left.append(waiting[0])
            i += 1
        return left

    def subject(self) -> str:
        return str(self._queue.name)


def is_read_first(way: Way, message: Message) -> bool:
    """Does somebody need the body who does not keep it where it is, in the log?"""
    return message.absent and not way.is_logged_by_all()


def is_logged_first(way: Way, queue: Queue, message: Message) -> bool:
    """Does somebody keep it in the log, who cannot share what is there already?"""
    return not message.absent and not queue.holds(message) and way.is_logged()
