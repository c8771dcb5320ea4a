"""The bytes of the log: segment headers, batches, records, changes. ``docs/log.md`` says the same in prose.

Duty: names, sizes and codecs; no files, no state. All integers are little-endian. Layout, as a grammar::

    segment file  = file header (128 bytes) , { batch } , zeros
    file header   = magic(8) version(4) crc(4) log id(8) segment(8) part(4) generation(4) epoch(8) base(8)
                    previous segment(8) previous part(4) 0(4) previous end(8) length(8) 0...
    batch         = batch header (96 bytes) , messages , changes
    batch header  = magic(4) crc(4) segment(8) offset(8) epoch(8) synced segment(8) synced offset(8) batch number(8)
                    first record(4) records(4) messages length(8) changes length(8) payload crc(4) 0(4) 0(8)
    messages      = { message | chunked message | chunk }
    message       = 4 record(4) message id(8) flags(4) holders(4) header length(4) body length(4) exchange length(2)
                    keys length(4) body sum(4) header body exchange keys { holder } head sum(4)
    chunked message = 5 ..., the same, its body being the addresses(8 each) of its chunks
    chunk         = 6 record(4) length(4) body sum(4) head sum(4) bytes
    holder        = queue(4) position(8) expiry(8) flags(4)
    changes       = { settle | settle run | enqueue | delivered | drop | define | undefine | requeue }
    settle        = 16 queue(4) address(8)
    settle run    = 17 queue(4) first address(8) count(4)
    enqueue       = 18 queue(4) address(8) position(8) expiry(8) flags(4)
    delivered     = 19 queue(4) position(8)
    drop          = 20 queue(4) count(4) { segment(4) }
    define        = 21 kind length(2) key length(4) value length(4) kind key value
    undefine      = 22 kind length(2) key length(4) kind key
    requeue       = 24 queue(4) address(8) position(8) flags(4)

Messages come before changes: a change may name a message of its own batch, never the other way round. The checksums
are CRC-32, begun with the log's identity, so that a batch copied into a message body is never taken for a batch; those
of records are in ``sums``. The payload crc of a batch is that of its changes, begun with the chained head sums of its
records: it stands for every byte, as a head sum covers the body's, and each byte is summed once.

Format 1, which is read and never written: the batch's magic is WBA1, its payload crc that of all bytes of messages and
changes; records are of kind 1 (message), 2 (chunked) and 3 (chunk), without body sum and head sum.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final, final

from librt.strings import read_i32_le
from mypy_extensions import i64

VERSION: Final = 2
FILE_MAGIC: Final = b"WARRNLOG"
OLDEST: Final = 1  # the earliest version that is read
BATCH_MAGIC: Final = b"WBA"  # and the version's digit
FILE_HEADER: Final = 128
BATCH_HEADER: Final = 96

SETTLE: Final = 16
SETTLE_RUN: Final = 17
ENQUEUE: Final = 18
DELIVERED: Final = 19
DROP: Final = 20
DEFINE: Final = 21
UNDEFINE: Final = 22
REQUEUE: Final = 24

SETTLE_SIZE: Final = 13
SETTLE_RUN_SIZE: Final = 17
ENQUEUE_SIZE: Final = 33
REQUEUE_SIZE: Final = 25

FILE_FIELDS: Final = struct.Struct("<qqiiqqqiiqq")
BATCH_FIELDS: Final = struct.Struct("<qqqqqqiiqq")


class LogError(Exception):
    """The folder cannot be used as it is; the text says why and what to do."""


class LogCorrupt(LogError):
    """Bytes that were synced do not check: refused, never guessed at."""


class LogVersion(LogError):
    """Written by a version this one does not read."""


@final
class FileHeader:
    """What the first 128 bytes of a segment file say."""

    def __init__(
        self,
        log_id: i64,
        segment: i64,
        part: i64,
        generation: i64,
        epoch: i64,
        base: i64,
        previous_segment: i64,
        previous_part: i64,
        previous_end: i64,
        length: i64,
        version: i64 = VERSION,
    ) -> None:
        self.version: Final = version
        self.log_id: Final = log_id
        self.segment: Final = segment
        self.part: Final = part  # > 0: goes on where the part before it was closed by a failed write
        self.generation: Final = generation  # > 0: compacted that often
        self.epoch: Final = epoch
        self.base: Final = base  # the segment's offset at which this file's first batch stands
        self.previous_segment: Final = previous_segment  # the file closed for good by this one ...
        self.previous_part: Final = previous_part
        self.previous_end: Final = previous_end  # ... and the segment's offset where it ends
        self.length: Final = length  # compacted files only: where the batches end


def file_header(header: FileHeader) -> bytes:
    fields = FILE_FIELDS.pack(
        header.log_id,
        header.segment,
        header.part,
        header.generation,
        header.epoch,
        header.base,
        header.previous_segment,
        header.previous_part,
        0,
        header.previous_end,
        header.length,
    )
    fields += bytes(FILE_HEADER - 16 - len(fields))
    version = int(header.version)
    crc = zlib.crc32(fields, version)
    return FILE_MAGIC + version.to_bytes(4, "little") + crc.to_bytes(4, "little") + fields


def refuse_other(version: int, path: str) -> None:
    if version < OLDEST or version > VERSION:
        raise LogVersion(
            f"{path}: log format {version}, this Warren reads formats {OLDEST} to {VERSION}; "
            f"open it with the Warren that wrote it"
        )


def read_file_header(data: bytes, path: str) -> FileHeader | None:
    """None when these bytes are no whole header (a file that was being made). LogVersion for another version."""
    if len(data) < FILE_HEADER or not data.startswith(FILE_MAGIC):
        return None
    version = int.from_bytes(data[8:12], "little")
    fields = data[16:FILE_HEADER]
    if zlib.crc32(fields, version) != int.from_bytes(data[12:16], "little"):
        return None
    refuse_other(version, path)
    v = FILE_FIELDS.unpack_from(fields)
    return FileHeader(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[9], v[10], version)


@final
class BatchHeader:
    """What the 96 bytes before a batch say."""

    def __init__(
        self,
        segment: i64,
        offset: i64,
        epoch: i64,
        synced_segment: i64,
        synced_offset: i64,
        number: i64,
        first_record: i64,
        records: i64,
        messages: i64,
        changes: i64,
        crc: i64,
        version: i64 = VERSION,
    ) -> None:
        self.version: Final = version
        self.segment: Final = segment
        self.offset: Final = offset
        self.epoch: Final = epoch
        self.synced_segment: Final = synced_segment  # everything before this position was on disk ...
        self.synced_offset: Final = synced_offset  # ... when this batch was written
        self.number: Final = number
        self.first_record: Final = first_record
        self.records: Final = records
        self.messages: Final = messages
        self.changes: Final = changes
        self.crc: Final = crc

    def length(self) -> i64:
        return BATCH_HEADER + self.messages + self.changes


def seed(log_id: i64) -> int:
    return zlib.crc32(int(log_id).to_bytes(8, "little"))


def payload_crc(heads: int, changes: bytes) -> int:
    """``heads``: the head sums of its records, chained, begun with the log's seed."""
    return zlib.crc32(changes, heads)


def batch_header(start: int, header: BatchHeader) -> bytes:
    """``start``: the log's seed. ``header.crc`` is the payload's."""
    fields = BATCH_FIELDS.pack(
        header.segment,
        header.offset,
        header.epoch,
        header.synced_segment,
        header.synced_offset,
        header.number,
        header.first_record,
        header.records,
        header.messages,
        header.changes,
    )
    fields += int(header.crc).to_bytes(4, "little") + bytes(12)
    magic = BATCH_MAGIC + str(int(header.version)).encode()
    return magic + zlib.crc32(fields, start).to_bytes(4, "little") + fields


def read_batch_header(start: int, data: bytes, at: i64) -> BatchHeader | None:
    """The header at ``at`` in ``data``, or None when there is none that checks."""
    if at + BATCH_HEADER > len(data) or data[at : at + 3] != BATCH_MAGIC:
        return None
    version = i64(data[at + 3]) - 48
    if version < OLDEST or version > VERSION:
        return None
    fields = data[at + 8 : at + BATCH_HEADER]
    if zlib.crc32(fields, start) != int.from_bytes(data[at + 4 : at + 8], "little"):
        return None
    v = BATCH_FIELDS.unpack_from(fields)
    crc = int.from_bytes(fields[BATCH_FIELDS.size : BATCH_FIELDS.size + 4], "little")
    return BatchHeader(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], crc, version)


@final
class StoredMessage:
    """A message as it was appended. A chunked one has its body joined; ``Log.read_parts`` avoids that."""

    def __init__(
        self, message_id: i64, header: bytes, body: bytes, exchange: str, routing_keys: bytes, flags: i64
    ) -> None:
        self.message_id: Final = message_id
        self.header: Final = header
        self.body: Final = body
        self.exchange: Final = exchange
        self.routing_keys: Final = routing_keys
        self.flags: Final = flags


def change_size(data: bytes, at: i64) -> i64:
    """The length of the change at ``at``; 0 when the bytes are no change."""
    kind = data[at]
    if kind == SETTLE or kind == DELIVERED:
        return SETTLE_SIZE
    if kind == SETTLE_RUN:
        return SETTLE_RUN_SIZE
    if kind == ENQUEUE:
        return ENQUEUE_SIZE
    if kind == REQUEUE:
        return REQUEUE_SIZE
    if kind == DROP:
        return 9 + 4 * i64(read_i32_le(data, at + 5))
    if kind == DEFINE:
        name = i64(data[at + 1]) | i64(data[at + 2]) << 8
        return 11 + name + i64(read_i32_le(data, at + 3)) + i64(read_i32_le(data, at + 7))
    if kind == UNDEFINE:
        name = i64(data[at + 1]) | i64(data[at + 2]) << 8
        return 7 + name + i64(read_i32_le(data, at + 3))
    return 0
