"""The content of a message that is about to be sent elsewhere: a long body is read, searched and logged in steps.

Duty: to come from what was peeked at to a whole message without ever holding the loop for long. Where the message is
logged anew, the log gets a long body while nothing depends on it yet; what is not sent then leaves garbage behind. Not
here: whether the message is still in its queue when that is over (``transfer.py`` asks again).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.delivering.large_body import LARGE, LargeBody
from warrenmq.broker.expiration import read_expiration
from warrenmq.broker.message import Message, Origin, message_from
from warrenmq.broker.queue.peek import Peeked
from warrenmq.broker.queue.place import Place
from warrenmq.broker.queue.queue import Queue
from warrenmq.broker.queue.wanted import TextSearch
from warrenmq.log.damage import RecordDamaged
from warrenmq.log.format import LogError
from warrenmq.wire.content import decode_properties
from warrenmq.wire.replies import AmqpError

AT_ONCE: Final = 4 << 20  # octets read, or logged, in one step


@final
class Contents:
    """One message on its way."""

    def __init__(self, queue: Queue, peeked: Peeked, text: bytes, anew: bool) -> None:
        self._queue: Final = queue
        self._peeked: Final = peeked
        self._search: Final = TextSearch(text) if text else None
        self._anew: Final = anew  # will the log have to have it once more?
        self.position: Final = peeked.position
        self.address: Final = _address(queue, peeked.place)  # where the log holds it for its queue; 0: it does not
        self.matches: bool = not text
        self.gone: bool = False  # it left the queue while it was read
        self.message: Message | None = None  # None: it is damaged
        self._pieces: list[bytes] = []
        self._chunks: list[bytes] = []
        self._logged: i64 = 0  # pieces that the log has
        self._logged_bytes: i64 = 0
        self._body: LargeBody | None = None

    def read_on(self) -> bool:
        """A step's worth of it; says whether that was all."""
        if not self._peeked.header:
            return True
        left: i64 = AT_ONCE
        search = self._search
        try:
            while len(self._pieces) < self._peeked.parts():
                if left <= 0:
                    return False
                piece = self._peeked.part(len(self._pieces))
                self._pieces.append(piece)
                left -= len(piece)
                if search is not None and not self.matches:
                    self.matches = search.found_in(piece)
        except RecordDamaged:
            self.matches = True  # nobody knows
            return True
        except LogError:
            self.gone = True
            return True
        if not self.matches:
            return True
        if self._anew and self._peeked.size > LARGE and not self._log_some(left):
            return False
        self._finish()
        return True

    def _log_some(self, left: i64) -> bool:
        body = self._body
        if body is None:
            body = LargeBody(self._queue.broker.log, self._chunks)
            self._body = body
        while self._logged < len(self._pieces):
            if left <= 0:
                return False
            piece = self._pieces[self._logged]
            self._logged += 1
            self._logged_bytes += len(piece)
            self._chunks.append(piece)
            body.collected(self._logged_bytes, self._logged == len(self._pieces))
            left -= len(piece)
        return True

    def _finish(self) -> None:
        peeked = self._peeked
        header = peeked.header
        origin = Origin(peeked.exchange, peeked.all_keys, peeked.bcc)
        pieces = self._pieces if self._body is None else self._chunks
        persistent = True
        priority: i64 = 0
        expiration: i64 = -1
        try:
            properties = decode_properties(header)
            persistent = properties.delivery_mode == 2
            if properties.priority is not None:
                priority = properties.priority
            expiration = read_expiration(properties.expiration)
        except AmqpError:
            pass  # an older broker may have taken it
        message = message_from(origin, peeked.id, header, pieces, peeked.size, persistent)
        message.priority = priority
        message.expiration = expiration
        self.message = message

    def logged(self) -> LargeBody | None:
        """What the log has of the body already."""
        return self._body

    def abandon(self) -> None:
        """It does not go, or has gone."""
        if self._body is not None:
            self._body.abandon()


def _address(queue: Queue, place: Place) -> i64:
    message = place.message
    if message is not None:
        return message.address if queue.holds(message) else 0
    return place.address if place.address > 0 else 0
