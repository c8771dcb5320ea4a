"""Walking the batches of a segment on disk, each checked before it is shown.

Duty: find batch after batch across a segment's parts, and say where and why the walk stopped. A batch in which nothing
but bodies are damaged is shown, with their record numbers, where the caller knows it to be synced (``tolerated``): who
holds what is not in doubt there. Not here: whether a stop is a torn tail or corruption (``recovery``), and what the
batches mean.
"""

from __future__ import annotations

import zlib
from typing import Final, final

from mypy_extensions import i64

from warrenmq.log.files import Files
from warrenmq.log.format import BatchHeader, payload_crc, read_batch_header
from warrenmq.log.layout import BATCH_HEADER, BATCH_MAGIC, FILE_HEADER
from warrenmq.log.record import HEAD_DAMAGED, WHOLE, check, number_of, record_size, written_head
from warrenmq.log.segment import Part, file_name
from warrenmq.log.sums import Sums, chained

READ_AHEAD: Final = 1 << 20
MISMATCH: Final = "a batch whose checksum does not match"
DAMAGED: Final = "a message whose checksum does not match"


@final
class BatchCursor:
    """A walk over the batches: ``while cursor.next(): use cursor.header, cursor.messages, cursor.changes``; then look
    at ``cursor.problem``."""

    def __init__(self, folder: str, files: Files, seed: int, segment: i64, parts: list[Part], end: i64) -> None:
        self.folder: Final = folder
        self.files: Final = files
        self.seed: Final = seed
        self.segment: Final = segment
        self.parts: Final = parts
        self.end: Final = end  # segment offset where the batches must end; -1: wherever they do
        self.index: i64 = 0
        self.path: str = ""
        self.descriptor: int = -1
        self.file_size: i64 = 0
        self.at: i64 = parts[0].base if parts else 0  # segment offset of the next batch
        self.begin: i64 = self.at  # of the current one
        self.tolerated: i64 = -1  # batches that end at or before this segment offset may have damaged bodies
        self.damaged: list[int] = []  # the records of the current batch whose bodies do not check
        self.problem: str = ""
        self.sums: Final = Sums(seed)
        self.header: BatchHeader = BatchHeader(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        self.messages: bytes = b""
        self.changes: bytes = b""

    def file_offset(self, offset: i64) -> i64:
        return FILE_HEADER + offset - self.parts[self.index].base

    def open_part(self) -> None:
        if self.descriptor >= 0:
            self.files.close(self.descriptor)
            self.descriptor = -1
        self.path = self.folder + "/" + file_name(self.segment, self.parts[self.index].part)
        self.descriptor = self.files.open(self.path, False)
        self.file_size = self.files.size(self.descriptor)

    def next(self) -> bool:
        """The next batch that checks. False: the end, or ``problem`` says what stands at ``at`` instead."""
        if self.at == self.end or not self.parts:
            return False
        if self.descriptor < 0:
            self.open_part()
        while self.index + 1 < len(self.parts) and self.at >= self.parts[self.index + 1].base:
            self.index += 1
            self.open_part()
        at = self.file_offset(self.at)
        data = self.files.read(self.descriptor, BATCH_HEADER, at)
        header = read_batch_header(self.seed, data, 0)
        if header is None:
            self.problem = "no batch header" if data.strip(b"\0") else "nothing written"
            return False
        if header.segment != self.segment or header.offset != self.at:
            self.problem = "a batch header that belongs elsewhere"
            return False
        if at + header.length() > self.file_size:
            self.problem = "a batch cut short"
            return False
        payload = self.files.read(self.descriptor, header.messages + header.changes, at + BATCH_HEADER)
        if len(payload) != header.messages + header.changes:
            self.problem = "a batch cut short"
            return False
        messages = payload
        changes = b""
        if header.changes > 0:
            messages = payload[: header.messages]
            changes = payload[header.messages :]
        if header.version == 1:
            self.damaged = []
            self.problem = "" if zlib.crc32(payload, self.seed) == header.crc else MISMATCH
        else:
            self.problem = self._judge(header, messages, changes)
        if self.problem:
            return False
        self.header = header
        self.messages = messages
        self.changes = changes
        self.begin = self.at
        self.at += header.length()
        return True

    def _judge(self, header: BatchHeader, messages: bytes, changes: bytes) -> str:
        """What is wrong with this batch; empty when it may be shown."""
        damaged: list[int] = []
        heads: i64 = self.seed
        records: i64 = 0
        at: i64 = 0
        end: i64 = len(messages)
        while at < end:
            size = record_size(messages, at)
            if size == 0 or at + size > end:
                return MISMATCH
            found = check(self.sums, messages, at, size)
            if found == HEAD_DAMAGED:
                return MISMATCH
            if found != WHOLE:
                damaged.append(int(number_of(messages, at)))
            heads = chained(heads, written_head(messages, at, size))
            records += 1
            at += size
        if records != header.records or payload_crc(heads, changes) != header.crc:
            return MISMATCH
        if damaged and self.at + header.length() > self.tolerated:
            return DAMAGED
        self.damaged = damaged
        return ""

    def pick(self) -> bool:
        """For salvage: of the batch that ``next`` refused, the records that check each by itself.

        Its changes are lost: they check only together with all of its heads. False: nothing of it can be trusted.
        """
        at = self.file_offset(self.at)
        header = read_batch_header(self.seed, self.files.read(self.descriptor, BATCH_HEADER, at), 0)
        if header is None or header.version == 1 or header.segment != self.segment or header.offset != self.at:
            return False
        data = self.files.read(self.descriptor, min(header.messages, self.file_size), at + BATCH_HEADER)
        good: list[bytes] = []
        place: i64 = 0
        while place < len(data):
            size = record_size(data, place)
            if size == 0 or place + size > len(data):
                break
            found = check(self.sums, data, place, size)
            if found == WHOLE:
                good.append(data[place : place + size])
            place += size  # behind a damaged head it may lead astray, but then nothing checks any more
        self.header = header
        self.messages = b"".join(good)
        self.changes = b""
        self.damaged = []
        self.begin = self.at
        self.at += header.length()
        return True

    def headers_behind(self) -> list[BatchHeader]:
        """Headers that check anywhere behind the batch that did not, in the same file: they name synced positions."""
        found: list[BatchHeader] = []
        if self.descriptor < 0:
            return found
        at = self.file_offset(self.at) + 1
        while at < self.file_size:
            data = self.files.read(self.descriptor, READ_AHEAD + BATCH_HEADER, at)
            if not data:
                break
            place = data.find(BATCH_MAGIC)
            while place >= 0:
                header = read_batch_header(self.seed, data, place)
                if header is not None and header.segment == self.segment:
                    found.append(header)
                place = data.find(BATCH_MAGIC, place + 1)
            at += READ_AHEAD
        return found

    def close(self) -> None:
        if self.descriptor >= 0:
            self.files.close(self.descriptor)
            self.descriptor = -1
