"""A segment's ledger: every change that concerns its records, up to the manifest's position.

Duty: the bytes of its blocks. A ledger is a sequence of blocks ``length(4) crc(4) changes``; the manifest names how
many bytes of it count, so what a failed checkpoint wrote behind them is overwritten by the next. Compaction folds the
ledger into the segment, and the segment's next generation begins an empty one.
"""

from __future__ import annotations

import zlib
from typing import Final

from librt.strings import read_i32_le
from mypy_extensions import i64

from warrenmq.log.files import Files
from warrenmq.log.format import LogCorrupt
from warrenmq.log.layout import BLOCK_FIXED, BLOCK_LENGTH_AT, BLOCK_SUM_AT
from warrenmq.log.record import unsigned

CURE: Final = "`warren log salvage FOLDER NEW_FOLDER` saves what is readable"


def block(changes: bytes) -> bytes:
    return len(changes).to_bytes(4, "little") + zlib.crc32(changes).to_bytes(4, "little") + changes


def read_ledger(files: Files, path: str, length: i64) -> bytes:
    """The ledger's changes: its blocks up to the length the manifest names, each checked."""
    try:
        descriptor = files.open(path, False)
    except FileNotFoundError:
        raise LogCorrupt(f"{path}: missing; {CURE}") from None
    try:
        data = files.read(descriptor, length, 0)
    finally:
        files.close(descriptor)
    if len(data) != length:
        raise LogCorrupt(f"{path}: {len(data)} bytes where {length} were synced; {CURE}")
    blocks: list[bytes] = []
    at: i64 = 0
    while at < length:
        size = i64(read_i32_le(data, at + BLOCK_LENGTH_AT))
        crc = unsigned(data, at + BLOCK_SUM_AT)
        changes = data[at + BLOCK_FIXED : at + BLOCK_FIXED + size]
        if size <= 0 or i64(len(changes)) != size or i64(zlib.crc32(changes)) != crc:
            raise LogCorrupt(f"{path}: offset {at}: a block that does not check; {CURE}")
        blocks.append(changes)
        at += BLOCK_FIXED + size
    return b"".join(blocks)
