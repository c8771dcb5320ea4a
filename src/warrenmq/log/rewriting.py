"""What a process that died wrote last is written once more.

Duty: before a start builds on what recovery read, bring to the disk whatever of it nothing names as synced. A sync
alone does not: recovery reads from the page cache, and pages that the kernel failed to write, in a sync or by itself,
stay there, count as clean, and no later sync touches them. So the batches behind the last position known to be synced,
as a rule those of one commit, are treated as ``tail`` treats a commit that failed: they go whole to a new part, whose
header closes the file at that position. The part gets its name when it is synced, so that at no moment the only copy
of a commit, which may have been promised, is at stake. Not here: what the batches mean.

Why nothing else has to be written again:
- Files before the last one, and the last one before that position: their sync succeeded, else no header would say so.
- Manifest, compacted segments, the marker of a clean stop: synced before they get their names, each in a new file.
- Ledgers: the manifest counts only bytes whose sync succeeded; what stands behind is overwritten before it counts.
- Names: they are in the file system's journal, where a failed sync forgets nothing. Syncing the folder suffices.
- After a clean stop: it leaves its marker only if every sync before it succeeded.
"""

from __future__ import annotations

import errno
from typing import Final

from mypy_extensions import i64

from warrenmq.log.files import Files
from warrenmq.log.format import FileHeader, LogError, batch_header, file_header, seed
from warrenmq.log.layout import FILE_HEADER
from warrenmq.log.manifest import write_beside
from warrenmq.log.recovery import Recovery
from warrenmq.log.scan import BatchCursor
from warrenmq.log.segment import Part, file_name

NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)


def make_durable(folder: str, files: Files, found: Recovery) -> None:
    """On disk when this returns: all that was found, and its names. ``found`` then says where it stands."""
    if found.last_segment == 0:
        files.sync_folder(folder)
        return
    old = file_name(found.last_segment, found.last_part)
    keep = _write_again(folder, files, found, old)
    files.sync_folder(folder)
    _trim(files, f"{folder}/{old}", keep)


def _write_again(folder: str, files: Files, found: Recovery, old: str) -> i64:
    """How much of the old file counts from now on."""
    segment = found.last_segment
    part = found.last_part
    base = found.last_base
    known = found.synced_segment == segment and found.synced_offset > base
    begin = found.synced_offset if known else base
    if known:
        epoch = found.recovered.epoch
        header = FileHeader(found.manifest.log_id, segment, part + 1, 0, epoch, begin, segment, part, begin, 0)
    else:  # nothing of the file is known to be synced: the new one takes its place
        header = _same_header(found, old)
    first = file_header(header)
    batches = _batches(folder, files, found, begin)
    at = FILE_HEADER + begin - base
    name = file_name(segment, header.part)
    try:
        write_beside(files, folder, name, [first, batches])
        files.rename(f"{folder}/{name}.new", f"{folder}/{name}")
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        # in place it needs none; and of bytes that are on the disk already even a torn write changes none
        if known:
            _overwrite(files, f"{folder}/{old}", batches, at)
        else:
            _overwrite(files, f"{folder}/{old}", first + batches, 0)
        return at + len(batches)
    if not known:
        return at + len(batches)
    if name in found.garbage:
        found.garbage.remove(name)  # a part that was being made has been replaced
    found.segments[int(segment)].parts.append(Part(header.part, begin))
    found.last_part = header.part
    found.last_base = begin
    return at


def _same_header(found: Recovery, name: str) -> FileHeader:
    header = found.header_of(name)
    if header is None:
        raise _changed(f"{found.folder}/{name}", 0)
    return header


def _batches(folder: str, files: Files, found: Recovery, begin: i64) -> bytes:
    """From here to the end, each checked once more: the kernel may drop such a page, and read what the disk has."""
    start = seed(found.manifest.log_id)
    part = Part(found.last_part, found.last_base)
    cursor = BatchCursor(folder, files, start, found.last_segment, [part], found.last_end)
    cursor.at = begin
    pieces: list[bytes] = []
    while cursor.next():
        pieces.append(batch_header(start, cursor.header))
        pieces.append(cursor.messages)
        pieces.append(cursor.changes)
    cursor.close()
    if cursor.at != found.last_end:
        raise _changed(cursor.path, cursor.file_offset(cursor.at))
    return b"".join(pieces)


def _changed(path: str, offset: i64) -> LogError:
    return LogError(f"{path}: offset {offset}: not what was read there a moment ago, the disk is failing; start again")


def _overwrite(files: Files, path: str, data: bytes, at: i64) -> None:
    descriptor = files.open(path, True)
    try:
        files.write(descriptor, [data], at)
        files.sync(descriptor)
    finally:
        files.close(descriptor)


def _trim(files: Files, path: str, length: i64) -> None:
    """What stands behind, zeros and what was cut or copied, is given back."""
    try:
        descriptor = files.open(path, True)
        try:
            if files.size(descriptor) > length:
                files.truncate(descriptor, length)
        finally:
            files.close(descriptor)
    except OSError:
        pass  # it may stay
