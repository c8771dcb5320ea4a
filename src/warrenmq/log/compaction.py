"""Rewriting a segment without its dead records, under the same number and record numbers.

Duty: from a segment's file and its ledger (both as the manifest names them) the bytes of its next generation, in
slices; and the task that puts it in place: written beside, synced, renamed, folder synced, only then the old parts and
the old ledger removed. It is a function of what is on disk: settles that are not checkpointed yet are left to the next
ledger, so a crash at any point leaves one generation or the other, each complete.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter
from librt.vecs import append, vec
from mypy_extensions import i32, i64

from warrenmq.log.files import Files
from warrenmq.log.format import BatchHeader, FileHeader, LogCorrupt, batch_header, file_header, payload_crc
from warrenmq.log.holders import DEAD, EXACT, Holders
from warrenmq.log.layout import BATCH_HEADER
from warrenmq.log.record import Holder, is_chunk, number_of, record_size, rewritten, written_head
from warrenmq.log.runner import Task
from warrenmq.log.scan import BatchCursor
from warrenmq.log.segment import Segment, file_name, ledger_name
from warrenmq.log.sums import Sums, chained

BATCH_BYTES: Final = 1 << 20


@final
class Compaction:
    """A compaction under way. Call ``step`` until it returns True; then ``parts`` are the new file's bytes."""

    def __init__(self, folder: str, files: Files, log_id: i64, seed: int, segment: Segment, changes: bytes) -> None:
        self.folder: Final = folder
        self.files: Final = files
        self.log_id: Final = log_id
        self.seed: Final = seed
        self.segment: Final = segment
        self.holders: Final = Holders(changes)
        self.cursor: BatchCursor = self._new_cursor()
        self.copying: bool = False
        self.epoch: i64 = 0
        self.out: BytesWriter = BytesWriter()
        self.sums: Final = Sums(seed)
        self.heads: i64 = seed
        self.damaged: list[int] = []  # records whose bodies do not check: kept as they are
        self.batch_first: i64 = 0
        self.batch_time: i64 = 0  # that of the batch its first record came in
        self.batch_records: i64 = 0
        self.batches: list[bytes] = []
        self.length: i64 = 0
        self.numbers: vec[i32] = vec[i32]()
        self.offsets: vec[i64] = vec[i64]()
        self.sizes: vec[i64] = vec[i64]()

    def _new_cursor(self) -> BatchCursor:
        s = self.segment
        cursor = BatchCursor(self.folder, self.files, self.seed, s.number, s.parts, s.end)
        cursor.tolerated = s.end
        return cursor

    def step(self, budget: i64) -> bool:
        """About this many bytes of work. True when all is done."""
        while budget > 0:
            if not self.cursor.next():
                if self.cursor.at != self.cursor.end:
                    self.cursor.close()
                    raise LogCorrupt(f"{self.cursor.path}: {self.cursor.problem}; run `warren log verify`")
                self.cursor.close()
                if self.copying:
                    self._finish_batch()
                    return True
                self.holders.resolve()
                self.copying = True
                self.cursor = self._new_cursor()
                continue
            budget -= self.cursor.header.length()
            if self.copying:
                self.damaged.extend(self.cursor.damaged)
                self._copy(self.cursor.messages)
            else:
                self.epoch = max(self.epoch, self.cursor.header.epoch)
                self._classify(self.cursor.messages)
        return False

    def _classify(self, data: bytes) -> None:
        at: i64 = 0
        while at < len(data):
            if not is_chunk(data[at]):
                self.holders.classify(number_of(data, at), data, at)
            at += record_size(data, at)

    def _copy(self, data: bytes) -> None:
        at: i64 = 0
        while at < len(data):
            size = record_size(data, at)
            record = number_of(data, at)
            if is_chunk(data[at]):
                # a chunk dies only after the settle of its message was synced, so memory may be asked
                if self.segment.holders(record) > 0:
                    self._write(record, data, at, size, None)
            else:
                kind = self.holders.classify(record, data, at) if record not in self.holders.exact else EXACT
                if kind == EXACT:
                    held = self.holders.exact[record]
                    if held:
                        self._write(record, data, at, size, held)
                elif kind != DEAD:
                    self._write(record, data, at, size, None)
            at += size

    def _write(self, record: i64, data: bytes, at: i64, size: i64, held: list[Holder] | None) -> None:
        written = rewritten(self.sums, data, at, size, held)
        if self.batch_records == 0:
            self.batch_first = record
            self.batch_time = self.cursor.header.time
        self.batch_records += 1
        self.numbers = append(self.numbers, i32(record))
        self.offsets = append(self.offsets, self.length + BATCH_HEADER + len(self.out))
        self.sizes = append(self.sizes, len(written))
        self.heads = chained(self.heads, written_head(written, 0, len(written)))
        self.out.write(written)
        if len(self.out) >= BATCH_BYTES:
            self._finish_batch()

    def _finish_batch(self) -> None:
        if self.batch_records == 0:
            return
        data = self.out.getvalue()
        number = self.segment.number
        header = BatchHeader(
            number,
            self.length,
            self.epoch,
            number,
            self.length,
            0,
            self.batch_first,
            self.batch_records,
            len(data),
            0,
            payload_crc(self.heads, b""),
            self.batch_time,
        )
        self.batches.append(batch_header(self.seed, header))
        self.batches.append(data)
        self.length += BATCH_HEADER + len(data)
        self.batch_records = 0
        self.heads = self.seed
        self.out.truncate(0)

    def task(self, number: i64) -> Replace:
        s = self.segment
        header = FileHeader(self.log_id, s.number, 0, s.generation + 1, self.epoch, 0, 0, 0, 0, self.length)
        old = [ledger_name(s.number, s.generation)]
        for part in s.parts:
            if part.part > 0:
                old.append(file_name(s.number, part.part))
        return Replace(number, self.files, self.folder, file_name(s.number, 0), file_header(header), self.batches, old)


@final
class Replace(Task):
    """The task of putting a compacted segment in the place of its older generation."""

    def __init__(
        self, number: i64, files: Files, folder: str, name: str, header: bytes, batches: list[bytes], old: list[str]
    ) -> None:
        super().__init__(number)
        self.files: Final = files
        self.folder: Final = folder
        self.name: Final = name
        self.header: Final = header
        self.batches: Final = batches
        self.old: Final = old
        self.renamed: bool = False

    def work(self) -> None:
        files = self.files
        beside = f"{self.folder}/{self.name}.compact"
        descriptor = files.create(beside)
        try:
            files.write(descriptor, [self.header], 0)
            at: i64 = len(self.header)
            for data in self.batches:
                files.write(descriptor, [data], at)
                at += len(data)
            files.sync(descriptor)
        except OSError:
            files.unlink(beside)  # a full disk needs the room
            raise
        finally:
            files.close(descriptor)
        files.rename(beside, f"{self.folder}/{self.name}")
        self.renamed = True
        files.sync_folder(self.folder)
        for name in self.old:
            files.unlink(f"{self.folder}/{name}")
