"""Looking at what is in a queue, by position, without changing anything: nothing is taken, marked or paged in.

Positions are given out one by one as messages arrive, and a message keeps its own while it is in the queue, whoever
had it meanwhile and over restarts (but for a quorum queue, which gives a new one to what comes back to its end). So a
range of positions that is fixed once can be looked at again: what was taken meanwhile is missing, what came later is
behind its end. Duty: one bounded slice of such a range; the caller gives way to others between slices. What waits and
has expired is not shown. Not here: finding what is held (``held.py``), HTTP
(``http/messages/peek.py``), the order in a fifo (``fifo.py``).
"""

from __future__ import annotations

from typing import Final, final

from librt.vecs import vec
from mypy_extensions import i64

from warrenmq.broker.message import Message, bcc_of, packed_keys_of, unpack_keys
from warrenmq.broker.queue import paging
from warrenmq.broker.queue.classic import leases_of
from warrenmq.broker.queue.held import DAMAGED, Leased, SetAside, Source, WaitingLetters
from warrenmq.broker.queue.place import Place, by_position
from warrenmq.broker.queue.queue import Queue
from warrenmq.broker.queue.quorum import QuorumQueue
from warrenmq.broker.queue.wanted import Wanted
from warrenmq.broker.services.services import Services
from warrenmq.log.damage import RecordDamaged
from warrenmq.log.format import LogError, StoredMessage
from warrenmq.log.log import Log

SLICE: Final = 256  # messages
SLICE_BYTES: Final = 4 << 20  # of bodies; at least one message


@final
class Peeked:
    """A message that somebody looked at. Its body comes in parts: those of a long one are read when asked for."""

    def __init__(
        self, place: Place, id: i64, exchange: str, all_keys: list[str], bcc: i64, header: bytes, pieces: list[bytes]
    ) -> None:
        self.place: Final = place
        self.position: Final = place.position
        self.redelivered: Final = place.redelivered
        self.exchange: Final = exchange
        self.id: Final = id
        self.all_keys: Final = all_keys
        self.bcc: Final = bcc  # how many of them, at the end, nobody may see
        self.keys: Final = all_keys[: len(all_keys) - bcc]  # the others; none when it cannot be read
        self.header: Final = header  # b"": it is damaged
        self.size: Final = place.size
        self.came_at: i64 = 0
        self.came_known: bool = False
        self._pieces: Final = pieces
        self._services: Services | None = None
        self._address: i64 = 0
        self._chunks: vec[i64] = vec[i64]()

    def is_at(self, services: Services, address: i64, chunks: vec[i64]) -> None:
        """The log, or the transient store, has its body there, in these chunks."""
        self._services = services
        self._address = address
        self._chunks = chunks

    def parts(self) -> i64:
        return len(self._pieces) if self._services is None else len(self._chunks)

    def part(self, i: i64) -> bytes:
        """LogError when it has left the log meanwhile, or is damaged there."""
        services = self._services
        return self._pieces[i] if services is None else paging.read_part(services, self._address, self._chunks[i])

    def beginning(self, most: i64) -> bytes:
        """So much of the body."""
        found: list[bytes] = []
        i: i64 = 0
        while most > 0 and i < self.parts():
            part = self.part(i)
            found.append(part[:most])
            most -= len(part)
            i += 1
        return found[0] if len(found) == 1 else b"".join(found)


@final
class Slice:
    """Some messages of a range, and the position from which to look on (the range's end when that was all)."""

    def __init__(self, messages: list[Peeked], next: i64, looked: i64) -> None:
        self.messages: Final = messages
        self.next: Final = next
        self.looked: Final = looked  # at so many, to find them


def held_in(queue: Queue) -> list[Source]:
    """What is held for other reasons than that it was delivered."""
    sources: list[Source] = []
    leases = leases_of(queue)
    if leases is not None:
        for lease in leases.holding():
            sources.append(Leased(lease))
    if isinstance(queue, QuorumQueue):
        letters = queue.letters()
        if letters:
            sources.append(WaitingLetters(queue, letters))
    damaged = queue.damaged()
    if damaged:
        sources.append(SetAside(queue, damaged))
    return sources


def peek(queue: Queue, held: list[Place], wanted: Wanted, first: i64, end: i64, most: i64) -> Slice:
    """What is wanted of all from position ``first`` up to ``end``: at most ``most`` messages, SLICE and SLICE_BYTES.
    ``held``: what is held there, by position."""
    limit = most if most < SLICE else SLICE
    if wanted.reads() or wanted.needs_age():
        limit = SLICE  # one in many may be wanted
    places = queue.places(first, end, limit) if wanted.waiting else []
    next = end if len(places) < limit else places[len(places) - 1].position + 1
    if held:
        places = _with_held(places, held, first, next)
        if len(places) > limit:
            next = places[limit].position
            del places[limit:]
    chosen: list[Place] = []
    size: i64 = 0
    looked: i64 = 0
    now = queue.broker.turn.now
    for place in places:
        if len(chosen) == most or (size + place.size > SLICE_BYTES and chosen):
            next = place.position
            break
        looked += 1
        if place.held is None and place.expires_at and place.expires_at <= now:
            continue
        if wanted.takes(place) and _takes_age(queue, wanted, place):
            size += place.size
            chosen.append(place)
    found: list[Peeked] = []
    for message in _read(queue, chosen):
        if not wanted.reads() or (message.header and wanted.takes_content(message.keys, message.header)):
            message.came_at = queue.came_at(message.position)
            message.came_known = queue.knows_when(message.position)
            found.append(message)
    return Slice(found, next, looked)


def _takes_age(queue: Queue, wanted: Wanted, place: Place) -> bool:
    if not wanted.needs_age():
        return True
    return wanted.takes_age(queue.came_at(place.position), queue.knows_when(place.position))


def _with_held(places: list[Place], held: list[Place], first: i64, end: i64) -> list[Place]:
    """Both in one order. What waits again meanwhile waits."""
    waiting: set[int] = {int(place.position) for place in places}
    more = [place for place in _between(held, first, end) if int(place.position) not in waiting]
    if not more:
        return places
    more.extend(places)
    more.sort(key=by_position)
    return more


def _between(places: list[Place], first: i64, end: i64) -> list[Place]:
    """Those from ``first`` up to ``end``, at most one more than a slice."""
    low: i64 = 0
    high: i64 = len(places)
    while low < high:
        middle = (low + high) // 2
        if places[middle].position < first:
            low = middle + 1
        else:
            high = middle
    last = low
    while last < len(places) and last - low <= SLICE and places[last].position < end:
        last += 1
    return places[low:last]


def _read(queue: Queue, places: list[Place]) -> list[Peeked]:
    """Each with its content; what is damaged on disk without. What left the queue meanwhile is left out."""
    log = queue.broker.log
    together: list[i64] = []
    for place in places:
        if _is_read_with_others(log, place):
            together.append(place.address)
    records: list[StoredMessage | None] = log.read_many(together) if together else []
    out: list[Peeked] = []
    taken: i64 = 0
    for place in places:
        message = place.message
        if message is not None and not message.absent:
            out.append(_of_message(place, message))
        elif _is_read_with_others(log, place):
            record = records[taken]
            taken += 1
            out.append(_damaged(place) if record is None else _of_record(place, record))
        else:
            single = _single(queue, place)
            if single is not None:
                out.append(single)
    return out


def _is_read_with_others(log: Log, place: Place) -> bool:
    """Neighbours on disk are read at once; not those with long bodies, nor what may have left the log."""
    if place.message is not None or place.address <= 0 or place.held is not None:
        return False
    return len(log.body_parts(place.address)) == 0


def _single(queue: Queue, place: Place) -> Peeked | None:
    message = place.message
    address = place.address if message is None else message.address
    log = queue.broker.log
    held = place.held
    if held is not None and held.state == DAMAGED:
        return _damaged(place)
    try:
        record = log.read_head(address) if address > 0 else queue.broker.transient.get_head(-address)
    except RecordDamaged:
        return _damaged(place)
    except LogError:
        return None  # settled meanwhile
    found = _of_record(place, record)
    chunks = paging.parts_of(queue.broker, address)
    if len(chunks):
        if int(address) in log.damage.known:
            return _damaged(place)
        found.is_at(queue.broker, address, chunks)
    return found


def _of_record(place: Place, record: StoredMessage) -> Peeked:
    keys = unpack_keys(packed_keys_of(record))
    body = [record.body] if record.body else []
    return Peeked(place, record.message_id, record.exchange, keys, bcc_of(record), record.header, body)


def _of_message(place: Place, message: Message) -> Peeked:
    origin = message.origin
    return Peeked(
        place, message.id, origin.exchange, origin.routing_keys, origin.bcc, message.header(), message.pieces()
    )


def _damaged(place: Place) -> Peeked:
    return Peeked(place, 0, "", [], 0, b"", [])
