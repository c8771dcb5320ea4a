"""Stopped and started again: what is flagged, what is scanned, and what a queue without a definition becomes."""

from __future__ import annotations

from pathlib import Path

from warrenmq.broker.access.access import store_key
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient, Got


def filled(folder: Path, count: int = 5) -> tuple[Core, CoreClient]:
    core = Core(folder)
    client = core.client(persistent=True)
    client.open(1, "confirm.select")
    client.declare("q")
    for number in range(count):
        client.publish("", "q", b"%d" % number)
    client.take()
    return core, client


def read(core: Core, queue: str = "q") -> list[tuple[bytes, bool]]:
    """Everything, as (body, redelivered)."""
    client = core.client(persistent=True)
    client.open()
    client.send("basic.consume", queue=queue, consumer_tag="reader")
    core.commit()
    deliveries: list[Got] = [told for told in client.take() if told.name == "basic.deliver"]
    return [(told.body, told.method.bit("redelivered")) for told in deliveries]


def test_a_start_after_a_clean_stop_needs_no_scan(tmp_path: Path) -> None:
    core, _ = filled(tmp_path)
    core.stop()
    again = Core(tmp_path)
    assert again.recovered.clean
    assert read(again) == [(b"%d" % n, False) for n in range(5)]


def test_a_start_after_a_crash_scans_and_finds_the_same(tmp_path: Path) -> None:
    core, _ = filled(tmp_path)
    core.crash()
    again = Core(tmp_path)
    assert not again.recovered.clean
    assert read(again) == [(b"%d" % n, False) for n in range(5)]


def test_after_a_clean_stop_only_what_was_delivered_is_flagged(tmp_path: Path) -> None:
    core, client = filled(tmp_path)
    for _ in range(2):
        client.send("basic.get", queue="q")
    core.stop()
    assert read(Core(tmp_path)) == [(b"%d" % n, n < 2) for n in range(5)]


def test_after_a_crash_everything_that_was_delivered_is_flagged(tmp_path: Path) -> None:
    core, client = filled(tmp_path)
    for _ in range(2):
        client.send("basic.get", queue="q")
    core.crash()
    found = read(Core(tmp_path))
    assert [body for body, _ in found] == [b"%d" % n for n in range(5)]
    assert all(redelivered for _, redelivered in found[:2])


def test_a_queue_nobody_consumed_from_comes_back_unflagged_after_a_crash(tmp_path: Path) -> None:
    core, _ = filled(tmp_path)
    core.crash()
    assert not any(redelivered for _, redelivered in read(Core(tmp_path)))


def test_flags_survive_a_clean_stop_after_a_crash(tmp_path: Path) -> None:
    core, client = filled(tmp_path)
    client.send("basic.get", queue="q")
    core.crash()
    second = Core(tmp_path)
    second.stop()
    assert read(Core(tmp_path))[0] == (b"0", True)


def test_flags_survive_a_second_crash(tmp_path: Path) -> None:
    core, client = filled(tmp_path)
    client.send("basic.get", queue="q")
    core.crash()
    Core(tmp_path).crash()
    assert read(Core(tmp_path))[0] == (b"0", True)


def test_a_deleted_queue_and_its_messages_stay_deleted(tmp_path: Path) -> None:
    for clean in (True, False):
        folder = tmp_path / str(clean)
        folder.mkdir()
        core, client = filled(folder)
        client.send("basic.get", queue="q")
        client.send("queue.delete", queue="q")
        client.declare("q")
        core.stop() if clean else core.crash()
        again = Core(folder)
        assert read(again) == []
        assert again.log.maintenance.live_bytes() == 0


def test_positions_go_on_after_a_restart_so_order_holds_across_it(tmp_path: Path) -> None:
    core, client = filled(tmp_path, 3)
    client.send("basic.get", queue="q")
    client.send("basic.ack", delivery_tag=1)
    core.log.flush()
    core.crash()
    again = Core(tmp_path)
    client = again.client(persistent=True)
    client.open(1, "confirm.select")
    client.publish("", "q", b"new")
    assert [body for body, _ in read(again)] == [b"1", b"2", b"new"]


def test_what_no_definition_knows_does_not_hold_the_disk(tmp_path: Path) -> None:
    """Messages of a queue that is not defined (a definition that could not be read, say) are let go at start."""
    core, _ = filled(tmp_path)
    core.log.undefine("queue", store_key(["/", "q"]))
    core.log.end_turn(True)
    core.crash()
    again = Core(tmp_path)
    assert "q" not in again.broker.vhosts["/"].queues
    assert again.log.maintenance.live_bytes() == 0


def test_the_number_of_a_deleted_queue_is_never_used_again(tmp_path: Path) -> None:
    """For the log a queue is its number: a new one must not be taken for an old one."""
    core, client = filled(tmp_path)
    client.declare("last")
    old = int(core.queue("last").id)
    client.send("queue.delete", queue="last")
    core.stop()
    again = Core(tmp_path)
    client = again.client(persistent=True)
    client.open()
    client.declare("new")
    assert again.queue("new").id > old
