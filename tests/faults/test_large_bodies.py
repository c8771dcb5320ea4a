"""A large body goes to the log while it arrives: what becomes of its pieces when the message does not come about."""

from __future__ import annotations

from pathlib import Path

import pytest

from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.testing.faults import FaultyDisk
from warrenmq.wire.content import Properties, content_frames, encode_header
from warrenmq.wire.methods import method_frame

BODY = bytes(range(256)) * 4000  # about 1 MB


def ready(folder: Path, held: bool = False) -> tuple[FaultyDisk, Core, CoreClient]:
    disk = FaultyDisk()
    core = Core(folder, disk, held)
    client = core.client(persistent=True)
    client.open(1, "confirm.select")
    client.declare("q")
    return disk, core, client


def in_turns(client: CoreClient, frames: bytes, size: int = 100_000) -> None:
    for start in range(0, len(frames), size):
        client.feed(frames[start : start + size])


def live(core: Core) -> int:
    core.log.flush()
    while core.log.maintain(10):
        core.log.flush()
    return int(core.log.maintenance.live_bytes())


@pytest.mark.parametrize("piece", [5_000, 100_000, 10_000_000])
def test_it_is_confirmed_and_comes_back_whole(tmp_path: Path, piece: int) -> None:
    _, core, client = ready(tmp_path)
    in_turns(client, client.published("", "q", BODY), piece)
    assert client.names() == ["basic.ack"]
    core.crash()
    again = Core(tmp_path)
    assert again.queue("q").ready_bytes == len(BODY)
    client = again.client(persistent=True)
    client.open()
    client.send("basic.consume", queue="q", consumer_tag="c")
    assert client.bodies() == [BODY]
    client.send("basic.ack", delivery_tag=1)
    assert live(again) == 0


def test_small_frames_make_the_same_message(tmp_path: Path) -> None:
    _, core, client = ready(tmp_path)
    header = encode_header(Properties(delivery_mode=2), len(BODY))
    frames = method_frame(1, "basic.publish", routing_key="q") + content_frames(1, header, BODY, 4096)
    in_turns(client, frames, 50_000)
    assert client.names() == ["basic.ack"]
    client.send("basic.get", queue="q")
    assert client.bodies() == [BODY]


def test_two_channels_may_send_large_bodies_at_once(tmp_path: Path) -> None:
    _, core, client = ready(tmp_path)
    client.open(2, "confirm.select")
    one, two = client.published("", "q", BODY), client.published("", "q", BODY[::-1], channel=2)
    pieces = []
    for frames in (one, two):  # whole frames only: those of two channels may alternate, octets may not
        cut = []
        while frames:
            size = 8 + int.from_bytes(frames[3:7], "big")
            cut.append(frames[:size])
            frames = frames[size:]
        pieces.append(cut)
    for a, b in zip(*pieces, strict=True):
        client.feed(a + b)
    assert client.names() == ["basic.ack", "basic.ack"]
    client.send("basic.consume", queue="q", consumer_tag="c")
    assert sorted(client.bodies()) == sorted([BODY, BODY[::-1]])


def test_a_client_that_goes_away_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    _, core, client = ready(tmp_path)
    in_turns(client, client.published("", "q", BODY)[:700_000])
    core.broker.begin_turn()
    client.connection.lost("gone")
    core.broker.end_turn()
    assert live(core) == 0
    core.crash()
    again = Core(tmp_path)
    assert again.queue("q").ready == 0


def test_a_channel_closed_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    _, core, client = ready(tmp_path)
    in_turns(client, client.published("", "q", BODY)[:700_000])
    other = core.client(persistent=True)
    other.open()
    other.send("queue.delete", queue="q")
    in_turns(client, client.published("", "q", BODY)[700_000:])
    assert client.names() == ["basic.ack"]  # unroutable by now
    assert live(core) == 0


def test_a_crash_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    _, core, client = ready(tmp_path)
    in_turns(client, client.published("", "q", BODY)[:700_000])
    core.log.flush()
    core.crash()
    again = Core(tmp_path)
    assert again.queue("q").ready == 0 and live(again) == 0


def test_a_failing_disk_nacks_it_and_lets_its_pieces_go(tmp_path: Path) -> None:
    disk, core, client = ready(tmp_path)
    frames = client.published("", "q", BODY, mandatory=True)
    in_turns(client, frames[:700_000])
    disk.fail("sync")
    in_turns(client, frames[700_000:])
    told = client.take()
    assert [t.name for t in told if t.name != "connection.blocked"] == ["basic.return", "basic.nack"]
    assert next(t for t in told if t.name == "basic.return").body == BODY
    disk.repair()
    core.retry()
    assert live(core) == 0
    in_turns(client, client.published("", "q", BODY))
    assert client.names()[-1] == "basic.ack"
    core.crash()
    assert Core(tmp_path).queue("q").ready == 1


def test_a_flood_of_large_bodies_stops_until_the_disk_has_caught_up(tmp_path: Path) -> None:
    _, core, client = ready(tmp_path, held=True)
    large = b"." * 20_000_000
    in_turns(client, client.published("", "q", large)[:12_000_000], 1_000_000)
    assert not client.reading
    core.commit()
    assert client.reading


@pytest.mark.parametrize("exchange", ["amq.fanout", "amq.headers"])
def test_one_body_in_several_queues_is_written_once(tmp_path: Path, exchange: str) -> None:
    _, core, client = ready(tmp_path)
    client.declare("r")
    for queue in ("q", "r"):
        client.send("queue.bind", queue=queue, exchange=exchange, routing_key="")
    client.take()
    before = live(core)
    in_turns(client, client.published(exchange, "", BODY))
    assert client.names() == ["basic.ack"]
    assert len(BODY) < live(core) - before < len(BODY) * 1.1
    for queue in ("q", "r"):
        client.send("basic.get", queue=queue, no_ack=True)
        assert client.bodies() == [BODY]
    assert live(core) == before


def test_a_large_dead_letter_moves_whole(tmp_path: Path) -> None:
    _, core, client = ready(tmp_path)
    client.declare("source", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"})
    in_turns(client, client.published("", "source", BODY))
    client.send("basic.get", queue="source")
    client.send("basic.reject", delivery_tag=1, requeue=False)
    core.log.flush()
    core.crash()
    again = Core(tmp_path)
    client = again.client(persistent=True)
    client.open()
    client.send("basic.get", queue="q")
    assert client.bodies() == [BODY]


def test_a_large_body_in_a_transaction(tmp_path: Path) -> None:
    _, core, _ = ready(tmp_path)
    client = core.client(persistent=True)
    client.open(1, "tx.select")
    in_turns(client, client.published("", "q", BODY))
    client.send("tx.commit")
    assert client.names() == ["tx.commit-ok"]
    core.crash()
    again = Core(tmp_path)
    assert again.queue("q").ready_bytes == len(BODY)
