"""Writing the journal: from the log's segments to files, in order, as far as the log is synced.

Duty: read on where the files end, write what is new, join the files of a segment (a few of the same size into one, all
of them when the segment is full), and record as a gap what was gone before it could be read. Every step may be the
last one: what is there then is the beginning of what would have been there, without a double and without a hole. Not
here: when (``process``), how events become a table (``parquet``), what is removed again (``retention``).

The order of steps: a table is written beside, with its index, synced, and gets its name; only then are the files
removed that it stands for. ``step`` is told before each of them, for tests that end there.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from warrenmq.journal.bodies import NO_BODIES, Bodies, Pieces
from warrenmq.journal.columns import EventColumns, Known
from warrenmq.journal.files import FULL, JournalFile, current, file_name, files_of, position, superseded
from warrenmq.journal.index import write_index
from warrenmq.journal.left_out_files import LeftOutFiles
from warrenmq.journal.names import queue_of
from warrenmq.journal.parquet import BUT_BODIES, bodies_of, in_one, table, write_beside
from warrenmq.log.event_reader import tell
from warrenmq.log.files import Files
from warrenmq.log.format import LogError
from warrenmq.log.left_out import LeftOut
from warrenmq.log.listing import Listing
from warrenmq.log.scan import BatchCursor

MOST_ROWS = 1 << 20  # of a file, when there is very much to tell
MOST_BODIES = 64 << 20  # octets of bodies in a file
ALIKE = 8  # so many files of about the same size become one
SMALLEST = 32 << 10  # octets; shorter ones are all of the same size


def nothing(_step: str) -> None:
    return None


class Writer:
    """The one who writes a journal. There may be one at a time (``process`` sees to that)."""

    def __init__(self, folder: Path, target: Path, step: Callable[[str], None] = nothing) -> None:
        self.folder = folder
        self.target = target
        self.step = step
        self.wanted: Callable[[], bool] = lambda: True  # asked before each file
        self.headers: Sequence[str] = ()  # by which messages are found, too
        self.events = 0  # written so far, gaps not counted
        self.gaps = 0
        self._files = Files()
        self._pieces = Pieces(folder, self._files)
        self._queues: dict[int, dict[str, str]] = {}
        self._learned = -1  # the checkpoint whose definitions are known
        self._known_up_to = (0, 0)
        self._gap: int | None = None  # what cannot be read any more is missing since then; to be told with what comes
        target.mkdir(parents=True, exist_ok=True)
        self.log_id = Listing(str(folder), self._files).manifest.log_id
        self._left_out_files = LeftOutFiles(target, self.log_id)
        self._left_out = LeftOut(self._left_out_files.read, self._left_out_files.segments())
        self._absent: set[int] = set()  # segments of which something was left out, and that the log had no more
        self._known = Known(self._left_out)
        self.files: list[JournalFile] = []
        self._tidy()
        self.files = files_of(target, self.log_id)
        self.segment, self.offset = position(self.files)
        self._begin = self.offset  # of the next file
        self._reached = 0  # where the batches of this segment ended
        self._last_time = last_time(self.files)

    def _tidy(self) -> None:
        """What the last one left: files being made, and those that others stand for."""
        files = files_of(self.target, self.log_id)
        for one in superseded(files):
            self.remove(one)
        named = {one.index for one in files}
        for path in self.target.iterdir():
            if path.suffix == ".tmp" or (path.suffix == ".index" and path not in named):
                path.unlink(missing_ok=True)

    # -- going on

    def advance(self, segment: int, offset: int) -> bool:
        """Tell all up to there, which is synced. False: it was not ``wanted`` any more."""
        if (self.segment, self.offset) > (segment, offset):
            raise LogError(
                f"{self.target} tells more than its log has, which ends at offset {offset} of segment {segment}: "
                f"if a backup was put back, move the files away that were there before"
            )
        self.files = files_of(self.target, self.log_id)  # some may have been moved away
        listing = Listing(str(self.folder), self._files)
        self._learn_queues(listing)
        if self.segment == 0:
            self._left_out.begin(min(listing.numbers(), default=0))
        while (self.segment, self.offset) < (segment, offset):
            if not self.wanted():
                return False
            if self.segment == segment:
                self._tell(listing, offset, offset)
            elif not self._finished(listing):
                self._tell(listing, FULL, self._end(listing))
            else:
                self._seal(listing)
                self._enter(listing, self._next(listing, segment))
        self._forget_segments(listing)
        return True

    def _forget_segments(self, listing: Listing) -> None:
        """Of what left the log before its last checkpoint nothing is said behind that."""
        if (self.segment, self.offset) >= (listing.manifest.segment, listing.manifest.offset):
            for number in self._absent:
                self._left_out.forget(number)
                self._left_out_files.remove(number)
            self._absent = set(self._left_out.segments()).difference(listing.numbers())

    def _learn_queues(self, listing: Listing) -> None:
        if listing.manifest.checkpoint == self._learned:
            return  # what was defined since is told by the batches
        self._learned = listing.manifest.checkpoint
        for (kind, _), value in listing.manifest.definitions.items():
            queue = queue_of(kind, value)
            if queue is not None:
                self._queues[queue[0]] = {"vhost": queue[1], "queue": queue[2]}

    def _next(self, listing: Listing, last: int) -> int:
        return min((number for number in listing.numbers() if self.segment < number <= last), default=last)

    def _readable(self, listing: Listing) -> bool:
        """Is the segment there as it was written? A compacted one has no events."""
        header = listing.headers.get((self.segment, 0))
        return header is not None and header.generation == 0

    def _end(self, listing: Listing) -> int:
        """Where a full segment ends, -1 where nothing says so."""
        for number, part in listing.headers:
            header = listing.headers[(number, part)]
            if number > self.segment and header.previous_segment == self.segment:
                return int(header.previous_end)
        entry = listing.entry(self.segment)
        if entry is not None and entry.generation == 0 and self.segment < listing.manifest.segment:
            return int(entry.end)
        return -1

    def _finished(self, listing: Listing) -> bool:
        """Nothing more is to be had from this full segment; what had been to be told, and is gone, is a gap."""
        end = self._end(listing)
        if self.segment == 0 or self.offset == FULL or 0 <= end <= self.offset:
            return True
        if self._readable(listing):
            return False
        if end > self.offset or self.offset == 0:
            self._lost()
        return True  # gone, and its end with it: whether anything is missing is seen where the next one begins

    def _enter(self, listing: Listing, number: int) -> None:
        """Go on with this segment. Was there something between?"""
        header = listing.headers.get((number, 0))
        if header is not None and header.generation == 0 and header.previous_segment > self.segment:
            self._lost()
        self.segment = number
        self.offset = self._begin = self._reached = 0
        self._know_nobody()
        self._known_up_to = (number, 0)

    def _lost(self) -> None:
        if self._gap is None:
            self._gap = self._last_time

    def _tell(self, listing: Listing, limit: int, end: int) -> None:
        """The events of this segment up to the limit, into one file, or as many as are wanted. ``end``: where they
        should end."""
        cursor = listing.cursor(self.segment) if self._readable(listing) else None
        if cursor is None:
            self._lost()
            self.offset = limit
            return
        cursor.tolerated = FULL  # a damaged body is no reason not to tell what became of the message
        try:
            self._remember(cursor)
            while self.wanted():
                more = self._tell_some(cursor, limit)
                self.offset = int(cursor.at)
                if not more:
                    break
            else:
                return
        except FileNotFoundError:
            self._lost()  # taken away while it was read
        finally:
            cursor.close()
        if self.offset < end:
            self._lost()  # damaged: what stands behind it cannot be found
        self._reached = self.offset
        self.offset = limit
        self._known_up_to = (self.segment, limit)

    def _remember(self, cursor: BatchCursor) -> None:
        """Begin where the files end; whoever was named before that is known."""
        if self._known_up_to != (self.segment, self.offset):
            self._know_nobody()
            while cursor.at < self.offset and cursor.next():
                tell(cursor.header, cursor.messages, cursor.changes, self._known)
            self._known_up_to = (self.segment, self.offset)
        cursor.at = self.offset

    def _know_nobody(self) -> None:
        """What is known in a segment, its batches have said."""
        self._left_out.begin_segment(self.segment)
        self._known = Known(self._left_out)

    def _tell_some(self, cursor: BatchCursor, limit: int) -> bool:
        """As much as one file may have. True: there is more."""
        columns = EventColumns(self._known)
        gap = self._gap
        time = self._last_time
        more = True
        while more and columns.rows < MOST_ROWS and columns.body_octets < MOST_BODIES:
            more = cursor.at < limit and cursor.next()
            if more:
                time = int(cursor.header.time)
                if gap is not None and columns.rows == 0:
                    columns.gap(gap or time, time, -1)
                columns.damaged = cursor.damaged
                tell(cursor.header, cursor.messages, cursor.changes, columns)
        self._known_up_to = (self.segment, int(cursor.at))
        columns.end()
        if columns.rows > 0:
            self._write(columns, int(cursor.at))
            self._last_time = time
            self._gap = None
            self.gaps += gap is not None
            self.events += columns.rows - (gap is not None)
        return more

    # -- files

    def _write(self, columns: EventColumns, end: int) -> None:
        self._queues |= {id: {"vhost": vhost, "queue": name} for id, vhost, name in self._known.queue_names}
        self._known.queue_names.clear()
        self.save(self.segment, self._begin, end, table(columns, self._queues), bodies_of(columns, self._pieces))
        self._begin = end
        self._join_alike()

    def save(self, segment: int, begin: int, end: int, rows: pa.Table, bodies: Bodies = NO_BODIES) -> None:
        """Durable under its name, when this returns."""
        made = JournalFile(segment, begin, end, self.target / file_name(self.log_id, segment, begin, end))
        self.step("index")
        write_index(made.path, rows, self.headers)
        self.step("write")
        beside = write_beside(made.path, rows, bodies)
        self.step("rename")
        beside.rename(made.path)
        self.step("sync folder")
        self._sync()
        self.files = sorted({*self.files, made})

    def _sync(self) -> None:
        descriptor = os.open(self.target, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def join(self) -> None:
        """Nothing more will come: what was told of the last segment becomes one file, if nobody took any away."""
        parts = [one for one in current(self.files) if one.segment == self.segment]
        if len(parts) > 1 and adjacent(parts):
            self._join(parts, parts[-1].end)

    def _join_alike(self) -> None:
        """A segment may grow for days: of many small files a few larger ones are made, again and again."""
        while True:
            parts = [one for one in self.files if one.segment == self.segment][-ALIKE:]
            if len(parts) < ALIKE or len({magnitude(one.path) for one in parts}) > 1 or not adjacent(parts):
                return
            self._join(parts, parts[-1].end)

    def _join(self, parts: list[JournalFile], end: int) -> None:
        self.save(parts[0].segment, parts[0].begin, end, *in_one([one.path for one in parts]))
        for one in parts:
            self.remove(one)

    def _seal(self, listing: Listing) -> None:
        """The segment is full: one file tells all of it, also when nothing happened there."""
        if self.segment == 0:
            return
        self._keep_left_out(listing)
        end = max(self._begin, self._reached if self._gap is None else 0)
        parts = [one for one in current(self.files) if one.segment == self.segment]
        if self._begin == 0 and self._gap is None:
            self.save(self.segment, 0, end, BUT_BODIES.empty_table())
        elif adjacent(parts) and (len(parts) > 1 or (parts and parts[0].end < end)):
            self._join(parts, end)

    def _keep_left_out(self, listing: Listing) -> None:
        """Of later segments nobody could tell, as the log may have thrown the records away by then."""
        if self._known_up_to != (self.segment, self.offset) and self._readable(listing):
            cursor = listing.cursor(self.segment)  # somebody else told it, and came to its end
            if cursor is not None:
                cursor.tolerated = FULL
                try:
                    self._remember(cursor)
                finally:
                    cursor.close()
        octets = self._left_out.kept(self.segment)
        if octets:
            self.step("left out")
            self._left_out_files.write(self.segment, octets)

    def remove(self, one: JournalFile) -> None:
        self.step("remove")
        one.path.unlink(missing_ok=True)
        self.step("remove index")
        one.index.unlink(missing_ok=True)
        self.files = [other for other in self.files if other != one]


def adjacent(parts: list[JournalFile]) -> bool:
    """Not when somebody took one away."""
    return all(before.end == after.begin for before, after in pairwise(parts))


def magnitude(path: Path) -> int:
    return int(math.log(max(path.stat().st_size, SMALLEST) / SMALLEST, ALIKE))


def last_time(files: list[JournalFile]) -> int:
    """The latest time that the last file with events tells, in µs; 0 when there is none."""
    for one in reversed(files):
        times = pq.read_table(one.path, columns=["time"], partitioning=None).column("time")
        if len(times) > 0:
            return int(times[-1].value)  # they are in order
    return 0
