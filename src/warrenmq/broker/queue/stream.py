"""A stream: append-only, addressed by offset, read by many without being emptied.

Duty: offsets, where a reader starts, what may be read (only what the log has synced), and retention. The messages are
in the broker's log like any other (not in files of their own: the one log gives
atomic batches, recovery and compaction for nothing, at 24 bytes of memory a message). Every message is logged, also a
transient one. Retention drops whole segments of the stream, as RabbitMQ does, never the one being written.
"""

from __future__ import annotations

from typing import Final, final

from librt.vecs import append, vec
from mypy_extensions import i64

from warrenmq.broker.equivalence import integer
from warrenmq.broker.message import Message, Origin, message_from
from warrenmq.broker.queue import holder
from warrenmq.broker.queue.accounts import RETAINED, Accounts
from warrenmq.broker.queue.arguments import interval_ms
from warrenmq.broker.queue.consumer_arguments import STREAM_OFFSET, offset_text
from warrenmq.broker.queue.paging import LONG, parts_of
from warrenmq.broker.queue.place import Place
from warrenmq.broker.queue.queue import Consumer, Declaration, Realm
from warrenmq.broker.queue.replay import READ_BYTES, ReplayQueue
from warrenmq.broker.queue.stream_header import with_stream_offset
from warrenmq.broker.stored import Origins
from warrenmq.log.causes import DELETED, PUBLISHED, TRIMMED, WITHDRAWN
from warrenmq.log.index import QueueIndex
from warrenmq.wire.replies import NOT_IMPLEMENTED, PRECONDITION_FAILED, AmqpError

PAGE: Final = 4096
LATEST: Final = 1 << 52  # no message is from later than this many seconds
SEGMENT_BYTES: Final = 500_000_000
RECENT: Final = 1024  # messages at the tail kept with their content, for readers that keep up
RECENT_BYTES: Final = 4 << 20


@final
class StreamPage:
    """A page: PAGE messages from offset ``first`` on."""

    def __init__(self, first: i64) -> None:
        self.first: Final = first
        self.addresses: vec[i64] = vec[i64](capacity=PAGE)
        self.times: vec[i64] = vec[i64](capacity=PAGE)
        self.sizes: vec[i64] = vec[i64](capacity=PAGE)


@final
class StreamSegment:
    """A unit of retention."""

    def __init__(self, first: i64) -> None:
        self.first: Final = first
        self.bytes: i64 = 0
        self.last_time: i64 = 0


@final
class StreamQueue(ReplayQueue):
    """The stream: entries that stay, offsets, retention by age and size."""

    def __init__(self, vhost: Realm, declared: Declaration) -> None:
        super().__init__(vhost, declared)
        self.next_position = 0  # the next offset
        self._first: i64 = 0
        self._committed: i64 = 0  # one behind the last offset that readers may see
        self._pages: list[StreamPage] = []
        self._segments: list[StreamSegment] = [StreamSegment(0)]
        self._open: list[tuple[int, int]] = []  # (batch, one behind its last offset) not synced yet
        self._recent: list[Message] = []
        self._recent_first: i64 = 0
        self._recent_bytes: i64 = 0
        self._origins = Origins()
        self._damaged: set[int] = set()  # offsets that readers pass over

    # -- what a stream does not do -----------------------------------------------------------------------------

    def check_consumer(self, consumer: Consumer) -> None:
        if consumer.prefetch == 0:
            raise AmqpError(PRECONDITION_FAILED, f"consumer prefetch count is not set for '{self.name}'")
        if consumer.no_ack:
            raise AmqpError(NOT_IMPLEMENTED, f"automatic acknowledgement not supported by stream queues {self.name}")
        if consumer.shares_prefetch():
            raise AmqpError(NOT_IMPLEMENTED, f"{self.name} does not support global qos")
        wanted = consumer.arguments.get("x-stream-id")
        if wanted is not None and wanted.value != self.declared.identity:
            said = f"x-stream-id is '{wanted.value}', not '{self.declared.identity}'"
            raise AmqpError(PRECONDITION_FAILED, f"{self.name} was deleted and declared anew: {said}")

    def refusal_problem(self, method: str) -> str:
        return f"{method} not supported by stream queues {self.name}"

    # -- appending ---------------------------------------------------------------------------------------------

    def logs(self, message: Message) -> bool:
        return True

    def holds(self, message: Message) -> bool:
        return message.address != 0

    def expiry_for(self, message: Message) -> i64:
        """The log keeps the time of arrival where other queues keep the time of expiry."""
        return self.broker.turn.now

    def publish(self, message: Message, expires_at: i64) -> None:
        offset = self.next_position
        self.next_position = offset + 1
        self.counters.published += 1
        self._add(offset, message.address, expires_at, message.size)
        self._recent.append(message)
        self._recent_bytes += message.size
        if len(self._recent) > RECENT or self._recent_bytes > RECENT_BYTES:
            self._forget_recent()
        open_batches = self._open
        if open_batches and open_batches[-1][0] == message.batch:
            open_batches[-1] = (message.batch, int(offset + 1))
        else:
            open_batches.append((message.batch, int(offset + 1)))
            self.broker.held_deliveries.add(self)

    def _add(self, offset: i64, address: i64, time: i64, size: i64) -> None:
        pages = self._pages
        if not pages or len(pages[-1].addresses) >= PAGE:
            pages.append(StreamPage(offset))
        page = pages[-1]
        page.addresses = append(page.addresses, address)
        page.times = append(page.times, time)
        page.sizes = append(page.sizes, size)
        self.ready += 1
        self.ready_bytes += size
        segment = self._segments[-1]
        limit = self.settings.segment_bytes
        if segment.bytes >= (limit if limit > 0 else SEGMENT_BYTES):
            segment = StreamSegment(offset)
            self._segments.append(segment)
            self._retain()
        segment.bytes += size
        segment.last_time = time

    def _forget_recent(self) -> None:
        """Drop the older half."""
        half: i64 = len(self._recent) // 2
        if half == 0:
            half = 1
        for message in self._recent[:half]:
            self._recent_bytes -= message.size
        del self._recent[:half]
        self._recent_first = self.next_position - len(self._recent)

    def promise_kept(self) -> bool:
        """The log synced: readers may see more."""
        committed = self.broker.log.committed
        advanced = False
        while self._open and self._open[0][0] <= committed:
            self._committed = self._open[0][1]
            del self._open[0]
            advanced = True
        if advanced:
            self.mark_dirty()
        return not self._open

    def recover(self, position: i64, address: i64, size: i64, flags: i64, expires_at: i64, priority: i64) -> None:
        if not self._pages:
            self._first = position
            self._segments = [StreamSegment(position)]
        if position >= self.next_position:
            self.next_position = position + 1
        self._add(position, address, expires_at, size)
        self._committed = self.next_position
        self._recent_first = self.next_position

    def take_back(self, first: i64) -> list[i64]:
        """The log could not write the batches from ``first`` on: their messages, the newest, were never readable."""
        addresses: list[i64] = []
        while self._open and self._open[-1][0] >= first:
            end = self._open[-2][1] if len(self._open) > 1 else self._committed
            while self.next_position > end and self._recent:
                if self._recent[-1].moved:  # it cannot go back to where it came from, so what is older stays as well
                    self._open[-1] = (self._open[-1][0], int(self.next_position))
                    return addresses
                message = self._recent.pop()
                self.counters.left(WITHDRAWN, 1)
                self._recent_bytes -= message.size
                self.next_position -= 1
                self.ready -= 1
                self.ready_bytes -= message.size
                self._segments[-1].bytes -= message.size
                page = self._pages[-1]
                page.addresses = page.addresses[: len(page.addresses) - 1]
                page.times = page.times[: len(page.times) - 1]
                page.sizes = page.sizes[: len(page.sizes) - 1]
                if len(page.addresses) == 0:
                    self._pages.pop()
                addresses.append(message.address)
            del self._open[-1]
        return addresses

    # -- retention ---------------------------------------------------------------------------------------------

    def _retain(self) -> None:
        """Drop the oldest segments that are beyond x-max-length-bytes or older than x-max-age."""
        s = self.settings
        while len(self._segments) > 1:
            oldest = self._segments[0]
            too_big = s.max_bytes >= 0 and self.ready_bytes > s.max_bytes
            too_old = s.max_age >= 0 and oldest.last_time + s.max_age < self.broker.turn.now
            if not too_big and not too_old:
                return
            self._drop_up_to(self._segments[1].first)
            del self._segments[0]

    def _drop_up_to(self, offset: i64) -> None:
        gone = vec[i64]()
        while self._first < offset:
            page = self._pages[0]
            i = self._first - page.first
            while i < len(page.addresses) and self._first < offset:
                gone = append(gone, page.addresses[i])
                self.ready -= 1
                self.ready_bytes -= page.sizes[i]
                self._first += 1
                i += 1
            if i == len(page.addresses):
                del self._pages[0]
        if len(gone):
            self.counters.left(TRIMMED, len(gone))
            self.broker.log.settle_many(self.id, gone, TRIMMED)
        if self._damage is not None:
            self._damage.forget_before(offset)
            self._damaged = {at for at in self._damaged if at >= offset}

    # -- reading -----------------------------------------------------------------------------------------------

    def readable_start(self) -> i64:
        return self._first

    def readable_end(self) -> i64:
        return self._committed

    def start_of(self, consumer: Consumer) -> i64:
        """Where it begins; the argument has been validated."""
        field = consumer.arguments.get(STREAM_OFFSET)
        if field is None:
            return self.next_position
        text = offset_text(field)
        if text is not None:
            if text == "next":
                return self.next_position
            if text == "first":
                return self._first
            if text == "last":
                return self._committed - 1 if self._committed > self._first else self._committed
            return self._offset_at(self.broker.turn.now - interval_ms(text))
        if field.kind == "T" and isinstance(field.value, int):
            return self._offset_at(min(field.value, LATEST) * 1000)
        wanted = integer(field)
        return wanted if wanted > self._first else self._first

    def _offset_at(self, time: i64) -> i64:
        """The first offset that arrived at this time or later."""
        for page in self._pages:
            size: i64 = len(page.times)
            if page.times[size - 1] < time:
                continue
            i: i64 = self._first - page.first if self._first > page.first else 0
            while i < size:
                if page.times[i] >= time:
                    return page.first + i
                i += 1
        return self.next_position

    def visible_end(self) -> i64:
        return self._committed

    def came_at(self, position: i64) -> i64:
        page = self._page_of(position)
        return page.times[position - page.first]

    def knows_when(self, position: i64) -> bool:
        return True

    def places(self, first: i64, end: i64, most: i64) -> list[Place]:
        at = first if first > self._first else self._first
        if end > self._committed:
            end = self._committed
        out: list[Place] = []
        while at < end and len(out) < most:
            page = self._page_of(at)
            i = at - page.first
            while i < len(page.addresses) and at < end and len(out) < most:
                if int(at) not in self._damaged:
                    message: Message | None = None
                    if self._recent and at >= self._recent_first:
                        message = self._recent[at - self._recent_first]
                    out.append(Place(at, page.sizes[i], False, 0, page.addresses[i], message))
                at += 1
                i += 1
        return out

    def skip(self, at: i64) -> i64:
        if self._damaged:
            while int(at) in self._damaged:
                at += 1
        return at

    def read_messages(self, start: i64, count: i64) -> list[Message]:
        out: list[Message] = []
        room: i64 = READ_BYTES
        if start >= self._recent_first and self._recent:
            i = start - self._recent_first
            while i < len(self._recent) and count > 0:
                message = self._recent[i]
                room -= message.size
                if message.absent or (out and room < 0):
                    break  # its body is in the log alone, or it is for the next time
                out.append(
                    self._delivered(message.origin, message.id, message.header(), message.pieces(), message.size, start)
                )
                start += 1
                i += 1
                count -= 1
            if out:
                return out
        page = self._page_of(start)
        addresses: list[int] = []
        i = start - page.first
        while i < len(page.addresses) and count > 0:
            room -= page.sizes[i]
            if addresses and room < 0:
                break
            addresses.append(page.addresses[i])
            i += 1
            count -= 1
        for record in self.broker.log.read_many(addresses):
            if record is None:
                self.unreadable(start)
                break
            body = record.body
            pieces = [body] if body else []
            origin = self._origins.of(record)
            out.append(self._delivered(origin, record.message_id, record.header, pieces, len(body), start))
            start += 1
        return out

    def long_at(self, at: i64) -> i64:
        page = self._page_of(at)
        i = at - page.first
        if page.sizes[i] <= LONG:
            return 0
        if self._recent and at >= self._recent_first and not self._recent[at - self._recent_first].absent:
            return 0
        address = page.addresses[i]
        return address if len(parts_of(self.broker, address)) > 0 else 0

    def read_with(self, at: i64, body: list[bytes]) -> Message:
        page = self._page_of(at)
        i = at - page.first
        head = self.broker.log.read_head(page.addresses[i])
        return self._delivered(self._origins.of(head), head.message_id, head.header, body, page.sizes[i], at)

    def unreadable(self, at: i64) -> None:
        page = self._page_of(at)
        self._damaged.add(int(at))
        self.set_aside(page.addresses[at - page.first], at, 0, False, 0, 0)

    def _page_of(self, offset: i64) -> StreamPage:
        low: i64 = 0
        high: i64 = len(self._pages) - 1
        while low < high:
            middle = (low + high + 1) // 2
            if self._pages[middle].first <= offset:
                low = middle
            else:
                high = middle - 1
        return self._pages[low]

    def _delivered(
        self, origin: Origin, id: i64, header: bytes, pieces: list[bytes], size: i64, offset: i64
    ) -> Message:
        """A message as a reader gets it: with its offset in the header x-stream-offset."""
        return message_from(origin, id, with_stream_offset(header, offset), pieces, size, False)

    # -- the whole stream --------------------------------------------------------------------------------------

    def account(self) -> Accounts:
        """Entries stay when they are read: only retention and the end take them."""
        found = super().account()
        found.came(PUBLISHED, self.counters.published - found.came_otherwise())
        if not self.gone:
            found.here(RETAINED, self.ready)
            stored: i64 = self._pages[0].first - self._first if self._pages else 0  # less than 0: trimmed of the first
            for page in self._pages:
                stored += len(page.addresses)
            off = self.ready - stored
            found.misplaced = off if off >= 0 else -off
        return found

    def stop(self) -> None:
        self.counters.left(DELETED, self.ready)
        super().stop()
        self._pages = []
        self._recent = []
        self._open = []
        self._first = self.next_position
        self._committed = self.next_position
        self.ready = 0
        self.ready_bytes = 0

    def logged_addresses(self) -> vec[i64]:
        addresses = vec[i64]()
        for page in self._pages:
            i: i64 = self._first - page.first if self._first > page.first else 0
            while i < len(page.addresses):
                addresses = append(addresses, page.addresses[i])
                i += 1
        return addresses

    def index(self) -> QueueIndex:
        index = QueueIndex()
        for page in self._pages:
            i: i64 = self._first - page.first if self._first > page.first else 0
            while i < len(page.addresses):
                index.add(page.first + i, page.addresses[i], page.times[i], holder.pack(0, page.sizes[i], False))
                i += 1
        return index
