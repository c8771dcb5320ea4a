"""The newest messages of a journal, read without Spark, for ``comparing``.

Duty: of a folder of the journal's files those messages that were published from one time to another, the newest if
there are too many, with what became of them since. Not here: the files (``journal/folder.py``), all of a journal
(``traffic``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from warrenmq.journal.columns import LEFT
from warrenmq.journal.folder import JournalFolder, Unreadable
from warrenmq.journal.parquet import EVENTS
from warrenmq.log.causes import ALL_CAUSES
from warrenmq.log.layout import WITHOUT_RECORD
from warrenmq.supposing.comparing import Recorded
from warrenmq.supposing.letters import REJECTED
from warrenmq.supposing.playing import Stay
from warrenmq.wire.content import Properties, decode_properties
from warrenmq.wire.fields import Field
from warrenmq.wire.replies import AmqpError

COLUMNS = "time event message id vhost queue user exchange routing_keys size header".split()
GOES = ("delivered", "fetched")
ENDINGS = frozenset(name for code, name in EVENTS.items() if LEFT <= code < LEFT + ALL_CAUSES)
WANTED = pa.array(sorted({*(name for name in EVENTS.values() if name != "duplicate")}), pa.string())
RELISTS = 100  # times that files may have been joined or removed while they were looked at

Row = dict[str, Any]


@dataclass
class Found:
    """Messages in the order of their publish."""

    messages: list[Recorded] = field(default_factory=list)
    since: int | None = None  # µs: the first that was looked at
    until: int | None = None
    whole: bool = True  # else there were more, older ones
    unreadable: list[str] = field(default_factory=list)


@dataclass
class _Place:
    """A record in a queue."""

    entered: int | None = None
    delivered: int | None = None
    ended: int | None = None
    cause: str = ""

    def stay(self) -> Stay:
        given_up = self.cause.startswith(("expired_", "limit_"))
        left = self.delivered if self.delivered is not None else None if given_up else self.ended
        rejected = self.cause.startswith("rejected_")
        back = self.ended if rejected or self.cause.startswith("delivery_limit_") else None
        why = REJECTED if rejected or back is None else "delivery_limit"
        entered, left, back = (None if time is None else time // 1000 for time in (self.entered, left, back))
        return Stay(entered, left, back, why)


def recent(folder: Path, since: int, until: int, most: int, wanted: Callable[[], bool] = lambda: True) -> Found:
    """Published from ``since`` to ``until`` (µs), at most so many."""
    unreadable: set[Path] = set()
    attempts = 0
    while True:
        opened = JournalFolder(folder, unreadable)
        try:
            return _read(opened, since, until, most, wanted)
        except Unreadable as error:
            unreadable.add(error.path)
        except FileNotFoundError:  # joined meanwhile
            attempts += 1
            if attempts > RELISTS:
                raise
        finally:
            opened.close()


def _read(opened: JournalFolder, since: int, until: int, most: int, wanted: Callable[[], bool]) -> Found:
    found = Found(unreadable=sorted(path.name for path in opened.unreadable))
    for log in opened.logs:
        told: list[Row] = []
        places: dict[int, dict[str, _Place]] = defaultdict(dict)
        for rows in _groups(opened, log, since):
            if not wanted():
                return found
            for row in rows:
                _take(row, told, places)
            if sum(since <= row["time"] <= until and row["event"] != "written" for row in told) > most:
                found.whole = False
                break
        found.messages += _messages(log, told, places, since, until)
    found.messages.sort(key=lambda one: (one.published_at, one.number))
    if len(found.messages) > most:
        found.whole = False
        found.messages = found.messages[-most:]
    if found.messages:
        found.since, found.until = found.messages[0].published_at, found.messages[-1].published_at
    return found


def _groups(opened: JournalFolder, log: str, since: int) -> Iterator[list[Row]]:
    """Row groups from the newest to the one that ``since`` is in."""
    for file in opened.of_log(log):
        if file.span(opened.reads)[1] < since:
            continue
        for group in reversed(file.groups(None, opened.reads)):
            table = file.read(group, COLUMNS, opened.reads)
            times = table.column("time").cast(pa.int64())
            last = pc.max(times).as_py()
            if last is not None and last < since:
                break
            known = pc.is_in(table.column("event").cast(pa.string()), WANTED)
            rows = table.set_column(table.column_names.index("time"), "time", times)
            yield rows.filter(pc.and_(known, pc.greater_equal(times, since))).to_pylist()


def _take(row: Row, told: list[Row], places: dict[int, dict[str, _Place]]) -> None:
    event = row["event"]
    if row["header"] is not None:
        told.append(row)
    record = row["message"]
    if record is None and row["id"]:
        record = WITHOUT_RECORD + row["id"]
    if row["queue"] is None or record is None:
        return
    place = places[record].setdefault(row["queue"], _Place())
    time = row["time"]
    if event == "enqueued":
        place.entered = time if place.entered is None else min(place.entered, time)
    elif event in GOES:
        place.delivered = time if place.delivered is None else min(place.delivered, time)
    elif event in ENDINGS and (place.ended is None or time >= place.ended):
        place.ended, place.cause = time, event


def _messages(
    log: str, told: list[Row], places: dict[int, dict[str, _Place]], since: int, until: int
) -> Iterator[Recorded]:
    """By their ids, the first row that tells of each that was published; its records and those of its letters."""
    firsts: dict[Any, Row] = {}
    records: dict[Any, set[int]] = defaultdict(set)
    for number, row in enumerate(told):
        record, id = row["message"], row["id"]
        key = id or ("record", record) if id or record is not None else ("row", number)
        if record is not None or id:
            records[key].add(WITHOUT_RECORD + id if record is None else record)
        if row["event"] != "written" and (key not in firsts or row["time"] < firsts[key]["time"]):
            firsts[key] = row
    for key, row in firsts.items():
        if not since <= row["time"] <= until:
            continue
        stays: dict[str, list[Stay]] = defaultdict(list)
        for record in sorted(records[key]):  # within one time a letter of a letter is the later one
            for queue, place in places.get(record, {}).items():
                if place != _Place():  # else it was not taken
                    stays[queue].append(place.stay())
        for some in stays.values():
            some.sort(key=lambda stay: stay.entered or 0)
        number = row["message"] if row["message"] is not None else row["id"] or 0
        name = f"{log}/{number if number else row['time']}"
        keys = row["routing_keys"] or [""]
        yield Recorded(
            name,
            number,
            row["time"],
            row["vhost"] or "/",
            row["user"],
            row["exchange"] or "",
            keys[0],
            row["size"] or 0,
            _properties(row["header"], keys),
            dict(stays),
            row["id"],
        )


def _properties(header: bytes, keys: list[str]) -> Properties:
    """With the keys of BCC, which no header holds: those behind the first and those of CC."""
    try:
        properties = decode_properties(header).copy()
    except AmqpError:
        return Properties()
    headers = properties.headers
    visible = headers.get("CC") if headers is not None else None
    count = 1 + (len(visible.value) if visible is not None and isinstance(visible.value, list) else 0)
    if len(keys) > count:
        properties.headers = {**(headers or {}), "BCC": Field("A", [Field("S", key) for key in keys[count:]])}
    return properties
