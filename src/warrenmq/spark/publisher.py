"""Publishing rows with confirms, and knowing of each what became of it.

Duty: rows of record batches go out in order on one channel in confirm mode; every row ends as confirmed, returned,
nacked, refused or invalid. A lost connection is opened again and what was not confirmed is sent again, with the same
message id. When the broker closes the channel because of one row, the rows in doubt are sent again in small groups,
then singly, until that row is found: the others must not suffer for it. Not here: what to do about rows that failed
(``sink.py``, ``jobs/publish.py``).

At least once: what was sent again may have arrived before. Consumers can tell by the message id.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from warrenmq.client import Acked, Channel, ChannelClosed, Connection, ConnectionClosed, Nacked, Returned, Timeout
from warrenmq.spark.addresses import failed
from warrenmq.spark.chunk import (
    ALIKE,
    CONFIRMED,
    INVALID,
    NACKED,
    PENDING,
    REFUSED,
    RETURNED,
    SAME,
    UNLIKE,
    Chunk,
)
from warrenmq.spark.connect import BrokerLost, connect
from warrenmq.spark.encode import Rows, encode
from warrenmq.spark.framing import Framing
from warrenmq.spark.message_ids import ContentIds, RowIds
from warrenmq.spark.options import Options
from warrenmq.spark.pacing import Pace, RecordedPace
from warrenmq.spark.secret import Login
from warrenmq.spark.worker import freeze_imports
from warrenmq.wire.replies import ACCESS_REFUSED, CONNECTION_FORCED, NOT_FOUND

if TYPE_CHECKING:
    import pyarrow as pa

CHUNK = 2500  # rows between two looks at what the broker has answered
DOUBTFUL = 64  # rows sent again together while a refused one is searched
REOPENED = 10  # connections lost in a row, with nothing confirmed between, before the task gives up


class Publisher:
    """One connection, one channel in confirm mode, rows in flight."""

    def __init__(self, options: Options, id_prefix: str, pace: RecordedPace | None = None) -> None:
        self.options = options
        self.ids = RowIds(id_prefix) if options.message_ids == "row" else ContentIds(id_prefix)
        self._flying: deque[Chunk] = deque()
        self._connection: Connection | None = None
        self._login: Login | None = None
        self._channel: Channel | None = None
        self._low = 0  # every sequence number up to here is settled
        self._above: set[int] = set()
        self._next = 1
        self._known: dict[str, tuple[int, str]] = {}  # exchange -> refusal that would be the same again
        self._lost = 0
        rate = options.max_rows_per_second_per_task
        self._pace: Pace | RecordedPace | None = Pace(rate) if pace is None and rate is not None else pace
        self._framing = Framing(
            options.exchange or "", options.routing_key or "", options.persistent, options.mandatory
        )

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Chunk]:
        """Publish everything; chunks come out in order, each when all its rows are settled."""
        try:
            for batch in batches:
                for rows in self._pieces(batch):
                    if self._pace is not None:
                        self._wait(self._pace)
                        self._pace.went(rows.num_rows)
                    self._take(rows)
                    freeze_imports("publish")
                    yield from self._settled(self.options.max_outstanding)
            yield from self._settled(0)
        finally:
            if self._connection is not None:
                self._connection.close()

    def _pieces(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        if self._pace is not None:
            return self._pace.pieces(batch, CHUNK)
        return (batch.slice(start, CHUNK) for start in range(0, batch.num_rows, CHUNK))

    def _wait(self, pace: Pace | RecordedPace) -> None:
        """Until the next rows may go. What the broker says meanwhile is heard."""
        while (pause := pace.pause()) > 0:
            if self._channel is None:
                time.sleep(pause)
            else:
                self._guarded(partial(self._read, pause))

    def _take(self, batch: pa.RecordBatch) -> None:
        chunk = Chunk(batch, self.ids.of(batch), self._rows)
        self._flying.append(chunk)
        self._guarded(partial(self._send, chunk))

    def _rows(self, batch: pa.RecordBatch, ids: list[str]) -> Rows:
        options = self.options
        return encode(batch, options.exchange or "", options.routing_key or "", options.persistent, ids)

    # --- sending

    def _guarded(self, action: Callable[[], None]) -> None:
        """Do it; then deal with whatever the broker says to it, until it says nothing more."""
        while True:
            try:
                action()
                return
            except ChannelClosed:
                self._forget()
                action = self._isolate
            except Timeout as error:
                if self._connection is not None:
                    self._connection.abort()  # no goodbye: nobody would answer it
                failed(self.options.hosts)
                self._lost += 1
                if len(self.options.hosts) == 1 or self._lost > REOPENED:
                    raise BrokerLost(f"the broker at {self.options.address} does not answer: {error}") from None
                self._forget()
                action = self._resend
            except ConnectionClosed as closed:
                self._forget()
                self._connection = None
                # 0: it just went; 320: the operator's doing. Anything else is about something we sent.
                if closed.code in (0, CONNECTION_FORCED):
                    self._lost += 1
                    failed(self.options.hosts)
                    if self._lost > REOPENED:
                        where = self.options.address
                        raise BrokerLost(f"the connection to {where} was lost {self._lost} times: {closed}") from None
                    action = self._resend
                else:
                    action = self._isolate

    def _forget(self) -> None:
        """The channel is gone; what the broker answered before it went still counts."""
        channel, self._channel = self._channel, None
        if channel is not None:
            self._account(channel)

    def _resend(self) -> None:
        """On a new connection: everything that was not confirmed, in order."""
        for chunk in self._flying:
            chunk.sent = []
        self._open()
        for chunk in list(self._flying):
            self._send(chunk)

    def _send(self, chunk: Chunk) -> None:
        channel = self._open()
        if not self._send_frames(chunk, channel):
            self._send_rows(chunk, channel)
        self._read(0)

    def _send_frames(self, chunk: Chunk, channel: Channel) -> bool:
        """All rows as they stand in the batch; False when they have to be looked at singly."""
        count = len(chunk.outcomes)
        if chunk.pending < count or self._known:
            return False
        frames = self._framing.frames(chunk.batch, chunk.ids, channel.number, int(channel.connection.frame_max))
        if frames is None:
            return False
        chunk.first = self._next
        chunk.sent = range(count)
        self._next += count
        channel.publish_frames(frames, count)
        return True

    def _send_rows(self, chunk: Chunk, channel: Channel) -> None:
        for row, fault in chunk.rows.faults.items():
            if chunk.outcomes[row] == PENDING:
                chunk.settle(row, INVALID, None, fault)
        wanted = [row for row, outcome in enumerate(chunk.outcomes) if outcome == PENDING]
        for row in list(wanted):
            known = self._known.get(chunk.rows.exchanges[row]) if self._known else None
            if known is not None:
                chunk.settle(row, REFUSED, *known)
                wanted.remove(row)
        chunk.first = self._next
        chunk.sent = wanted
        for group in _groups(chunk.rows, wanted, self.options.mandatory):
            rows = chunk.rows
            whole = len(group) == len(rows.bodies)
            self._next += len(group)
            channel.publish_many(
                rows.exchanges[group[0]],
                rows.routing_keys if whole else [rows.routing_keys[row] for row in group],
                rows.bodies if whole else [rows.bodies[row] for row in group],
                rows.headers if whole else [rows.headers[row] for row in group],
                _mandatory(rows, group[0], self.options.mandatory),
            )
        channel.connection.flush()

    def _open(self) -> Channel:
        if self._channel is not None:
            return self._channel
        if self._connection is None or self._connection.closed is not None:
            self._connection = connect(self.options, "sink")
            self._login = Login(self.options, self._connection)
        channel = self._connection.channel()
        channel.confirm_select()
        self._channel = channel
        self._low, self._next = 0, 1
        self._above.clear()
        return channel

    # --- answers

    def _settled(self, outstanding: int) -> Iterator[Chunk]:
        """Chunks that are done; waits until no more than ``outstanding`` rows are in flight."""
        deadline = time.monotonic() + self.options.confirm_timeout
        while self._flying:
            head = self._flying[0]
            if not head.pending:
                yield self._flying.popleft()
                deadline = time.monotonic() + self.options.confirm_timeout
                continue
            if self._next - 1 - self._low - len(self._above) <= outstanding and outstanding:
                return
            before = (self._low, len(self._above))
            self._guarded(partial(self._read, 1.0))
            if (self._low, len(self._above)) != before:
                deadline = time.monotonic() + self.options.confirm_timeout
            elif time.monotonic() > deadline:
                blocked = self._connection.blocked if self._connection is not None else None
                failed(self.options.hosts)
                why = f" (the broker takes no publishes now: {blocked})" if blocked else ""
                raise BrokerLost(
                    f"{self.options.address} has confirmed nothing for {self.options.confirm_timeout:g} s{why}"
                )

    def _read(self, timeout: float) -> None:
        channel = self._channel
        if channel is None:
            return
        try:
            if self._login is not None:
                self._login.refresh()
            if not channel.events:
                channel.connection.read(timeout)
        finally:
            self._account(channel)
        channel.check()

    def _account(self, channel: Channel) -> None:
        for event in channel.take_events():
            if isinstance(event, Acked):
                self._confirm(int(event.tag), event.multiple, CONFIRMED)
            elif isinstance(event, Nacked):
                self._confirm(int(event.tag), event.multiple, NACKED)
            elif isinstance(event, Returned):
                self._return(event)

    def _confirm(self, tag: int, multiple: bool, outcome: str) -> None:
        self._lost = 0
        if multiple:
            tag = min(tag, self._next - 1) or self._next - 1
            for chunk in self._flying:
                start, stop = max(self._low + 1, chunk.first), min(tag, chunk.last) + 1
                if start < stop:  # a returned row is acked as well
                    chunk.settle_sent(start - chunk.first, stop - chunk.first, outcome)
            self._low = max(self._low, tag)
            self._above = {number for number in self._above if number > tag}
        elif tag > self._low and tag not in self._above:
            self._mark(tag, outcome)
            self._above.add(tag)
        while self._low + 1 in self._above:
            self._low += 1
            self._above.discard(self._low)

    def _mark(self, number: int, outcome: str) -> None:
        for chunk in self._flying:
            if chunk.sent and chunk.first <= number <= chunk.last:
                row = chunk.sent[number - chunk.first]
                if chunk.outcomes[row] == PENDING:  # a returned row is acked as well
                    chunk.settle(row, outcome)
                return

    def _return(self, event: Returned) -> None:
        message_id = event.properties.message_id or ""
        best: tuple[int, Chunk, int] | None = None
        for chunk in self._flying:
            row, likeness = chunk.find(event, message_id)
            if likeness > (UNLIKE if best is None else best[0]):
                best = (likeness, chunk, row)
                if likeness == SAME:
                    break
        if best is None:  # an interceptor of the broker rewrote it: the id is all there is to go by
            best = next(((ALIKE, chunk, row) for chunk in self._flying for row in chunk.named(message_id)), None)
        if best is not None:
            best[1].settle(best[2], RETURNED, event.reply_code, event.reply_text)

    # --- what goes wrong

    def _isolate(self) -> None:
        """The broker refused one of the rows in doubt: find out which, one refusal at a time."""
        doubtful = [(chunk, row) for chunk in self._flying for row in chunk.sent if chunk.outcomes[row] == PENDING]
        for chunk in self._flying:
            chunk.sent = []
        for start in range(0, len(doubtful), DOUBTFUL):
            group = doubtful[start : start + DOUBTFUL]
            if self._together(group) is not None:
                for one in group:
                    if one[0].outcomes[one[1]] == PENDING:
                        refusal = self._together([one])
                        if refusal is not None:
                            self._refuse(one[0], one[1], *refusal)

    def _together(self, group: list[tuple[Chunk, int]]) -> tuple[int, str] | None:
        """Send these rows and wait for their confirms; the refusal if the broker closes instead."""
        rows = []
        for chunk, row in group:
            known = self._known.get(chunk.rows.exchanges[row])
            if known is not None:
                chunk.settle(row, REFUSED, *known)
            else:
                rows.append((chunk, row))
        channel = None
        try:
            channel = self._open()
            first = self._next
            for chunk, row in rows:
                self._next += 1
                channel.basic_publish(
                    chunk.rows.exchanges[row],
                    chunk.rows.routing_keys[row],
                    chunk.rows.bodies[row],
                    chunk.rows.headers[row],
                    _mandatory(chunk.rows, row, self.options.mandatory),
                )
            nacked = channel.wait_for_confirms(self.options.confirm_timeout)
            for event in channel.take_events():
                if isinstance(event, Returned):
                    self._return(event)
            for number, (chunk, row) in enumerate(rows, first):
                if chunk.outcomes[row] == PENDING:
                    chunk.settle(row, NACKED if number in nacked else CONFIRMED)
            self._low = self._next - 1
            return None
        except ChannelClosed as closed:
            self._channel = None
            return closed.code, closed.text
        except ConnectionClosed as lost:
            self._channel = None
            if lost.code in (0, CONNECTION_FORCED):
                raise
            self._connection = None
            return lost.code, lost.text

    def _refuse(self, chunk: Chunk, row: int, code: int, text: str) -> None:
        chunk.settle(row, REFUSED, code, text)
        if code == NOT_FOUND or (code == ACCESS_REFUSED and "access to topic" not in text):
            self._known[chunk.rows.exchanges[row]] = (code, text)


def _mandatory(rows: Rows, row: int, default: bool) -> bool:
    if rows.mandatory is None:
        return default
    value = rows.mandatory[row]
    return default if value is None else value


def _groups(rows: Rows, wanted: list[int], default: bool) -> Iterator[list[int]]:
    """Neighbouring rows with the same exchange and mandatory flag: they can be sent in one go."""
    start = 0
    for at in range(1, len(wanted) + 1):
        if at < len(wanted):
            a, b = wanted[start], wanted[at]
            if rows.exchanges[a] == rows.exchanges[b] and (
                rows.mandatory is None or _mandatory(rows, a, default) == _mandatory(rows, b, default)
            ):
                continue
        if start < at:
            yield wanted[start:at]
        start = at
