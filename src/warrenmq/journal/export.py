"""The journal of a folder that no broker writes one for: the same files, up to where its log ends now.

Duty: where that is, and that nobody else writes to the target. Not here: the writing (``writer``).
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq

from warrenmq.journal.files import FULL, LOCK
from warrenmq.journal.writer import Writer
from warrenmq.log.files import Files
from warrenmq.log.format import LogError
from warrenmq.log.listing import Listing


def export(folder: Path, target: Path, headers: Sequence[str] = ()) -> list[tuple[Path, int]]:
    """Tell all that is not told there yet. The files that are new, with the number of events in each.

    A segment that a broker still writes to is told as far as it goes; the next call replaces that file.
    """
    end = end_of(folder)
    with undisturbed(target):
        writer = Writer(folder, target)
        writer.headers = headers
        before = {one.path for one in writer.files}
        writer.advance(*end)
        writer.join()
        made = [one.path for one in writer.files if one.path not in before]
    return [(path, pq.read_metadata(path).num_rows) for path in made]


def end_of(folder: Path) -> tuple[int, int]:
    """Segment and offset behind the last batch that is whole."""
    listing = Listing(str(folder), Files())
    last = max(listing.numbers(), default=0)
    cursor = listing.cursor(last)
    if cursor is None:
        return last, 0
    cursor.tolerated = FULL
    try:
        while cursor.next():
            pass
    finally:
        cursor.close()
    return last, int(cursor.at)


@contextmanager
def undisturbed(target: Path) -> Iterator[None]:
    """As long as no broker's process writes its journal there."""
    try:
        descriptor = os.open(target / LOCK, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        yield
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise LogError(f"{target} is the journal that a broker writes: export to another folder") from None
    finally:
        os.close(descriptor)
