"""One move, copy or redrive: messages of a queue to other queues, chosen by a filter, one at a time.

Duty: to do it so that no message is lost or doubled. A message enters its targets and leaves its source within one
turn, so in one batch of the log: after a crash at any moment it is in its targets and not in its source, or in its
source and not in its targets. What is delivered, expires or is purged before its turn comes is simply not there any
more. Between steps everybody else is served; the caller says how much a step may do. Not here: where a message goes
(``ways.py``), taking it back (``undo.py``), who asks and how fast (HTTP).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.delivering.delivering import move
from warrenmq.broker.delivering.told_route import told_route
from warrenmq.broker.message import Message
from warrenmq.broker.queue.classic import ClassicQueue
from warrenmq.broker.queue.peek import Peeked, peek
from warrenmq.broker.queue.queue import Queue
from warrenmq.broker.queue.wanted import Wanted
from warrenmq.broker.services.turn import WORK
from warrenmq.broker.transfer.contents import Contents
from warrenmq.broker.transfer.ways import Way, Ways
from warrenmq.log import causes
from warrenmq.log.events import NOBODY

MOVE: Final = "move"
COPY: Final = "copy"
REDRIVE: Final = "redrive"

RUNNING: Final = "running"
DONE: Final = "done"
CANCELLED: Final = "cancelled"
FAILED: Final = "failed"

DAMAGED: Final = "damaged on disk"
REMEMBERED: Final = 100_000  # messages of a transfer that can be taken back
LOOKS: Final = 16  # so many messages may be looked at for each that a step may send


@final
class Sent:
    """A message that was sent: enough to take it back."""

    def __init__(
        self, position: i64, exchange: str, keys: list[str], bcc: i64, copies: list[tuple[Queue, int]]
    ) -> None:
        self.position: Final = position  # where it was
        self.exchange: Final = exchange  # and as what
        self.keys: Final = keys
        self.bcc: Final = bcc
        self.copies: Final = copies  # where it is: queue and position
        self.original: Message | None = None  # where it was edited: what it was


@final
class Transfer:
    """The work and its counts."""

    def __init__(
        self,
        id: str,
        kind: str,
        source: Queue,
        wanted: Wanted,
        text: bytes,
        ways: Ways,
        first: i64,
        limit: i64,
        dry_run: bool,
        end: i64 = 0,
    ) -> None:
        self.id: Final = id
        self.kind: Final = kind
        self.source: Final = source
        self.dry_run: Final = dry_run
        self._wanted: Final = wanted
        self._text: Final = text
        self._ways: Final = ways
        self._limit: Final = limit
        self._contents: Contents | None = None  # of a long message, being read
        self.state: str = RUNNING
        self.problem: str = ""
        self.next: i64 = first
        visible = source.visible_end()  # what comes later is not looked at
        self.end: Final = end if 0 < end < visible else visible
        self.looked: i64 = 0
        self.matched: i64 = 0
        self.sent: i64 = 0
        self.bytes: i64 = 0
        self.targets: dict[str, int] = {}  # by name: how many messages each got
        self.stayed: dict[str, int] = {}  # by reason
        self.trail: Final[list[Sent]] = []
        self._enough: i64 = 0  # the turn's work that is left to others

    def step(self, most: i64) -> bool:
        """Send at most so many; says whether it is over."""
        source = self.source
        if self.state != RUNNING:
            return True
        if source.gone:
            self.state = FAILED
            self.problem = f"{source.name} was deleted"
            return True
        if source.busy:
            return False
        contents = self._contents
        if contents is not None:
            if not contents.read_on():
                return False
            self._contents = None
            self._treat(contents)
            return self._is_over()
        before = self.matched
        budget = most * LOOKS
        self._enough = source.broker.turn.work_left - WORK // 4
        while self.next < self.end and budget > 0 and self.matched - before < most and not self._did_enough():
            part = peek(source, [], self._wanted, self.next, self.end, most - (self.matched - before))
            budget -= part.looked + 1
            self.looked += part.looked
            if self._take(part.messages, part.next):
                return False
            if self._is_over():
                return True
        return self._is_over()

    def _take(self, messages: list[Peeked], next: i64) -> bool:
        """Says whether one is so long that it is read in steps to come."""
        for message in messages:
            self.next = message.position + 1
            contents = Contents(self.source, message, self._text, self._ways.rewrites() and not self.dry_run)
            if not contents.read_on():
                self._contents = contents
                return True
            self._treat(contents)
            if self._reached_limit() or self._did_enough():
                return False
        self.next = next
        return False

    def _did_enough(self) -> bool:
        """To find where messages go may take longer than to send them."""
        return self.source.broker.turn.work_left < self._enough

    def _reached_limit(self) -> bool:
        return self._limit > 0 and self.sent >= self._limit

    def _is_over(self) -> bool:
        if self._contents is None and (self.next >= self.end or self._reached_limit()):
            self.state = DONE
        return self.state != RUNNING

    def cancel(self) -> None:
        if self.state == RUNNING:
            self.state = CANCELLED
        contents = self._contents
        if contents is not None:
            self._contents = None
            contents.abandon()

    def fail(self, problem: str) -> None:
        self.cancel()
        self.state = FAILED
        self.problem = problem

    # -- one message -------------------------------------------------------------------------------------------

    def _treat(self, contents: Contents) -> None:
        """The content is here: send it, if it is wanted and has a way."""
        if contents.gone or not contents.matches:
            contents.abandon()
            return
        self.matched += 1
        message = contents.message
        if message is None:
            self._stays(DAMAGED)
            return
        way = self._ways.of(message)
        if way.problem:
            contents.abandon()
            self._stays(way.problem)
            return
        if not self.dry_run and not self._send(contents, message, way):
            contents.abandon()
            self.matched -= 1  # it left while it was read
            return
        contents.abandon()
        self.sent += 1
        self.bytes += message.size
        for target in way.targets:
            self.targets[target.name.name] = self.targets.get(target.name.name, 0) + 1

    def _stays(self, reason: str) -> None:
        self.stayed[reason] = self.stayed.get(reason, 0) + 1

    def _send(self, contents: Contents, message: Message, way: Way) -> bool:
        """Into the targets and out of the source, in this turn. False: it is not there any more."""
        source = self.source
        position = contents.position
        arriving = way.message
        assert arriving is not None
        taken = None
        if self.kind != COPY:
            assert isinstance(source, ClassicQueue)
            taken = source.take_out(position)
            if taken is None:
                return False
        elif not is_waiting(source, position):
            return False
        origin = message.origin
        copies: list[tuple[Queue, int]] = [(target, int(target.next_position)) for target in way.targets]
        edit = self._ways.edit()
        if len(self.trail) < REMEMBERED:
            sent = Sent(position, origin.exchange, origin.routing_keys, origin.bcc, copies)
            if edit is not None:
                sent.original = message
            self.trail.append(sent)
        if edit is not None:
            edit.tell(source, message, contents.address)
        arriving.moved = True
        address: i64 = 0 if self._ways.rewrites() else contents.address
        came = causes.COPY if taken is None else causes.MOVE
        route = NOBODY if way.routed is None else told_route(source.broker.log, way.routed)
        move(source.broker, arriving, way.targets, address, came, contents.logged(), route)
        if taken is not None:
            assert isinstance(source, ClassicQueue)
            source.took_out(taken, causes.MOVED)
        return True


def is_waiting(queue: Queue, position: i64) -> bool:
    return len(queue.places(position, position + 1, 1)) > 0
