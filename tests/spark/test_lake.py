"""A lake of journals: everything is in it once, whoever dies meanwhile, and all that reads journals reads it."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from bench.planted import Planted, plant

from tests.spark.test_audit import ledger, pipeline, sets
from tests.spark.test_watch_crash_points import Growing

pytest.importorskip("pyspark", reason="PySpark is not installed")

import pyarrow.parquet as pq

from warrenmq.journal.columns import EventColumns
from warrenmq.journal.files import file_name
from warrenmq.journal.parquet import table, write_beside
from warrenmq.spark.auditing import audit
from warrenmq.spark.auditing.listing import JournalError, named
from warrenmq.spark.laking import job
from warrenmq.spark.laking.columns import of_files
from warrenmq.spark.laking.job import lake, read
from warrenmq.spark.laking.keeping import gaps_of, retained, sealed
from warrenmq.spark.laking.snapshot import Manifest, Removed, Taken, Written, manifest_of
from warrenmq.spark.replaying.job import preview
from warrenmq.spark.storage import literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECOND = 1_000_000  # µs
DAY = 86_400 * SECOND
NAME = f"{0xBB:016x}"
Row = dict[str, Any]


def told(at: int, n: int, vhost: str = "/") -> list[Row]:
    """A message that was published, entered a queue, and was consumed."""
    where = {"vhost": vhost, "queue": "q"}
    publish = {"user": "u", "exchange": "x", "routing_keys": ["k"], "size": 1, "id": n, "vhost": vhost}
    return [
        {"time": at, "event": "published", "message": n, **publish},
        {"time": at, "event": "enqueued", "message": n, "position": n, **where},
        {"time": at + 1, "event": "acked", "message": n, **where},
    ]


def days(journal: Growing, first: int, count: int) -> list[Row]:
    """A segment a day, with the turn of the day in its middle; of two vhosts, and of a row that has none."""
    rows: list[Row] = []
    for day in range(first, first + count):
        some: list[Row] = [{"time": day * DAY + DAY // 2, "event": "level", "text": "all"}]
        for n in range(6):
            at = day * DAY + DAY // 2 + (n + 1) * DAY // 8
            some += told(at, day * 100 + n + 1, "/" if n % 2 else "a b*")
        journal.tell(some)
        journal.seal()
        rows += some
    journal.tell([])
    return rows


def content(spark: SparkSession, place: Path) -> Counter[tuple[Any, ...]]:
    rows = read(spark, str(place)).selectExpr("unix_micros(time)", "event", "message", "vhost", "queue", "file", "row")
    return Counter(tuple(row) for row in rows.collect())


def in_journal(*folders: Path) -> Counter[tuple[Any, ...]]:
    """What the files say, without Spark."""
    found: Counter[tuple[Any, ...]] = Counter()
    for path in (path for folder in folders for path in folder.glob("*.parquet")):
        rows = pq.ParquetFile(path).read(["time", "event", "message", "vhost", "queue"]).to_pylist()
        for n, row in enumerate(rows):
            at = round(row["time"].timestamp() * SECOND)
            found[at, row["event"], row["message"], row["vhost"], row["queue"], path.name, n] += 1
    return found


def last_of(folder: Path) -> Path:
    return max(folder.glob("*.parquet"))


def test_a_lake_has_all_sealed_rows_once_by_day_and_vhost(spark: SparkSession, tmp_path: Path) -> None:
    journal, place = Growing(tmp_path / "journal"), tmp_path / "lake [1] {a,b}"  # to Spark patterns
    days(journal, 20_000, 3)
    done = lake(spark, str(journal.folder), str(place))
    assert (done.files, done.complete) == (3, True)
    last_of(journal.folder).unlink()  # the one that grows is not taken
    assert content(spark, place) == in_journal(journal.folder)
    folders = {path.parent.name for path in place.glob("day=*/vhost=*")} | {path.name for path in place.glob("day=*/*")}
    assert folders >= {"day=2024-10-04", "day=2024-10-07", "vhost=%2F", "vhost=a b%2A"}
    again = lake(spark, str(journal.folder), str(place))
    assert (again.files, again.manifest) == (0, done.manifest), "called again it has nothing to do"
    one = spark.read.parquet(literal(str(place))).where("day = '2024-10-05' and vhost = '/'").count()
    assert one == read(spark, str(place)).where("to_date(time) = '2024-10-05' and vhost = '/'").count() > 0


class Dies:
    """At the step of this number."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.passed: list[str] = []

    def __call__(self, step: str) -> None:
        self.passed.append(step)
        if len(self.passed) == self.at:
            raise Died(step)


class Died(BaseException):
    """The driver is gone."""


def test_whoever_dies_at_any_step_loses_and_doubles_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """A run that takes, joins and removes dies at each of its steps. Readers then see the lake as it was or as it will
    be, and the next run makes of it what this one would have made."""
    journal, whole = Growing(tmp_path / "journal"), tmp_path / "whole"
    days(journal, 20_000, 2)
    clock = [20_010 * 86_400.0]

    def run(place: Path, step: Callable[[str], None] | None = None) -> job.LakeResult:
        clock[0] += 60
        options: dict[str, Any] = {"pieces": 1, "max_age": int(8.5 * DAY), "grace": 0}
        return lake(spark, str(journal.folder), str(place), **options, now=lambda: clock[0], step=step)

    lake(spark, str(journal.folder), str(whole), now=lambda: clock[0])
    (whole / "day=2024-10-04" / "vhost=left" / "run=1-0").mkdir(parents=True)  # by one who died before
    days(journal, 20_002, 1)
    everything = dict.fromkeys(in_journal(journal.folder), 1)
    allowed = [
        {row: 1 for row in everything if segment(row[5]) < 3},
        everything,
        {row: 1 for row in everything if segment(row[5]) > 1},
    ]
    steps: list[str] = []
    while len(steps) < 30:
        place = tmp_path / f"lake-{len(steps)}"
        shutil.copytree(whole, place)
        try:
            run(place, Dies(len(steps) + 1))
        except Died as died:
            steps.append(str(died))
            assert but_gaps(content(spark, place)) in allowed
            run(place)
        assert but_gaps(content(spark, place)) == allowed[2]
        if not steps or place.name != f"lake-{len(steps) - 1}":
            break
    assert steps == ["removed", "written", "counted", "counts", "written", "counted", "counts"]
    run(place)
    done = manifest_of(spark, str(place))
    assert done is not None and done.removed[NAME].end == 1
    there = {"/".join(str(path).split("/")[-3:]) for path in place.glob("day=*/vhost=*/run=*")}
    assert there == {one.path for one in done.parts}, "what does not count is gone"
    assert [path.name for path in place.glob("_lake/manifest/run=*")] == [f"run={done.run}"]
    assert audit(spark, str(place), only=[]).missing_files == []


def but_gaps(rows: Counter[tuple[Any, ...]]) -> dict[tuple[Any, ...], int]:
    return {row: count for row, count in rows.items() if row[1] != "gap"}


def segment(name: str) -> int:
    return named([name])[0].segment


def test_small_pieces_are_joined(spark: SparkSession, tmp_path: Path) -> None:
    journal, place = Growing(tmp_path / "journal"), tmp_path / "lake"
    for n in range(4):
        journal.tell(told(20_000 * DAY + n * SECOND, n + 1))
        journal.seal()
        journal.tell([])
        done = lake(spark, str(journal.folder), str(place), pieces=2)
    assert len(done.manifest.parts) == 2
    assert content(spark, place).total() == 12 == done.manifest.rows()
    assert len(done.manifest.unused) == 3, "they stay for whoever reads them now"
    assert len(list(place.glob("day=*/vhost=*/run=*"))) == 5


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> list[Planted]:
    """Two journals with faults, the second without one of its files."""
    folder = tmp_path_factory.mktemp("brokers")
    made = [plant(folder / f"journal-{log:x}", 1000, 250, 3, seed=log, log=log) for log in (0xA1, 0xA2)]
    sorted(made[1].folder.glob("*.parquet"))[1].unlink()
    return made


@pytest.fixture(scope="module")
def lake_of_brokers(spark: SparkSession, brokers: list[Planted]) -> Path:
    place = brokers[0].folder.parent / "lake"
    done = lake(spark, [str(one.folder) for one in brokers], str(place))
    assert [str(one) for one in done.missing] == [f"log {0xA2:016x}: segment 2"]
    return place


def test_an_audit_of_a_lake_and_what_it_lacks_yet_is_that_of_the_journals(
    spark: SparkSession, brokers: list[Planted], lake_of_brokers: Path
) -> None:
    folders = [str(one.folder) for one in brokers]
    plain = audit(spark, folders, only=[])
    found = audit(spark, [str(lake_of_brokers), *folders], only=[])
    assert sets(found) == sets(plain) and sets(found, "because") == sets(plain, "because")
    assert ledger(found) == ledger(plain)
    assert found.missing_files == plain.missing_files and plain.missing_files
    assert found.new_rows == plain.new_rows
    plain.close()
    found.close()


def test_the_command_says_what_is_missing(spark: SparkSession, brokers: list[Planted], lake_of_brokers: Path) -> None:
    done = pipeline("lake", *(one.folder for one in brokers), "--out", lake_of_brokers)
    assert done.exit_code == 1 and f"MISSING: log {0xA2:016x}: segment 2" in done.output
    done = pipeline("lake", *(one.folder for one in brokers), "--out", lake_of_brokers, "--json")
    found = json.loads(done.stdout)
    assert done.exit_code == 1 and not found["complete"] and found["missing"] == [f"log {0xA2:016x}: segment 2"]
    assert found["files_taken"] == 0 and found["lake"]["events"] > 0


def test_whatif_and_replay_read_a_lake(
    spark: SparkSession, brokers: list[Planted], lake_of_brokers: Path, tmp_path: Path
) -> None:
    from warrenmq.spark.supposing import whatif

    sealed_only = tmp_path / "sealed"
    for one in brokers:
        (sealed_only / one.folder.name).mkdir(parents=True)
        for path in sorted(one.folder.glob("*.parquet"))[:-1]:
            shutil.copy(path, sealed_only / one.folder.name)

    def sent(source: Path) -> set[tuple[Any, ...]]:
        rows = preview(spark, [str(source)], {"host": "localhost"}).collect()
        return {(row["origin"], row["at"], row["exchange"], row["routing_key"]) for row in rows}

    assert sent(lake_of_brokers) == sent(sealed_only) != set()
    before: dict[str, Any] = {"vhosts": [{"name": "/"}], "queues": [], "exchanges": [], "bindings": []}
    after = before | {"queues": [{"name": "k", "vhost": "/"}]}

    def changes(source: Path) -> set[tuple[Any, ...]]:
        found = whatif(spark, str(source), before, after)
        try:
            return {tuple(row) for row in found.changes.collect()}
        finally:
            found.close()

    assert changes(lake_of_brokers) == changes(sealed_only)


def test_rows_that_get_lost_on_the_way_are_noticed_and_the_lake_is_as_it_was(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, place = Growing(tmp_path / "journal"), tmp_path / "lake"
    days(journal, 20_000, 1)
    lake(spark, str(journal.folder), str(place))
    before = content(spark, place)
    days(journal, 20_001, 1)
    with monkeypatch.context() as patch:
        patch.setattr(job, "of_files", lambda *given: of_files(*given).where("row <> 2"))
        with pytest.raises(JournalError, match="19 events, and 18 of them were written: the lake is as it was"):
            lake(spark, str(journal.folder), str(place))
    assert content(spark, place) == before
    assert lake(spark, str(journal.folder), str(place)).files == 1


def manifest(segments: int, log: str = NAME) -> Manifest:
    """A segment a day, each in a part of its own day and in the next one's."""
    names = [file_name(int(log, 16), n, 0, 100) for n in range(1, segments + 1)]
    files = {name: Taken(10, n * DAY, (n + 1) * DAY, gap=False) for n, name in enumerate(names, 1)}
    parts = []
    for n in range(1, segments + 2):
        inside = {name: 5 for m, name in enumerate(names, 1) if m in (n - 1, n)}
        parts.append(Written(f"day={n}", str(n), "/", 100, inside))
    return Manifest(1, files, parts)


def test_retention_takes_whole_segments_from_the_first_on_and_says_so() -> None:
    kept = retained(manifest(5), 4 * DAY, None)
    assert kept.manifest.removed == {NAME: Removed(2, DAY, 3 * DAY, 20)}
    assert [one.day for one in kept.dropped] == ["1", "2"] and [one.day for one in kept.mixed] == ["3"]
    assert len(kept.manifest.files) == 3
    later = retained(kept.manifest, None, 250)
    assert later.manifest.removed[NAME].end > 2 and later.manifest.removed[NAME].since == DAY


def test_what_retention_took_is_not_taken_again() -> None:
    whole = manifest(5)
    kept = retained(whole, 4 * DAY, None)
    assert sealed(named(whole.files), kept.manifest) == []
    assert len(sealed(named(whole.files), Manifest())) == 4, "the last segment may still grow"


def test_what_a_journal_removed_is_a_gap_only_where_the_lake_lacks_it() -> None:
    whole, gap = manifest(3), Removed(2, 0, 1, 20)
    assert gaps_of(whole, {NAME: gap}) == {}
    assert gaps_of(Manifest(), {NAME: gap}) == {NAME: gap}


def test_files_that_tell_in_part_what_the_lake_has_are_refused() -> None:
    other = named([file_name(0xBB, 1, 0, 200), file_name(0xBB, 2, 0, 200)])
    with pytest.raises(JournalError, match="tell the same in part"):
        sealed(other, manifest(2))


def test_a_gap_that_the_journal_tells_of_is_in_the_lake(spark: SparkSession, tmp_path: Path) -> None:
    """Retention of the journal took the first segments before they were taken."""
    journal, place = Growing(tmp_path / "journal"), tmp_path / "lake"
    days(journal, 20_000, 4)
    for path in sorted(journal.folder.glob("*.parquet"))[:2]:
        path.unlink()
    columns = EventColumns()
    columns.gap(20_000 * DAY, 20_002 * DAY, 38)
    path = journal.folder / file_name(0xBB, 0, 0, 2)
    write_beside(path, table(columns, {}), job_bodies()).rename(path)
    done = lake(spark, str(journal.folder), str(place))
    assert done.complete and done.manifest.removed == {NAME: Removed(2, 20_000 * DAY, 20_002 * DAY, 38)}
    (gap,) = read(spark, str(place)).where("event = 'gap'").collect()
    assert (gap["number"], gap["log"], gap["until"] - gap["time"]) == (38, NAME, timedelta(days=2))


def job_bodies() -> Any:
    from warrenmq.journal.bodies import NO_BODIES

    return NO_BODIES


def test_wrong_input_is_one_line(spark: SparkSession, lake_of_brokers: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    wrong: list[tuple[list[object], str]] = [
        ([tmp_path / "empty"], "has no journal"),
        ([lake_of_brokers], "is a lake: name the folders of journals"),
        ([lake_of_brokers, "--max-size", "much"], "is not a size"),
        ([lake_of_brokers, "--max-age", "soon"], "max-age"),
    ]
    for given, line in wrong:
        done = pipeline("lake", *given, "--out", tmp_path / "out")
        assert done.exit_code == 2 and line in done.output.splitlines()[-1], done.output
