"""Which records the journal does not tell of: those that were not among the 1 in so many of any of their queues.

Duty: that is decided once for a record, when it is written, by its id, which its dead letters share, and by what was
wanted of its queues then; and it is remembered as one bit, so that whatever happens to the record later is told wholly
or not at all. Where several queues get it, one that tells it is enough. What consumers read from streams is known by
offset, so of streams those are remembered too. Not here: keeping all this beside the journal's files
(``journal/left_out_files.py``), messages without a record, which the broker itself leaves out (``levels``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from librt.strings import BytesWriter, read_i32_le, read_i64_le, write_i32_le, write_i64_le
from mypy_extensions import i32, i64

from warrenmq.log.layout import HOLDER, HOLDER_POSITION_AT, HOLDER_QUEUE_AT, RECORD_BITS
from warrenmq.log.levels import OFF, is_sampled
from warrenmq.log.record import holder_count, holders_start, is_bare, message_id_of

RECORDS: Final = 0  # in the place of a queue: the bits are of records, not of offsets
PART: Final = 20  # octets before the bits: queue, first number, length
MOST_SEGMENTS: Final = 256  # in memory, of those that can be fetched again


@final
class Bits:
    """Some of the numbers from a first one on."""

    def __init__(self, first: i64, octets: bytes) -> None:
        self.first: Final = first
        self.octets: Final = bytearray(octets)

    def add(self, number: i64) -> None:
        at = number - self.first
        lacking = (at >> 3) + 1 - len(self.octets)
        if lacking > 0:
            self.octets.extend(bytes(lacking))
        self.octets[at >> 3] |= 1 << (at & 7)

    def spans(self, number: i64) -> bool:
        """Is it among those of which it is known?"""
        at = number - self.first
        return at >= 0 and at >> 3 < len(self.octets)

    def has(self, number: i64) -> bool:
        if not self.spans(number):
            return False
        at = number - self.first
        return i64(self.octets[at >> 3]) >> (at & 7) & 1 == 1


def nothing(_segment: int) -> bytes:
    """There is nothing to be fetched."""
    return b""


@final
class LeftOut:
    """The events left out of the segments that were read, and of those that were kept: ``fetch`` gives what ``kept``
    gave."""

    def __init__(self, fetch: Callable[[int], bytes], segments: set[int]) -> None:
        self._fetch: Final = fetch
        self._segments: Final = segments  # that can be fetched
        self._records: Final[dict[int, Bits | None]] = {}  # by segment
        self._streams: Final[dict[int, dict[int, Bits]]] = {}  # by queue, then by segment
        self._fetched_streams: bool = not segments
        self._samples: Final[dict[int, int]] = {}  # queues of which 1 in so many is told
        self.quiet: Final[set[int]] = set()  # queues of which nothing is told
        self._is_stream: Final[set[int]] = set()
        self._wanted: Final[set[int]] = set()  # records that are told whoever else has them, in this batch
        self._last: i64 = -1  # the segment that was asked for last, and its bits
        self._last_bits: Bits | None = None
        self._last_offsets: Bits | None = None  # of the stream that was asked for last
        self._last_queue: i64 = -1
        self._oldest: i64 = 0  # the first segment that was there to be read
        self.any: bool = bool(segments)  # can anything be left out, or not told at all?

    # -- what is wanted

    def begin_segment(self, segment: int) -> None:
        """It is read from its beginning, and says itself what is wanted in it."""
        self._samples.clear()
        self.quiet.clear()
        self._forget_bits(segment)

    def begin(self, oldest: i64) -> None:
        """Nothing was read before this segment: of older records nobody knows any more whether they are told, so what
        happens to them is left out where it happens to queues of which some are."""
        self._oldest = oldest

    def level(self, queue: i64, level: i64, sample: i64) -> None:
        """This is wanted of a queue from now on."""
        if level == OFF:
            self.quiet.add(queue)
            self.any = True
        else:
            self.quiet.discard(queue)
        self.sample(queue, sample)

    def sample(self, queue: i64, sample: i64) -> None:
        if sample > 1:
            self._samples[queue] = sample
            self.any = True
        else:
            self._samples.pop(queue, None)

    def stream(self, queue: i64) -> None:
        """This queue is one."""
        self._is_stream.add(queue)

    def wanted(self, address: i64, count: i64) -> None:
        """A queue for which the log does not hold these records tells of them, in this batch."""
        if self._samples:
            for one in range(address, address + count):
                self._wanted.add(one)

    def batch_told(self) -> None:
        if self._wanted:
            self._wanted.clear()

    # -- records

    def is_quiet(self, data: bytes, at: i64) -> bool:
        """Was this record written for nobody but queues of which nothing is told?"""
        count = holder_count(data, at) if self.quiet else 0
        if count == 0:
            return False
        holder = holders_start(data, at)
        while count > 0:
            if i64(read_i32_le(data, holder + HOLDER_QUEUE_AT)) not in self.quiet:
                return False
            holder += HOLDER
            count -= 1
        return True

    def take(self, address: i64, data: bytes, at: i64) -> bool:
        """A record is written. Is it left out?"""
        if not self._samples and not self.quiet:
            return False
        count = holder_count(data, at)
        if address in self._wanted:
            return False
        if is_bare(data, at):  # for whom it was nobody knows any more; where all is told, there would be more of it
            self._add(address)
            return True
        if count == 0 or not self._samples:
            return False
        id = message_id_of(data, at)
        start = holders_start(data, at)
        sampled = False
        holder = start
        left = count
        while left > 0:
            queue = i64(read_i32_le(data, holder + HOLDER_QUEUE_AT))
            if queue not in self.quiet:
                wanted = self._samples.get(queue)
                if wanted is None or is_sampled(id, wanted):
                    return False
                sampled = True
            holder += HOLDER
            left -= 1
        if not sampled:
            return False  # nothing is told of any of its queues: nothing has to be remembered
        self._add(address)
        while count > 0:
            queue = i64(read_i32_le(data, start + HOLDER_QUEUE_AT))
            if queue in self._is_stream:
                self._add_offset(address >> 32, queue, read_i64_le(data, start + HOLDER_POSITION_AT))
            start += HOLDER
            count -= 1
        return True

    def _add(self, address: i64) -> None:
        segment = address >> 32
        number = address & RECORD_BITS
        bits = self._records.get(segment)
        if bits is None:
            bits = Bits(number, b"")
            self._records[segment] = bits
            self._last = segment
            self._last_bits = bits
        bits.add(number)

    def _add_offset(self, segment: i64, queue: i64, offset: i64) -> None:
        of_queue = self._streams.get(queue)
        if of_queue is None:
            of_queue = {}
            self._streams[queue] = of_queue
        bits = of_queue.get(segment)
        if bits is None:
            bits = Bits(offset, b"")
            of_queue[segment] = bits
        bits.add(offset)

    def has(self, address: i64, queue: i64) -> bool:
        """Is it left out what happens to this record, in this queue (0 or less: in none)?"""
        segment = address >> 32
        if segment < self._oldest and queue > 0 and queue in self._samples:
            return True
        if segment != self._last:
            self._last_bits = self._bits_of(segment)
            self._last = segment
        bits = self._last_bits
        return bits is not None and bits.has(address & RECORD_BITS)

    def has_offset(self, queue: i64, offset: i64) -> bool:
        """Was what stands there in a stream left out?"""
        if not self._fetched_streams:
            self._fetched_streams = True
            for segment in sorted(self._segments):
                self._load(segment, self._fetch(segment), True)
        last = self._last_offsets
        if last is not None and queue == self._last_queue and last.spans(offset):
            return last.has(offset)
        for bits in self._streams.get(queue, {}).values():
            if bits.spans(offset):
                self._last_offsets = bits
                self._last_queue = queue
                return bits.has(offset)
        return False

    def _bits_of(self, segment: i64) -> Bits | None:
        if segment in self._segments and segment not in self._records:
            if len(self._records) >= MOST_SEGMENTS:
                self._make_room()
            self._load(segment, self._fetch(segment), False)
        return self._records.get(segment)

    def _make_room(self) -> None:
        for segment in list(self._records):
            if segment in self._segments:
                del self._records[segment]

    # -- keeping

    def kept(self, segment: int) -> bytes:
        """All that was left out of a segment that has been read to its end; empty: nothing."""
        out = BytesWriter()
        bits = self._records.get(segment)
        if bits is not None:
            _write(out, RECORDS, bits)
        for queue in self._streams:
            of_segment = self._streams[queue].get(segment)
            if of_segment is not None:
                _write(out, queue, of_segment)
        if len(out):
            self._segments.add(segment)
        return out.getvalue()

    def segments(self) -> list[int]:
        """Those that were kept."""
        return sorted(self._segments)

    def forget(self, segment: int) -> None:
        """Nobody will speak of its records any more."""
        self._segments.discard(segment)
        self._forget_bits(segment)

    def _forget_bits(self, segment: int) -> None:
        self._last = -1
        self._last_offsets = None
        self._records.pop(segment, None)
        for queue in list(self._streams):
            self._streams[queue].pop(segment, None)
            if not self._streams[queue]:
                del self._streams[queue]

    def _load(self, segment: int, data: bytes, streams: bool) -> None:
        """The offsets alone, or the records."""
        if not streams:
            self._records[segment] = None
        at: i64 = 0
        while at + PART <= len(data):
            queue = read_i64_le(data, at)
            first = read_i64_le(data, at + 8)
            length = i64(read_i32_le(data, at + 16))
            at += PART
            bits = Bits(first, data[at : at + length])
            at += length
            if queue == RECORDS and not streams:
                self._records[segment] = bits
            elif queue != RECORDS and streams:
                self._streams.setdefault(queue, {})[segment] = bits


def _write(out: BytesWriter, queue: i64, bits: Bits) -> None:
    write_i64_le(out, queue)
    write_i64_le(out, bits.first)
    write_i32_le(out, i32(len(bits.octets)))
    out.write(bytes(bits.octets))
