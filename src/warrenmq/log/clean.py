"""The clean-stop marker: what a scan of all segments would find, written at a clean stop so that no start needs one.

Duty: encode and decode the tables of the segments and the queues' indexes. The marker is a shortcut, never a source:
it counts only while the manifest and every segment file are exactly those it was written beside (checkpoint number,
position, generations, no later segment), and anything doubtful about it means an ordinary scan.

Layout: a head (``grammar``), then zigzag variable-length integers (seven bits a byte, low first):
log id, checkpoint, segments, { number, generation, sparse, records, { number if sparse, offset, size } },
chunked messages, { address, chunks, { address } }, queues, { id, entries, { position, address, expiry, flags } };
numbers, offsets, positions and addresses as differences to the one before.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final, final

from librt.strings import BytesWriter, read_i64_le
from librt.vecs import append, vec
from mypy_extensions import i16, i32, i64, u8

from warrenmq.log import grammar
from warrenmq.log.index import QueueIndex
from warrenmq.log.layout import CLEAN_MAGIC, RECORD_BITS
from warrenmq.log.segment import Segment

NAME: Final = "clean"
VERSION: Final = 1
HEAD: Final = struct.Struct(grammar.CLEAN_HEAD.struct_format("magic", "length"))


def put(out: BytesWriter, value: i64) -> None:
    rest = (value << 1) ^ (value >> 63)
    while True:
        low = rest & 127
        rest = (rest >> 7) & 0x01FFFFFFFFFFFFFF  # a logical shift: the sign must not come down
        if rest == 0:
            out.append(int(low))
            return
        out.append(int(low | 128))


@final
class Numbers:
    """A reader of what ``put`` wrote, eight octets at a time: nearly all numbers are of one to three."""

    def __init__(self, data: bytes, at: i64) -> None:
        self.data: Final = data
        self.at: i64 = at
        self._last_word: Final = i64(len(data) - 8)

    def next(self) -> i64:
        at = self.at
        if at > self._last_word:
            return self._bytewise()
        word = read_i64_le(self.data, at)
        if word & 0x80 == 0:
            self.at = at + 1
            value = word & 0x7F
        elif word & 0x8000 == 0:
            self.at = at + 2
            value = (word & 0x7F) | (word >> 1 & 0x3F80)
        elif word & 0x800000 == 0:
            self.at = at + 3
            value = (word & 0x7F) | (word >> 1 & 0x3F80) | (word >> 2 & 0x1FC000)
        else:
            return self._bytewise()
        return (value >> 1) ^ -(value & 1)

    def _bytewise(self) -> i64:
        data = self.data
        at = self.at
        byte = i64(data[at])
        at += 1
        value = byte & 127
        shift: i64 = 7
        while byte & 128:
            byte = i64(data[at])
            at += 1
            value |= (byte & 127) << shift
            shift += 7
        self.at = at
        return ((value >> 1) & 0x7FFFFFFFFFFFFFFF) ^ -(value & 1)


def encode(
    log_id: i64,
    checkpoint: i64,
    segments: dict[int, Segment],
    chunked: dict[int, vec[i64]],
    queues: dict[int, QueueIndex],
) -> bytes:
    out = BytesWriter()
    put(out, log_id)
    put(out, checkpoint)
    put(out, len(segments))
    for number in sorted(segments):
        put_segment(out, segments[number])
    put(out, len(chunked))
    for address, chunks in chunked.items():
        put(out, address)
        put(out, len(chunks))
        for chunk in chunks:
            put(out, chunk)
    put(out, len(queues))
    for queue, index in queues.items():
        put(out, queue)
        put_index(out, index)
    payload = out.getvalue()
    return HEAD.pack(CLEAN_MAGIC, VERSION, zlib.crc32(payload), len(payload)) + payload


def put_segment(out: BytesWriter, segment: Segment) -> None:
    put(out, segment.number)
    put(out, segment.generation)
    put(out, 1 if segment.sparse else 0)
    count: i64 = len(segment.offsets)
    put(out, count)
    last: i64 = 0
    number: i64 = 0
    slot: i64 = 0
    while slot < count:
        if segment.sparse:
            put(out, i64(segment.numbers[slot]) - number)
            number = i64(segment.numbers[slot])
        offset = segment.offset(slot)
        put(out, offset - last)
        last = offset
        put(out, i64(segment.sizes[slot]))
        slot += 1


def put_index(out: BytesWriter, index: QueueIndex) -> None:
    count: i64 = len(index.positions)
    put(out, count)
    position: i64 = 0
    address: i64 = 0
    i: i64 = 0
    while i < count:
        put(out, index.positions[i] - position)
        put(out, index.addresses[i] - address)
        put(out, index.expiries[i])
        put(out, index.flags[i])
        position = index.positions[i]
        address = index.addresses[i]
        i += 1


@final
class Clean:
    """A decoded marker."""

    def __init__(self) -> None:
        self.log_id: i64 = 0
        self.checkpoint: i64 = 0
        self.segments: dict[int, Segment] = {}
        self.chunked: dict[int, vec[i64]] = {}
        self.queues: dict[int, QueueIndex] = {}


def decode(data: bytes) -> Clean | None:
    """None when it is not whole, or not of this version."""
    if len(data) < HEAD.size or not data.startswith(CLEAN_MAGIC):
        return None
    _magic, version, crc, length = HEAD.unpack_from(data)
    if version != VERSION or len(data) != HEAD.size + length or zlib.crc32(data[HEAD.size :]) != crc:
        return None
    numbers = Numbers(data, HEAD.size)
    clean = Clean()
    clean.log_id = numbers.next()
    clean.checkpoint = numbers.next()
    for _ in range(numbers.next()):
        segment = get_segment(numbers)
        clean.segments[int(segment.number)] = segment
    for _ in range(numbers.next()):
        address = numbers.next()
        chunks = vec[i64]()
        for _chunk in range(numbers.next()):
            chunk = numbers.next()
            chunks = append(chunks, chunk)
            if not refer(clean.segments, chunk):
                return None
        clean.chunked[int(address)] = chunks
    for _ in range(numbers.next()):
        queue = numbers.next()
        index = get_index(numbers)
        clean.queues[int(queue)] = index
        if not refer_all(clean.segments, index):
            return None
    for segment in clean.segments.values():
        segment.count_bytes()
    return clean


def get_segment(numbers: Numbers) -> Segment:
    segment = Segment(numbers.next())
    segment.generation = numbers.next()
    segment.manifest_generation = segment.generation
    sparse = numbers.next() == 1
    count = numbers.next()
    references = vec[u8](capacity=count)
    offsets = vec[i32](capacity=count)
    sizes = vec[i16](capacity=count)
    known = vec[i32](capacity=count if sparse else 0)
    offset: i64 = 0
    number: i64 = 0
    while count > 0:
        if sparse:
            number += numbers.next()
            known = append(known, i32(number))
        offset += numbers.next()
        references = append(references, u8(0))
        offsets = append(offsets, i32(offset))
        sizes = append(sizes, i16(numbers.next()))
        count -= 1
    segment.sparse = sparse
    segment.references = references
    segment.offsets = offsets
    segment.sizes = sizes
    segment.numbers = known
    return segment


def get_index(numbers: Numbers) -> QueueIndex:
    index = QueueIndex()
    count = numbers.next()
    positions = vec[i64](capacity=count)
    addresses = vec[i64](capacity=count)
    expiries = vec[i64](capacity=count)
    flags = vec[i64](capacity=count)
    position: i64 = 0
    address: i64 = 0
    while count > 0:
        further = numbers.next()
        if further < 0:
            index.sorted = False
        position += further
        address += numbers.next()
        positions = append(positions, position)
        addresses = append(addresses, address)
        expiries = append(expiries, numbers.next())
        flags = append(flags, numbers.next())
        count -= 1
    index.positions = positions
    index.addresses = addresses
    index.expiries = expiries
    index.flags = flags
    return index


def refer_all(segments: dict[int, Segment], index: QueueIndex) -> bool:
    """Neighbours in a queue are mostly neighbours in a segment."""
    number: i64 = -1
    segment: Segment | None = None
    for address in index.addresses:
        if address >> 32 != number:
            number = address >> 32
            segment = segments.get(number)
        if segment is None or not segment.refer(address & RECORD_BITS):
            return False
    return True


def refer(segments: dict[int, Segment], address: i64) -> bool:
    """Somebody holds this record. False when there is none: the marker cannot be right."""
    segment = segments.get(address >> 32)
    return segment is not None and segment.refer(address & RECORD_BITS)
