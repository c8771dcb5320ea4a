"""The journal's writer on folders of real logs: what it wrote tells what the log tells, wherever it was ended."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.log.test_journal_files import in_order, rows_of, told
from tests.log.test_told_events import folder
from warrenmq.log.files import Files
from warrenmq.log.format import LogError
from warrenmq.log.listing import Listing
from warrenmq.log.log import Log
from warrenmq.log.settings import LogSettings
from warrenmq.wire.content import Properties, encode_header

pytest.importorskip("pyarrow")

from warrenmq.journal.files import files_of, position  # noqa: E402 (needs pyarrow)
from warrenmq.journal.writer import ALIKE, Writer  # noqa: E402

__all__ = ["folder"]  # a fixture


class Died(Exception):
    """The process ended here."""


class Busy:
    """A log that something happens in, a turn at a time."""

    def __init__(self, folder: Path, segment_bytes: int = 4000) -> None:
        self.folder = folder
        self.log, _ = Log.open(str(folder), Files(), LogSettings(segment_bytes=segment_bytes))
        self.log.time = 1_700_000_000_000_000
        self.number = 0
        self.held: list[int] = []
        self.publisher = self.log.events.name(b'{"user": "amy", "vhost": "/", "connection": "c", "channel": 1}')

    def turn(self) -> tuple[int, int]:
        """One message more, now and then an old one settled; where the log is synced then."""
        self.number += 1
        self.log.time += 1_000_000
        header = encode_header(Properties(delivery_mode=2, message_id=f"m{self.number}"), 4)
        address = self.log.append(self.number, header, b"body", "", b"\x01q", 0, holders=1)
        self.log.hold(address, 1, self.number, 0, 0)
        self.log.events.published(self.publisher, address, self.number)
        self.held.append(address)
        if self.number % 3 == 0:
            self.log.settle(1, self.held.pop(0))
        self.log.end_turn(True)
        return self.synced

    @property
    def synced(self) -> tuple[int, int]:
        found = self.log.maintenance.committed_position()
        return int(found[0]), int(found[1])

    def empty(self) -> None:
        for address in self.held:
            self.log.settle(1, address)
        self.held.clear()
        self.log.end_turn(True)

    def tidy(self) -> set[int]:
        """Do all the upkeep there is; the segments whose events are in their files still."""
        while self.log.maintain(1000):
            pass
        listing = Listing(str(self.folder), Files())
        return {number for number in listing.numbers() if listing.headers[(number, 0)].generation == 0}

    def until_segment(self, number: int) -> None:
        while self.synced[0] < number:
            self.turn()


def dying(at: int) -> Callable[[str], None]:
    """A process that ends before this step of its work."""
    left = [at]

    def step(name: str) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Died(name)

    return step


def test_what_is_written_bit_by_bit_is_what_the_log_tells(tmp_path: Path) -> None:
    busy = Busy(tmp_path / "data")
    writer = Writer(busy.folder, tmp_path / "journal")
    while busy.synced[0] < 5:
        assert writer.advance(*busy.turn())
        assert position(files_of(tmp_path / "journal", writer.log_id)) == busy.synced
    written = rows_of(tmp_path / "journal")
    assert [row["time"] for row in written] == sorted(row["time"] for row in written)
    assert in_order(written) == in_order(told(busy.folder))
    assert {row["user"] for row in written if row["event"] == "published"} == {"amy"}
    assert writer.events == len(written) and writer.gaps == 0


def test_a_segment_that_grows_has_few_files_and_a_full_one_has_one(tmp_path: Path) -> None:
    busy = Busy(tmp_path / "data", 9_000)
    writer = Writer(busy.folder, tmp_path / "journal")
    while busy.synced[0] < 3:
        writer.advance(*busy.turn())
        files = files_of(tmp_path / "journal", writer.log_id)
        assert len([one for one in files if one.segment == busy.synced[0]]) < 2 * ALIKE
        assert all(len([one for one in files if one.segment == full]) == 1 for full in range(1, busy.synced[0]))


def test_wherever_it_dies_nothing_is_doubled_or_lost(tmp_path: Path) -> None:
    """At every step of every advance: of a new file, of a few joined, of a full segment joined."""
    busy = Busy(tmp_path / "data", 3000)
    target, before = tmp_path / "journal", tmp_path / "before"
    deaths: list[str] = []
    Writer(busy.folder, target)
    while busy.synced[0] < 3:
        synced = busy.turn()
        truth = in_order(told(busy.folder))
        shutil.rmtree(before, ignore_errors=True)
        target.rename(before)
        for step in range(1000):
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(before, target)
            writer = Writer(busy.folder, target)
            writer.step = dying(step)
            try:
                writer.advance(*synced)
                break
            except Died as died:
                deaths.append(str(died))
            Writer(busy.folder, target).advance(*synced)
            assert in_order(rows_of(target)) == truth
            assert not list(target.glob("*.tmp"))
    assert set(deaths) == {"index", "write", "rename", "sync folder", "remove", "remove index"}


def test_what_the_journal_has_not_read_is_neither_compacted_nor_removed(tmp_path: Path) -> None:
    busy = Busy(tmp_path / "data")
    busy.log.maintenance.journalled(0)
    busy.until_segment(5)
    busy.empty()
    truth = in_order(told(busy.folder))
    assert busy.tidy() == {1, 2, 3, 4, 5}
    writer = Writer(busy.folder, tmp_path / "journal")
    writer.advance(*busy.synced)
    assert in_order(rows_of(tmp_path / "journal")) == truth
    busy.log.maintenance.journalled(3)
    assert busy.tidy() == {3, 4, 5}
    busy.log.maintenance.journalled(writer.segment)
    assert busy.tidy() == {5}


def test_a_clean_stop_leaves_the_journal_what_it_has_not_read(tmp_path: Path) -> None:
    busy = Busy(tmp_path / "data")
    busy.log.maintenance.journalled(0)
    busy.until_segment(3)
    busy.empty()
    truth = in_order(told(busy.folder))
    assert busy.log.close({})
    again = Busy(tmp_path / "data")
    again.log.maintenance.journalled(0)
    Writer(again.folder, tmp_path / "journal").advance(*again.synced)
    assert in_order(rows_of(tmp_path / "journal")) == truth


def test_without_a_journal_nothing_waits_for_it(tmp_path: Path) -> None:
    busy = Busy(tmp_path / "data")
    busy.until_segment(5)
    busy.empty()
    assert busy.tidy() == {5}


def test_a_journal_that_is_far_behind_holds_up_nobody_and_has_a_gap(tmp_path: Path) -> None:
    busy = Busy(tmp_path / "data")
    busy.log.maintenance.journalled(0)
    writer = Writer(busy.folder, tmp_path / "journal")
    busy.until_segment(2)
    writer.advance(*busy.synced)
    before = rows_of(tmp_path / "journal")
    busy.until_segment(9)
    busy.empty()
    left = busy.tidy()
    assert max(left) == 9 and 4 <= len(left) <= 6, "about four segments' worth"
    truth = [row for row in told(busy.folder) if row["event"] != "written"]
    for _ in range(2):  # the second one finds everything told
        writer = Writer(busy.folder, tmp_path / "journal")
        writer.advance(*busy.synced)
    rows = rows_of(tmp_path / "journal")
    gaps = [row for row in rows if row["event"] == "gap"]
    assert len(gaps) == 1 and "number" not in gaps[0]
    assert gaps[0]["time"] == before[-1]["time"]
    first = min(row["time"] for row in truth)
    assert gaps[0]["until"].isoformat(timespec="microseconds") == first
    assert in_order([row for row in rows if row["event"] != "gap"]) == in_order(before + truth)


def test_a_folder_that_is_older_than_its_journal_has_a_gap_before_it(tmp_path: Path) -> None:
    busy = Busy(tmp_path / "data")
    busy.until_segment(5)
    busy.empty()
    assert busy.tidy() == {5}
    writer = Writer(busy.folder, tmp_path / "journal")
    writer.advance(*busy.synced)
    assert writer.gaps == 1
    assert [row["event"] for row in rows_of(tmp_path / "journal")].count("gap") == 1


def test_files_that_were_moved_away_are_not_written_again(tmp_path: Path) -> None:
    busy = Busy(tmp_path / "data")
    target, lake = tmp_path / "journal", tmp_path / "lake"
    lake.mkdir()
    busy.until_segment(4)
    Writer(busy.folder, target).advance(*busy.synced)
    for path in sorted(target.glob("*.parquet"))[:-1]:
        path.rename(lake / path.name)
    busy.turn()
    writer = Writer(busy.folder, target)
    writer.advance(*busy.synced)
    assert writer.gaps == 0
    assert in_order(rows_of(target) + rows_of(lake)) == in_order(told(busy.folder))


def test_a_log_that_went_back_is_one_clear_error(tmp_path: Path) -> None:
    busy = Busy(tmp_path / "data")
    Writer(busy.folder, tmp_path / "journal").advance(*busy.turn())
    segment, offset = busy.synced
    with pytest.raises(LogError, match="if a backup was put back, move the files away"):
        Writer(busy.folder, tmp_path / "journal").advance(segment, offset - 1)
