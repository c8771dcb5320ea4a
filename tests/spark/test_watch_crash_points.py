"""A watch, killed at any step of Spark's protocol and of its own while the journal's files are joined and removed:
every row is seen once, every finding is in the table once, and what is sent of it has one id.

The driver is ``protocol.py``; state is kept of each batch as it was, as Spark keeps it. A kill in a real Spark is in
``test_watch.py``.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.spark.protocol import Checkpoint, Died, Fate, run

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytest.importorskip("pyspark", reason="PySpark is not installed")

import pyarrow.parquet as pq  # noqa: E402  (needs pyarrow)

from warrenmq.journal.bodies import NO_BODIES  # noqa: E402
from warrenmq.journal.files import file_name  # noqa: E402
from warrenmq.journal.parquet import BUT_BODIES, in_one, write_beside  # noqa: E402
from warrenmq.spark.watching import folders  # noqa: E402
from warrenmq.spark.watching.findings import Findings, message_of  # noqa: E402
from warrenmq.spark.watching.judging import SECOND, Bucket, Memory, Rules, in_order  # noqa: E402
from warrenmq.spark.watching.source import Part, Reading, WatchedReader  # noqa: E402
from warrenmq.spark.watching.state import COLUMNS  # noqa: E402

LOG = 0xBB
START = 1_700_000_000 * SECOND
RULES = Rules(confirm=10 * SECOND, ack=10 * SECOND, window=60 * SECOND)
QUERY = "0123456789"
Row = dict[str, Any]


class Growing:
    """A journal as its broker's process writes it: pieces of segments, joined, at last a file a segment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.segment = 1
        self.pieces: list[tuple[int, int, Path]] = []

    def tell(self, rows: list[Row]) -> None:
        """A file more; a position for each row."""
        begin = self.pieces[-1][1] if self.pieces else 0
        self._save(begin, begin + 10 * len(rows), pa.Table.from_pylist(rows, BUT_BODIES), NO_BODIES)

    def join(self, count: int) -> None:
        """The last few become one; who lists meanwhile may see all of them."""
        parts = self.pieces[-count:]
        if len(parts) > 1:
            self.pieces[-count:] = []
            self._save(parts[0][0], parts[-1][1], *in_one([path for _, _, path in parts]))
            for _, _, path in parts:
                if path != self.pieces[-1][2]:
                    path.unlink()

    def seal(self) -> None:
        self.join(len(self.pieces))
        self.segment += 1
        self.pieces = []

    def _save(self, begin: int, end: int, rows: Any, bodies: Any) -> None:
        path = self.folder / file_name(LOG, self.segment, begin, end)
        write_beside(path, rows, bodies).rename(path)
        self.pieces.append((begin, end, path))


def story(messages: int) -> list[Row]:
    """A message a second; every third is never confirmed, every fifth late, every fourth acknowledged late."""
    rows = []
    for n in range(messages):
        at = START + n * SECOND
        of_channel = {"user": "shop", "connection": "c", "channel": 1, "vhost": "/"}
        said = {"exchange": "x", "routing_keys": ["k"], "size": 1, "id": n + 1}
        rows.append({"time": at, "event": "published", "message": n + 1, "number": n + 1, **of_channel, **said})
        rows.append({"time": at, "event": "enqueued", "message": n + 1, "vhost": "/", "queue": "q", "position": n})
        got = {"queue": "q", "position": n, "consumer": "t", "tag": n}
        rows.append({"time": at + SECOND, "event": "delivered", "message": n + 1, **of_channel, **got})
        if n % 3:
            after = 12 if n % 5 == 0 else 1
            confirmed = {"time": at + after * SECOND, "event": "confirmed", "message": n + 1, "number": n + 1}
            rows.append(confirmed | of_channel)
        after = 20 if n % 4 == 0 else 2
        rows.append({"time": at + after * SECOND, "event": "acked", "message": n + 1, "vhost": "/", "queue": "q"})
    return sorted(rows, key=lambda row: row["time"])


def expected(messages: int) -> Counter[tuple[str, str, int]]:
    """What is to be found: kind, state, message."""
    found: Counter[tuple[str, str, int]] = Counter()
    for n in range(messages):
        if n % 3 == 0:
            found["unconfirmed", "found", n + 1] += 1
        elif n % 5 == 0:
            found["unconfirmed", "found", n + 1] += 1
            found["unconfirmed", "mended", n + 1] += 1
        if n % 4 == 0:
            found["unacked", "found", n + 1] += 1
            found["unacked", "mended", n + 1] += 1
    return found


class World:
    """A journal, the watch's folder, its checkpoint, and an exchange that takes each id once."""

    def __init__(self, folder: Path, messages: int) -> None:
        folder.mkdir()
        self.folder = folder
        self.journal = Growing(folder / "journal")
        self.checkpoint = Checkpoint()
        self.states: dict[int, dict[str, bytes]] = {-1: {}}  # behind each batch
        self.exchange: dict[str, bytes] = {}
        self.seen: dict[int, list[int]] = {}  # by batch: which rows were asked of the journal
        self.now = 0.0
        rows = story(messages)
        step = -(-len(rows) // 6)
        self.coming = [rows[at : at + step] for at in range(0, len(rows), step)]
        self.told = 0

    def grow(self) -> None:
        """The journal goes on: a file, sometimes a joined one, sometimes a new segment."""
        if self.told < len(self.coming):
            rows = self.coming[self.told]
            self.journal.tell(rows)
            self.now = rows[-1]["time"] / SECOND
            self.told += 1
            if self.told == 3:
                self.journal.seal()
        self.journal.join(2)

    def live(self, at: int) -> list[str]:
        """One run of the watch, to the end of what is there or to its death."""
        fate = Fate(at)
        paths = [str(self.journal.folder)]
        reading = Reading(paths, RULES.window, 200 * SECOND, 100 * SECOND, SECOND, latest=False)
        reader = WatchedReader(reading, lambda: self.now)
        with suppress(Died):
            run(self.checkpoint, reader, fate, True, lambda batch, parts: self.write(fate, batch, parts))
        return fate.passed

    def write(self, fate: Fate, batch: int, partitions: list[list[Any]]) -> None:
        states = dict(self.states[batch - 1])
        parts: dict[tuple[str, int], list[Any]] = {}
        for table in (table for some in partitions for table in some):
            for one in table.to_pylist():
                parts.setdefault((one["log"], one["bucket"]), []).append(tuple(one[name] for name in COLUMNS))
        lines = []
        for (log, number), rows in parts.items():
            memory = Memory.load(states.get(f"{log}/{number}"))
            told = Bucket(log, number, RULES, memory).judge(in_order([rows]))
            states[f"{log}/{number}"] = memory.dump()
            lines += [json.dumps(one, sort_keys=True) for one in told]
        self.states[batch] = states
        fate.passes(f"state of {batch} kept")
        sending = Sending(self.exchange, str(self.folder / "out"), fate.passes)
        sending.write(lines, batch, QUERY, None)

    def table(self) -> list[Row]:
        rows = []
        for path in sorted((self.folder / "out").glob("findings-*.parquet")):
            rows += pq.ParquetFile(path).read().to_pylist()
        return rows


class Sending(Findings):
    """To an exchange that is here and remembers ids."""

    def __init__(self, exchange: dict[str, bytes], out: str, step: Callable[[str], None]) -> None:
        super().__init__(out, "", {}, step)
        self.exchange = exchange

    def _send(self, told: list[dict[str, Any]], batch: int, spark: Any) -> None:  # noqa: ARG002
        for one in told:
            id, _, _, body = message_of(one)
            self.exchange[id] = bytes(body)
            self._step("a message arrived")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "PAUSE", 0.0)


def to_its_end(world: World, messages: int) -> None:
    """Whatever happened before: the journal comes to its end, and is watched to its end."""
    while world.told < len(world.coming):
        world.grow()
        world.live(0)
    world.now += 1000
    world.live(0)
    told = Counter((one["what"], one["state"], one["record"]) for one in world.table())
    assert told == expected(messages)
    assert set(world.exchange) == {f"{one['finding']}/{one['state']}" for one in world.table()}


def points(folder: Path, messages: int) -> list[str]:
    """All that a watch passes that nobody kills."""
    world = World(folder, messages)
    passed: list[str] = []
    while world.told < len(world.coming):
        world.grow()
        passed += world.live(0)
    to_its_end(world, messages)
    return passed


def test_a_watch_that_dies_at_any_step_finds_everything_once(tmp_path: Path) -> None:
    messages = 13
    count = len(points(tmp_path / "whole", messages))
    assert count > 60
    for at in range(1, count + 1):
        world = World(tmp_path / f"at-{at}", messages)
        left = at
        while world.told < len(world.coming):
            world.grow()
            passed = world.live(left) if left > 0 else world.live(0)
            left -= len(passed)
            if left == 0:
                left = -1  # it has died: what was joined meanwhile is other files
                world.grow()
        to_its_end(world, messages)


@pytest.mark.parametrize("seed", range(5))
def test_every_row_is_read_once_however_files_are_joined(tmp_path: Path, seed: int) -> None:
    """A reader that is new before every batch, and a batch that is read twice."""
    dice = random.Random(seed)
    journal = Growing(tmp_path / "journal")
    reading = Reading([str(journal.folder)], SECOND, SECOND, SECOND, SECOND, latest=False)
    offset: dict[str, Any] = WatchedReader(reading).initialOffset()
    count = 0
    seen: list[int] = []
    for _ in range(40):
        rows = []
        for _ in range(dice.randrange(4)):
            count += 1
            rows.append({"time": START + count, "event": "published", "message": count, "number": count, "vhost": "/"})
        if rows:
            journal.tell(rows)
        if dice.random() < 0.4:
            journal.join(dice.randint(2, 4))
        if dice.random() < 0.2 and journal.pieces:
            journal.seal()
        if dice.random() < 0.6 and list(journal.folder.glob("*.parquet")):
            end = WatchedReader(reading, lambda: 0.0).latestOffset(offset)
            first = read(WatchedReader(reading), offset, end)
            if dice.random() < 0.5 and journal.pieces:
                journal.join(len(journal.pieces))
            assert read(WatchedReader(reading), offset, end) == first
            seen += first
            offset = json.loads(json.dumps(end))
    end = WatchedReader(reading, lambda: 0.0).latestOffset(offset)
    seen += read(WatchedReader(reading), offset, end)
    assert seen == list(range(1, count + 1))


def read(reader: WatchedReader, start: dict[str, Any], end: dict[str, Any]) -> list[int]:
    """The messages of a batch."""
    rows: list[int] = []
    for part in reader.partitions(start, end):
        for batch in reader.read(part):
            rows += [one for one in batch.column("record").to_pylist() if one > 0]
    return sorted(rows)


def test_rows_whose_file_went_while_they_were_read_come_from_the_one_that_has_them_now(tmp_path: Path) -> None:
    journal = Growing(tmp_path / "journal")
    rows = story(40)
    for a, b in pairwise(range(0, len(rows) + 1, 10)):
        journal.tell(rows[a:b])
    reader = WatchedReader(Reading([str(journal.folder)], SECOND, SECOND, SECOND, SECOND, latest=False))
    told = len(rows) // 10 * 10
    pieces = reader.journals.read(f"{LOG:016x}", 1, 0, told, ["time", "event", "message"])
    first = next(pieces)
    journal.seal()
    assert sum(len(piece) for piece in pieces) + len(first) == told


class JoiningMeanwhile(folders.Journals):
    """Whenever it is said, the journal joins its files between a listing and a look at them."""

    def __init__(self, journal: Growing) -> None:
        super().__init__([str(journal.folder)])
        self.journal = journal
        self.joins = 0

    def listing(self) -> folders.Listing:
        found = super().listing()
        if self.joins:
            self.joins -= 1
            self.journal.join(2)
        return found


def test_files_that_are_joined_between_a_listing_and_a_look_at_them_are_listed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A running watch does not end because of it."""
    monkeypatch.setattr(folders, "PAUSE", 0.0)
    journal = Growing(tmp_path / "journal")
    rows = story(9)
    for at in range(0, 30, 5):
        journal.tell(rows[at : at + 5])
    reading = Reading([str(journal.folder)], SECOND, SECOND, SECOND, SECOND, latest=False)
    reader = WatchedReader(reading, lambda: 0.0)
    found = reader._journals = JoiningMeanwhile(journal)
    found.joins = 1
    end = reader.latestOffset(reader.initialOffset())
    assert end["logs"][f"{LOG:016x}"][:2] == [1, 30] and not found.joins
    found.joins = 1
    reader.prepareForTriggerAvailableNow()
    assert reader.latestOffset(reader.initialOffset()) == end and not found.joins
    journal.seal()
    journal.tell(rows[:5])
    journal.tell(rows[:5])
    later = WatchedReader(reading, lambda: 0.0)
    found = later._journals = JoiningMeanwhile(journal)
    found.joins = 1
    whole = {"logs": {f"{LOG:016x}": [2, 10, 0]}}
    assert [one.last for one in later.partitions({"logs": {}, "initial": True}, whole) if one.segment] == [30, 10]  # type: ignore[attr-defined]
    assert later.latestOffset(end)["logs"][f"{LOG:016x}"][:2] == [2, 10]


def test_rows_that_retention_took_are_told_as_missed(tmp_path: Path) -> None:
    journal = Growing(tmp_path / "journal")
    reading = Reading([str(journal.folder)], SECOND, SECOND, SECOND, SECOND, latest=False)
    rows = story(9)
    journal.tell(rows[:10])
    start = WatchedReader(reading, lambda: 0.0).latestOffset(None)
    journal.seal()
    journal.tell(rows[10:20])
    journal.seal()
    journal.tell(rows[20:30])
    for path in sorted(journal.folder.glob("*.parquet"))[:2]:
        path.unlink()
    end = WatchedReader(reading, lambda: 0.0).latestOffset(start)
    kinds: Counter[int] = Counter()
    for part in WatchedReader(reading).partitions(start, end):
        assert isinstance(part, Part)
        for batch in WatchedReader(reading).read(part):
            kinds.update(batch.column("kind").to_pylist())
    assert kinds[-3] == 2 * 4, "two segments, told to each bucket"
    assert kinds[0] > 0, "what is there is read"


def test_a_log_whose_broker_has_nothing_to_tell_goes_on_with_the_clock_and_then_rests(tmp_path: Path) -> None:
    journal = Growing(tmp_path / "journal")
    rows = story(3)
    journal.tell(rows)
    now = [rows[-1]["time"] / SECOND]
    reading = Reading([str(journal.folder)], SECOND, 60 * SECOND, 10 * SECOND, SECOND, latest=False)
    reader = WatchedReader(reading, lambda: now[0])
    ends = []
    offset = reader.initialOffset()
    for _ in range(100):
        offset = reader.latestOffset(offset)
        ends.append(json.dumps(offset))
        now[0] += 2
    assert len(set(ends)) == 7, "a batch each ten seconds for a minute, and then none"


def test_a_watch_from_now_on_begins_where_it_began_also_when_its_first_batch_is_repeated(tmp_path: Path) -> None:
    journal = Growing(tmp_path / "journal")
    rows = story(9)
    journal.tell(rows[:10])
    reading = Reading([str(journal.folder)], SECOND, SECOND, SECOND, SECOND, latest=True)
    reader = WatchedReader(reading, lambda: 0.0)
    start = reader.initialOffset()
    reader.latestOffset(start)
    journal.tell(rows[10:30])
    end = json.loads(json.dumps(reader.latestOffset(start)))
    later = WatchedReader(reading, lambda: 0.0)
    wanted = [row["message"] for row in rows[10:30] if row["event"] in ("published", "confirmed", "delivered", "acked")]
    assert read(later, later.initialOffset(), end) == sorted(wanted)
