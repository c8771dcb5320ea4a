"""Transient messages that wait in memory behind a queue's window, packed: their octets and next to nothing beside.

Duty: put a message there, get it back, forget it. A message of 100 octets takes some 110 here; as an object with its
place in a queue it takes five hundred. Messages lie in packs of about a quarter of a MiB, in the order in which they
came; what they have in common is kept once, and a pack goes when nothing in it is wanted any more. Not here: when a
message is packed (``broker/queue/paging.py``), and what goes to disk (``transient.py``, which knows the packs).
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter
from librt.vecs import append, vec
from mypy_extensions import i32, i64, u8

from warrenmq.log.format import StoredMessage

PACKED: Final = 1 << 61  # in every handle, beside PLACES for each pack
PLACES: Final = 10  # bits of a handle: which message of its pack
PACK: Final = 1 << PLACES  # messages in a pack at most
PACK_BYTES: Final = 256 << 10  # octets of bodies in a pack, about
KINDS: Final = 255  # sorts of messages in a pack at most
FEW: Final = 16  # messages that are let go at once
TRIED: Final = 4  # latest sorts of a pack that are looked at, for the sort of the next message


@final
class Kind:
    """The parts that messages of one sort have in common: all but the body and the number."""

    def __init__(self, header: bytes, exchange: str, routing_keys: bytes, flags: i64) -> None:
        self.header: Final = header
        self.exchange: Final = exchange
        self.routing_keys: Final = routing_keys
        self.flags: Final = flags

    def fits(self, header: bytes, exchange: str, routing_keys: bytes, flags: i64) -> bool:
        return (
            self.header == header
            and self.flags == flags
            and (self.routing_keys is routing_keys or self.routing_keys == routing_keys)
            and (self.exchange is exchange or self.exchange == exchange)
        )


@final
class Pack:
    """Some messages, one behind the other."""

    def __init__(self, number: i64, first_id: i64) -> None:
        self.number: Final = number
        self.held: i64 = 0  # how often what is in it is wanted
        self.bodies: bytes = b""  # once it is closed
        self.ends: vec[i32] = vec[i32]()  # of the bodies
        self.kind_of: vec[u8] = vec[u8]()
        self.kinds: Final[list[Kind]] = []
        self._first_id: Final = first_id  # without ``_ids`` the other numbers follow it one by one
        self._ids: vec[i64] | None = None  # numbers that do not follow one by one

    def add(self, id: i64, kind: i64, end: i64) -> None:
        count: i64 = len(self.ends)
        if self._ids is None and id != self._first_id + count:
            known = vec[i64]()
            i: i64 = 0
            while i < count:
                known = append(known, self._first_id + i)
                i += 1
            self._ids = known
        if self._ids is not None:
            self._ids = append(self._ids, id)
        self.ends = append(self.ends, i32(end))
        self.kind_of = append(self.kind_of, u8(kind))
        self.held += 1

    def id(self, place: i64) -> i64:
        ids = self._ids
        return self._first_id + place if ids is None else ids[place]

    def kind(self, header: bytes, exchange: str, routing_keys: bytes, flags: i64) -> i64:
        """The sort of such a message; -1: there is no room for another one."""
        kinds = self.kinds
        count: i64 = len(kinds)
        i = count - 1
        while i >= 0 and i >= count - TRIED:
            if kinds[i].fits(header, exchange, routing_keys, flags):
                return i
            i -= 1
        if count == KINDS:
            return -1
        kinds.append(Kind(header, exchange, routing_keys, flags))
        return count


@final
class Packs:
    """All packs, by number. The last one is open until it is full or something in it is wanted back."""

    def __init__(self) -> None:
        self._packs: Final[dict[int, Pack]] = {}
        self._next: i64 = 0
        self._open: Pack | None = None
        self._bodies: Final = BytesWriter()  # of the open one
        self._found: Pack | None = None  # the last one looked up
        self._last_id: i64 = 0  # of the message put last: other queues may get the same one
        self._last_handle: i64 = 0

    def put(self, id: i64, header: bytes, body: bytes, exchange: str, routing_keys: bytes, flags: i64) -> i64:
        """Its handle, which is never 0. One message put several times in a row lies there once."""
        pack = self._open
        if pack is not None and id == self._last_id and id != 0:
            place: i64 = len(pack.ends) - 1
            if pack.kinds[pack.kind_of[place]].fits(header, exchange, routing_keys, flags):
                pack.held += 1
                return self._last_handle
        kind: i64 = -1 if pack is None else pack.kind(header, exchange, routing_keys, flags)
        if pack is None or kind < 0:
            pack = self._begin(id)
            kind = pack.kind(header, exchange, routing_keys, flags)
        bodies = self._bodies
        bodies.write(body)
        handle = PACKED | pack.number << PLACES | len(pack.ends)
        pack.add(id, kind, len(bodies))
        if len(pack.ends) == PACK or len(bodies) >= PACK_BYTES:
            self._close(pack)
        self._last_id = id
        self._last_handle = handle
        return handle

    def _begin(self, id: i64) -> Pack:
        if self._open is not None:
            self._close(self._open)
        pack = Pack(self._next, id)
        self._next += 1
        self._packs[pack.number] = pack
        self._open = pack
        return pack

    def _close(self, pack: Pack) -> None:
        pack.bodies = self._bodies.getvalue()
        self._bodies.truncate(0)
        self._open = None

    def pack_of(self, handle: i64) -> Pack:
        number = (handle & (PACKED - 1)) >> PLACES
        pack = self._found
        if pack is None or pack.number != number:
            pack = self._packs[number]
            self._found = pack
        return pack

    def body(self, pack: Pack, place: i64) -> bytes:
        if pack is self._open:
            self._close(pack)
        start: i64 = 0 if place == 0 else i64(pack.ends[place - 1])
        return pack.bodies[start : i64(pack.ends[place])]

    def get(self, handle: i64) -> StoredMessage:
        pack = self.pack_of(handle)
        place = handle & (PACK - 1)
        kind = pack.kinds[pack.kind_of[place]]
        body = self.body(pack, place)
        return StoredMessage(pack.id(place), kind.header, body, kind.exchange, kind.routing_keys, kind.flags)

    def head(self, handle: i64) -> StoredMessage:
        """Without the body."""
        pack = self.pack_of(handle)
        place = handle & (PACK - 1)
        kind = pack.kinds[pack.kind_of[place]]
        return StoredMessage(pack.id(place), kind.header, b"", kind.exchange, kind.routing_keys, kind.flags)

    def free(self, handle: i64, count: i64 = 1) -> list[Kind] | None:
        """It is wanted no more, or so many of its pack are not. When that was all of it and there are many sorts in it,
        returns them: to let go of very many takes long."""
        pack = self.pack_of(handle)
        pack.held -= count
        if pack.held > 0:
            return None
        if pack is self._open:
            self._close(pack)
        self._found = None
        del self._packs[pack.number]
        return pack.kinds if len(pack.kinds) > FEW else None

    def free_all(self) -> None:
        self._packs.clear()
        self._open = None
        self._found = None
        self._bodies.truncate(0)

    def count(self) -> int:
        """How many packs there are."""
        return len(self._packs)
