"""A very long body that waits on disk is read some a turn, and whoever waits for it gets it whole and in its place."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from tests.limits.gate import advance
from tests.rules.test_drop_slices import live
from tests.rules.test_slices import publish, turn_after_turn
from warrenmq.broker.queue.paging import LONG, WINDOW
from warrenmq.broker.queue.read_ahead import PARTS
from warrenmq.broker.queue.replay import READ_BYTES
from warrenmq.broker.queue.stream import StreamQueue
from warrenmq.broker.services.turn import EXPIRIES
from warrenmq.testing.core import Core, UnsyncedFiles
from warrenmq.testing.core_client import CoreClient
from warrenmq.wire.fields import from_python

pytestmark = pytest.mark.pure

BODY = b"".join(b"%07d " % number for number in range(LONG // 8 + 500_000))  # some 20 MB
PIECE = 256 << 10  # about what the log keeps of it in one record


def waiting_on_disk(core: Core) -> None:
    client = core.client(persistent=True)
    client.call("queue.declare", queue="q", durable=True)
    client.publish("", "q", BODY)
    client.publish("", "q", b"behind")
    core.restart()


def turns_until_whole(core: Core) -> int:
    turns = 0
    while core.broker.services.jobs.busy():
        advance(core, 1)
        turns += 1
        assert turns < 100
    return turns


def test_a_long_body_is_read_some_a_turn_and_what_is_behind_it_does_not_overtake_it(core: Core) -> None:
    waiting_on_disk(core)
    client = core.client()
    client.call("basic.consume", queue="q", no_ack=True)
    assert core.broker.services.jobs.busy() and not client.deliveries()
    assert turns_until_whole(core) >= len(BODY) // (PARTS * PIECE) - 1
    assert [got.body for got in client.deliveries()] == [BODY, b"behind"]


def test_basic_get_waits_for_it(core: Core) -> None:
    waiting_on_disk(core)
    client = core.client()
    client.send("basic.get", queue="q", no_ack=True)
    assert core.broker.services.jobs.busy() and not client.received
    turns_until_whole(core)
    advance(core, 1)
    (got,) = client.take()
    assert got.body == BODY
    assert client.call("basic.get", queue="q", no_ack=True).body == b"behind"


@pytest.mark.parametrize("end", ["queue.delete", "queue.purge"])
def test_a_queue_that_is_deleted_or_purged_meanwhile_reads_no_more_of_it(core: Core, end: str) -> None:
    waiting_on_disk(core)
    client = core.client()
    client.call("basic.consume", queue="q", no_ack=True)
    assert core.broker.services.jobs.busy()
    other = core.client()
    other.send(end, queue="q")
    turns_until_whole(core)
    for _ in range(5):
        advance(core, 1)
    assert not core.broker.services.jobs.busy()
    assert "q" not in core.broker.vhosts["/"].queues or core.queue("q").ready == 0


# --- what expires or is over a limit


class Reads(UnsyncedFiles):
    """Counts what is read."""

    def __init__(self) -> None:
        self.octets = 0

    def read(self, descriptor: int, length: int, offset: int) -> bytes:
        data = super().read(descriptor, length, offset)
        self.octets += len(data)
        return data


def dropping(core: Core, way: str, name: str = "q", **arguments: object) -> CoreClient:
    """A queue on disk, a long body first, then some short ones, whose first is to be dropped or has just been."""
    client = core.client(persistent=True)
    ttl = {"x-message-ttl": 1000} if way == "expired" else {}
    client.call("queue.declare", queue=name, durable=True, arguments=ttl | arguments)
    client.publish("", name, BODY)
    if way == "expired":
        advance(core, 500)
    for body in (b"1", b"2", b"3"):
        client.publish("", name, body)
    return client


def drop(core: Core, way: str) -> None:
    if way == "expired":
        advance_rules(core, 500)
    else:
        core.policy("^q$", max_length=3)


def advance_rules(core: Core, milliseconds: int) -> None:
    """What is due by then, in one turn; later turns do not come yet."""
    core.clock.set_ms(core.clock.now_ms() + milliseconds)
    core.broker.begin_turn()
    while core.broker.services.timers.run_next(core.broker.services.turn.now):
        pass
    core.broker.end_turn()


WAYS = ["expired", "maxlen"]


@pytest.mark.parametrize("way", WAYS)
def test_what_is_dropped_for_good_is_not_read(tmp_path: Path, way: str) -> None:
    files = Reads()
    core = Core(tmp_path, files)
    dropping(core, way)
    before = files.octets
    core.restart()
    drop(core, way)
    assert not core.broker.services.jobs.busy()
    assert files.octets - before < PIECE
    client = core.client()
    assert client.call("queue.declare", queue="q", passive=True)["message_count"] == 3
    assert client.get("q") == "1"
    core.restart(clean=False)
    assert core.queue("q").ready == 3  # the log knows that it went


def test_very_many_that_expire_on_disk_are_not_read_and_go_a_bounded_number_a_turn(tmp_path: Path) -> None:
    files = Reads()
    core = Core(tmp_path, files)
    client = core.client()
    client.call("queue.declare", queue="q", durable=True, arguments={"x-message-ttl": 1000})
    count = 2 * EXPIRIES + 500
    publish(client, "q", range(count), delivery_mode=2)
    core.restart()
    before = files.octets
    core.clock.set_ms(core.clock.now_ms() + 1000)
    gone = turn_after_turn(core, "q")
    assert sum(gone) == count and max(gone) <= EXPIRIES and len(gone) >= 3
    assert files.octets == before


def test_what_no_longer_fits_into_memory_gives_its_room_back_when_it_expires_unread(core: Core) -> None:
    core.broker.services.pressure.memory_half_full = True
    client = core.client()
    client.call("queue.declare", queue="q", arguments={"x-message-ttl": 1000})
    publish(client, "q", range(WINDOW + 500))
    assert core.classic("q")._fifo.paged > 0
    core.clock.set_ms(core.clock.now_ms() + 1000)
    turn_after_turn(core, "q")
    assert core.queue("q").ready == 0
    assert sum(int(spill.held) for spill in core.transient.open_files.values()) == 0


# --- routing


def test_a_long_body_is_not_copied_to_be_routed_by_its_headers(core: Core) -> None:
    client = core.client()
    client.call("queue.declare", queue="q")
    client.call("queue.bind", queue="q", exchange="amq.headers", arguments={"x-match": "any", "kind": "long"})
    client.call("queue.bind", queue="q", exchange="amq.direct", routing_key="q")
    peaks = []
    for exchange in ("amq.direct", "amq.headers"):
        frames = client.published(exchange, "q", BODY, headers=from_python({"kind": "long"}))
        tracemalloc.start()
        client.feed(frames)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert core.queue("q").ready == 2
    assert peaks[1] < peaks[0] + len(BODY) // 2


# --- into the log


class Writes(UnsyncedFiles):
    """Counts what is written."""

    def __init__(self) -> None:
        self.octets = 0

    def write(self, descriptor: int, parts: list[bytes], offset: int) -> None:
        self.octets += sum(map(len, parts))
        super().write(descriptor, parts, offset)


ARRIVALS = ["a durable queue", "a transaction", "a headers exchange", "a delayed exchange", "a quorum queue"]
MIB = 1 << 20


def arriving(core: Core, way: str) -> tuple[CoreClient, bytes]:
    client = core.client()
    client.call("queue.declare", queue="q", durable=True)
    mode = 2
    exchange = ""
    headers = from_python({})
    if way == "a transaction":
        client.call("tx.select")
    elif way == "a headers exchange":
        exchange = "amq.headers"
        client.call("queue.bind", queue="q", exchange=exchange, arguments={"x-match": "all"})
    elif way == "a delayed exchange":
        exchange = "later"
        arguments = {"x-delayed-type": "fanout"}
        client.call("exchange.declare", exchange=exchange, type="x-delayed-message", durable=True, arguments=arguments)
        client.call("queue.bind", queue="q", exchange=exchange)
        headers = from_python({"x-delay": 1000})
    elif way == "a quorum queue":
        client.call("queue.delete", queue="q")
        client.call("queue.declare", queue="q", durable=True, arguments={"x-queue-type": "quorum"})
        mode = 1
    return client, client.published(exchange, "q", BODY, headers=headers, delivery_mode=mode)


@pytest.mark.parametrize("way", ARRIVALS)
def test_a_long_body_goes_to_the_log_as_it_comes(tmp_path: Path, way: str) -> None:
    files = Writes()
    core = Core(tmp_path, files)
    client, frames = arriving(core, way)
    logged = []
    for at in range(0, len(frames), MIB):
        before = files.octets
        client.feed(frames[at : at + MIB])
        logged.append(files.octets - before)
    if way == "a transaction":
        before = files.octets
        client.call("tx.commit")
        logged.append(files.octets - before)
    if way == "a delayed exchange":
        advance(core, 1000)
    assert sum(logged) > len(BODY) and max(logged) < 4 * MIB  # up to two reads of it are one batch, and some zeros
    core.restart(clean=False)
    client = core.client()
    client.call("basic.consume", queue="q")
    turns_until_whole(core)
    assert client.bodies() == [BODY]


@pytest.mark.parametrize("end", ["tx.rollback", "channel.close", "lost", "refused"])
def test_what_the_log_has_of_a_transaction_that_is_not_committed_is_garbage(core: Core, end: str) -> None:
    client = core.client(persistent=True)
    client.call("queue.declare", queue="q", durable=True)
    client.call("queue.declare", queue="full", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    client.call("tx.select")
    client.publish("", "q", BODY)
    assert live(core) > 50
    if end == "channel.close":
        client.send(end, reply_code=200, reply_text="", class_id=0, method_id=0)
    elif end == "lost":
        client.connection.lost("gone")
        core.turn()
    elif end == "refused":
        client.publish("", "full", b"x")
        assert client.call("tx.commit").name == "channel.close"
    else:
        client.call(end)
    assert live(core) == 0


def test_what_no_queue_takes_at_the_commit_is_garbage_in_the_log(core: Core) -> None:
    client = core.client(persistent=True)
    client.call("queue.declare", queue="q", durable=True)
    client.call("tx.select")
    client.publish("", "q", BODY)
    core.client().call("queue.delete", queue="q")
    assert live(core) > 50
    assert client.call("tx.commit").name == "tx.commit-ok"
    assert live(core) == 0


# --- streams


def test_a_stream_reads_no_more_than_some_octets_at_a_time_and_its_reader_gets_all(core: Core) -> None:
    client = core.client(persistent=True)
    client.call("queue.declare", queue="s", durable=True, arguments={"x-queue-type": "stream"})
    bodies = [b"%d" % number * (1 << 20) for number in range(10)] + [b"x" * (READ_BYTES + 1), b"short", b"shorter"]
    for body in bodies:
        client.publish("", "s", body)
    for _ in range(2):  # what is in memory, then what is on disk
        stream = core.queue("s")
        assert isinstance(stream, StreamQueue)
        at = 0
        while at < len(bodies):
            some = stream.read_messages(at, 128)
            assert some and (len(some) == 1 or sum(message.size for message in some) <= READ_BYTES)
            at += len(some)
        assert stream.read_messages(11, 128)[0].size == 5
        reader = core.client()
        reader.call("basic.qos", prefetch_count=100)
        reader.call("basic.consume", queue="s", arguments={"x-stream-offset": "first"})
        for _ in range(len(bodies)):
            advance(core, 1)
        assert [got.body for got in reader.deliveries()] == bodies
        core.restart()
