"""The log's events as rows and as lines: what became of which message, in words.

Duty: names for numbers (queues, channels, consumers, causes), the choice of messages, one dict an event. Not here:
reading the log (``log/history.py``), arguments (``log.py``).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from warrenmq.broker.message import packed_keys_of, unpack_keys
from warrenmq.journal.hiding import Hiding
from warrenmq.journal.names import is_stream, queue_of
from warrenmq.journal.routes import Ways, shown_way
from warrenmq.log.causes import CAUSE_NAMES, FATE_NAMES, LETTER_LOST, NEVER
from warrenmq.log.event_reader import Fate, Witness
from warrenmq.log.events import FETCHED, REDELIVERED
from warrenmq.log.holders import read_holders
from warrenmq.log.layout import WITHOUT_RECORD
from warrenmq.log.leasings import LEASE_NAMES, LEASED
from warrenmq.log.left_out import LeftOut, nothing
from warrenmq.log.levels import LEVEL_NAMES
from warrenmq.log.record import decode_message, holder_count, holders_start
from warrenmq.wire.content import decode_properties
from warrenmq.wire.replies import AmqpError

Row = dict[str, Any]
BODY_SIZE = slice(4, 12)  # of a content header's payload

# of what has one time, what came first: a message is published before it is delivered, delivered before it comes back,
# and leaves after all that; what the broker itself writes, a dead letter, it writes because something left
PUBLISHED, ENQUEUED, DELIVERED, LEASE_OVER, REQUEUED, AGAIN, CONFIRMED, LEFT, WRITTEN, REENQUEUED = range(10)


class Wanted:
    """The messages that are asked for; without any condition all."""

    def __init__(self, id: int, message_id: str, correlation_id: str, queue: str) -> None:
        self.id = id
        self.message_id = message_id
        self.correlation_id = correlation_id
        self.queue = queue

    def all(self) -> bool:
        return not (self.id or self.message_id or self.correlation_id)

    def has(self, row: Row) -> bool:
        return (
            (not self.id or row.get("id") == self.id)
            and (not self.message_id or row.get("message_id") == self.message_id)
            and (not self.correlation_id or row.get("correlation_id") == self.correlation_id)
        )


class EventRows(Witness):
    """A witness that turns what it is told into rows, those of the messages that are wanted."""

    def __init__(self, wanted: Wanted, out: Callable[[Row], None], oldest: int = 0) -> None:
        self._wanted = wanted
        self._out = out
        self._rows: list[tuple[int, int, Row]] = []  # of this batch, with their times and ranks
        self._ids: dict[int, int] = {}  # by address, of the messages that are wanted
        self._queues: dict[int, Row] = {}
        self._who: dict[int, Row] = {}
        self._ways = Ways({})
        self._at: dict[tuple[int, int], int] = {}  # by queue and position, the messages that are wanted
        self._left_out = LeftOut(nothing, set())
        self._left_out.begin(oldest)
        self._hiding = Hiding(self._left_out)

    # -- names

    def named(self, who: int, text: bytes) -> None:
        self._who[who] = json.loads(text)

    def defined(self, kind: str, _key: str, value: bytes) -> None:
        found = queue_of(kind, value)
        if found is not None:
            self._queues[found[0]] = {"vhost": found[1], "queue": found[2]}
            if is_stream(kind, value):
                self._left_out.stream(found[0])

    def route(self, route: int, text: bytes) -> None:
        self._ways.route(route, text)

    def routed(self, route: int, address: int, count: int) -> None:
        self._ways.routed(route, address, count)

    def _queue(self, id: int) -> Row:
        """A queue without a name was defined before the oldest segment, or is a delayed exchange's."""
        return self._queues.get(id, {"queue": f"#{id}"})

    # -- events

    def level(self, time: int, queue: int, vhost: str, level: int, sample: int) -> None:
        if queue:  # a vhost's concerns no queue by itself
            self._left_out.level(queue, level, sample)
        names = self._queue(queue) if queue else {"vhost": vhost}
        if self._wanted.all() and self._wanted.queue in ("", names.get("queue")):
            text = "none of its own" if level < 0 else LEVEL_NAMES[level]
            self._write(time, PUBLISHED, "level", {**names, "text": text, "number": sample})

    def sampled(self, queue: int, sample: int) -> None:
        self._left_out.sample(queue, sample)

    def wanted(self, address: int, count: int) -> None:
        self._left_out.wanted(address, count)

    def unlogged(
        self, time: int, who: int, id: int, count: int, number: int, header: bytes, exchange: bytes, keys: bytes
    ) -> None:
        for n in range(count):
            row = what_it_was(id + n, exchange.decode(errors="surrogateescape"), unpack_keys(keys), header)
            self._published(time, WITHOUT_RECORD | (id + n), row, who, number + n if number else 0)

    def _published(self, time: int, address: int, row: Row, who: int, number: int) -> bool:
        """Says whether it is wanted."""
        if not self._wanted.has(row):
            return False
        self._ids[address] = row.get("id", 0)
        sender = self._who.get(who, {})
        if number:
            row["number"] = number
        rank, event = (PUBLISHED, "published") if sender else (WRITTEN, "written")
        self._tell(time, rank, event, address, {**row, **sender})
        return True

    def message(self, time: int, address: int, data: bytes, at: int, who: int, number: int) -> None:
        if self._hiding.hides_record(time, address, data, at):
            return
        holders = read_holders(data, holders_start(data, at), holder_count(data, at))
        stored = decode_message(data, at)
        row = what_it_was(stored.message_id, stored.exchange, unpack_keys(packed_keys_of(stored)), stored.header)
        if self._published(time, address, row, who, number):
            rank = ENQUEUED if who in self._who else REENQUEUED
            for queue, position, _expiry, _flags in holders:
                self._enqueued(time, rank, queue, address, position)

    def entered(self, time: int, queue: int, address: int, position: int) -> None:
        rank = ENQUEUED if address & WITHOUT_RECORD else REENQUEUED
        self._enqueued(time, rank, queue, address, position)

    def _enqueued(self, time: int, rank: int, queue: int, address: int, position: int) -> None:
        way = self._ways.way(address, queue)
        by = {} if way < 0 else shown_way(self._ways.ways[way])
        self._in_queue(time, rank, "enqueued", address, queue, {"position": position, **by})

    def left(self, time: int, queue: int, address: int, count: int, cause: int) -> None:
        for one in self._of_run(address, count):
            self._in_queue(time, LEFT, CAUSE_NAMES.get(cause, f"left ({cause})"), one, queue, {})

    def came_back(self, time: int, queue: int, address: int, position: int) -> None:
        self._in_queue(time, REQUEUED, "requeued", address, queue, {"position": position})

    def queue_gone(self, time: int, queue: int) -> None:
        names = self._queue(queue)
        if self._wanted.all() and self._wanted.queue in ("", names["queue"]) and not self._hiding.hides(time, queue, 0):
            self._write(time, LEFT, "queue deleted", names)

    def delivered(
        self, time: int, who: int, queue: int, position: int, address: int, count: int, tag: int, flags: int
    ) -> None:
        for one in self._of_run(address, count):
            more: Row = {"position": position + one - address, "tag": tag + one - address}
            if flags & REDELIVERED:
                more["redelivered"] = True
            event = "fetched" if flags & FETCHED else "delivered"
            rank = AGAIN if flags & REDELIVERED else DELIVERED
            self._in_queue(time, rank, event, one, queue, {**more, **self._who.get(who, {})})

    def confirmed(self, time: int, who: int, address: int, count: int, number: int) -> None:
        for one in self._of_run(address, count):
            row = {"number": number + one - address, **self._who.get(who, {})}
            self._tell(time, CONFIRMED, "confirmed", one, row)

    def read(self, time: int, who: int, queue: int, offset: int, count: int, tag: int) -> None:
        names = self._queue(queue)
        if self._wanted.queue not in ("", names["queue"]):
            return
        for one in range(offset, offset + count):
            row = {**names, "position": one, "tag": tag + one - offset, **self._who.get(who, {})}
            if self._hiding.hides_read(time, queue, one):
                continue
            if self._wanted.all():
                self._write(time, DELIVERED, "read", row)
            elif (queue, one) in self._at:
                self._tell(time, DELIVERED, "read", self._at[queue, one], row)

    def leased(self, time: int, who: int, queue: int, position: int, address: int, count: int, what: int) -> None:
        rank = DELIVERED if what == LEASED else LEASE_OVER
        for one in self._of_run(address, count):
            row = {"position": position + one - address, **self._who.get(who, {})}
            self._in_queue(time, rank, LEASE_NAMES[what], one, queue, row)

    def letter_lost(self, time: int, queue: int, address: int) -> None:
        self._in_queue(time, WRITTEN, "letter lost", address, queue, {})

    def fate(self, time: int, fate: Fate) -> None:
        row: Row = {}
        if self._hiding.hides(time, fate.queue, fate.address):
            return
        if fate.header or fate.exchange or fate.keys:
            exchange = fate.exchange.decode(errors="surrogateescape")
            row = what_it_was(fate.id, exchange, unpack_keys(fate.keys), fate.header)
        elif fate.address in self._ids:
            row = {"id": self._ids[fate.address]}
        if not self._wanted.all() and not (row and self._wanted.has(row)):
            return
        if fate.queue:
            row |= self._queue(fate.queue)
        if self._wanted.queue and row.get("queue") != self._wanted.queue:
            return
        if fate.address:
            row["message"] = f"{fate.address:#x}"
        if fate.number:
            row["number"] = int(fate.number)
        if fate.code:
            row["code"] = int(fate.code)
        if fate.text:
            row["text"] = fate.text.decode(errors="replace")
        name = FATE_NAMES.get(fate.what, f"left ({fate.what})")
        rank = WRITTEN if fate.what == LETTER_LOST else PUBLISHED if fate.what >= NEVER else LEFT
        self._write(time, rank, name, {**row, **self._who.get(fate.who, {})})

    def gap(self, since: int, until: int, count: int) -> None:
        self._write(since, PUBLISHED, "gap", {"until": moment(until), "events": count})

    def interrupted(self, since: int, until: int) -> None:
        self._write(since, PUBLISHED, "interrupted", {"until": moment(until)})

    def sampled_out(self, since: int, until: int, count: int) -> None:
        self._hiding.count(since, count)
        self._hiding.count(until, 0)

    def batch_told(self) -> None:
        for _time, _rank, row in sorted(self._rows, key=lambda one: one[:2]):
            self._out(row)
        self._rows = []
        self._ways.batch_told()
        self._left_out.batch_told()

    def end(self) -> None:
        """Nothing more comes: say how much was left out."""
        events, since, until = self._hiding.take()
        if events and self._wanted.all() and not self._wanted.queue:
            self._out({"time": moment(since), "event": "left out", "until": moment(until), "number": int(events)})

    def _of_run(self, address: int, count: int) -> list[int]:
        if self._wanted.all():
            return list(range(address, address + count))
        return [one for one in range(address, address + count) if one in self._ids]

    def _in_queue(self, time: int, rank: int, event: str, address: int, queue: int, more: Row) -> None:
        if event == "enqueued" and address in self._ids and not self._wanted.all():
            self._at[queue, more["position"]] = address
        self._tell(time, rank, event, address, {**self._queue(queue), **more}, queue)

    def _tell(self, time: int, rank: int, event: str, address: int, more: Row, queue: int = 0) -> None:
        if not self._wanted.all() and address not in self._ids:
            return
        if self._hiding.hides(time, queue, address):
            return
        if self._wanted.queue and more.get("queue") != self._wanted.queue:
            return
        names: Row = {"message": f"{address:#x}"}
        if address in self._ids:
            names["id"] = self._ids[address]
        self._write(time, rank, event, {**names, **more})

    def _write(self, time: int, rank: int, event: str, more: Row) -> None:
        self._rows.append((time, rank, {"time": moment(time), "event": event, **more}))


def what_it_was(id: int, exchange: str, keys: list[str], header: bytes) -> Row:
    row: Row = {"id": int(id)} if id else {}
    row |= {"exchange": exchange, "routing_keys": keys, "size": int.from_bytes(header[BODY_SIZE], "big")}
    try:
        properties = decode_properties(header)
        for name in ("message_id", "correlation_id"):
            if getattr(properties, name):
                row[name] = getattr(properties, name)
    except AmqpError:
        pass  # what cannot be said is left out
    return row


def moment(time: int) -> str:
    """µs since 1970 as people write it; nothing where the log does not say (before format 3)."""
    return datetime.fromtimestamp(time / 1_000_000, UTC).isoformat(timespec="microseconds") if time else ""


def line(row: Row) -> str:
    """A row for people: the time, the message, what happened, and the rest as name=value."""
    rest = {name: value for name, value in row.items() if name not in ("time", "event", "message", "id")}
    words = [f"{name}={value if isinstance(value, int) else json.dumps(value)}" for name, value in rest.items()]
    head = f"{row['time'] or '-':32}  {row.get('id', ''):>8}  {row.get('message', ''):14}  {row['event']:28}"
    return f"{head}  {' '.join(words)}".rstrip()
