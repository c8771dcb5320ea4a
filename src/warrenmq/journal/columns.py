"""Events as columns: the buffers that Arrow wants, filled without a Python object per value.

Duty: one row an event, told by the log's ``event_reader``, with numbers for names; and the names. Messages have columns
of their own, a row for each that was published or written or has no record, which say what the message was. Not here:
Arrow (``parquet``).

    events    time kind message queue position who number tag flags     fixed widths, little-endian
    messages  row id size exchange keys header message_id correlation_id
    said      row code text
    ways      row way
    bodies    row and octets, or the pieces in the log
"""

from __future__ import annotations

import json
from typing import Final, final

from librt.strings import BytesWriter, read_i32_le, read_i64_be, read_i64_le, write_i32_le, write_i64_le
from mypy_extensions import i32, i64, u8

from warrenmq.broker.message import NOTE_SHIFT
from warrenmq.client.columns import PropertyColumns, Texts
from warrenmq.journal.hiding import Hiding
from warrenmq.journal.names import is_stream, queue_of
from warrenmq.journal.routes import Ways
from warrenmq.log.event_reader import Fate, Witness
from warrenmq.log.layout import HEADER_LENGTH_AT, HOLDER, HOLDER_POSITION_AT, HOLDER_QUEUE_AT, WITHOUT_RECORD
from warrenmq.log.left_out import LeftOut, nothing
from warrenmq.log.levels import BODIES, LEVEL_NAMES
from warrenmq.log.record import (
    body_length,
    body_start,
    exchange_length,
    flags_of,
    header_start,
    holder_count,
    holders_start,
    is_chunked,
    keys_length,
    message_id_of,
    number_of,
)
from warrenmq.log.told_bodies import DAMAGED, IN_RECORD, LACKING, NOT_WRITTEN, THERE, TOO_LONG
from warrenmq.wire.content import Properties, encode_header

# kinds of events; a cause of leaving is added to LEFT
PUBLISHED: Final = 0
WRITTEN: Final = 1  # by the broker itself: a dead letter, a copy, or found by a compaction
ENQUEUED: Final = 2
DELIVERED: Final = 3
FETCHED: Final = 4
REQUEUED: Final = 5
QUEUE_DELETED: Final = 6
GAP: Final = 7
LETTER_LOST: Final = 8  # a dead letter that reached nobody
LEVEL: Final = 9
CONFIRMED: Final = 10
READ: Final = 11  # from a stream, where it stays
LEASED: Final = 12  # the kind of a lease, to which what became of it is added
LEFT: Final = 16  # to which the cause is added, also of a message that the log does not hold
LEFT_OUT: Final = 120  # so many events are not told, as 1 in so many messages is
INTERRUPTED: Final = 121  # there was no clean stop: nobody knows how many are not told

LONGEST_BODY: Final = 16 << 20  # octets that a row may have; of a longer one it says so

UNKNOWN: Final = b"{}"  # somebody whose name stood where the log is damaged
NONE: Final = -1  # where an event has no queue, position, number or tag
NO_PROPERTIES: Final = encode_header(Properties(), 0)


def _nothing(_value: bytes) -> bytes | None:
    return None


@final
class Body:
    """The body of a row's message: its octets, or where the log has them in pieces."""

    def __init__(self, row: i64, size: i64, octets: bytes, pieces: bytes) -> None:
        self.row: Final = row
        self.size: Final = size
        self.octets: Final = octets
        self.pieces: Final = pieces  # addresses, 8 octets each; none: it is here


@final
class Known(Witness):
    """The names behind the numbers of a segment. Whoever begins in its middle has been told of those before."""

    def __init__(self, left_out: LeftOut | None = None) -> None:
        self.left_out: Final = LeftOut(nothing, set()) if left_out is None else left_out
        self.texts: Final[dict[int, bytes]] = {}  # JSON
        self.queue_names: Final[list[tuple[int, str, str]]] = []  # defined meanwhile: number, vhost, name
        self.wordy: Final[set[int]] = set()  # queues of which bodies are told
        self.routes: Final[dict[int, bytes]] = {}  # JSON

    def named(self, who: i64, text: bytes) -> None:
        self.texts[who] = text

    def route(self, route: i64, text: bytes) -> None:
        self.routes[route] = text

    def message(self, _time: i64, address: i64, data: bytes, at: i64, _who: i64, _number: i64) -> None:
        self.left_out.take(address, data, at)

    def sampled(self, queue: i64, sample: i64) -> None:
        self.left_out.sample(queue, sample)

    def wanted(self, address: i64, count: i64) -> None:
        self.left_out.wanted(address, count)

    def batch_told(self) -> None:
        self.left_out.batch_told()

    def level(self, _time: i64, queue: i64, _vhost: str, level: i64, sample: i64) -> None:
        if queue == 0:
            return  # a vhost's: each queue that it concerns has its own, and what is of no queue was left out before
        self.left_out.level(queue, level, sample)
        if level == BODIES:
            self.wordy.add(queue)
        else:
            self.wordy.discard(queue)

    def bodies_too(self, queue: i64) -> None:
        self.wordy.add(queue)

    def defined(self, kind: str, _key: str, value: bytes) -> None:
        queue = queue_of(kind, value)
        if queue is not None:
            self.queue_names.append(queue)
            if is_stream(kind, value):
                self.left_out.stream(queue[0])


@final
class EventColumns(Witness):
    """The events of some batches, row by row; ``who`` and ``queue`` are numbers of names."""

    def __init__(self, known: Known | None = None) -> None:
        self.known: Final = Known() if known is None else known
        self._hiding: Final = Hiding(self.known.left_out)
        self.rows: i64 = 0
        self.times: Final = BytesWriter()
        self.kinds: Final = BytesWriter()
        self.messages: Final = BytesWriter()
        self.queues: Final = BytesWriter()
        self.positions: Final = BytesWriter()
        self.whos: Final = BytesWriter()
        self.numbers: Final = BytesWriter()  # of a publish; how many, of a gap
        self.tags: Final = BytesWriter()
        self.flags: Final = BytesWriter()
        # messages
        self.message_rows: Final = BytesWriter()
        self.ids: Final = BytesWriter()
        self.sizes: Final = BytesWriter()
        self.exchanges: Final = Texts()
        self.keys: Final = Texts()
        self.headers: Final = Texts()
        self.header_list: list[bytes] = []
        # what was said of why
        self.said_rows: Final = BytesWriter()
        self.codes: Final = BytesWriter()
        self.texts: Final = Texts()
        # how messages came to their queues
        self.ways: Final = Ways(self.known.routes)
        self.way_rows: Final = BytesWriter()
        self.way_numbers: Final = BytesWriter()
        # bodies
        self.bodies: Final[list[Body]] = []
        self.body_octets: i64 = 0  # of all of them
        self.damaged: list[int] = []  # records of the batch whose bodies do not check
        self._told_bodies: Final[dict[int, tuple[bytes, int]]] = {}  # of this batch, by id: or why there is none
        # names
        self.names: Final[list[bytes]] = []  # JSON, by number: of those that are spoken of
        self._by_name: Final[dict[bytes, int]] = {}
        self._who: Final[dict[int, int]] = {}  # the segment's numbers to ours

    def properties(self) -> PropertyColumns | None:
        """message_id and correlation_id of the messages; None when a header among them is no header."""
        columns = PropertyColumns(["message_id", "correlation_id"], _nothing)
        if not columns.add(self.header_list):
            return None
        columns.end()
        return columns

    # -- what it is told

    def named(self, who: i64, text: bytes) -> None:
        self.known.named(who, text)

    def route(self, route: i64, text: bytes) -> None:
        self.ways.route(route, text)

    def routed(self, route: i64, address: i64, count: i64) -> None:
        self.ways.routed(route, address, count)

    def defined(self, kind: str, key: str, value: bytes) -> None:
        self.known.defined(kind, key, value)

    def level(self, time: i64, queue: i64, vhost: str, level: i64, sample: i64) -> None:
        self.known.level(time, queue, vhost, level, sample)
        whose: i64 = NONE
        if queue == 0:
            whose = self._number_of_text(json.dumps({"vhost": vhost}).encode())
        self._say(0, b"none of its own" if level < 0 else LEVEL_NAMES[level].encode())
        self._add(time, LEVEL, 0, queue if queue else NONE, NONE, whose, sample, NONE, 0)

    def bodies_too(self, queue: i64) -> None:
        self.known.bodies_too(queue)

    def sampled(self, queue: i64, sample: i64) -> None:
        self.known.sampled(queue, sample)

    def wanted(self, address: i64, count: i64) -> None:
        self.known.wanted(address, count)

    def body(self, id: i64, body: bytes, lacking: i64) -> None:
        self._told_bodies[id] = (body, lacking)

    def batch_told(self) -> None:
        self.known.batch_told()
        self.ways.batch_told()
        if self._told_bodies:
            self._told_bodies.clear()

    def unlogged(
        self, time: i64, who: i64, id: i64, count: i64, number: i64, header: bytes, exchange: bytes, keys: bytes
    ) -> None:
        sender: i64 = NONE if who == 0 else self._number_of(who)
        kind: i64 = WRITTEN if who == 0 else PUBLISHED
        n: i64 = 0
        while n < count:
            self._add_message(id + n, header, exchange, keys)
            if self._told_bodies:
                self._say(0, self._add_told(id + n))
            publish: i64 = number + n if number else NONE
            self._add(time, kind, WITHOUT_RECORD | (id + n), NONE, NONE, sender, publish, NONE, 0)
            n += 1

    def message(self, time: i64, address: i64, data: bytes, at: i64, who: i64, number: i64) -> None:
        if self._hiding.hides_record(time, address, data, at):
            return
        sender: i64 = NONE if who == 0 else self._number_of(who)
        header = header_start(data, at)
        payload = data[header : header + i64(read_i32_le(data, at + HEADER_LENGTH_AT))]
        exchange = body_start(data, at) + body_length(data, at)
        keys = exchange + exchange_length(data, at)
        end = keys + keys_length(data, at) - (flags_of(data, at) >> NOTE_SHIFT)
        self._add_message(message_id_of(data, at), payload, data[exchange:keys], data[keys:end])
        if self.known.wordy or self._told_bodies:
            self._add_body(data, at)
        kind: i64 = WRITTEN if who == 0 else PUBLISHED
        self._add(time, kind, address, NONE, NONE, sender, number if number else NONE, NONE, 0)
        holder = holders_start(data, at)
        count = holder_count(data, at)
        while count > 0:
            queue = i64(read_i32_le(data, holder + HOLDER_QUEUE_AT))
            self.entered(time, queue, address, read_i64_le(data, holder + HOLDER_POSITION_AT))
            holder += HOLDER
            count -= 1

    def entered(self, time: i64, queue: i64, address: i64, position: i64) -> None:
        row = self.rows
        self._add(time, ENQUEUED, address, queue, position, NONE, NONE, NONE, 0)
        way = self.ways.way(address, queue)
        if way >= 0 and row < self.rows:
            write_i32_le(self.way_rows, i32(row))
            write_i32_le(self.way_numbers, i32(way))

    def left(self, time: i64, queue: i64, address: i64, count: i64, cause: i64) -> None:
        while count > 0:
            self._add(time, LEFT + cause, address, queue, NONE, NONE, NONE, NONE, 0)
            address += 1
            count -= 1

    def came_back(self, time: i64, queue: i64, address: i64, position: i64) -> None:
        self._add(time, REQUEUED, address, queue, position, NONE, NONE, NONE, 0)

    def queue_gone(self, time: i64, queue: i64) -> None:
        self._add(time, QUEUE_DELETED, 0, queue, NONE, NONE, NONE, NONE, 0)

    def delivered(
        self, time: i64, who: i64, queue: i64, position: i64, address: i64, count: i64, tag: i64, flags: i64
    ) -> None:
        consumer = self._number_of(who)
        kind: i64 = FETCHED if flags & 2 else DELIVERED
        while count > 0:
            self._add(time, kind, address, queue, position, consumer, NONE, tag, flags & 1)
            address += 1
            position += 1
            tag += 1
            count -= 1

    def confirmed(self, time: i64, who: i64, address: i64, count: i64, number: i64) -> None:
        publisher = self._number_of(who)
        while count > 0:
            self._add(time, CONFIRMED, address, NONE, NONE, publisher, number, NONE, 0)
            address += 1
            number += 1
            count -= 1

    def read(self, time: i64, who: i64, queue: i64, offset: i64, count: i64, tag: i64) -> None:
        consumer = self._number_of(who)
        while count > 0:
            if not self._hiding.hides_read(time, queue, offset):
                self._add(time, READ, 0, queue, offset, consumer, NONE, tag, 0)
            offset += 1
            tag += 1
            count -= 1

    def leased(self, time: i64, who: i64, queue: i64, position: i64, address: i64, count: i64, what: i64) -> None:
        lease = self._number_of(who)
        while count > 0:
            self._add(time, LEASED + what, address, queue, position, lease, NONE, NONE, 0)
            address += 1
            position += 1
            count -= 1

    def letter_lost(self, time: i64, queue: i64, address: i64) -> None:
        self._add(time, LETTER_LOST, address, queue, NONE, NONE, NONE, NONE, 0)

    def fate(self, time: i64, fate: Fate) -> None:
        if self._hiding.hides(time, fate.queue, fate.address):
            return
        if fate.header or fate.exchange or fate.keys:  # else nothing is known of it
            self._add_message(fate.id, fate.header, fate.exchange, fate.keys)
        text = fate.text
        if self._told_bodies:
            lacking = self._add_told(fate.id)
            text = b"; ".join([one for one in (text, lacking) if one])
        if fate.code or text:
            self._say(fate.code, text)
        queue: i64 = fate.queue if fate.queue else NONE
        sender: i64 = self._number_of(fate.who) if fate.who else NONE
        number: i64 = fate.number if fate.number else NONE
        self._add(time, LEFT + fate.what, fate.address, queue, NONE, sender, number, NONE, 0)

    def gap(self, since: i64, until: i64, count: i64) -> None:
        self._add(since, GAP, 0, NONE, NONE, NONE, count, until, 0)

    def interrupted(self, since: i64, until: i64) -> None:
        self._add(since, INTERRUPTED, 0, NONE, NONE, NONE, NONE, until, 0)

    def sampled_out(self, since: i64, until: i64, count: i64) -> None:
        self._hiding.count(since, count)
        self._hiding.count(until, 0)

    def end(self) -> None:
        """Nothing more comes: say how much was left out of these rows."""
        events, since, until = self._hiding.take()
        if events:
            self._add(since, LEFT_OUT, 0, NONE, NONE, NONE, events, until, 0)

    def _number_of(self, who: i64) -> i64:
        number = self._who.get(who)
        if number is None:
            number = self._number_of_text(self.known.texts.get(who, UNKNOWN))
            self._who[who] = number
        return number

    def _number_of_text(self, text: bytes) -> int:
        number = self._by_name.get(text)
        if number is None:
            number = len(self.names)
            self._by_name[text] = number
            self.names.append(text)
        return number

    def _say(self, code: i64, text: bytes) -> None:
        """What the next row says of why."""
        if code or text:
            write_i32_le(self.said_rows, i32(self.rows))
            write_i32_le(self.codes, i32(code))
            self.texts.put(self.texts.rows, text)

    def _add_told(self, id: i64) -> bytes:
        """The body of the message of the next row, if the batch has it without a record; else why it has not."""
        body, lacking = self._told_bodies.get(id, (b"", IN_RECORD))
        if lacking == THERE:
            self._put_body(len(body), body, b"")
        return LACKING.get(lacking, "").encode()

    def _add_body(self, data: bytes, at: i64) -> None:
        """The body of the record of the next row, if somebody who gets it wants it told."""
        if _is_emptied(data, at):  # whoever would have got it
            self._say(0, LACKING[NOT_WRITTEN].encode())
            return
        if int(message_id_of(data, at)) not in self._told_bodies and not self._is_among(self.known.wordy, data, at):
            return
        begin = body_start(data, at)
        octets = data[begin : begin + body_length(data, at)]
        size: i64 = read_i64_be(data, header_start(data, at) + 4) if is_chunked(data[at]) else len(octets)
        if int(number_of(data, at)) in self.damaged:
            self._say(0, LACKING[DAMAGED].encode())
        elif size > LONGEST_BODY:
            self._say(0, LACKING[TOO_LONG].encode())
        elif is_chunked(data[at]):
            self._put_body(size, b"", octets)
        else:
            self._put_body(size, octets, b"")

    def _put_body(self, size: i64, octets: bytes, pieces: bytes) -> None:
        self.bodies.append(Body(self.rows, size, octets, pieces))
        self.body_octets += size

    def _is_among(self, queues: set[int], data: bytes, at: i64) -> bool:
        """Was it written for one of these?"""
        holder = holders_start(data, at)
        count = holder_count(data, at)
        while count > 0:
            if i64(read_i32_le(data, holder + HOLDER_QUEUE_AT)) in queues:
                return True
            holder += HOLDER
            count -= 1
        return False

    def _add_message(self, id: i64, header: bytes, exchange: bytes, keys: bytes) -> None:
        """What the message of the next row was."""
        write_i32_le(self.message_rows, i32(self.rows))
        row: i64 = self.headers.rows
        write_i64_le(self.ids, id)
        write_i64_le(self.sizes, read_i64_be(header, 4) if len(header) >= 12 else 0)
        self.exchanges.put(row, exchange)
        self.keys.put(row, keys)
        self.headers.put(row, header)
        self.header_list.append(header or NO_PROPERTIES)

    def _add(
        self,
        time: i64,
        kind: i64,
        message: i64,
        queue: i64,
        position: i64,
        who: i64,
        number: i64,
        tag: i64,
        flags: i64,
    ) -> None:
        if self._hiding.left_out.any and kind != LEVEL and self._hiding.hides(time, queue, message):
            return
        write_i64_le(self.times, time)
        write_i32_le(self.kinds, i32(kind))
        write_i64_le(self.messages, message)
        write_i32_le(self.queues, i32(queue))
        write_i64_le(self.positions, position)
        write_i32_le(self.whos, i32(who))
        write_i64_le(self.numbers, number)
        write_i64_le(self.tags, tag)
        self.flags.append(u8(flags))
        self.rows += 1


def _is_emptied(data: bytes, at: i64) -> bool:
    """Had it a body that the disk did not take, and that nobody holds (``log/batch.without_dead``)?"""
    if holder_count(data, at) or body_length(data, at) or i64(read_i32_le(data, at + HEADER_LENGTH_AT)) < 12:
        return False
    return read_i64_be(data, header_start(data, at) + 4) > 0
