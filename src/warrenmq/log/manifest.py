"""The manifest: the root of a data folder, replaced whole at every checkpoint.

Duty: its bytes, and reading and replacing it. It says up to which position of the log the ledgers and definitions it
names are complete; what the log holds behind that position is replayed over it. Its layout is in ``grammar``.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final, final

from mypy_extensions import i64

from warrenmq.log import grammar
from warrenmq.log.files import Files
from warrenmq.log.format import LogCorrupt, refuse_other
from warrenmq.log.layout import MANIFEST_MAGIC, VERSION

NAME: Final = "manifest"
HEAD: Final = struct.Struct(grammar.MANIFEST_HEAD.struct_format("magic", "length"))
FIXED: Final = struct.Struct(grammar.MANIFEST.struct_format("log_id", "zero"))
SEGMENT: Final = struct.Struct(grammar.MANIFEST_SEGMENT.struct_format("number", "part_count"))
PART: Final = struct.Struct(grammar.MANIFEST_PART.struct_format("part", "base"))
LENGTHS: Final = struct.Struct(grammar.MANIFEST_DEFINITION.struct_format("kind_length", "value_length"))
DELIVERED: Final = struct.Struct(grammar.MANIFEST_DELIVERED.struct_format("queue", "position"))


@final
class ManifestSegment:
    """A segment wholly before the manifest's position: nothing of it need be found by looking."""

    def __init__(
        self, number: i64, generation: i64, end: i64, ledger: i64, records: i64, parts: list[tuple[int, int]]
    ) -> None:
        self.number: Final = number
        self.generation: Final = generation
        self.end: Final = end
        self.ledger: Final = ledger
        self.records: Final = records  # a hint for progress and table sizes
        self.parts: Final = parts  # (part, base)


@final
class Manifest:
    """The decoded root of a folder: its segments, their state, and what a start needs to know."""

    def __init__(self, log_id: i64) -> None:
        self.log_id: i64 = log_id
        self.checkpoint: i64 = 0
        self.epoch: i64 = 0
        self.segment: i64 = 0  # of the position
        self.offset: i64 = 0  # of the position, in its segment
        self.batch: i64 = 0
        self.next_message_id: i64 = 1
        self.version: i64 = VERSION  # as it was read
        self.segments: list[ManifestSegment] = []
        self.definitions: dict[tuple[str, str], bytes] = {}
        self.delivered: dict[int, int] = {}

    def encode(self) -> bytes:
        out: list[bytes] = [
            FIXED.pack(
                self.log_id,
                self.checkpoint,
                self.epoch,
                self.segment,
                self.offset,
                self.batch,
                self.next_message_id,
                len(self.segments),
                len(self.definitions),
                len(self.delivered),
                0,
            )
        ]
        for s in self.segments:
            out.append(SEGMENT.pack(s.number, s.generation, s.end, s.ledger, s.records, len(s.parts)))
            for part, base in s.parts:
                out.append(PART.pack(part, base))
        for (kind, key), value in self.definitions.items():
            kind_bytes = kind.encode("utf-8", "surrogateescape")
            key_bytes = key.encode("utf-8", "surrogateescape")
            out.append(LENGTHS.pack(len(kind_bytes), len(key_bytes), len(value)))
            out.append(kind_bytes)
            out.append(key_bytes)
            out.append(value)
        for queue, position in self.delivered.items():
            out.append(DELIVERED.pack(queue, position))
        payload = b"".join(out)
        return HEAD.pack(MANIFEST_MAGIC, VERSION, zlib.crc32(payload, VERSION), len(payload)) + payload


def decode(data: bytes, path: str) -> Manifest:
    if len(data) < HEAD.size or not data.startswith(MANIFEST_MAGIC):
        raise LogCorrupt(f"{path}: not a manifest; `warren log salvage` saves what is readable")
    _magic, version, crc, length = HEAD.unpack_from(data)
    payload = data[HEAD.size : HEAD.size + length] if length >= 0 else b""
    if len(payload) != length or version < 0 or zlib.crc32(payload, version) != crc:
        raise LogCorrupt(f"{path}: checksum does not match; `warren log salvage` saves what is readable")
    refuse_other(version, path)
    (
        log_id,
        checkpoint,
        epoch,
        segment,
        offset,
        batch,
        next_message_id,
        segments,
        definitions,
        delivered,
        zero,
    ) = FIXED.unpack_from(payload)
    if zero:
        raise LogCorrupt(f"{path}: {zero} entries of a kind this Warren does not know: written by a newer one?")
    m = Manifest(log_id)
    m.checkpoint = checkpoint
    m.epoch = epoch
    m.segment = segment
    m.offset = offset
    m.batch = batch
    m.next_message_id = next_message_id
    m.version = version
    at = FIXED.size
    for _ in range(segments):
        number, generation, end, ledger, records, count = SEGMENT.unpack_from(payload, at)
        at += SEGMENT.size
        parts: list[tuple[int, int]] = []
        for _part in range(count):
            parts.append(PART.unpack_from(payload, at))
            at += PART.size
        m.segments.append(ManifestSegment(number, generation, end, ledger, records, parts))
    for _ in range(definitions):
        kind_length, key_length, value_length = LENGTHS.unpack_from(payload, at)
        kind_at = at + LENGTHS.size
        key_at = kind_at + kind_length
        value_at = key_at + key_length
        at = value_at + value_length
        kind = payload[kind_at:key_at].decode("utf-8", "surrogateescape")
        key = payload[key_at:value_at].decode("utf-8", "surrogateescape")
        m.definitions[(kind, key)] = payload[value_at:at]
    for _ in range(delivered):
        queue, position = DELIVERED.unpack_from(payload, at)
        m.delivered[queue] = position
        at += DELIVERED.size
    return m


def read_whole(files: Files, path: str) -> bytes:
    descriptor = files.open(path, False)
    try:
        return files.read(descriptor, files.size(descriptor), 0)
    finally:
        files.close(descriptor)


def write_beside(files: Files, folder: str, name: str, parts: list[bytes]) -> None:
    """The file's next content, synced, under a name of its own."""
    descriptor = files.create(f"{folder}/{name}.new")
    try:
        files.write(descriptor, parts, 0)
        files.sync(descriptor)
    except OSError:
        files.unlink(f"{folder}/{name}.new")  # a full disk needs the room
        raise
    finally:
        files.close(descriptor)


def replace(files: Files, folder: str, name: str, parts: list[bytes]) -> None:
    """Written beside, synced, renamed, folder synced: the old file or the new one, never anything between."""
    write_beside(files, folder, name, parts)
    files.rename(f"{folder}/{name}.new", f"{folder}/{name}")
    files.sync_folder(folder)
