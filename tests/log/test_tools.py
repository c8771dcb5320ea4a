"""Looking at, checking, saving and copying a data folder: `warren log …` and the online backup."""

from __future__ import annotations

import json
import os
import shutil
import threading
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from tests.log.world import World, found_state, same
from warrenmq.cli.log.command import register
from warrenmq.log.backup import copy, plan, release
from warrenmq.log.files import Files
from warrenmq.log.format import LogError
from warrenmq.log.layout import FILE_HEADER, OLDEST, SUMMED, VERSION
from warrenmq.log.log import Log
from warrenmq.log.recovery import Recovered
from warrenmq.log.salvage import Salvage
from warrenmq.log.settings import LogSettings
from warrenmq.log.survey import Survey

SETTINGS = {"segment_bytes": 4000, "checkpoint_bytes": 500, "chunk_bytes": 500, "zero_ahead": False}


def settings() -> LogSettings:
    return LogSettings(**SETTINGS)  # type: ignore[arg-type]


def filled(folder: Path, maintained: bool = True, slack: int = -1) -> World:
    world = World(Files(), LogSettings(**SETTINGS, slack_bytes=slack), str(folder))  # type: ignore[arg-type]
    world.define("one", b"1")
    for n in range(80):
        world.publish(b"%03d" % n * 20, 1 + n % 3)
        world.publish(b"shared %03d" % n, 1, 2)
        if n % 2:
            world.settle(1 + n % 3)
        if n % 20 == 5:
            world.publish_in_chunks([b"%d" % n * 400, b"end"], 3)
        if n % 9 == 0:
            world.move(1, 2)
        world.deliver(1)
        world.end_turn()
        if maintained:
            world.maintain()
    world.define("two", b"2")
    world.end_turn()
    return world


def warren(*arguments: str) -> tuple[int, str]:
    app = typer.Typer()
    register(app)
    done = CliRunner().invoke(app, ["log", *arguments])
    return done.exit_code, done.output


@pytest.mark.parametrize("clean", [False, True])
def test_inspect_and_verify_say_what_is_there_and_change_nothing(tmp_path: Path, clean: bool) -> None:
    folder = tmp_path / "data"
    world = filled(folder)
    world.log.close(world.indexes() if clean else None)
    before = {name: (folder / name).read_bytes() for name in os.listdir(folder)}
    held = sum(len(entries) for entries in world.state.queues.values())
    status, output = warren("inspect", str(folder), "--segment", str(max(world.log.segments)), "--definitions")
    assert status == 0, output
    assert f"held: {held}" in output and "queue 'two': b'2'" in output
    assert f"last stop: {'clean' if clean else 'not clean'}" in output
    status, output = warren("verify", str(folder))
    assert status == 0 and f"{held} messages held: all of it checks" in output
    assert {name: (folder / name).read_bytes() for name in os.listdir(folder)} == before


def test_verify_finds_a_turned_bit_and_names_the_place(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    world = filled(folder)
    world.log.close(world.indexes())
    path = folder / sorted(name for name in os.listdir(folder) if name.endswith(".log"))[1]
    data = bytearray(path.read_bytes())
    data[500] ^= 1
    path.write_bytes(data)
    status, output = warren("verify", str(folder))
    assert status == 1 and str(path) in output and "warren log salvage" in output and len(output.splitlines()) == 1


def test_a_running_brokers_folder_and_a_wrong_one_are_refused_in_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    world = filled(folder)
    status, output = warren("inspect", str(folder))
    assert status == 1 and "in use by a running broker" in output and "warren backup" in output
    world.log.close()
    for arguments in (("verify", str(tmp_path / "none")), ("inspect", str(tmp_path))):
        status, output = warren(*arguments)
        assert status == 1 and len(output.splitlines()) == 1
    status, output = warren("salvage", str(folder), str(folder))
    assert status == 1 and "is in the folder" in output


class Meddling(Files):
    """The broker goes on whenever the survey touches a file."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.count = 0

    def open(self, path: str, writing: bool) -> int:
        self.count += 1
        world = self.world
        if self.count % 3 == 0:
            world.publish(b"meanwhile %03d" % self.count * 9, 1 + self.count % 2)
            world.settle(1)
            world.settle(2)
            world.end_turn()
            world.maintain()
        return super().open(path, writing)


def test_verify_beside_a_broker_that_appends_compacts_and_removes_finds_no_damage(tmp_path: Path) -> None:
    world = filled(tmp_path, slack=0)
    before = int(world.log.maintenance.compactions), int(world.log.maintenance.removed)
    for _ in range(6):
        survey = Survey(str(tmp_path), Meddling(world))
        survey.run()
        assert survey.problems == [] and survey.damaged == [] and survey.segments > 0
    assert world.log.maintenance.removed > before[1]
    assert world.log.maintenance.compactions > before[0]


def test_verify_beside_a_running_broker_finds_what_verify_finds_without_one(tmp_path: Path) -> None:
    """A bit turned anywhere: in a body it is that record, elsewhere it is the place; never nothing where it counts."""
    folder = tmp_path / "data"
    world = filled(folder)
    world.log.flush()
    found = {"record": 0, "place": 0, "nothing": 0}
    for path in segments_of(folder):
        data = path.read_bytes()
        for at in range(0, len(data), 97):
            path.write_bytes(data[:at] + bytes([data[at] ^ 16]) + data[at + 1 :])
            survey = Survey(str(folder), Files())
            survey.run()
            found["record"] += len(survey.damaged)
            found["place"] += any(path.name in problem for problem in survey.problems)
            found["nothing"] += not survey.damaged and not survey.problems
        path.write_bytes(data)
    assert found["record"] > 20 and found["place"] > 20
    assert found["nothing"] < 15, "headers' unused bytes, and the last commit, which nothing names as synced"
    world.log.close()


def test_salvage_saves_everything_of_a_sound_folder(tmp_path: Path) -> None:
    world = filled(tmp_path / "data")
    world.log.close()
    report = Salvage(str(tmp_path / "data"), str(tmp_path / "new"), Files()).run()
    assert report.problems == [] and report.lost == []
    log, recovered = Log.open(str(tmp_path / "new"), Files(), settings())
    assert same(found_state(log, recovered), world.state, set())
    assert recovered.next_message_id == world.message_id + 1
    log.close()


def test_salvage_passes_over_what_is_damaged_and_says_what_is_missing(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    world = filled(folder, maintained=False)
    world.log.close()
    path = folder / "segment-0000000002.log"
    data = bytearray(path.read_bytes())
    lost = [
        body for body in {b for q in world.state.queues.values() for b in q.values()} if body in bytes(data[900:1500])
    ]
    data[900:1500] = os.urandom(600)
    path.write_bytes(data)
    with pytest.raises(Exception, match="warren log salvage"):
        Log.open(str(folder), Files(), settings())
    status, output = warren("salvage", str(folder), str(tmp_path / "new"))
    assert status == 1, output
    assert "not readable: " in output and "segment-0000000002.log: offset" in output
    assert "missing: segment-0000000002.log: records" in output
    log, recovered = Log.open(str(tmp_path / "new"), Files(), settings())
    found = found_state(log, recovered)
    assert found.definitions == world.state.definitions
    assert lost
    for queue, entries in world.state.queues.items():
        for position, body in entries.items():
            got = found.queues.get(queue, {}).get(position)
            assert got == body or (got is None and len(lost) < 30), (queue, position)
    total = sum(len(entries) for entries in world.state.queues.values())
    assert total - 20 < sum(len(entries) for entries in found.queues.values())
    log.close()


def segments_of(folder: Path) -> list[Path]:
    return sorted(folder.glob("segment-*.log"))


@pytest.mark.parametrize("stopped", [True, False])
@pytest.mark.parametrize("maintained", [True, False])
@pytest.mark.parametrize("manifest", [True, False])
def test_salvage_names_every_segment_that_is_missing_and_says_so_by_its_status(
    tmp_path: Path, stopped: bool, maintained: bool, manifest: bool
) -> None:
    folder = tmp_path / "data"
    world = filled(folder, maintained)
    if stopped:
        world.log.close(world.indexes())
    else:
        world.log.files.close(world.log._lock)
    if not manifest:
        (folder / "manifest").unlink()
    names = [path.name for path in segments_of(folder)]
    compacted = {path.name for path in segments_of(folder) if path.read_bytes()[36:40] != bytes(4)}
    assert len(names) > 3
    for name in names:
        copy_of = tmp_path / f"without-{name}"
        shutil.copytree(folder, copy_of)
        (copy_of / name).unlink()
        status, output = warren("salvage", str(copy_of), str(tmp_path / f"new-{name}"))
        known = (manifest and (stopped or name != names[-1])) or (
            not manifest and name != names[-1] and names[names.index(name) + 1] not in compacted
        )
        assert status == 1 or not known, (name, output)
        assert f"missing: {name}: the file is missing" in output or not known, (name, output)


def test_salvage_says_when_the_end_of_a_segment_is_missing(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    world = filled(folder, maintained=False)
    world.log.close(world.indexes())
    for path in segments_of(folder):
        data = path.read_bytes()
        batches = [at for at in range(len(data)) if data.startswith(b"WBA%d" % VERSION, at)]
        for at in (batches[-1], batches[len(batches) // 2], FILE_HEADER):
            copy_of = tmp_path / f"{path.name}-{at}"
            shutil.copytree(folder, copy_of)
            (copy_of / path.name).write_bytes(data[:at])
            status, output = warren("salvage", str(copy_of), f"{copy_of}-new")
            assert status == 1 and "more bytes were synced" in output and path.name in output, (path.name, at, output)


def test_salvage_leaves_out_a_damaged_body_alone_and_names_it(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    world = World(Files(), settings(), str(folder))
    for n in range(10):
        world.publish(b"message %02d" % n, 1, 2)
    world.end_turn()
    world.log.close(world.indexes())
    (path,) = segments_of(folder)
    whole = path.read_bytes()
    for what, told in ((b"message 04", "message 6 is damaged, held by queues 1, 2"), (b"exchange", "records 0 to 0")):
        path.write_bytes(whole.replace(what, what.upper(), 1))
        target = tmp_path / told[:9]
        status, output = warren("salvage", str(folder), str(target))
        assert status == 1 and told in output, output
        log, recovered = Log.open(str(target), Files(), settings())
        assert len(recovered.queues[1]) == len(recovered.queues[2]) == 9, "all others of its batch are saved"
        log.close()


@pytest.mark.parametrize("name", ["manifest", "segment-0000000003.log"])
def test_salvage_works_without_a_manifest_or_with_a_broken_header(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "data"
    world = filled(folder, maintained=False)
    shutil.copytree(folder, tmp_path / "crashed")
    world.log.close()
    path = tmp_path / "crashed" / name
    data = bytearray(path.read_bytes())
    data[20] ^= 255
    path.write_bytes(data)
    report = Salvage(str(tmp_path / "crashed"), str(tmp_path / "new"), Files()).run()
    assert report.problems
    log, recovered = Log.open(str(tmp_path / "new"), Files(), settings())
    assert same(found_state(log, recovered), world.state, set())
    log.close()


def test_an_online_backup_is_the_state_of_one_moment_and_can_be_started_on(tmp_path: Path) -> None:
    world = filled(tmp_path / "data")
    world.publish(b"not closed yet", 1)  # an open turn is not in the backup
    backup = plan(world.log)
    assert backup is not None
    expected = world.history[int(world.log.synced)]
    world.end_turn()
    copying = threading.Thread(
        target=copy, args=(str(tmp_path / "data"), str(tmp_path / "backup"), Files(), backup), daemon=True
    )
    copying.start()
    for n in range(200):  # the broker goes on, rolls, settles, wants to compact
        world.publish(b"later %d" % n * 10, 2)
        world.settle(1)
        world.settle(2)
        world.end_turn()
        world.maintain()
    removed = world.log.maintenance.removed
    copying.join()
    release(world.log)
    world.maintain()
    assert world.log.maintenance.removed > removed, "nothing is removed under a backup, all of it afterwards"
    log, recovered = Log.open(str(tmp_path / "backup"), Files(), settings())
    assert same(found_state(log, recovered), expected, set())
    log.close()
    world.check_reads()
    world.log.close()


def test_a_stopped_brokers_folder_is_copied_whole(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    world = filled(folder)
    world.log.close(world.indexes())
    status, output = warren("backup", str(folder), str(tmp_path / "copy"))
    assert status == 0 and "a copy a broker can be started on" in output
    log, recovered = Log.open(str(tmp_path / "copy"), Files(), settings())
    assert same(found_state(log, recovered), world.state, set())
    log.close()
    status, output = warren("backup", str(folder), str(tmp_path / "copy"))
    assert status == 1 and "not empty" in output


@pytest.mark.parametrize("verb", ["backup", "salvage"])
def test_nothing_is_written_into_the_folder_it_is_read_from(tmp_path: Path, verb: str) -> None:
    folder = tmp_path / "data"
    world = filled(folder)
    world.log.close(world.indexes())
    before = sorted(os.listdir(folder))
    (tmp_path / "link").symlink_to(folder)
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "below").symlink_to(folder / "sub")
    for target in (
        folder,
        folder / "copy",
        folder / "a" / "b",
        tmp_path / "link" / "copy",
        tmp_path / "link",
        tmp_path / "empty" / "below",
        tmp_path / "x" / ".." / "data" / "copy",
    ):
        status, output = warren(verb, str(folder), str(target))
        assert status == 1 and "is in the " in output and "folder" in output, (target, output)
        assert len(output.splitlines()) == 1
        status, output = warren(verb, str(tmp_path / "link"), str(target))
        assert status == 1 and "is in the " in output, "the source may be a link as well"
    assert sorted(os.listdir(folder)) == before
    status, output = warren(verb, str(folder), f"{folder}-copy")
    assert status == 0, "a name that only begins alike is another folder"


def test_a_backup_says_what_is_damaged_in_it_and_is_none_of_a_broken_folder(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    world = World(Files(), settings(), str(folder))
    for n in range(10):
        world.publish(b"message %02d" % n, 1)
        world.end_turn()
    made = plan(world.log)
    assert made is not None
    (path,) = segments_of(folder)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"message 04", b"MESSAGE 04"))
    assert copy(str(folder), str(tmp_path / "one"), Files(), made) == [1 << 32 | 4]
    path.write_bytes(whole.replace(b"exchange", b"EXCHANGE", 1))
    with pytest.raises(LogError, match="the copy does not check: .*segment-0000000001.log: offset 128"):
        copy(str(folder), str(tmp_path / "two"), Files(), made)
    release(world.log)
    world.log.close()


FIXTURES = sorted((Path(__file__).parent / "fixtures").glob("format-*"))
SMALL = {"segment_bytes": 1500, "checkpoint_bytes": 1, "chunk_bytes": 100, "zero_ahead": False, "reserve_bytes": 0}


def as_expected(folder: Path, fixture: Path) -> tuple[Log, Recovered]:
    log, recovered = Log.open(str(folder), Files(), LogSettings(**SMALL))  # type: ignore[arg-type]
    expected = json.loads((fixture / "expected.json").read_text())
    found = found_state(log, recovered)
    assert {
        str(queue): {str(position): body.decode() for position, body in entries.items()}
        for queue, entries in found.queues.items()
    } == expected["queues"]
    assert {f"{kind}/{key}": value.decode() for (kind, key), value in found.definitions.items()} == expected[
        "definitions"
    ]
    assert {str(queue): position for queue, position in found.delivered.items()} == expected["delivered"]
    assert recovered.next_message_id == expected["next_message_id"]
    assert recovered.clean == fixture.name.endswith("-stopped")
    return log, recovered


def test_there_are_folders_of_every_format() -> None:
    names = {fixture.name for fixture in FIXTURES}
    assert names == {f"format-{n}{how}" for n in range(OLDEST, VERSION + 1) for how in ("", "-stopped")}


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda path: path.name)
def test_a_folder_of_every_format_is_read_and_written_on(tmp_path: Path, fixture: Path) -> None:
    """Written by the version of its name (see fixtures/make.py), by a killed broker and by one that was stopped."""
    folder = tmp_path / "data"
    shutil.copytree(fixture / "folder", folder)
    log, recovered = as_expected(folder, fixture)
    address = log.append(recovered.next_message_id, b"header", b"new", "exchange", b"key", flags=2, holders=1)
    log.hold(address, 1, 10_000, 0, 0)
    log.end_turn(True)
    assert log.close()
    log, recovered = Log.open(str(folder), Files(), LogSettings())
    assert log.read(recovered.queues[1].addresses[-1]).body == b"new"


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda path: path.name)
@pytest.mark.parametrize("stopped", [True, False])
def test_a_folder_of_every_format_is_brought_to_the_present_one_beside_the_work(
    tmp_path: Path, fixture: Path, stopped: bool
) -> None:
    folder = tmp_path / "data"
    shutil.copytree(fixture / "folder", folder)
    log, recovered = as_expected(folder, fixture)
    address = log.append(recovered.next_message_id, b"header", b"new", "exchange", b"key", flags=2, holders=1)
    log.hold(address, 9, 1, 0, 0)
    log.end_turn(True)
    rounds = 0
    while log.maintain(100):
        rounds += 1
        assert rounds < 100
    assert not [number for number, segment in log.segments.items() if segment.old]
    if stopped:
        assert log.close()
    else:
        log.files.close(log._lock)
    for path in folder.glob("*.log"):
        data = path.read_bytes()
        assert data[8] >= SUMMED and b"WBA1" not in data, path
        body = data.find(b"single")
        if body >= 0:
            path.write_bytes(data[:body] + b"S" + data[body + 1 :])
    log, recovered = Log.open(str(folder), Files(), LogSettings())
    log.tell_found()
    assert log.damage.known, "what was written without a checksum has one now"
    assert all(isinstance(problem, str) for problem in log.damage.known.values())
