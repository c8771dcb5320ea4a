"""The log's part of what an exchange remembers: pages of ids, one for each turn that took messages.

Duty: to write a page, in the batch of the messages themselves, to read it again at a start, and to let go of it when
nothing in it is remembered any more. In the log a page is a record as those of messages are, held under a number as
queues and delayed exchanges have one: recovery, checkpoints and compaction need not know of it. It differs in its
message id, 0, by which the journal passes it over. Not here: what is remembered (``window.py``).

    page    the time since when everything that was taken is remembered (ms, 8 octets), entries
    entry   time (ms, 8 octets), message (8 octets), length of the key (4 octets), key; little-endian
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter, read_i32_le, read_i64_le, write_i32_le, write_i64_le
from librt.vecs import append, vec
from mypy_extensions import i32, i64

from warrenmq.broker.message import Origin
from warrenmq.broker.records import Exchange
from warrenmq.log.causes import IDS_FORGOTTEN
from warrenmq.log.index import QueueIndex
from warrenmq.log.log import Log
from warrenmq.wire.content import Properties, encode_header

CONTENT_TYPE: Final = "application/vnd.warren.deduplication"  # for whoever finds one in a log
FIRST_AT: Final = 8  # in a page
LENGTH_AT: Final = 16  # in an entry
KEY_AT: Final = 20
TRIM: Final = 1024


@final
class RememberedId:
    """One id, as a page holds it."""

    def __init__(self, time: i64, message: i64, key: str) -> None:
        self.time: Final = time
        self.message: Final = message
        self.key: Final = key


@final
class Pages:
    """The pages of one exchange, oldest first, in columns."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange: Final = exchange
        self.holder: i64 = 0  # under which the log holds them; 0 until there is one
        self._next: i64 = 1  # the position of the next
        self._head: i64 = 0  # pages before this one are gone
        self._positions: vec[i64] = vec[i64]()
        self._addresses: vec[i64] = vec[i64]()
        self._lasts: vec[i64] = vec[i64]()  # the highest number in it

    def write(self, log: Log, since: i64, entries: list[RememberedId], last: i64) -> i64:
        """A page for these entries, whose highest number is ``last``; its address."""
        out = BytesWriter()
        write_i64_le(out, since)
        for entry in entries:
            key = entry.key.encode("utf-8", "surrogateescape")
            write_i64_le(out, entry.time)
            write_i64_le(out, entry.message)
            write_i32_le(out, i32(len(key)))
            out.write(key)
        body = out.getvalue()
        header = encode_header(Properties(content_type=CONTENT_TYPE), len(body))
        origin = Origin(self._exchange.name.name, [""])
        address = log.append(0, header, body, origin.exchange, origin.packed_keys, flags=0, holders=1)
        log.hold(address, self.holder, self._next, 0, 0)
        self.found(self._next, address, last)
        return address

    def found(self, position: i64, address: i64, last: i64) -> None:
        """There is this page."""
        self._next = position + 1
        self._positions = append(self._positions, position)
        self._addresses = append(self._addresses, address)
        self._lasts = append(self._lasts, last)

    def release(self, log: Log, first: i64) -> None:
        """Nothing before this number is remembered any more."""
        while self._head < len(self._lasts) and self._lasts[self._head] < first:
            log.settle(self.holder, self._addresses[self._head], IDS_FORGOTTEN)
            self._head += 1
        if self._head >= TRIM and 2 * self._head > len(self._lasts):
            self._positions = self._positions[self._head :]
            self._addresses = self._addresses[self._head :]
            self._lasts = self._lasts[self._head :]
            self._head = 0

    def take_back(self, log: Log, lost: set[int]) -> None:
        """The disk could not take these."""
        positions = vec[i64]()
        addresses = vec[i64]()
        lasts = vec[i64]()
        i = self._head
        while i < len(self._addresses):
            if int(self._addresses[i]) in lost:
                log.settle(self.holder, self._addresses[i], IDS_FORGOTTEN)
            else:
                positions = append(positions, self._positions[i])
                addresses = append(addresses, self._addresses[i])
                lasts = append(lasts, self._lasts[i])
            i += 1
        self._head = 0
        self._positions = positions
        self._addresses = addresses
        self._lasts = lasts

    def addresses(self) -> vec[i64]:
        return self._addresses[self._head :]

    def index(self) -> QueueIndex:
        """For the log to remember at a clean stop."""
        index = QueueIndex()
        i = self._head
        while i < len(self._positions):
            index.add(self._positions[i], self._addresses[i], 0, 0)
            i += 1
        return index


def read_since(body: bytes) -> i64:
    return read_i64_le(body, 0)


def read_entries(body: bytes) -> list[RememberedId]:
    entries: list[RememberedId] = []
    at: i64 = FIRST_AT
    while at < len(body):
        key_at = at + KEY_AT
        end = key_at + i64(read_i32_le(body, at + LENGTH_AT))
        key = body[key_at:end].decode("utf-8", "surrogateescape")
        entries.append(RememberedId(read_i64_le(body, at), read_i64_le(body, at + 8), key))
        at = end
    return entries
