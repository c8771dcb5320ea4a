"""Saving what is readable of a damaged folder into a new one, and saying what is missing.

Duty: read every batch that checks, whatever stands between them, apply every change found, write the live messages and
definitions as a new log, report. Reads the damaged folder only. Prefers a message too many to one too few: where the
record of a settle is lost, the message comes back.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import read_i64_le
from mypy_extensions import i64

from warrenmq.log import manifest as manifests
from warrenmq.log.files import Files
from warrenmq.log.format import FileHeader, LogCorrupt, LogError, read_file_header, seed
from warrenmq.log.gaps import Gaps
from warrenmq.log.holders import AS_WRITTEN, EXACT, Holders, read_holders
from warrenmq.log.layout import ADDRESS, FILE_HEADER, HOLDER, RECORD_BITS
from warrenmq.log.ledger import read_ledger
from warrenmq.log.log import Log
from warrenmq.log.manifest import Manifest, read_whole
from warrenmq.log.record import (
    Holder,
    chunk_bytes,
    decode_message,
    holder_count,
    holders_start,
    is_chunk,
    is_chunked,
    number_of,
    record_size,
)
from warrenmq.log.scan import BatchCursor
from warrenmq.log.segment import Part, file_name, ledger_name, parse_file_name
from warrenmq.log.settings import LogSettings
from warrenmq.log.state import LogState

TURN_BYTES: Final = 1 << 20
EVERYTHING: Final = 1 << 62


@final
class Report:
    """The count of what was saved and the list of what was not."""

    def __init__(self) -> None:
        self.messages: i64 = 0
        self.definitions: i64 = 0
        self.queues: i64 = 0
        self.problems: list[str] = []  # what could not be read, one line each
        self.cut: list[str] = []  # torn tails: nothing says that more was there, one line each
        self.lost: list[str] = []  # messages known to be missing, one line each
        self.missing_records: i64 = 0


@final
class Place:
    """The place of a batch that checks."""

    def __init__(self, segment: i64, part: i64, offset: i64) -> None:
        self.segment: Final = segment
        self.part: Final = part
        self.offset: Final = offset  # in the file


@final
class Salvage:
    """One rescue: a damaged folder in, a sound one out."""

    def __init__(self, folder: str, target: str, files: Files) -> None:
        self.folder: Final = folder
        self.target: Final = target
        self.files: Final = files
        self.report: Final = Report()
        self.manifest: Manifest = Manifest(0)
        self.has_manifest: bool = False
        self.state: Final = LogState()
        self.closed: dict[tuple[int, int], int] = {}  # (segment, part) -> segment offset where it was closed
        self.parts: dict[int, list[Part]] = {}
        self.generations: dict[int, int] = {}
        self.gaps: Gaps = Gaps(None, [], {})
        self.damaged: set[int] = set()  # records of the current batch whose bodies do not check
        self.waiting_bytes: i64 = 0

    def run(self) -> Report:
        self._read_manifest()
        self._read_headers()
        numbers = sorted(self.parts)
        for number in numbers:
            self._changes(number)
        self.files.make_folder(self.target)
        if self.files.names(self.target):
            raise LogError(f"{self.target} is not empty: salvage writes to a new folder")
        log, _recovered = Log.open(self.target, self.files, LogSettings())
        for (kind, key), value in self.state.definitions.items():
            log.define(kind, key, value)
            self.report.definitions += 1
        log.end_turn(True)
        queues: set[int] = set()
        for number in numbers:
            self._messages(number, log, queues)
        for queue, position in self.state.delivered.items():
            log.delivered_up_to(queue, position)
        log.end_turn(True)
        self.report.queues = len(queues)
        if not log.close():
            raise LogError(f"{self.target}: could not be written: {log.reason}")
        return self.report

    def _problem(self, text: str) -> None:
        self.report.problems.append(text)

    def _read_manifest(self) -> None:
        path = f"{self.folder}/{manifests.NAME}"
        try:
            self.manifest = manifests.decode(read_whole(self.files, path), path)
            self.has_manifest = True
        except (LogCorrupt, OSError) as error:
            self._problem(f"{error}: definitions older than the segments that are left may be missing")
            return
        self.state.definitions = dict(self.manifest.definitions)
        self.state.delivered = dict(self.manifest.delivered)

    def _read_headers(self) -> None:
        log_ids: dict[int, int] = {}
        headers: list[FileHeader] = []
        for name in self.files.names(self.folder):
            parsed = parse_file_name(name)
            if parsed is None:
                continue
            path = f"{self.folder}/{name}"
            descriptor = self.files.open(path, False)
            try:
                header = read_file_header(self.files.read(descriptor, FILE_HEADER, 0), path)
            finally:
                self.files.close(descriptor)
            number, part = parsed
            if header is None:
                self._problem(f"{path}: the file's header does not check; its batches are looked for all the same")
                self.parts.setdefault(number, []).append(Part(part, -1))
                continue
            log_ids[int(header.log_id)] = log_ids.get(int(header.log_id), 0) + 1
            headers.append(header)
        if not self.has_manifest and log_ids:
            self.manifest.log_id = max((count, log_id) for log_id, count in log_ids.items())[1]
        for header in headers:
            if header.log_id != self.manifest.log_id:
                continue
            number = int(header.segment)
            self.parts.setdefault(number, []).append(Part(header.part, header.base))
            self.generations[number] = max(self.generations.get(number, 0), int(header.generation))
            self.closed[(int(header.previous_segment), int(header.previous_part))] = int(header.previous_end)
        if self.has_manifest:
            kept = {int(entry.number) for entry in self.manifest.segments}
            for number in list(self.parts):
                if number < self.manifest.segment and number not in kept:
                    del self.parts[number]  # removed, but its name came back
        for number in self.parts:
            self.parts[number].sort(key=part_number)
            if self.generations.get(number, 0) > 0:
                self.parts[number] = [part for part in self.parts[number] if part.part == 0]
        ours = [header for header in headers if header.log_id == self.manifest.log_id]
        self.gaps = Gaps(self.manifest if self.has_manifest else None, ours, self.parts)
        self.report.missing_records += self.gaps.records
        self.report.lost.extend(self.gaps.lines)

    def _missing(self, text: str) -> None:
        self.report.lost.append(text)

    def _cursor(self, number: int, part: Part) -> BatchCursor:
        base = part.base if part.base >= 0 else 0
        cursor = BatchCursor(self.folder, self.files, seed(self.manifest.log_id), number, [Part(part.part, base)], -1)
        cursor.tolerated = EVERYTHING  # what is damaged in a body is left out by itself
        return cursor

    def _walk(self, number: int, part: Part, cursor: BatchCursor, report: bool) -> bool:
        """The next readable batch of this part, stepping over what does not check."""
        end = self.closed.get((number, int(part.part)), -1)
        while True:
            if end >= 0 and cursor.at >= end and self.generations.get(number, 0) == 0:
                return False
            if cursor.next():
                return True
            problem = cursor.problem
            where = cursor.file_offset(cursor.at)
            if cursor.pick():
                if report:
                    self._problem(f"{cursor.path}: offset {where}: {problem}; what checks in it by itself is saved")
                return True
            behind = cursor.headers_behind()
            following: i64 = -1
            for header in behind:
                if header.offset > cursor.at and (following < 0 or header.offset < following):
                    following = header.offset
            if following < 0:
                short = self.gaps.short(number, part.part, cursor.at)
                if report and short > 0:
                    self._problem(f"{cursor.path}: offset {where}: {problem}, where {short} more bytes were synced")
                elif report and problem != "nothing written" and cursor.file_size > where:
                    self.report.cut.append(f"{cursor.path}: offset {where}: {problem}; nothing says it was synced")
                return False
            if report:
                self._problem(f"{cursor.path}: offset {where}: {problem}; {following - cursor.at} bytes passed over")
            cursor.at = following
            cursor.problem = ""

    def _changes(self, number: int) -> None:
        m = self.manifest
        for part in self.parts[number]:
            cursor = self._cursor(number, part)
            while self._walk(number, part, cursor, True):
                covered = self.has_manifest and (
                    number < m.segment or (number == m.segment and cursor.begin < m.offset)
                )
                if not covered:
                    self.state.absorb(cursor.changes)
            cursor.close()

    def _holders(self, number: int) -> Holders:
        changes = b""
        generation = self.generations.get(number, 0)
        for entry in self.manifest.segments:
            if entry.number == number and entry.generation == generation and entry.ledger > 0:
                path = f"{self.folder}/{ledger_name(number, generation)}"
                try:
                    changes = read_ledger(self.files, path, entry.ledger)
                except LogCorrupt as error:
                    self._problem(f"{error.args[0].split(';')[0]}; messages settled there come back")
        pending = self.state.pending.get(number)
        return Holders(changes if pending is None else changes + pending.value())

    def _messages(self, number: int, log: Log, queues: set[int]) -> None:
        holders = self._holders(number)
        for copying in (False, True):
            expected: i64 = 0
            for part in self.parts[number]:
                cursor = self._cursor(number, part)
                while self._walk(number, part, cursor, False):
                    self.damaged = set(cursor.damaged)
                    if copying:
                        self._copy(number, cursor.messages, holders, log, queues)
                    else:
                        expected = self._classify(number, cursor.messages, holders, expected)
                cursor.close()
            if not copying:
                self._shortfall(number, expected)
                holders.resolve()

    def _shortfall(self, number: int, found: i64) -> None:
        """Records at the end of the segment that were not found."""
        more = self.gaps.records_after(number, found)
        if more > 0:
            self.report.missing_records += more
            self._missing(f"{file_name(number, 0)}: records {found} to {found + more - 1} could not be read")

    def _classify(self, number: int, data: bytes, holders: Holders, expected: i64) -> i64:
        at: i64 = 0
        while at < len(data):
            record = number_of(data, at)
            if record > expected and self.generations.get(number, 0) == 0:
                self.report.missing_records += record - expected
                self.report.lost.append(f"{file_name(number, 0)}: records {expected} to {record - 1} could not be read")
            expected = record + 1
            if not is_chunk(data[at]):
                holders.classify(record, data, at)
            at += record_size(data, at)
        return expected

    def _copy(self, number: int, data: bytes, holders: Holders, log: Log, queues: set[int]) -> None:
        at: i64 = 0
        while at < len(data):
            if not is_chunk(data[at]):
                self._copy_message(number, data, at, holders, log, queues)
            at += record_size(data, at)

    def _copy_message(self, number: int, data: bytes, at: i64, holders: Holders, log: Log, queues: set[int]) -> None:
        record = number_of(data, at)
        kind = EXACT if int(record) in holders.exact else holders.classify(record, data, at)
        held: list[Holder] = []
        if kind == EXACT:
            held = holders.exact[int(record)]
        elif kind == AS_WRITTEN:
            held = read_holders(data, holders_start(data, at), holder_count(data, at))
        if not held:
            return
        message = decode_message(data, at)
        if int(record) in self.damaged:
            self._damaged(number, record, message.message_id, held)
            return
        body = message.body
        if is_chunked(data[at]):
            pieces: list[bytes] = []
            for index in range(0, len(body), ADDRESS):
                piece = self._chunk(read_i64_le(body, index))
                if piece is None:
                    self.report.missing_records += 1
                    self._missing(
                        f"{file_name(number, 0)}: record {record}: message {message.message_id} lacks part of its body"
                    )
                    return
                pieces.append(piece)
            body = b"".join(pieces)
        address = log.append(
            message.message_id,
            message.header,
            body,
            message.exchange,
            message.routing_keys,
            message.flags,
            holders=len(held),
        )
        for queue, position, expiry, flags in held:
            log.hold(address, queue, position, expiry, flags)
            queues.add(queue)
        self.report.messages += 1
        self.waiting_bytes += len(body) + HOLDER
        if self.waiting_bytes > TURN_BYTES:
            self.waiting_bytes = 0
            log.end_turn(True)

    def _damaged(self, number: int, record: i64, message_id: i64, held: list[Holder]) -> None:
        queues = ", ".join([str(holder[0]) for holder in held])
        self.report.missing_records += 1
        self._missing(
            f"{file_name(number, 0)}: record {record}: message {message_id} is damaged, held by queues {queues}"
        )

    def _chunk(self, address: i64) -> bytes | None:
        """A chunk, found by walking its segment: slow, and rare enough."""
        number = int(address >> 32)
        wanted = address & RECORD_BITS
        for part in self.parts.get(number, []):
            cursor = self._cursor(number, part)
            while self._walk(number, part, cursor, False):
                data = cursor.messages
                at: i64 = 0
                while at < len(data):
                    size = record_size(data, at)
                    if is_chunk(data[at]) and number_of(data, at) == wanted and wanted not in cursor.damaged:
                        cursor.close()
                        return chunk_bytes(data, at)
                    at += size
            cursor.close()
        return None


def part_number(part: Part) -> int:
    return int(part.part)
