"""The messages that wait at one delayed exchange.

Duty: the two structures of the original: the index (``index.py``) and the data, kept in step. The data of a durable
exchange is in the log, held by an id of its own as if by a queue, transient messages too: nothing that waits is lost by
a restart. What waits at a transient exchange is in the transient store, or in memory when that fails. Very long
bodies there come and go some a turn (``long_body.py``). Beyond the index nothing is kept in memory, except for messages
with an id of their own.

Not here: when to fire (``delays.py``), where to (``fire.py``), who may look or cancel.

Invariants: a key is in the index exactly while the log (or the transient store) holds its message for this schedule;
whatever changes both does so within one turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from librt.vecs import vec
from mypy_extensions import i64

from warrenmq.broker.delay.index import DueIndex
from warrenmq.broker.delay.long_body import LongBody, PutLongBodyAway
from warrenmq.broker.delay.note import NAMED, Note, note_of
from warrenmq.broker.delay.source import Source, peek_at
from warrenmq.broker.delay.told import Told
from warrenmq.broker.delivering.large_body import BodyInLog, LoggedAhead, append_message
from warrenmq.broker.message import NOTE_SHIFT, Cutting, Message
from warrenmq.broker.queue.damaged import OwnerDamage
from warrenmq.broker.queue.paging import LONG
from warrenmq.broker.queue.put_away import PIECE
from warrenmq.broker.records import Exchange
from warrenmq.log.causes import FORGOTTEN
from warrenmq.log.damage import RecordDamaged
from warrenmq.log.format import LogError, StoredMessage
from warrenmq.log.index import QueueIndex

if TYPE_CHECKING:
    from warrenmq.broker.queue.surroundings import Surroundings
    from warrenmq.broker.vhost.vhost import VHost

IN_MEMORY: Final = 1 << 62  # keys from here on: the transient store refused it
SLICE: Final = 4096


@final
class Named:
    """A waiting message that is known by a name: its own id."""

    def __init__(self, name: str, publisher: str, due: i64, key: i64) -> None:
        self.name: Final = name
        self.publisher: Final = publisher
        self.due: Final = due
        self.key: Final = key


@final
class Schedule(Source):
    """The waiting room of one delayed exchange: its messages by due time, by name and by id."""

    def __init__(self, broker: Surroundings, vhost: VHost, exchange: Exchange, id: i64) -> None:
        self.broker: Final = broker
        self.vhost: Final = vhost
        self.exchange: Final = exchange
        self.id: Final = id  # whose messages these are, for the log and in ids
        self.durable: Final = exchange.durable
        self.told: Final = Told(broker, vhost, exchange, id)
        self.index: Final = DueIndex()
        self._names: dict[str, Named] = {}
        self._named: dict[int, Named] = {}  # by key
        self._memory: dict[int, StoredMessage] = {}
        self._long: dict[int, LongBody] = {}  # of those that have one
        self._next_in_memory: i64 = IN_MEMORY
        self.damage: OwnerDamage | None = None  # what is damaged
        self.reading: i64 = 0  # the key of a long one that is due and being read: nothing goes out meanwhile
        self.body: list[bytes] | None = None  # the body of the long one, when it has been read
        self.ahead: LoggedAhead | None = None  # what the log has got of it, for a queue that wants it there

    def __len__(self) -> int:
        return len(self.index)

    def number(self) -> i64:
        return self.id

    def waiting(self) -> i64:
        return len(self.index)

    def after(self, due: i64, key: i64, most: i64) -> list[tuple[int, int]]:
        return self.index.after(due, key, most)

    # -- in and out --------------------------------------------------------------------------------------------

    def keep(self, message: Message, note: Note, due: i64, body: BodyInLog | None = None) -> i64:
        """Take a message in until it is due; its key. For the log it is part of this turn."""
        key = self.store(message, note.encode(), NAMED if note.name else 0, due, body)
        self._enter(due, key, note)
        return key

    def store(self, message: Message, extra: bytes, named: i64, due: i64, body: BodyInLog | None) -> i64:
        """The data alone, with its note: its key."""
        origin = message.origin
        keys = origin.packed_keys + extra
        flags = origin.bcc | len(extra) << NOTE_SHIFT
        if not self.durable:
            return self._keep_transient(message, keys, flags, body)
        log = self.broker.log
        address = append_message(log, message, keys, flags, 1, body)
        log.hold(address, self.id, 0, due, named)
        return address

    def _keep_transient(self, message: Message, keys: bytes, flags: i64, body: BodyInLog | None) -> i64:
        if message.size > LONG:
            return self._keep_long(message, keys, flags, body)
        return self._put(
            StoredMessage(message.id, message.header(), message.body(), message.origin.exchange, keys, flags)
        )

    def _put(self, stored: StoredMessage) -> i64:
        try:
            return self.broker.transient.put(
                stored.message_id, stored.header, stored.body, stored.exchange, stored.routing_keys, stored.flags
            )
        except OSError:
            self._next_in_memory += 1
            self._memory[self._next_in_memory] = stored
            return self._next_in_memory

    def _keep_long(self, message: Message, keys: bytes, flags: i64, body: BodyInLog | None) -> i64:
        """The head like any other message, so that it has its place among them; the body some a turn."""
        kept = body if isinstance(body, LongBody) else LongBody(self.broker, message.pieces())
        kept.holders += 1
        key = self._put(StoredMessage(message.id, message.header(), b"", message.origin.exchange, keys, flags))
        self._long[key] = kept
        if kept is not body:
            self.broker.jobs.add(PutLongBodyAway(self.broker, kept, str(self.exchange.name)))
        return key

    def _enter(self, due: i64, key: i64, note: Note) -> None:
        self.index.add(due, key)
        if note.name:
            named = Named(note.name, note.publisher, due, key)
            self._names[note.name] = named
            self._named[key] = named

    def take(self, due: i64, key: i64) -> bool:
        """Out of the index, the data stays held (``release`` it). Says whether it was there."""
        if not self.index.remove(due, key):
            return False
        self.unname(key)
        return True

    def take_due(self, now: i64, most: i64) -> list[tuple[int, int]]:
        """Take everything that is due, as (due, key) in order."""
        pairs = self.index.take(now, most)
        if self._named:
            for _, key in pairs:
                self.unname(key)
        return pairs

    def unname(self, key: i64) -> None:
        named = self._named.pop(key, None)
        if named is not None:
            del self._names[named.name]

    def release(self, key: i64, cause: i64) -> None:
        """Let go of the data."""
        if self.reading == key:
            self.read_no_more()
        if self.durable:
            self.broker.log.settle(self.id, key, cause)
            return
        self._tell_left(key, cause)
        long = self._long.pop(key, None)
        if long is not None:
            long.release()
        if self._memory.pop(key, None) is None:
            self.broker.transient.free(key)

    def _tell_left(self, key: i64, cause: i64) -> None:
        if self.told.asks(cause):
            try:
                self.told.left(self.peek(key, 0), cause)
            except LogError:  # it cannot be read: nothing is known of it
                pass

    def tell_forgotten(self) -> None:
        """The process ends, and with it what waits at an exchange that is not durable."""
        if not self.durable:
            some = self.index.after(-1, 0, self.told.most())
            for _, key in some:
                self._tell_left(key, FORGOTTEN)
            self.told.left_out(len(self.index) - len(some))

    def read_no_more(self) -> None:
        """What was read of a long one, and logged ahead, is not needed, or has been taken."""
        self.reading = 0
        self.body = None
        if self.ahead is not None:
            self.ahead.abandon()
            self.ahead = None

    def peek(self, key: i64, most: i64) -> StoredMessage:
        """The data, and of a long body no more than its first pieces, as many as make so many octets. Raises LogError
        when it cannot be read."""
        if self.durable:
            return peek_at(self.broker.log, key, most)
        head = self._memory.get(key)
        if head is None:
            head = self.broker.transient.get(key)
        long = self._long.get(key)
        if long is None or most == 0:
            return head
        body = b"".join(self._beginning(long, most))
        return StoredMessage(head.message_id, head.header, body, head.exchange, head.routing_keys, head.flags)

    def _beginning(self, body: LongBody, most: i64) -> list[bytes]:
        pieces: list[bytes] = []
        cutting: Cutting | None = None
        if body.chunks is not None:
            cutting = Cutting(body.chunks, PIECE)
        parts = self.broker.transient.body_parts(body.handle)
        i: i64 = 0
        while most > 0:
            piece = b""
            if cutting is not None:
                piece = cutting.next()
            elif i < len(parts):
                piece = self.broker.transient.read_part(parts[i])
            if not piece:
                break
            pieces.append(piece)
            most -= len(piece)
            i += 1
        return pieces

    def long_body(self, key: i64) -> LongBody | None:
        """The very long body of one that waits at a transient exchange."""
        return self._long.get(key)

    def is_long(self, key: i64) -> bool:
        """Is its body in pieces, in the log or in the transient store?"""
        return len(self.broker.log.body_parts(key)) > 0 if self.durable else int(key) in self._long

    def short_ones(self, most: i64) -> i64:
        """How many come before the first that is long; no more than so many."""
        if not (self.broker.log.chunked if self.durable else self._long):
            return most
        count: i64 = 0
        for _, key in self.index.after(-1, 0, most):
            if self.is_long(key):
                break
            count += 1
        return count

    def read_many(self, pairs: list[tuple[int, int]]) -> list[StoredMessage | None]:
        """The data of many; None for what is damaged."""
        if self.durable:
            return self.broker.log.read_many([key for _, key in pairs])
        found: list[StoredMessage | None] = []
        for _, key in pairs:
            try:
                found.append(self.peek(key, 0))
            except RecordDamaged:
                found.append(None)
        return found

    def set_aside(self, due: i64, key: i64) -> None:
        """Damaged on disk, and out of the index: it is not delivered, and those behind it are."""
        if self.damage is None:
            name = self.exchange.name
            self.damage = OwnerDamage(self.broker, self.broker.damaged, self.id, "exchange", self.vhost.name, name.name)
        long = self._long.pop(key, None)
        if long is not None:
            long.release()
        self.damage.put(key, key if self.durable else -key, 0, 0, due)

    # -- names -------------------------------------------------------------------------------------------------

    def named(self, name: str) -> Named | None:
        return self._names.get(name)

    def id_of(self, due: i64, key: i64) -> str:
        """What the outside world calls it: its own id, or one that says where it stands."""
        named = self._named.get(key)
        return named.name if named is not None else f"{self.id:x}-{due:x}-{key:x}"

    def find(self, id: str) -> tuple[int, int] | None:
        """(due, key) of an id, None when nothing of the kind waits here."""
        named = self._names.get(id)
        if named is not None:
            return named.due, named.key
        parts = id.split("-")
        if len(parts) != 3 or parts[0] != f"{self.id:x}":
            return None
        try:
            due, key = int(parts[1], 16), int(parts[2], 16)
        except ValueError:
            return None
        if not 0 <= due < 1 << 63 or not 0 <= key < 1 << 63 or not self.index.contains(due, key):
            return None
        return due, key

    # -- the whole of it ---------------------------------------------------------------------------------------

    def take_all(self) -> vec[i64]:
        """Everything that waits here goes, with what is damaged: the keys of what is to be let go."""
        keys = self.index.take_all()
        if self.damage is not None:
            keys = self.damage.addresses(keys)
            self.damage.clear()
        self.broker.freeing.add(list(self._named.values()))
        self._names.clear()
        self._named.clear()
        return keys

    def recover(self, found: QueueIndex) -> None:
        """What the log found for this schedule at start."""
        i: i64 = 0
        empty = Note()
        while i < len(found):
            key = found.addresses[i]
            try:
                note = note_of(self.peek(key, 0)) if found.flags[i] & NAMED else empty
            except RecordDamaged:
                self.set_aside(found.expiries[i], key)
            else:
                self._enter(found.expiries[i], key, note)
            i += 1

    def log_index(self) -> QueueIndex:
        """What is in the index, for the log to remember at a clean stop."""
        out = QueueIndex()
        pairs = self.index.after(-1, 0, SLICE)
        while pairs:
            for due, key in pairs:
                out.add(0, key, due, NAMED if key in self._named else 0)
            pairs = self.index.after(pairs[-1][0], pairs[-1][1], SLICE)
        if self.damage is not None:
            self.damage.fill_index(out)
        return out
