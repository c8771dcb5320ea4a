"""A consistent copy of a log's folder, made while the log runs.

Duty: say which bytes of which files make up the committed state of one moment (``plan``), and copy them (``copy``, on
any thread). While a plan is held nothing is removed or replaced; commits go on. The copy is a data folder like any
other: a broker started on it finds every turn that was committed when the plan was made, and none that was not.
"""

from __future__ import annotations

import os
from typing import Final, final

from mypy_extensions import i64

from warrenmq.log.files import Files
from warrenmq.log.format import LogError
from warrenmq.log.layout import FILE_HEADER
from warrenmq.log.log import Log
from warrenmq.log.manifest import NAME, Manifest, replace
from warrenmq.log.segment import Segment, file_name, ledger_name
from warrenmq.log.survey import Survey

PIECE: Final = 4 << 20


@final
class BackupFile:
    """A file of the copy and how much of it counts."""

    def __init__(self, name: str, length: i64) -> None:
        self.name: Final = name
        self.length: Final = length


@final
class Backup:
    """The files to copy: so much of each, and the manifest."""

    def __init__(self, files: list[BackupFile], manifest: bytes) -> None:
        self.files: Final = files
        self.manifest: Final = manifest

    def total(self) -> i64:
        total: i64 = len(self.manifest)
        for one in self.files:
            total += one.length
        return total


class Taken(LogError):
    """A target that somebody else has filled meanwhile: with another backup, say."""


def contents(segments: dict[int, Segment], manifest: Manifest, committed: tuple[int, int]) -> Backup:
    """The files of a log, each as far as it is committed: to this offset of this segment."""
    found: list[BackupFile] = []
    for number in sorted(segments):
        segment = segments[number]
        last = committed[1] if number == committed[0] else segment.end
        for index, part in enumerate(segment.parts):
            end = segment.parts[index + 1].base if index + 1 < len(segment.parts) else segment.end
            end = min(end, last)
            if number > committed[0] or (number == committed[0] and part.part > 0 and part.base >= last):
                continue
            found.append(BackupFile(file_name(number, part.part), FILE_HEADER + end - part.base))
    for entry in manifest.segments:
        # a segment compacted since the manifest was written has an empty ledger, of its new generation
        if entry.ledger > 0 and segments[int(entry.number)].generation == entry.generation:
            found.append(BackupFile(ledger_name(entry.number, entry.generation), entry.ledger))
    return Backup(found, manifest.encode())


def plan(log: Log) -> Backup | None:
    """On the broker's thread; ``release`` when the copy is made. None: files are just being rewritten; ask again."""
    maintenance = log.maintenance
    if maintenance.busy or maintenance.doubtful is not None:
        return None
    maintenance.pinned += 1
    return contents(log.segments, maintenance.manifest, maintenance.committed_position())


def release(log: Log) -> None:
    """On the broker's thread: files may go again."""
    log.maintenance.pinned -= 1


def inside(folder: str, target: str) -> bool:
    """Is the target the folder itself or below it, under whatever name? (It need not exist yet.)"""
    there = os.path.realpath(folder)
    place = os.path.realpath(target)
    if os.path.commonpath([there, place]) == there:
        return True
    while place != os.path.dirname(place):  # the same folder may be mounted elsewhere too
        if os.path.exists(place) and os.path.samefile(there, place):
            return True
        place = os.path.dirname(place)
    return False


def refusal(folder: str, target: str) -> str:
    """Why a backup of the folder cannot go there; empty when it can."""
    if inside(folder, target):
        return f"{target} is in the data folder {folder}: a backup goes to a folder of its own, outside"
    if os.path.exists(target) and (not os.path.isdir(target) or os.listdir(target)):
        return f"{target} is not empty: a backup goes to a folder of its own"
    return ""


def copy(source: str, target: str, files: Files, backup: Backup) -> list[int]:
    """Copy everything and sync it; the manifest comes last and makes the copy whole. Then the copy is read and checked.

    Returns the addresses of damaged messages, which are damaged in the copy too. OSError or LogError: remove the
    target; where more than bodies does not check, a copy is no backup. Taken: what is there is somebody else's.
    """
    files.make_folder(target)
    if files.names(target):
        raise Taken(f"{target} is not empty: a backup goes to a folder of its own")
    for one in backup.files:
        copy_file(f"{source}/{one.name}", f"{target}/{one.name}", files, one.length)
    files.sync_folder(target)
    replace(files, target, NAME, [backup.manifest])
    survey = Survey(target, files)
    survey.run()
    if survey.problems:
        raise LogError(f"the copy does not check: {survey.problems[0]}")
    return survey.damaged


def copy_file(source: str, target: str, files: Files, length: i64) -> None:
    reading = files.open(source, False)
    try:
        writing = files.create(target)
        try:
            at: i64 = 0
            while at < length:
                data = files.read(reading, min(PIECE, length - at), at)
                if not data:
                    raise LogError(f"{source}: {at} bytes where {length} were expected")
                files.write(writing, [data], at)
                at += len(data)
            files.sync(writing)
        finally:
            files.close(writing)
    finally:
        files.close(reading)
