"""Looking at what waits in a queue, by position, without changing anything: nothing is taken, marked or paged in.

Positions are given out one by one as messages arrive, and a message keeps its own while it is in the queue, whoever
had it meanwhile and over restarts. So a range of positions that is fixed once can be looked at again: what was taken
meanwhile is missing, what came later is behind its end. Duty: one bounded slice of such a range; the caller gives way
to others between slices. What is with consumers or leased is not shown, nor what has expired. Not here: HTTP
(``http/peek.py``), the order in a fifo (``fifo.py``).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.message import Message, packed_keys_of, unpack_keys
from warrenmq.broker.queue.classic import ClassicQueue
from warrenmq.broker.queue.place import Place
from warrenmq.log.damage import RecordDamaged
from warrenmq.log.format import StoredMessage

SLICE: Final = 256  # messages
SLICE_BYTES: Final = 4 << 20  # of bodies; at least one message


@final
class Peeked:
    """A message that somebody looked at."""

    def __init__(
        self, position: i64, redelivered: bool, exchange: str, routing_key: str, header: bytes, body: bytes
    ) -> None:
        self.position: Final = position
        self.redelivered: Final = redelivered
        self.exchange: Final = exchange
        self.routing_key: Final = routing_key
        self.header: Final = header
        self.body: Final = body


@final
class Slice:
    """Some messages of a range, and the position from which to look on (the range's end when that was all)."""

    def __init__(self, messages: list[Peeked], next: i64) -> None:
        self.messages: Final = messages
        self.next: Final = next


def peek(queue: ClassicQueue, first: i64, end: i64, most: i64) -> Slice:
    """What waits from position ``first`` up to ``end``: at most ``most`` messages, SLICE and SLICE_BYTES."""
    limit = most if most < SLICE else SLICE
    places = queue.places(first, end, limit)
    next = end if len(places) < limit else places[len(places) - 1].position + 1
    chosen: list[Place] = []
    size: i64 = 0
    now = queue.broker.turn.now
    for place in places:
        if place.expires_at and place.expires_at <= now:
            continue
        size += place.size
        if size > SLICE_BYTES and chosen:
            next = place.position
            break
        chosen.append(place)
    return Slice(_read(queue, chosen), next)


def _read(queue: ClassicQueue, places: list[Place]) -> list[Peeked]:
    """The content of each; what is damaged on disk is left out, for those to deal with who take it."""
    broker = queue.broker
    logged = [place.address for place in places if place.message is None and place.address > 0]
    records: list[StoredMessage | None] = []
    if logged:
        records = broker.log.read_many(logged)
    out: list[Peeked] = []
    taken: i64 = 0
    for place in places:
        message = place.message
        if message is not None and not message.absent:
            out.append(_of_message(place, message))
            continue
        record: StoredMessage | None = None
        if message is None and place.address > 0:
            record = records[taken]
            taken += 1
        else:
            record = _single(queue, place)
        if record is not None:
            out.append(_of_record(place, record))
    return out


def _single(queue: ClassicQueue, place: Place) -> StoredMessage | None:
    message = place.message
    try:
        if message is not None:
            return queue.broker.log.read(message.address)
        return queue.broker.transient.get(-place.address)
    except RecordDamaged:
        return None


def _of_record(place: Place, record: StoredMessage) -> Peeked:
    key = unpack_keys(packed_keys_of(record))[0]
    return Peeked(place.position, place.redelivered, record.exchange, key, record.header, record.body)


def _of_message(place: Place, message: Message) -> Peeked:
    origin = message.origin
    key = origin.routing_keys[0]
    return Peeked(place.position, place.redelivered, origin.exchange, key, message.header(), message.body())
