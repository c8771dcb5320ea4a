"""Taking back what a transfer sent, as far as nobody has touched it.

Duty: for each message sent, all of its copies out of their queues and, unless it was a copy, the message back into the
queue it came from, as it was, in one turn, so in one batch of the log. Untouched is what still waits where it was put
and was never delivered. The rest is listed: where it went, and that it is not there any more.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.delivering.delivering import move
from warrenmq.broker.message import Message, Origin, message_from
from warrenmq.broker.queue.classic import ClassicQueue
from warrenmq.broker.queue.peek import peek
from warrenmq.broker.queue.queue import Entry
from warrenmq.broker.queue.wanted import Wanted
from warrenmq.broker.transfer.contents import Contents
from warrenmq.broker.transfer.transfer import COPY, MOVE, REDRIVE, RUNNING, Sent, Transfer
from warrenmq.broker.transfer.ways import REDRIVEN, redriven
from warrenmq.log import causes
from warrenmq.wire.content import decode_properties, encode_header
from warrenmq.wire.fields import Field, Table

LISTED: Final = 1000  # of those that cannot be taken back


@final
class Undo:
    """The way back of one transfer's messages, the first first."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer: Final = transfer
        self.state: str = RUNNING
        self.undone: i64 = 0
        self.left: i64 = 0  # those that cannot be taken back
        self.listed: Final[list[Sent]] = []  # the first of them
        self._next: i64 = 0
        self._contents: Contents | None = None  # of a long message, being read

    def step(self, most: i64) -> bool:
        """Take at most so many back; says whether it is over."""
        trail = self.transfer.trail
        while self._next < len(trail) and most > 0:
            sent = trail[self._next]
            if self._must_wait(sent):
                return False
            contents = self._contents
            if contents is None:
                contents = self._begin(sent)
            if contents is not None and not contents.read_on():
                self._contents = contents
                return False
            self._contents = None
            if contents is not None and self._take_back(sent, contents):
                self.undone += 1
            else:
                self.left += 1
                if len(self.listed) < LISTED:
                    self.listed.append(sent)
            if contents is not None:
                contents.abandon()
            self._next += 1
            most -= 1
        return self._next >= len(trail)

    def _must_wait(self, sent: Sent) -> bool:
        """Is one of the queues about to get messages back, or the like? Then it is not asked now."""
        for queue, _ in sent.copies:
            if queue.busy and not queue.gone:
                return True
        return self.transfer.source.busy > 0 and not self.transfer.source.gone

    def _begin(self, sent: Sent) -> Contents | None:
        if not _is_untouched(sent):
            return None
        queue, position = sent.copies[0]
        only_waiting = Wanted()
        only_waiting.held = False
        found = peek(queue, [], only_waiting, position, position + 1, 1).messages
        return Contents(queue, found[0], b"", self.transfer.kind == REDRIVE) if found else None

    def _take_back(self, sent: Sent, contents: Contents) -> bool:
        """In this turn."""
        message = contents.message
        source = self.transfer.source
        if message is None or not _is_untouched(sent):
            return False
        back: Message | None = None
        if self.transfer.kind != COPY:
            back = self._as_it_was(sent, message)
            if source.gone or (source.eager and source.refuses(back)):
                return False
        taken: list[Entry] = []
        for queue, position in sent.copies:
            assert isinstance(queue, ClassicQueue)
            entry = queue.take_out(position)
            assert entry is not None  # it was there a moment ago
            taken.append(entry)
        if back is not None:
            back.moved = True
            address: i64 = contents.address if self.transfer.kind == MOVE else 0
            move(source.broker, back, [source], address, causes.MOVE, contents.logged())
        for entry in taken:
            left = entry.queue
            assert isinstance(left, ClassicQueue)
            left.took_out(entry, causes.PURGED if back is None else causes.MOVED)
        return True

    def _as_it_was(self, sent: Sent, message: Message) -> Message:
        if sent.original is not None:
            return sent.original
        if self.transfer.kind != REDRIVE:
            return message
        properties = decode_properties(message.header()).copy()
        headers: Table = {} if properties.headers is None else dict(properties.headers)
        times = redriven(headers) - 1
        if times > 0:
            headers[REDRIVEN] = Field("l", times)
        else:
            headers.pop(REDRIVEN, None)
        properties.headers = headers
        header = encode_header(properties, message.size)
        origin = Origin(sent.exchange, sent.keys, sent.bcc)
        back = message_from(origin, message.id, header, message.pieces(), message.size, message.persistent)
        back.expiration = message.expiration
        back.priority = message.priority
        return back


def _is_untouched(sent: Sent) -> bool:
    """Do all of its copies wait where they were put, and has nobody had them?"""
    for queue, position in sent.copies:
        if queue.gone or not isinstance(queue, ClassicQueue):
            return False
        found = queue.places(position, position + 1, 1)
        if not found or found[0].redelivered:
            return False
    return True
