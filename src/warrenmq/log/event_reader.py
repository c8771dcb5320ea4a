"""Reading a batch as events: what happened, when, in the order in which it can be told.

Duty: walk the records, changes and events of one batch and call a ``Witness`` for each, with the time of its turn. Not
here: which batches (``scan``), what becomes of what was seen (``journal/``).

A batch keeps records, changes and deliveries apart, and so are they told, each with its time: whoever wants them in
order puts those of a batch in order. All events of a turn have one time; which came first is known by what they are.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import read_i16_le, read_i32_le, read_i64_le
from librt.vecs import append, vec
from mypy_extensions import i64, mypyc_attr

from warrenmq.log.causes import ACKED, IDS_FORGOTTEN
from warrenmq.log.change import change_size, key_length, kind_length, value_length
from warrenmq.log.format import BatchHeader, LogCorrupt
from warrenmq.log.layout import (
    ADDRESS_AT,
    DEFINE,
    DEFINE_FIXED,
    DROP,
    ENQUEUE,
    ENQUEUE_POSITION_AT,
    EVENT_BODY,
    EVENT_BODY_BODY_LENGTH_AT,
    EVENT_BODY_FIXED,
    EVENT_BODY_LACKING_AT,
    EVENT_BODY_MESSAGE_ID_AT,
    EVENT_CAUSE,
    EVENT_CAUSE_CAUSE_AT,
    EVENT_CONFIRMED,
    EVENT_CONFIRMED_ADDRESS_AT,
    EVENT_CONFIRMED_COUNT_AT,
    EVENT_CONFIRMED_NUMBER_AT,
    EVENT_DELIVERED,
    EVENT_DELIVERED_ADDRESS_AT,
    EVENT_DELIVERED_COUNT_AT,
    EVENT_DELIVERED_FLAGS_AT,
    EVENT_DELIVERED_POSITION_AT,
    EVENT_DELIVERED_QUEUE_AT,
    EVENT_DELIVERED_TAG_AT,
    EVENT_ENTERED,
    EVENT_ENTERED_ADDRESS_AT,
    EVENT_ENTERED_COUNT_AT,
    EVENT_ENTERED_POSITION_AT,
    EVENT_ENTERED_QUEUE_AT,
    EVENT_FATE,
    EVENT_FATE_ADDRESS_AT,
    EVENT_FATE_CODE_AT,
    EVENT_FATE_EXCHANGE_LENGTH_AT,
    EVENT_FATE_FIXED,
    EVENT_FATE_HEADER_LENGTH_AT,
    EVENT_FATE_KEYS_LENGTH_AT,
    EVENT_FATE_MESSAGE_ID_AT,
    EVENT_FATE_NUMBER_AT,
    EVENT_FATE_QUEUE_AT,
    EVENT_FATE_TEXT_LENGTH_AT,
    EVENT_FATE_WHAT_AT,
    EVENT_GAP,
    EVENT_GAP_COUNT_AT,
    EVENT_GAP_SINCE_AT,
    EVENT_GAP_UNTIL_AT,
    EVENT_GIVEN_BACK,
    EVENT_GIVEN_BACK_ADDRESS_AT,
    EVENT_GIVEN_BACK_COUNT_AT,
    EVENT_GIVEN_BACK_POSITION_AT,
    EVENT_GIVEN_BACK_QUEUE_AT,
    EVENT_INTERRUPTED,
    EVENT_INTERRUPTED_SINCE_AT,
    EVENT_INTERRUPTED_UNTIL_AT,
    EVENT_LEASE,
    EVENT_LEASE_ADDRESS_AT,
    EVENT_LEASE_COUNT_AT,
    EVENT_LEASE_POSITION_AT,
    EVENT_LEASE_QUEUE_AT,
    EVENT_LEASE_WHAT_AT,
    EVENT_LEFT,
    EVENT_LEFT_ADDRESS_AT,
    EVENT_LEFT_CAUSE_AT,
    EVENT_LEFT_COUNT_AT,
    EVENT_LEFT_QUEUE_AT,
    EVENT_LETTER_LOST,
    EVENT_LETTER_LOST_ADDRESS_AT,
    EVENT_LETTER_LOST_QUEUE_AT,
    EVENT_LEVEL,
    EVENT_LEVEL_FIXED,
    EVENT_LEVEL_LEVEL_AT,
    EVENT_LEVEL_QUEUE_AT,
    EVENT_LEVEL_SAMPLE_AT,
    EVENT_LEVEL_VHOST_LENGTH_AT,
    EVENT_NAME,
    EVENT_NAME_FIXED,
    EVENT_NAME_TEXT_LENGTH_AT,
    EVENT_PUBLISHED,
    EVENT_PUBLISHED_ADDRESS_AT,
    EVENT_PUBLISHED_COUNT_AT,
    EVENT_PUBLISHED_NUMBER_AT,
    EVENT_QUEUE,
    EVENT_QUEUE_FIXED,
    EVENT_QUEUE_TEXT_LENGTH_AT,
    EVENT_READ,
    EVENT_READ_COUNT_AT,
    EVENT_READ_OFFSET_AT,
    EVENT_READ_QUEUE_AT,
    EVENT_READ_TAG_AT,
    EVENT_ROUTE,
    EVENT_ROUTE_FIXED,
    EVENT_ROUTE_ROUTE_AT,
    EVENT_ROUTE_TEXT_LENGTH_AT,
    EVENT_ROUTED,
    EVENT_ROUTED_ADDRESS_AT,
    EVENT_ROUTED_COUNT_AT,
    EVENT_ROUTED_ROUTE_AT,
    EVENT_SAMPLED_OUT,
    EVENT_SAMPLED_OUT_COUNT_AT,
    EVENT_SAMPLED_OUT_SINCE_AT,
    EVENT_SAMPLED_OUT_UNTIL_AT,
    EVENT_TURN,
    EVENT_TURN_CHANGES_AT,
    EVENT_TURN_RECORDS_AT,
    EVENT_TURN_TIME_AT,
    EVENT_UNLOGGED,
    EVENT_UNLOGGED_COUNT_AT,
    EVENT_UNLOGGED_EXCHANGE_LENGTH_AT,
    EVENT_UNLOGGED_FIXED,
    EVENT_UNLOGGED_HEADER_LENGTH_AT,
    EVENT_UNLOGGED_KEYS_LENGTH_AT,
    EVENT_UNLOGGED_MESSAGE_ID_AT,
    EVENT_UNLOGGED_NUMBER_AT,
    EVENT_WHO_AT,
    QUEUE_AT,
    REQUEUE,
    REQUEUE_POSITION_AT,
    RUN_COUNT_AT,
    SETTLE,
    SETTLE_RUN,
    UNDEFINE,
    UNDEFINE_FIXED,
    WITHOUT_RECORD,
)
from warrenmq.log.levels import BODIES, OFF
from warrenmq.log.record import is_chunk, message_id_of, number_of, record_size


@final
class Fate:
    """The fate of a message that the log does not hold, or not for this queue."""

    def __init__(self, data: bytes, at: i64) -> None:
        self.who: Final = i64(read_i32_le(data, at + EVENT_WHO_AT))  # 0: nobody in particular
        self.what: Final = i64(read_i32_le(data, at + EVENT_FATE_WHAT_AT))
        self.code: Final = i64(read_i32_le(data, at + EVENT_FATE_CODE_AT))  # 0: none
        self.queue: Final = i64(read_i32_le(data, at + EVENT_FATE_QUEUE_AT))  # 0: none
        self.id: Final = read_i64_le(data, at + EVENT_FATE_MESSAGE_ID_AT)  # 0: none was given to it
        self.address: Final = read_i64_le(data, at + EVENT_FATE_ADDRESS_AT)  # 0: there is no record
        self.number: Final = read_i64_le(data, at + EVENT_FATE_NUMBER_AT)  # 0: not counted
        header = at + EVENT_FATE_FIXED
        exchange = header + i64(read_i32_le(data, at + EVENT_FATE_HEADER_LENGTH_AT))
        keys = exchange + (i64(read_i16_le(data, at + EVENT_FATE_EXCHANGE_LENGTH_AT)) & 0xFFFF)
        text = keys + i64(read_i32_le(data, at + EVENT_FATE_KEYS_LENGTH_AT))
        self.header: Final = data[header:exchange]
        self.exchange: Final = data[exchange:keys]
        self.keys: Final = data[keys:text]
        self.text: Final = data[text : text + (i64(read_i16_le(data, at + EVENT_FATE_TEXT_LENGTH_AT)) & 0xFFFF)]


@mypyc_attr(allow_interpreted_subclasses=True)
class Witness:
    """A listener who is told what happened. Times are in µs since 1970."""

    def message(self, time: i64, address: i64, data: bytes, at: i64, who: i64, number: i64) -> None:
        """The record at ``at`` was written: published as ``number`` by ``who``, or, when that is 0, by the broker."""

    def entered(self, time: i64, queue: i64, address: i64, position: i64) -> None:
        """It entered a further queue."""

    def left(self, time: i64, queue: i64, address: i64, count: i64, cause: i64) -> None:
        """So many in a row left a queue."""

    def came_back(self, time: i64, queue: i64, address: i64, position: i64) -> None:
        """It was given back to its queue."""

    def queue_gone(self, time: i64, queue: i64) -> None:
        """The queue was deleted with all it still held."""

    def delivered(
        self, time: i64, who: i64, queue: i64, position: i64, address: i64, count: i64, tag: i64, flags: i64
    ) -> None:
        """So many in a row went to a client."""

    def confirmed(self, time: i64, who: i64, address: i64, count: i64, number: i64) -> None:
        """So many in a row were confirmed to their publisher, the first being its publish ``number``."""

    def read(self, time: i64, who: i64, queue: i64, offset: i64, count: i64, tag: i64) -> None:
        """So many messages of a stream, from this offset on, went to a consumer."""

    def leased(self, time: i64, who: i64, queue: i64, position: i64, address: i64, count: i64, what: i64) -> None:
        """So many in a row went under a lease, or came back from it: see ``leasings``."""

    def named(self, who: i64, text: bytes) -> None:
        """From now on in this segment the number stands for this channel or consumer."""

    def defined(self, kind: str, key: str, value: bytes) -> None:
        """A definition, new or changed."""

    def undefined(self, kind: str, key: str) -> None:
        """A definition is gone."""

    def letter_lost(self, time: i64, queue: i64, address: i64) -> None:
        """What left this queue as a dead letter reached nobody."""

    def fate(self, time: i64, fate: Fate) -> None:
        """This became of a message that the log does not hold."""

    def unlogged(
        self, time: i64, who: i64, id: i64, count: i64, number: i64, header: bytes, exchange: bytes, keys: bytes
    ) -> None:
        """So many messages without a record, with ids in a row, were published, or, when ``who`` is 0, written."""

    def route(self, route: i64, text: bytes) -> None:
        """This is meant by a number of a route: JSON, the hops to each queue by the queue's number."""

    def routed(self, route: i64, address: i64, count: i64) -> None:
        """A batch begins in which so many messages, from this one on, took this route."""

    def level(self, time: i64, queue: i64, vhost: str, level: i64, sample: i64) -> None:
        """From now on this is told of a queue, or, when that is 0, of a vhost."""

    def bodies_too(self, queue: i64) -> None:
        """A batch begins in which the bodies of what this queue gets are wanted; its level is told when it ends."""

    def sampled(self, queue: i64, sample: i64) -> None:
        """A batch begins in which 1 in so many of what this queue gets is wanted; its level is told when it ends."""

    def wanted(self, address: i64, count: i64) -> None:
        """A batch begins in which so many records in a row are told by a queue for which the log does not hold them."""

    def body(self, id: i64, body: bytes, lacking: i64) -> None:
        """What the message said that this batch will tell of, or why that is ``lacking`` (``told_bodies``)."""

    def gap(self, since: i64, until: i64, count: i64) -> None:
        """So many events are not told."""

    def interrupted(self, since: i64, until: i64) -> None:
        """There was no clean stop between these times: what had not been written is not told."""

    def sampled_out(self, since: i64, until: i64, count: i64) -> None:
        """So many of messages without a record are not told because of sampling."""

    def batch_told(self) -> None:
        """That was all of a batch: what comes next is no older."""


@final
class Turns:
    """The turns of a batch: when each was, and where it ends among the records and the changes."""

    def __init__(self, closed: i64) -> None:
        self.times: vec[i64] = vec[i64]()
        self.records: vec[i64] = vec[i64]()
        self.changes: vec[i64] = vec[i64]()
        self.closed: Final = closed  # what no turn says is as old as the batch

    def add(self, time: i64, records: i64, changes: i64) -> None:
        self.times = append(self.times, time)
        self.records = append(self.records, records)
        self.changes = append(self.changes, changes)

    def of_record(self, index: i64, turn: i64) -> i64:
        """The turn, from ``turn`` on, to which the record with this index belongs."""
        while turn < len(self.records) and self.records[turn] <= index:
            turn += 1
        return turn

    def of_change(self, at: i64, turn: i64) -> i64:
        while turn < len(self.changes) and self.changes[turn] <= at:
            turn += 1
        return turn

    def time(self, turn: i64) -> i64:
        return self.times[turn] if turn < len(self.times) else self.closed


@final
class Publishes:
    """The runs of published records of a batch, in the order of their addresses."""

    def __init__(self) -> None:
        self.who: vec[i64] = vec[i64]()
        self.first: vec[i64] = vec[i64]()
        self.end: vec[i64] = vec[i64]()
        self.number: vec[i64] = vec[i64]()

    def add(self, who: i64, first: i64, count: i64, number: i64) -> None:
        self.who = append(self.who, who)
        self.first = append(self.first, first)
        self.end = append(self.end, first + count)
        self.number = append(self.number, number)


def tell(header: BatchHeader, messages: bytes, changes: bytes, witness: Witness) -> None:
    """Tell all of a batch that checks."""
    turns = Turns(header.time)
    publishes = Publishes()
    levels: list[tuple[int, int]] = []
    unlogged: list[tuple[int, int]] = []
    _look_ahead(changes, turns, publishes, levels, unlogged, witness)
    for at, turn in levels:  # what is in one batch with a change from or to nothing is not told
        level = read_i32_le(changes, at + EVENT_LEVEL_LEVEL_AT)
        if level == OFF:
            _level(changes, at, turns.time(turn), witness)
            continue
        queue = i64(read_i32_le(changes, at + EVENT_LEVEL_QUEUE_AT))
        if level == BODIES:
            witness.bodies_too(queue)
        if queue and read_i32_le(changes, at + EVENT_LEVEL_SAMPLE_AT) > 1:
            witness.sampled(queue, i64(read_i32_le(changes, at + EVENT_LEVEL_SAMPLE_AT)))
    for at, turn in unlogged:  # runs end when they end: what a message did may stand before what it was
        _unlogged(changes, at, turns.time(turn), witness)
    _records(header, messages, turns, publishes, witness)
    _changes(changes, turns, witness)
    for at, turn in levels:
        if read_i32_le(changes, at + EVENT_LEVEL_LEVEL_AT) != OFF:
            _level(changes, at, turns.time(turn), witness)
    witness.batch_told()


def _look_ahead(
    data: bytes,
    turns: Turns,
    publishes: Publishes,
    levels: list[tuple[int, int]],
    unlogged: list[tuple[int, int]],
    witness: Witness,
) -> None:
    """What has to be known before the rest can be told: times, senders, names, routes, levels, bodies, the wanted; and
    where levels and messages without a record stand, in which turn."""
    at: i64 = 0
    end: i64 = len(data)
    while at < end:
        kind = data[at]
        if kind == EVENT_TURN:
            turns.add(
                read_i64_le(data, at + EVENT_TURN_TIME_AT),
                i64(read_i32_le(data, at + EVENT_TURN_RECORDS_AT)),
                i64(read_i32_le(data, at + EVENT_TURN_CHANGES_AT)),
            )
        elif kind == EVENT_PUBLISHED:
            publishes.add(
                i64(read_i32_le(data, at + EVENT_WHO_AT)),
                read_i64_le(data, at + EVENT_PUBLISHED_ADDRESS_AT),
                i64(read_i32_le(data, at + EVENT_PUBLISHED_COUNT_AT)),
                read_i64_le(data, at + EVENT_PUBLISHED_NUMBER_AT),
            )
        size = change_size(data, at)
        if size == 0:
            raise LogCorrupt(f"unknown change {kind} in a batch that checks: written by a newer Warren?")
        if kind == EVENT_NAME:
            text = at + EVENT_NAME_FIXED
            length = i64(read_i32_le(data, at + EVENT_NAME_TEXT_LENGTH_AT))
            witness.named(i64(read_i32_le(data, at + EVENT_WHO_AT)), data[text : text + length])
        elif kind == EVENT_QUEUE:
            text = at + EVENT_QUEUE_FIXED
            length = i64(read_i32_le(data, at + EVENT_QUEUE_TEXT_LENGTH_AT))
            witness.defined("queue", "", data[text : text + length])
        elif kind == EVENT_ROUTE:
            text = at + EVENT_ROUTE_FIXED
            length = i64(read_i32_le(data, at + EVENT_ROUTE_TEXT_LENGTH_AT))
            witness.route(i64(read_i32_le(data, at + EVENT_ROUTE_ROUTE_AT)), data[text : text + length])
        elif kind == EVENT_ROUTED:
            witness.routed(
                i64(read_i32_le(data, at + EVENT_ROUTED_ROUTE_AT)),
                read_i64_le(data, at + EVENT_ROUTED_ADDRESS_AT),
                i64(read_i32_le(data, at + EVENT_ROUTED_COUNT_AT)),
            )
        elif kind == EVENT_LEVEL:
            levels.append((at, len(turns.times)))
        elif kind == EVENT_UNLOGGED:
            unlogged.append((at, len(turns.times)))
        elif kind == EVENT_ENTERED:
            address = read_i64_le(data, at + EVENT_ENTERED_ADDRESS_AT)
            if address < WITHOUT_RECORD:
                witness.wanted(address, i64(read_i32_le(data, at + EVENT_ENTERED_COUNT_AT)))
        elif kind == EVENT_BODY:
            body = at + EVENT_BODY_FIXED
            length = i64(read_i32_le(data, at + EVENT_BODY_BODY_LENGTH_AT))
            witness.body(
                read_i64_le(data, at + EVENT_BODY_MESSAGE_ID_AT),
                data[body : body + length],
                i64(read_i32_le(data, at + EVENT_BODY_LACKING_AT)),
            )
        at += size


def _level(data: bytes, at: i64, time: i64, witness: Witness) -> None:
    vhost = at + EVENT_LEVEL_FIXED
    length = i64(read_i16_le(data, at + EVENT_LEVEL_VHOST_LENGTH_AT)) & 0xFFFF
    witness.level(
        time,
        i64(read_i32_le(data, at + EVENT_LEVEL_QUEUE_AT)),
        data[vhost : vhost + length].decode("utf-8", "surrogateescape"),
        i64(read_i32_le(data, at + EVENT_LEVEL_LEVEL_AT)),
        i64(read_i32_le(data, at + EVENT_LEVEL_SAMPLE_AT)),
    )


def _records(header: BatchHeader, data: bytes, turns: Turns, publishes: Publishes, witness: Witness) -> None:
    at: i64 = 0
    end: i64 = len(data)
    index: i64 = 0
    turn: i64 = 0
    run: i64 = 0
    base = header.segment << 32
    while at < end:
        size = record_size(data, at)
        if not is_chunk(data[at]) and message_id_of(data, at) != 0:  # 0: what an exchange remembers, no message
            address = base | number_of(data, at)
            turn = turns.of_record(index, turn)
            while run < len(publishes.end) and publishes.end[run] <= address:
                run += 1
            if run < len(publishes.first) and publishes.first[run] <= address:
                number = publishes.number[run]
                if number:
                    number += address - publishes.first[run]
                witness.message(turns.time(turn), address, data, at, publishes.who[run], number)
            else:
                witness.message(turns.time(turn), address, data, at, 0, 0)
        index += 1
        at += size


def _changes(data: bytes, turns: Turns, witness: Witness) -> None:
    at: i64 = 0
    end: i64 = len(data)
    turn: i64 = 0
    told: i64 = 0  # turns whose deliveries have been told
    cause: i64 = ACKED
    while at < end:
        kind = data[at]
        size = change_size(data, at)
        if kind < EVENT_TURN:
            turn = turns.of_change(at, turn)
        time = turns.time(turn)
        if (kind == SETTLE or kind == SETTLE_RUN) and cause == IDS_FORGOTTEN:
            pass  # no message left
        elif kind == SETTLE or kind == SETTLE_RUN:
            queue = i64(read_i32_le(data, at + QUEUE_AT))
            count: i64 = 1 if kind == SETTLE else i64(read_i32_le(data, at + RUN_COUNT_AT))
            witness.left(time, queue, read_i64_le(data, at + ADDRESS_AT), count, cause)
        elif kind == ENQUEUE:
            queue = i64(read_i32_le(data, at + QUEUE_AT))
            address = read_i64_le(data, at + ADDRESS_AT)
            witness.entered(time, queue, address, read_i64_le(data, at + ENQUEUE_POSITION_AT))
        elif kind == REQUEUE:
            queue = i64(read_i32_le(data, at + QUEUE_AT))
            address = read_i64_le(data, at + ADDRESS_AT)
            witness.came_back(time, queue, address, read_i64_le(data, at + REQUEUE_POSITION_AT))
        elif kind == DROP:
            witness.queue_gone(time, i64(read_i32_le(data, at + QUEUE_AT)))
        elif kind == DEFINE or kind == UNDEFINE:
            _definition(data, at, kind == DEFINE, witness)
        elif kind == EVENT_TURN:
            told += 1
        elif kind == EVENT_CAUSE:
            cause = i64(read_i32_le(data, at + EVENT_CAUSE_CAUSE_AT))
        elif kind == EVENT_DELIVERED:
            witness.delivered(
                turns.time(told),
                i64(read_i32_le(data, at + EVENT_WHO_AT)),
                i64(read_i32_le(data, at + EVENT_DELIVERED_QUEUE_AT)),
                read_i64_le(data, at + EVENT_DELIVERED_POSITION_AT),
                read_i64_le(data, at + EVENT_DELIVERED_ADDRESS_AT),
                i64(read_i32_le(data, at + EVENT_DELIVERED_COUNT_AT)),
                read_i64_le(data, at + EVENT_DELIVERED_TAG_AT),
                i64(read_i32_le(data, at + EVENT_DELIVERED_FLAGS_AT)),
            )
        elif kind == EVENT_CONFIRMED:
            witness.confirmed(
                turns.time(told),
                i64(read_i32_le(data, at + EVENT_WHO_AT)),
                read_i64_le(data, at + EVENT_CONFIRMED_ADDRESS_AT),
                i64(read_i32_le(data, at + EVENT_CONFIRMED_COUNT_AT)),
                read_i64_le(data, at + EVENT_CONFIRMED_NUMBER_AT),
            )
        elif kind == EVENT_READ:
            witness.read(
                turns.time(told),
                i64(read_i32_le(data, at + EVENT_WHO_AT)),
                i64(read_i32_le(data, at + EVENT_READ_QUEUE_AT)),
                read_i64_le(data, at + EVENT_READ_OFFSET_AT),
                i64(read_i32_le(data, at + EVENT_READ_COUNT_AT)),
                read_i64_le(data, at + EVENT_READ_TAG_AT),
            )
        elif kind == EVENT_LEASE:
            witness.leased(
                turns.time(told),
                i64(read_i32_le(data, at + EVENT_WHO_AT)),
                i64(read_i32_le(data, at + EVENT_LEASE_QUEUE_AT)),
                read_i64_le(data, at + EVENT_LEASE_POSITION_AT),
                read_i64_le(data, at + EVENT_LEASE_ADDRESS_AT),
                i64(read_i32_le(data, at + EVENT_LEASE_COUNT_AT)),
                i64(read_i32_le(data, at + EVENT_LEASE_WHAT_AT)),
            )
        elif kind == EVENT_LETTER_LOST:
            queue = i64(read_i32_le(data, at + EVENT_LETTER_LOST_QUEUE_AT))
            witness.letter_lost(turns.time(told), queue, read_i64_le(data, at + EVENT_LETTER_LOST_ADDRESS_AT))
        elif kind == EVENT_GIVEN_BACK:
            _given_back(turns.time(told), data, at, witness)
        elif kind == EVENT_ENTERED:
            queue = i64(read_i32_le(data, at + EVENT_ENTERED_QUEUE_AT))
            address = read_i64_le(data, at + EVENT_ENTERED_ADDRESS_AT)
            position = read_i64_le(data, at + EVENT_ENTERED_POSITION_AT)
            n: i64 = 0
            while n < i64(read_i32_le(data, at + EVENT_ENTERED_COUNT_AT)):
                witness.entered(turns.time(told), queue, address + n, position + n)
                n += 1
        elif kind == EVENT_LEFT:
            witness.left(
                turns.time(told),
                i64(read_i32_le(data, at + EVENT_LEFT_QUEUE_AT)),
                read_i64_le(data, at + EVENT_LEFT_ADDRESS_AT),
                i64(read_i32_le(data, at + EVENT_LEFT_COUNT_AT)),
                i64(read_i32_le(data, at + EVENT_LEFT_CAUSE_AT)),
            )
        elif kind == EVENT_FATE:
            witness.fate(turns.time(told), Fate(data, at))
        elif kind == EVENT_GAP:
            since = read_i64_le(data, at + EVENT_GAP_SINCE_AT)
            until = read_i64_le(data, at + EVENT_GAP_UNTIL_AT)
            witness.gap(since, until, read_i64_le(data, at + EVENT_GAP_COUNT_AT))
        elif kind == EVENT_SAMPLED_OUT:
            since = read_i64_le(data, at + EVENT_SAMPLED_OUT_SINCE_AT)
            until = read_i64_le(data, at + EVENT_SAMPLED_OUT_UNTIL_AT)
            witness.sampled_out(since, until, read_i64_le(data, at + EVENT_SAMPLED_OUT_COUNT_AT))
        elif kind == EVENT_INTERRUPTED:
            witness.interrupted(
                read_i64_le(data, at + EVENT_INTERRUPTED_SINCE_AT), read_i64_le(data, at + EVENT_INTERRUPTED_UNTIL_AT)
            )
        at += size


def _given_back(time: i64, data: bytes, at: i64, witness: Witness) -> None:
    queue = i64(read_i32_le(data, at + EVENT_GIVEN_BACK_QUEUE_AT))
    position = read_i64_le(data, at + EVENT_GIVEN_BACK_POSITION_AT)
    address = read_i64_le(data, at + EVENT_GIVEN_BACK_ADDRESS_AT)
    end = address + i64(read_i32_le(data, at + EVENT_GIVEN_BACK_COUNT_AT))
    while address < end:
        witness.came_back(time, queue, address, position)
        address += 1
        position += 1


def _unlogged(data: bytes, at: i64, time: i64, witness: Witness) -> None:
    header = at + EVENT_UNLOGGED_FIXED
    exchange = header + i64(read_i32_le(data, at + EVENT_UNLOGGED_HEADER_LENGTH_AT))
    keys = exchange + (i64(read_i16_le(data, at + EVENT_UNLOGGED_EXCHANGE_LENGTH_AT)) & 0xFFFF)
    end = keys + i64(read_i32_le(data, at + EVENT_UNLOGGED_KEYS_LENGTH_AT))
    witness.unlogged(
        time,
        i64(read_i32_le(data, at + EVENT_WHO_AT)),
        read_i64_le(data, at + EVENT_UNLOGGED_MESSAGE_ID_AT),
        i64(read_i32_le(data, at + EVENT_UNLOGGED_COUNT_AT)),
        read_i64_le(data, at + EVENT_UNLOGGED_NUMBER_AT),
        data[header:exchange],
        data[exchange:keys],
        data[keys:end],
    )


def _definition(data: bytes, at: i64, define: bool, witness: Witness) -> None:
    kind_at = at + (DEFINE_FIXED if define else UNDEFINE_FIXED)
    key_at = kind_at + kind_length(data, at)
    value_at = key_at + key_length(data, at)
    kind = data[kind_at:key_at].decode("utf-8", "surrogateescape")
    key = data[key_at:value_at].decode("utf-8", "surrogateescape")
    if define:
        witness.defined(kind, key, data[value_at : value_at + value_length(data, at)])
    else:
        witness.undefined(kind, key)
