"""Deliveries as columns, one behind the other: what somebody asked for, and nothing else.

Duty: take deliveries as they come off the wire (``StreamRange``) or as messages (``Deliveries.extend``). Bodies and
offsets are laid out as Arrow wants them (``columns.py`` has the grammar) without a Python object each that outlives the
call.
Not here: taking properties apart, Arrow itself, and when a batch is full.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.client.columns import Numbers, Texts
from warrenmq.client.messages import Message
from warrenmq.client.offsets import stream_offset


@final
class Deliveries:
    """The parts of each delivery; ``names`` says which: columns of Spark's, or ``header`` for all properties."""

    def __init__(self, names: list[str]) -> None:
        self._exchange: Final = "exchange" in names
        self._routing_key: Final = "routing_key" in names
        self._redelivered: Final = "redelivered" in names
        self._header: Final = "header" in names
        self._offset: Final = "offset" in names
        self._body: Final = "body" in names
        # Nothing is asked for but what a body is and where it stands.
        self.bare: Final = not (self._exchange or self._routing_key or self._redelivered or self._header)
        self.exchanges: Final[list[str]] = []
        self.routing_keys: Final[list[str]] = []
        self.redelivered: Final[list[bool]] = []
        self.headers: Final[list[bytes]] = []
        self.bodies: Final = Texts()
        self.offsets: Final = Numbers(True)
        self.rows: i64 = 0

    @property
    def octets(self) -> int:
        """Of bodies."""
        return int(len(self.bodies.data))

    def put(
        self, exchange: str, routing_key: str, redelivered: bool, header: bytes, body: bytes, offset: i64 = -1
    ) -> None:
        """One more; an offset below 0 is none."""
        if self._exchange:
            self.exchanges.append(exchange)
        if self._routing_key:
            self.routing_keys.append(routing_key)
        if self._redelivered:
            self.redelivered.append(redelivered)
        if self._header:
            self.headers.append(header)
        self.put_bare(body, offset)

    def put_bare(self, body: bytes, offset: i64) -> None:
        row = self.rows
        if self._body:
            self.bodies.put(row, body)
        if self._offset and offset >= 0:
            self.offsets.put(row, offset)
        self.rows = row + 1

    def extend(self, messages: list[Message]) -> None:
        """Many at once, as ``Channel.receive`` gives them."""
        for message in messages:
            self.put(message.exchange, message.routing_key, message.redelivered, message.header, message.body)


@final
class StreamRange:
    """The messages of a stream from one offset up to, not including, another, on their way into columns.

    Each once, in order; deliveries outside are passed over. ``at`` is the offset to come, ``end`` when all have.
    ``gap`` is the first offset of the first gap of more than ``allowed`` that was seen; whoever asks sets it back.
    """

    def __init__(self, into: Deliveries, start: int, end: int) -> None:
        self.into = into
        self.at: i64 = start
        self.end: Final[i64] = end
        self.allowed: i64 = 0
        self.gap: i64 = -1
        self.delivery_tag: i64 = 0  # of the last delivery, whatever became of it
        self.fresh = False  # something was delivered since this was last set back

    def put(
        self, delivery_tag: i64, redelivered: bool, exchange: str, routing_key: str, header: bytes, body: bytes
    ) -> None:
        offset = stream_offset(header, 0, len(header))
        if self._takes(delivery_tag, offset):
            self.into.put(exchange, routing_key, redelivered, header, body, offset)

    def put_bare(self, delivery_tag: i64, data: bytes, header: i64, header_end: i64, body: i64, body_end: i64) -> None:
        """A delivery whose body is taken from where it lies, as nothing else is asked for (``into.bare``)."""
        offset = stream_offset(data, header, header_end)
        if self._takes(delivery_tag, offset):
            self.into.put_bare(data[body:body_end], offset)

    def _takes(self, delivery_tag: i64, offset: i64) -> bool:
        self.delivery_tag = delivery_tag
        self.fresh = True
        if offset < self.at:
            return False
        begin = offset if offset < self.end else self.end
        if begin > self.at + self.allowed and self.gap < 0:
            self.gap = self.at
        if offset >= self.end:
            self.at = self.end
            return False
        self.at = offset + 1
        return True
