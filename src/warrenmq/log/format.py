"""The headers of the log's files and batches, what a stored message is, and the errors.

Duty: codecs of the two headers; no files, no state. Which field stands where is in ``grammar``; ``docs/log.md`` says
why. Messages come before changes: a change may name a message of its own batch, never the other way round. The
checksums are CRC-32, begun with the log's identity, so that a batch copied into a message body is never taken for a
batch; those of records are in ``sums``. The payload's sum in a batch header is that of the changes, begun with the
chained head sums of the records: it stands for every byte, as a head sum covers the body's, and each byte is summed
once. In format 1, which is read and never written, it is that of all bytes of messages and changes.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final, final

from mypy_extensions import i64

from warrenmq.log import grammar
from warrenmq.log.layout import (
    BATCH_HEADER,
    BATCH_MAGIC,
    BATCH_PROLOGUE,
    BATCH_SUM_AT,
    FILE_HEADER,
    FILE_MAGIC,
    FILE_PROLOGUE,
    FILE_SUM_AT,
    FILE_VERSION_AT,
    OLDEST,
    VERSION,
)

FILE_FIELDS: Final = struct.Struct(grammar.FILE_HEADER.struct_format("log_id", "length"))
BATCH_FIELDS: Final = struct.Struct(grammar.BATCH_HEADER.struct_format("segment", "time"))


class LogError(Exception):
    """The folder cannot be used as it is; the text says why and what to do."""


class LogCorrupt(LogError):
    """Bytes that were synced do not check: refused, never guessed at."""


class LogVersion(LogError):
    """A log written by a version that this one does not read."""


@final
class FileHeader:
    """The first 128 bytes of a segment file."""

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
        self.previous_segment: Final = previous_segment  # the segment of the file closed for good by this one
        self.previous_part: Final = previous_part
        self.previous_end: Final = previous_end  # the segment's offset where the closed file ends
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
    fields += bytes(FILE_HEADER - FILE_PROLOGUE - len(fields))
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
    version = int.from_bytes(data[FILE_VERSION_AT:FILE_SUM_AT], "little")
    fields = data[FILE_PROLOGUE:FILE_HEADER]
    if zlib.crc32(fields, version) != int.from_bytes(data[FILE_SUM_AT:FILE_PROLOGUE], "little"):
        return None
    refuse_other(version, path)
    (
        log_id,
        segment,
        part,
        generation,
        epoch,
        base,
        previous_segment,
        previous_part,
        _zero,
        previous_end,
        length,
    ) = FILE_FIELDS.unpack_from(fields)
    return FileHeader(
        log_id,
        segment,
        part,
        generation,
        epoch,
        base,
        previous_segment,
        previous_part,
        previous_end,
        length,
        version,
    )


@final
class BatchHeader:
    """The 96 bytes before a batch."""

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
        time: i64,
        version: i64 = VERSION,
    ) -> None:
        self.version: Final = version
        self.segment: Final = segment
        self.offset: Final = offset
        self.epoch: Final = epoch
        self.synced_segment: Final = synced_segment  # of the position before which everything was on disk
        self.synced_offset: Final = synced_offset  # of that position, when this batch was written
        self.number: Final = number
        self.first_record: Final = first_record
        self.records: Final = records
        self.messages: Final = messages
        self.changes: Final = changes
        self.crc: Final = crc
        self.time: Final = time  # when it was closed, in µs since 1970; 0 before format 3

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
        header.crc,
        header.time,
    )
    fields += bytes(BATCH_HEADER - BATCH_PROLOGUE - len(fields))
    magic = BATCH_MAGIC + str(int(header.version)).encode()
    return magic + zlib.crc32(fields, start).to_bytes(4, "little") + fields


def read_batch_header(start: int, data: bytes, at: i64) -> BatchHeader | None:
    """The header at ``at`` in ``data``, or None when there is none that checks."""
    if at + BATCH_HEADER > len(data) or data[at : at + len(BATCH_MAGIC)] != BATCH_MAGIC:
        return None
    version = i64(data[at + len(BATCH_MAGIC)]) - ord("0")
    if version < OLDEST or version > VERSION:
        return None
    fields = data[at + BATCH_PROLOGUE : at + BATCH_HEADER]
    if zlib.crc32(fields, start) != int.from_bytes(data[at + BATCH_SUM_AT : at + BATCH_PROLOGUE], "little"):
        return None
    (
        segment,
        offset,
        epoch,
        synced_segment,
        synced_offset,
        number,
        first_record,
        records,
        messages,
        changes,
        crc,
        time,
    ) = BATCH_FIELDS.unpack_from(fields)
    return BatchHeader(
        segment,
        offset,
        epoch,
        synced_segment,
        synced_offset,
        number,
        first_record,
        records,
        messages,
        changes,
        crc,
        time,
        version,
    )


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
