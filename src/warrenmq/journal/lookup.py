"""What became of a message, looked up in the journal's files.

Duty: from a question to lives, the newest first, without reading what the indexes rule out: they say in which row
groups a message may be, and only those are read. A file without an index is read through, and so are all for a header
that is not in it; meanwhile the answer tells how far it is. Not here: the files (``folder``), what is told of a message
(``life``).

An answer is parts: ``{"progress": …}`` now and then, ``{"life": …}`` for each message, at last ``{"looked": …}``: how
much was read, and from when to when the journal knows anything. A search that reads through more than ``BUDGET`` row
groups ends there, and ``stopped`` in that last part says from where the next question goes on (as ``before``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from warrenmq.journal.files import REMOVED
from warrenmq.journal.folder import JournalFile, JournalFolder, Row, Unreadable
from warrenmq.journal.headers import named_headers
from warrenmq.journal.index import DELETED, MASK, READ, Gap, Index, deleted_key, header_key, key_of, read_key
from warrenmq.journal.life import GONE, INTERRUPTED, TIE, in_order, life_of, moment, places_of
from warrenmq.journal.parquet import SCHEMA
from warrenmq.journal.question import Question, question_of
from warrenmq.log.layout import WITHOUT_RECORD

OF_QUEUES = (DELETED, "level", READ)  # not of messages
TOGETHER = 32  # lives that are read together, as they may share row groups
Name = int | tuple[object, ...]
BUDGET = 1000  # row groups that one question reads where no index says which: some 65 million rows
LAST = (1 << 63) - 1  # of all that have one time
RELISTS = 100  # times that files may have been joined or removed while they were looked at


@dataclass(frozen=True)
class Found:
    """A row that fits the question: of a record, or of what never had one (refused, returned, transient)."""

    time: int
    tie: int  # among those of one time
    record: int | None
    id: int | None
    row: Row | None = None  # all of it, when it is all there is

    @property
    def key(self) -> tuple[int, int]:
        return self.time, self.tie

    @property
    def name(self) -> Name:
        """Whose life it belongs to: that of its id, else of its record, else it is one by itself."""
        if self.id is not None:
            return self.id
        return ("record", self.record) if self.record is not None else ("row", self.time, self.tie)


def always() -> bool:
    return True


def answer(
    folder: Path, question: Mapping[str, object], wanted: Callable[[], bool] = always
) -> Iterator[dict[str, object]]:
    """The parts of the answer; ``QuestionError`` when it cannot be answered. It ends when it is not ``wanted``."""
    asked = question_of(question)
    told: set[tuple[str, Name]] = set()
    unreadable: set[Path] = set()
    attempts = 0
    while True:
        opened = JournalFolder(folder, unreadable)
        try:
            yield from Lookup(opened, asked, told, wanted).parts()
            return
        except FileNotFoundError:  # what is told stays told
            attempts += 1
            if attempts > RELISTS:
                raise
        except Unreadable as error:
            unreadable.add(error.path)
        finally:
            opened.close()


class Lookup:
    """One question on its way through the files. ``told``: log and id of those that were told already."""

    def __init__(
        self, opened: JournalFolder, question: Question, told: set[tuple[str, Name]], wanted: Callable[[], bool]
    ) -> None:
        self._journal = opened
        self._reads = opened.reads
        self._question = question
        self._told = told
        self._wanted = wanted
        self._searched = 0  # row groups that were read as no index says which
        self._stopped: dict[str, object] = {}  # from where to go on, when it did
        self._whole = SCHEMA.names if question.body else None  # columns of what is told of a message

    def parts(self) -> Iterator[dict[str, object]]:
        question = self._question
        cursor = question.cursor()
        logs = self._journal.logs
        if cursor is not None:
            logs = logs[logs.index(cursor[0]) :] if cursor[0] in logs else []
        for log in logs:
            before = cursor[1:] if cursor is not None and cursor[0] == log else None
            found: Iterator[Found | dict[str, object]] = self._candidates(log, before)
            while len(self._told) < question.limit:
                some: list[Found] = []
                for one in found:
                    if isinstance(one, dict):
                        yield one
                        continue
                    some.append(one)
                    if len({each.name for each in some}) >= min(TOGETHER, question.limit):
                        break
                if not some:
                    break
                yield from islice(self._lives(log, some, before), question.limit - len(self._told))
            if self._stopped or not self._wanted():
                break
        yield {"looked": self._reads.told() | self._span() | self._stopped}

    def _span(self) -> dict[str, object]:
        """From when to when anything is known, and which files could not be read."""
        spans = [one.span(self._reads) for one in self._journal.files if one.segment != REMOVED]
        found: dict[str, object] = {}
        if spans:
            found["known_from"] = moment(min(first for first, _ in spans))
            found["known_until"] = moment(max(last for _, last in spans))
        if self._journal.unreadable:
            found["unreadable"] = sorted(path.name for path in self._journal.unreadable)
        return found

    # -- which messages

    def _candidates(self, log: str, before: tuple[int, int] | None) -> Iterator[Found | dict[str, object]]:
        """Records that fit the question, the newest first, and between them how far the search is."""
        files = self._journal.of_log(log)
        for number, file in enumerate(files):
            first, last = file.span(self._reads)
            if last < self._question.since or first > self._question.until or (before and first > before[0]):
                continue
            blocks = file.blocks(self._in_index, self._reads) if self._is_indexed(file) else None
            if blocks is not None and not blocks:
                continue
            for group in reversed(file.groups(blocks, self._reads)):
                if not self._wanted():
                    return
                found = [one for one in self._in_group(file, group) if before is None or one.key < before]
                yield from reversed(found) if self._question.by_key else self._with_ids(log, found)
                self._searched += blocks is None
            if blocks is None:
                yield {"progress": {"files": number + 1, "of": len(files), "row_groups": self._reads.row_groups}}
            if self._searched >= BUDGET and number + 1 < len(files):
                # before this file: no turn of the broker, and so no time, is in two files
                self._stopped = {"stopped": f"{log}-{max(first - 1, 0)}-{LAST:x}", "searched_from": moment(first)}
                return

    def _is_indexed(self, file: JournalFile) -> bool:
        question = self._question
        if file.index is None or not question.by_key:
            return False
        return question.header is None or question.header in file.index.headers

    def _in_index(self, index: Index) -> set[int]:
        question = self._question
        if question.header is not None:
            return set(index.key(header_key(question.header, question.value or "")))
        found = {block for name, value in question.texts() for block in index.key(key_of(name, value))}
        number = question.number()
        return found if number is None else found | set(index.id(number))

    def _in_group(self, file: JournalFile, group: int) -> list[Found]:
        """The records of a row group that fit, by time and record."""
        question = self._question
        if not question.by_key:
            return self._in_queue(file, group)
        columns = ["time", "message", "id", "message_id", "correlation_id"]
        rows = file.read(group, [*columns, "header"] if question.header is not None else columns, self._reads)
        if question.header is not None:
            name, value = (text.encode("utf-8", "surrogateescape") for text in (question.header, question.value or ""))
            headers = named_headers(rows.column("header").to_pylist(), [name], value)
            fitting = pa.array([row for row, _, found in headers if found == value], pa.int64())
        else:
            number = question.number()
            fits = [pc.equal(rows.column(column), pa.scalar(value)) for column, value in question.texts()]
            fits += [] if number is None else [pc.equal(rows.column("id"), number)]
            mask = fits[0].fill_null(False)
            for more in fits[1:]:
                mask = pc.or_(mask, more.fill_null(False))
            fitting = pc.indices_nonzero(mask)
        return self._timely(file, group, rows, fitting)

    def _in_queue(self, file: JournalFile, group: int) -> list[Found]:
        question = self._question
        rows = file.read(group, ["time", "event", "message", "id", "vhost", "queue"], self._reads)
        mask = pc.equal(rows.column("queue").cast(pa.string()), question.queue)
        mask = pc.and_not(mask, pc.is_in(rows.column("event").cast(pa.string()), pa.array(OF_QUEUES)))
        if question.vhost is not None:
            mask = pc.and_(mask, pc.equal(rows.column("vhost").cast(pa.string()), question.vhost))
        return self._timely(file, group, rows, pc.indices_nonzero(mask.fill_null(False)))

    def _timely(self, file: JournalFile, group: int, rows: pa.Table, fitting: pa.Array) -> list[Found]:
        """Those of the time asked for, by time. What has neither id nor record is taken whole."""
        question = self._question
        found: list[Found] = []
        whole: pa.Table | None = None
        chosen = _plain(rows.select(["time", "message", "id"]).take(fitting))
        for number, row in zip(fitting.to_pylist(), chosen, strict=True):
            if not question.since <= row["time"] <= question.until:
                continue
            record, id = row["message"], row["id"]
            if record is None and id is None:
                if whole is None:
                    whole = file.read(group, self._whole, self._reads)
                (all_of_it,) = _plain(whole.slice(number, 1))
                if all_of_it["event"] not in OF_QUEUES:
                    found.append(Found(row["time"], number, None, None, all_of_it | {TIE: number}))
            else:
                found.append(Found(row["time"], number if record is None else record, record, id))
        return sorted(found, key=lambda one: one.key)

    def _with_ids(self, log: str, found: list[Found]) -> Iterator[Found]:
        """The newest first, and of one message only the newest."""
        newest = sorted({one.name: one for one in found}.values(), key=lambda one: one.key, reverse=True)
        for first in range(0, len(newest), TOGETHER):
            some = newest[first : first + TOGETHER]
            ids = self._ids(log, {one.record for one in some if one.record is not None})
            for one in some:
                yield replace(one, id=ids.get(one.record)) if one.record in ids else one

    def _ids(self, log: str, records: set[int]) -> dict[int | None, int]:
        """The ids of records: they stand where the record was written, in its own segment's files."""
        found: dict[int | None, int] = {}
        for file in self._journal.of_log(log):
            here = {record for record in records if record >> 32 == file.segment or record >= WITHOUT_RECORD}
            for row in self._rows_of(file, here, ["message", "id"]):
                if row["id"] is not None:
                    found[row["message"]] = row["id"]
        return found

    # -- what became of them

    def _lives(self, log: str, found: list[Found], before: tuple[int, int] | None) -> Iterator[dict[str, object]]:
        """Those of these that were not told yet, in this order."""
        fresh = {one.name: one for one in reversed(found) if (log, one.name) not in self._told}
        order = [name for name in dict.fromkeys(one.name for one in found) if name in fresh]
        rows: dict[Name, list[Row]] = {name: [] for name in order}
        records: dict[int, Name] = {}
        for name, one in fresh.items():
            if one.row is not None:
                rows[name].append(one.row)
            elif one.id is None and one.record is not None:
                records[one.record] = name
        for row in self._rows_with(log, {name for name in order if isinstance(name, int)}):
            if row["message"] is None:
                rows[row["id"]].append(row)
            else:
                records[row["message"]] = row["id"]
        for file in self._journal.of_log(log):
            here = {record for record in records if record >> 32 <= file.segment or record >= WITHOUT_RECORD}
            for row in self._rows_of(file, here, self._whole):
                rows[records[row["message"]]].append(row)
        self._add_deletions(log, rows)
        self._add_reads(log, rows)
        gaps = [gap for file in self._journal.of_log(log) for gap in file.gaps(self._reads)]
        starts = sorted(gap.until for gap in gaps if gap.event == INTERRUPTED)
        for name in order:
            if not rows[name] or (before is not None and self._was_told(rows[name], before)):
                continue
            life = life_of(rows[name], name if isinstance(name, int) else None, log, starts)
            if not self._fits(life):
                continue
            self._told.add((log, name))
            life["cursor"] = f"{log}-{fresh[name].time}-{fresh[name].tie:x}"
            places: Any = life["places"]
            over = life["state"] == GONE and all(place.get("cause") != INTERRUPTED for place in places)
            life["gaps"] = _overlapping(gaps, rows[name], over)
            yield {"life": life}

    def _was_told(self, rows: list[Row], before: tuple[int, int]) -> bool:
        """On an earlier page, as it has a newer record, or was in the queue later, that fits the question too."""
        question = self._question
        for row in rows:
            fits = row["id"] is not None if question.by_key else row["queue"] == question.queue
            timely = question.since <= row["time"] <= question.until
            if fits and timely and (row["time"], row.get(TIE, row["message"])) >= before:
                return True
        return False

    def _fits(self, life: Mapping[str, Any]) -> bool:
        question = self._question
        if question.state is not None and life["state"] != question.state:
            return False
        if question.vhost is not None and all(row.get("vhost") != question.vhost for row in life["events"]):
            return False
        return question.queue is None or any(place["queue"] == question.queue for place in life["places"])

    def _rows_with(self, log: str, ids: set[int]) -> Iterator[Row]:
        """Where these ids stand: the message, its dead letters and copies, and, whole, what has no record."""
        if not ids:
            return
        wanted = pa.array(sorted(ids), pa.int64())
        for file in self._journal.of_log(log):
            blocks = file.blocks(lambda index: {block for id in ids for block in index.id(id)}, self._reads)
            if blocks is not None and not blocks:
                continue
            for group in file.groups(blocks, self._reads):
                rows = file.read(group, ["message", "id"], self._reads)
                fits = pc.is_in(rows.column("id"), wanted)
                loose = pc.and_(fits, rows.column("message").is_null())
                yield from rows.filter(pc.and_not(fits, loose)).to_pylist()
                if pc.any(loose).as_py():
                    ties = pc.indices_nonzero(loose)
                    whole = _plain(file.read(group, self._whole, self._reads).take(ties))
                    yield from (row | {TIE: tie} for row, tie in zip(whole, ties.to_pylist(), strict=True))

    def _rows_of(self, file: JournalFile, records: set[int], columns: list[str] | None) -> Iterator[Row]:
        """What a file tells of these records."""
        if not records:
            return
        blocks = file.blocks(lambda index: {block for one in records for block in index.message(one)}, self._reads)
        if blocks is not None and not blocks:
            return
        wanted = pa.array(sorted(records), pa.int64())
        for group in file.groups(blocks, self._reads):
            mask = pc.is_in(file.read(group, ["message"], self._reads).column("message"), wanted)
            if pc.any(mask).as_py():
                yield from _plain(file.read(group, columns, self._reads).filter(mask))

    def _add_deletions(self, log: str, rows: dict[Name, list[Row]]) -> None:
        """What is still in a queue by all that is told of it may have gone with the queue."""
        left: dict[tuple[str, str], list[tuple[Name, int, int]]] = {}  # who is left, since when
        for name, several in rows.items():
            ordered = in_order(several)
            latest = {(row["message"], row["queue"]): row["time"] for row in ordered}
            for place in places_of(ordered):
                if place["state"] != GONE:
                    one = (name, place["record"], latest[place["record"], place["queue"]])
                    left.setdefault((place["vhost"], place["queue"]), []).append(one)
        if not left:
            return
        keys = {key: deleted_key(*key) for key in left}
        gone: dict[tuple[str, str], list[int]] = {}
        for file in self._journal.of_log(log):
            blocks = file.blocks(lambda index: {at for key in keys.values() for at in index.key(key)}, self._reads)
            if blocks is not None and not blocks:
                continue
            for group in file.groups(blocks, self._reads):
                some = file.read(group, ["time", "event", "vhost", "queue"], self._reads)
                for row in _plain(some.filter(pc.equal(some.column("event").cast(pa.string()), DELETED))):
                    gone.setdefault((row["vhost"] or "", row["queue"]), []).append(row["time"])
        for key, several_left in left.items():
            for name, record, since in several_left:
                after = [time for time in gone.get(key, ()) if time >= since]
                if after:
                    end: Row = dict.fromkeys(rows[name][0])
                    end |= {"time": min(after), "event": DELETED, "message": record}
                    rows[name].append(end | {"vhost": key[0], "queue": key[1]})

    def _add_reads(self, log: str, rows: dict[Name, list[Row]]) -> None:
        """What consumers read from streams is told by offset, while the message was there."""
        there: dict[tuple[str, str, int], list[tuple[Name, Row, int]]] = {}  # who, since its row, until when
        for name, several in rows.items():
            for row in several:
                if row["event"] == "enqueued" and row["position"] is not None:
                    until = _until(several, row)
                    if until:
                        key = (row["vhost"] or "", row["queue"], row["position"])
                        there.setdefault(key, []).append((name, row, until))
        if not there:
            return
        keys = {read_key(*place) for place in there}
        positions = pa.array(sorted({position for _, _, position in there}), pa.int64())
        for file in self._journal.of_log(log):
            blocks = file.blocks(lambda index: {at for key in keys for at in index.key(key)}, self._reads)
            if blocks is not None and not blocks:
                continue
            for group in file.groups(blocks, self._reads):
                some = file.read(group, ["event", "position"], self._reads)
                mask = pc.and_(
                    pc.equal(some.column("event").cast(pa.string()), READ), pc.is_in(some.column("position"), positions)
                )
                if not pc.any(mask).as_py():
                    continue
                for row in _plain(file.read(group, self._whole, self._reads).filter(mask.fill_null(False))):
                    for name, entered, until in there.get((row["vhost"] or "", row["queue"], row["position"]), ()):
                        if entered["time"] <= row["time"] <= until:
                            rows[name].append(row | {"message": entered["message"]})


def _until(rows: list[Row], entered: Row) -> int:
    """Until when it may have been read there; 0 where what else is told of it shows that it was no stream."""
    until = MASK
    for row in rows:
        if row["message"] == entered["message"] and row["queue"] == entered["queue"]:
            if row["event"] in (DELETED, "trimmed"):
                until = min(until, row["time"])
            elif row["event"] != "enqueued":
                return 0
    return until


def _plain(rows: pa.Table) -> Iterator[Row]:
    """Rows as Python has them, times as numbers."""
    for at, name in enumerate(rows.column_names):
        if name in ("time", "until"):
            rows = rows.set_column(at, name, rows.column(name).cast(pa.int64()))
    yield from rows.to_pylist()


def _overlapping(gaps: list[Gap], rows: list[Row], over: bool) -> list[dict[str, object]]:
    """What was left out while the message was there."""
    times = [row["time"] for row in rows]
    first, last = min(times), max(times) if over else MASK
    return [
        {"since": moment(gap.since), "until": moment(gap.until), "events": gap.events, "event": gap.event}
        for gap in sorted(gaps, key=lambda gap: gap[:2])
        if gap.since <= last and gap.until >= first
    ]
