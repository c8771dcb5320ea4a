"""How long the journal is kept: the oldest files go first, and what went is known as one gap."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.log.test_journal_files import rows_of
from tests.log.test_journal_writer import Busy, Died, dying

pytest.importorskip("pyarrow")

from warrenmq.journal.files import REMOVED, files_of  # noqa: E402 (needs pyarrow)
from warrenmq.journal.retention import octets, trim  # noqa: E402
from warrenmq.journal.writer import Writer  # noqa: E402


@pytest.fixture
def busy(tmp_path: Path) -> Busy:
    """Five full segments, and one that grows, all in the journal."""
    busy = Busy(tmp_path / "data", 2000)
    busy.until_segment(6)
    Writer(busy.folder, tmp_path / "journal").advance(*busy.synced)
    return busy


def segments(writer: Writer) -> list[int]:
    return [one.segment for one in files_of(writer.target, writer.log_id)]


def gaps(target: Path) -> list[dict[str, Any]]:
    return [row for row in rows_of(target) if row["event"] == "gap"]


def test_what_is_too_much_goes_the_oldest_first_and_is_one_gap(busy: Busy, tmp_path: Path) -> None:
    target = tmp_path / "journal"
    before = rows_of(target)
    writer = Writer(busy.folder, target)
    sizes = {one.segment: octets(one) for one in writer.files}
    assert trim(writer, busy.log.time, 0, sum(sizes.values())) == 0
    removed = trim(writer, busy.log.time, 0, sum(sizes.values()) - 1)
    assert segments(writer) == [REMOVED, 2, 3, 4, 5, 6]
    removed += trim(writer, busy.log.time, 0, sizes[4] + sizes[5] + sizes[6] + octets(writer.files[0]))
    assert segments(writer) == [REMOVED, 4, 5, 6]
    (gap,) = gaps(target)
    left = [row for row in rows_of(target) if row["event"] != "gap"]
    gone = [row for row in before if row not in left]
    assert removed == gap["number"] == len(gone)
    assert gap["time"] == gone[0]["time"]
    assert gap["until"].isoformat(timespec="microseconds") == gone[-1]["time"]


def test_what_is_too_old_goes_but_never_what_is_added_to(busy: Busy, tmp_path: Path) -> None:
    target = tmp_path / "journal"
    writer = Writer(busy.folder, target)
    before = rows_of(target)
    day = 86_400_000_000
    assert trim(writer, busy.log.time, day, 0) == 0
    assert trim(writer, busy.log.time + 2 * day, 0, 0) == 0
    removed = trim(writer, busy.log.time + 2 * day, day, 1)
    assert segments(writer) == [REMOVED, 6]
    assert gaps(target)[0]["number"] == removed
    assert removed + len(rows_of(target)) - 1 == len(before)
    again = Writer(busy.folder, target)
    again.advance(*busy.turn())
    assert again.gaps == 0, "it goes on where it stood"


def test_wherever_it_dies_while_it_removes_every_event_is_there_or_counted_once(busy: Busy, tmp_path: Path) -> None:
    target, copy = tmp_path / "journal", tmp_path / "copy"
    total = len(rows_of(target))
    limit = sum(octets(one) for one in Writer(busy.folder, target).files) // 2
    for earlier in (False, True):
        deaths = set()
        for step in range(100):
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(target, copy)
            writer = Writer(busy.folder, copy)
            writer.step = dying(step)
            try:
                trim(writer, busy.log.time, 0, limit)
                break
            except Died as died:
                deaths.add(str(died))
            writer = Writer(busy.folder, copy)
            found = rows_of(copy)
            counted = sum(row["number"] for row in found if row["event"] == "gap")
            assert counted + len([row for row in found if row["event"] != "gap"]) == total
        assert deaths == {"index", "write", "rename", "sync folder", "remove", "remove index"}
        if not earlier:
            shutil.rmtree(target)
            shutil.copytree(copy, target)  # once more, with a gap that is there already
            limit = limit // 2
