"""Bytes that turned on the disk: noticed at every read, named, kept out of delivery, and in nobody's way."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.support import web
from warrenmq.cli.main import build_app
from warrenmq.client import Connection
from warrenmq.client import Properties as Basic
from warrenmq.log.files import Files
from warrenmq.testing import Broker, FaultyDisk
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.wire.fields import from_python

COUNT = 400
MANY = 1 << 40  # as if other queues had filled the memory: small windows


def rot(folder: Path, *bodies: bytes, files: str = "segment-*.log") -> None:
    """Turn a bit of each of these bodies, wherever it stands."""
    for body in bodies:
        found = 0
        for path in folder.glob(files):
            data = path.read_bytes()
            at = data.find(body)
            while at >= 0:
                found += 1
                with path.open("r+b") as file:
                    file.seek(at + 1)
                    file.write(bytes([data[at + 1] ^ 1]))
                at = data.find(body, at + 1)
        assert found, f"{body!r} is nowhere in {folder}"


def body(number: int) -> bytes:
    return b"<message %05d>" % number


def filled(folder: Path, count: int = COUNT, arguments: dict[str, object] | None = None, **properties: Any) -> Core:
    core = Core(folder)
    core.broker.services.windowed = MANY
    client = core.client(persistent=True)
    client.open()
    client.declare("q", True, arguments)
    client.feed(b"".join(client.published("", "q", body(n), **properties) for n in range(count)))
    core.log.flush()
    return core


def consume(core: Core, no_ack: bool = False, prefetch: int = 0) -> tuple[CoreClient, list[bytes]]:
    client = core.client(persistent=True)
    client.open()
    if prefetch:
        client.send("basic.qos", prefetch_count=prefetch)
    client.send("basic.consume", queue="q", consumer_tag="reader", no_ack=no_ack)
    return client, client.bodies()


def killed(core: Core, folder: Path) -> Core:
    core.turn()
    core.log.flush()
    core.crash()
    return Core(folder)


def stopped(core: Core, folder: Path) -> Core:
    core.stop()
    return Core(folder)


STARTS: list[Callable[[Core, Path], Core]] = [stopped, killed]
ROTTEN = [(0,), (100,), (398,), (5, 6, 7, 300), tuple(range(64, 390))]


def ends(rotten: tuple[int, ...]) -> str:
    return f"{rotten[0]}-{rotten[-1]}"


def others(*rotten: int, count: int = COUNT) -> list[bytes]:
    return [body(n) for n in range(count) if n not in rotten]


@pytest.mark.parametrize("rotten", [rotten for rotten in ROTTEN if rotten[0] > 63], ids=ends)
def test_a_body_that_turned_while_it_was_paged_out_is_not_delivered_and_all_others_are(
    tmp_path: Path, rotten: tuple[int, ...]
) -> None:
    core = filled(tmp_path)
    assert sum(fifo.paged for fifo in core.classic("q")._order.fifos) > 100
    rot(tmp_path, *(body(n) for n in rotten))
    client, told = consume(core)
    assert told == others(*rotten)
    named = core.notes.named("message_damaged")
    assert [(one["queue"], one["vhost"], one["place"]) for one in named] == [
        ("q", "/", f"segment 1, record {n}") for n in rotten
    ]
    client.publish("", "q", b"later")
    assert client.bodies() == [b"later"], "the consumer goes on"
    assert core.queue("q").ready == 0 and core.broker.services.damaged.count() == len(rotten)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("rotten", ROTTEN, ids=ends)
def test_a_body_that_turned_between_two_starts_is_not_delivered_and_all_others_are(
    tmp_path: Path, rotten: tuple[int, ...], start: Callable[[Core, Path], Core]
) -> None:
    core = filled(tmp_path)
    client = core.client(persistent=True)
    client.open()
    client.publish("", "q", body(COUNT))  # a later commit, so that it is known that the first was synced
    if start is stopped:
        core.stop()
        rot(tmp_path, *(body(n) for n in rotten))
        core = Core(tmp_path)
        assert core.recovered.clean
    else:
        core.log.flush()
        core.crash()
        rot(tmp_path, *(body(n) for n in rotten))
        core = Core(tmp_path)
    _, told = consume(core)
    assert told == others(*rotten, count=COUNT + 1)
    assert core.broker.services.damaged.count() == len(rotten)
    places = {one["place"] for one in core.notes.named("message_damaged")}
    assert places == {f"segment 1, record {n}" for n in rotten}
    assert all("q" in str(one["queue"]) for one in core.notes.named("message_damaged"))


@pytest.mark.parametrize("start", STARTS)
def test_it_stays_kept_out_over_restarts_until_it_is_dropped_and_then_it_is_gone(
    tmp_path: Path, start: Callable[[Core, Path], Core]
) -> None:
    core = filled(tmp_path)
    rot(tmp_path, body(200))
    _, told = consume(core, no_ack=True)
    assert told == others(200)
    for _ in range(2):
        core = start(core, tmp_path)
        assert consume(core, no_ack=True)[1] == []
        assert core.broker.services.damaged.count() == 1
    (damage,) = core.broker.services.damaged.owners.values()
    core.broker.begin_turn()
    assert not core.broker.services.damaged.drop("7-7") and not core.broker.services.damaged.drop("log-5")
    assert core.broker.services.damaged.drop(damage.id_of(next(iter(damage.kept))))
    core.broker.end_turn()
    assert core.broker.services.damaged.count() == 0
    core = start(core, tmp_path)
    assert consume(core)[1] == [] and core.broker.services.damaged.count() == 0


@pytest.mark.parametrize("start", STARTS)
def test_what_is_damaged_goes_with_its_queue(tmp_path: Path, start: Callable[[Core, Path], Core]) -> None:
    core = filled(tmp_path)
    rot(tmp_path, body(200))
    client, _ = consume(core, no_ack=True)
    client.send("queue.delete", queue="q")
    assert core.broker.services.damaged.count() == 0 and not core.log.damage.known
    core = start(core, tmp_path)
    assert core.log.find(1).live == 0


def test_a_bad_sector_is_that_message_s_alone(tmp_path: Path) -> None:
    class Failing(Files):
        bad = -1

        def read(self, descriptor: int, length: int, offset: int) -> bytes:
            if offset <= self.bad < offset + length:
                raise OSError(errno.EIO, "Input/output error")
            return super().read(descriptor, length, offset)

    filled(tmp_path).stop()
    files = Failing()
    core = Core(tmp_path, files)
    files.bad = (tmp_path / "segment-0000000001.log").read_bytes().index(body(377))
    assert consume(core)[1] == others(377)
    (named,) = core.notes.named("message_damaged")
    assert named["reason"] == "the disk says: Input/output error"


def test_a_spilled_message_that_turned_is_not_delivered(tmp_path: Path) -> None:
    core = Core(tmp_path)
    core.broker.services.windowed = MANY
    core.broker.services.pressure.memory_half_full = True
    client = core.client(persistent=True)
    client.open()
    client.declare("q", False)
    client.feed(b"".join(client.published("", "q", body(n), delivery_mode=1) for n in range(COUNT)))
    core.transient.flush()
    rot(tmp_path, body(300), files="spill-*")
    assert consume(core)[1] == others(300)
    (named,) = core.notes.named("message_damaged")
    assert named["queue"] == "q" and "spilled message" in str(named["place"])
    (damage,) = core.broker.services.damaged.owners.values()
    assert core.broker.services.damaged.drop(str(named["id"])) and not damage.kept


@pytest.mark.parametrize("start", STARTS)
def test_a_long_body_that_turned_is_not_delivered(tmp_path: Path, start: Callable[[Core, Path], Core]) -> None:
    core = Core(tmp_path)
    client = core.client(persistent=True)
    client.open()
    client.declare("q")
    for n in range(3):
        client.publish("", "q", b"%d" % n * 5_000_000 + body(n))
    client.publish("", "q", b"end")
    core.log.flush()
    if start is stopped:
        core.stop()
    else:
        core.crash()
    rot(tmp_path, body(1))
    core = Core(tmp_path)
    _, told = consume(core)
    assert [one[-1:] for one in told] == [b">", b">", b"d"] and told[1].startswith(b"2")
    assert core.broker.services.damaged.count() == 1


def test_what_comes_back_from_a_consumer_and_cannot_be_read_again_is_set_aside(tmp_path: Path) -> None:
    count = 8300  # beyond what is kept in memory while it is with consumers
    core = filled(tmp_path, count)
    client, told = consume(core)
    assert len(told) == count
    rot(tmp_path, body(8250), body(8260))
    client.send("basic.reject", delivery_tag=8251, requeue=True)
    client.send("basic.nack", delivery_tag=0, multiple=True, requeue=True)
    assert client.bodies() == [body(n) for n in range(count) if n not in (8250, 8260)]
    assert core.broker.services.damaged.count() == 2


@pytest.mark.parametrize("queue_type", ["classic", "quorum"])
def test_a_message_that_cannot_be_dead_lettered_because_it_is_damaged_is_kept(tmp_path: Path, queue_type: str) -> None:
    arguments: dict[str, object] = {
        "x-queue-type": queue_type,
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": "dead",
    }
    count = 8300
    core = filled(tmp_path, count, arguments)
    client, told = consume(core, prefetch=10_000)
    assert len(told) == count
    client.declare("dead")
    rot(tmp_path, body(8250))
    client.send("basic.nack", delivery_tag=0, multiple=True, requeue=False)
    assert core.ready("dead") == count - 1
    assert core.broker.services.damaged.count() == 1


def test_a_stream_is_read_on_behind_what_is_damaged(tmp_path: Path) -> None:
    core = Core(tmp_path)
    client = core.client(persistent=True)
    client.open()
    client.declare("q", True, {"x-queue-type": "stream"})
    client.feed(b"".join(client.published("", "q", body(n)) for n in range(300)))
    core.stop()
    rot(tmp_path, body(0), body(100), body(101), body(299))
    core = Core(tmp_path)
    client = core.client(persistent=True)
    client.open()
    client.send("basic.qos", prefetch_count=1000)
    for _ in range(2):
        client.send("basic.consume", queue="q", arguments=from_python({"x-stream-offset": "first"}), consumer_tag="r")
        assert client.bodies() == others(0, 100, 101, 299, count=300)
        client.send("basic.cancel", consumer_tag="r")
    assert core.broker.services.damaged.count() == 4
    core.stop()
    core = Core(tmp_path)
    assert len(core.queue("q").logged_addresses()) == 300, "its offset stays"


@pytest.mark.parametrize("name", [{}, {"x-delay-id": "mine"}])
def test_delayed_messages_are_delivered_around_what_is_damaged(tmp_path: Path, name: dict[str, object]) -> None:
    core = Core(tmp_path)
    client = core.client(persistent=True)
    client.open()
    client.send(
        "exchange.declare",
        exchange="d",
        type="x-delayed-message",
        durable=True,
        arguments=from_python({"x-delayed-type": "fanout"}),
    )
    client.declare("q")
    client.send("queue.bind", queue="q", exchange="d")
    for n in range(5):
        own = {key: f"{value} {n}" for key, value in name.items()}
        client.publish("d", "", body(n), headers=from_python({"x-delay": 1000 + n, **own}))
    core.stop()
    rot(tmp_path, body(2))
    core = Core(tmp_path, clock=core.clock)
    core.advance(5000)
    assert consume(core)[1] == others(2, count=5)
    (named,) = core.notes.named("message_damaged")
    assert named["exchange"] == "d"
    for _ in range(2):
        core.stop()
        core = Core(tmp_path, clock=core.clock)
        core.advance(5000)
        assert core.broker.services.damaged.count() == 1
    assert core.broker.services.damaged.drop(str(core.notes.named("message_damaged")[0]["id"]))


def test_compaction_keeps_what_is_damaged_as_it_is_and_says_so(tmp_path: Path) -> None:
    from warrenmq.log.settings import LogSettings

    small = LogSettings(segment_bytes=20_000, checkpoint_bytes=1, slack_bytes=0, zero_ahead=False)
    core = Core(tmp_path, settings=small)
    client = core.client(persistent=True)
    client.open()
    client.declare("q")
    client.declare("kept")
    for n in range(COUNT):
        client.publish("", "kept" if n % 50 == 7 else "q", body(n))
    core.log.flush()
    rot(tmp_path, body(57), body(107))
    consume(core, no_ack=True)
    core.log.flush()
    while core.log.maintain(100):
        pass
    assert core.log.maintenance.compactions > 0
    assert [str(one["queue"]) for one in core.notes.named("message_damaged")] == ["queue 'kept' in vhost '/'"] * 2
    core = killed(core, tmp_path)
    client = core.client(persistent=True)
    client.open()
    client.send("basic.consume", queue="kept", consumer_tag="reader")
    assert client.bodies() == [body(n) for n in range(7, COUNT, 50) if n not in (57, 107)]


# --- through the front doors


@pytest.fixture
def http() -> Iterator[web.Client]:
    with web.Client(auth=("guest", "guest")) as client:
        yield client


def warren(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(build_app(arguments[0]), list(arguments))
    return result.exit_code, result.output


def rotten_broker(folder: Path, count: int = 5, rotten: int = 2) -> Broker:
    """So many messages, one of them damaged."""
    broker = Broker(data_dir=folder, scrub_rate=0)
    with broker, Connection(broker.url) as connection:
        channel = connection.channel()
        channel.confirm_select()
        channel.queue_declare("q", durable=True)
        for n in range(count):
            channel.basic_publish("", "q", body(n), Basic(delivery_mode=2))
        assert channel.wait_for_confirms(60) == []
    rot(folder, body(rotten))
    return broker


OTHER_TWO = [body(3).decode(), body(4).decode()]


def taken(broker: Broker, count: int) -> list[bytes]:
    with Connection(broker.url) as connection:
        channel = connection.channel()
        found: list[bytes] = []
        while len(found) < count and (message := channel.basic_get("q", no_ack=True)) is not None:
            found.append(message.body)
        return found


def test_the_operator_sees_it_in_a_health_check_a_metric_and_a_list_and_drops_it(
    tmp_path: Path, http: web.Client
) -> None:
    broker = rotten_broker(tmp_path)
    with broker:
        api = f"{broker.http_url}/api"
        check = f"{api}/health/checks/log"
        assert taken(broker, 9) == others(2, count=5)
        answer = http.get(check)
        assert answer.status_code == 503 and "1 damaged messages" in answer.json()["reason"]
        assert http.get(f"{api}/health/checks/alarms").status_code == 200, "publishing goes on"
        assert "warren_damaged_messages 1.0\n" in http.get(f"{broker.http_url}/metrics").text
        (one,) = http.get(f"{api}/damaged").json()
        assert {key: one[key] for key in ("vhost", "kind", "owner", "place", "reason", "bytes")} == {
            "vhost": "/",
            "kind": "queue",
            "owner": "q",
            "place": "segment 1, record 2",
            "bytes": len(body(2)),
            "reason": "its checksum does not match",
        }
        assert http.delete(f"{api}/damaged/nonsense").status_code == 404
        assert http.delete(f"{api}/damaged/{one['id']}").status_code == 204
        assert http.get(f"{api}/damaged").json() == [] and http.get(check).status_code == 200
        assert "warren_damaged_messages 0.0\n" in http.get(f"{broker.http_url}/metrics").text


@pytest.mark.parametrize("way", ["move", "copy"])
def test_what_does_not_check_is_moved_and_copied_nowhere(tmp_path: Path, http: web.Client, way: str) -> None:
    broker = rotten_broker(tmp_path)
    with broker:
        api = f"{broker.http_url}/api"
        assert http.put(f"{api}/queues/%2F/other", json={"durable": True}).status_code == 201
        one = http.post(f"{api}/queues/%2F/q/{way}", json={"target": "other"}).json()
        while one["state"] == "running":
            one = http.get(f"{api}/transfers/%2F/{one['id']}").json()
        assert (one["state"], one["sent"], one["stayed"]) == ("done", 4, {"damaged on disk": 1}), one
        items = http.get(f"{api}/queues/%2F/other/peek").json()["items"]
        assert [item["payload"].encode() for item in items] == others(2, count=5)
        left = http.get(f"{api}/queues/%2F/q/peek").json()["items"]
        assert len(left) == (1 if way == "move" else 5)
        assert "damaged" in [item["state"] for item in left]


def test_whoever_looks_at_the_queue_sees_it_before_and_after_it_was_set_aside(tmp_path: Path, http: web.Client) -> None:
    broker = rotten_broker(tmp_path)
    with broker:
        peek = f"{broker.http_url}/api/queues/%2F/q/peek"
        before = http.get(peek).json()["items"]
        assert [item["state"] for item in before] == ["waiting", "waiting", "damaged", "waiting", "waiting"]
        assert [item["payload"] for item in before] == [body(0).decode(), body(1).decode(), "", *OTHER_TWO]
        assert taken(broker, 3) == others(2, count=4)
        page = http.get(peek).json()
        assert [(item["position"], item["state"]) for item in page["items"]] == [(3, "damaged"), (5, "waiting")]
        assert page["messages_held"] == 1
        (one,) = http.get(f"{broker.http_url}/api/damaged").json()
        assert page["items"][0]["held"] == {"reason": "its checksum does not match", "id": one["id"]}
        assert http.get(peek, params={"text": "message"}).json()["items"][0]["position"] == 5


def test_the_command_line_lists_and_drops(tmp_path: Path) -> None:
    broker = rotten_broker(tmp_path)
    with broker:
        url = broker.http_url.replace("//", "//guest:guest@")
        assert taken(broker, 9) == others(2, count=5)
        status, output = warren("damaged", "list", "--url", url)
        assert status == 0 and "queue 'q' in vhost '/': segment 1, record 2" in output
        assert warren("damaged", "drop", "--url", url)[0] == 2
        unknown = "warren damaged drop: there is no damaged message 9-9\n"
        assert warren("damaged", "drop", "9-9", "--url", url) == (2, unknown)
        status, output = warren("damaged", "drop", "--all", "--url", url)
        assert status == 0 and "dropped" in output
        assert warren("damaged", "list", "--url", url) == (0, "0 damaged messages\n")


def test_a_message_found_before_its_queue_came_to_it_can_be_dropped_too(tmp_path: Path, http: web.Client) -> None:
    broker = rotten_broker(tmp_path, 300, 290)  # beyond what a queue reads at once
    (tmp_path / "clean").unlink()  # as after a crash: the start scans
    with broker:
        (one,) = http.get(f"{broker.http_url}/api/damaged").json()
        assert (one["id"], one["owner"], one["position"]) == (f"log-{1 << 32 | 290}", "queue 'q' in vhost '/'", None)
        assert http.get(f"{broker.http_url}/api/health/checks/log").status_code == 503
        assert http.delete(f"{broker.http_url}/api/damaged/{one['id']}").status_code == 204
        assert http.get(f"{broker.http_url}/api/health/checks/log").status_code == 200
        assert taken(broker, 999) == others(290, count=300)
        assert http.get(f"{broker.http_url}/api/damaged").json() == []
    with broker:
        assert http.get(f"{broker.http_url}/api/damaged").json() == []


def test_a_leased_message_that_is_damaged_leaves_its_lease(tmp_path: Path, http: web.Client) -> None:
    broker = rotten_broker(tmp_path)
    with broker, Connection(broker.url) as connection:
        queue = f"{broker.http_url}/api/queues/%2F/q"
        lease = http.post(f"{queue}/leases", json={"count": 5, "owner": "me"}).json()
        channel = connection.channel()
        channel.basic_consume("q", no_ack=True, arguments={"x-lease": lease["id"]})
        found = []
        for message in channel.messages(timeout=60):
            found.append(message.body)
            if len(found) == 4:
                break
        assert found == others(2, count=5)
        assert http.post(f"{queue}/leases/{lease['id']}/ack", json={}).status_code == 200
        (one,) = http.get(f"{broker.http_url}/api/damaged").json()
        assert one["owner"] == "q" and one["position"] == 3
        assert http.get(queue).json()["messages"] == 0


def test_where_says_of_a_message_that_was_damaged_under_its_lease_that_it_is(tmp_path: Path, http: web.Client) -> None:
    pytest.importorskip("pyarrow")
    broker = Broker(data_dir=tmp_path, scrub_rate=0, journal="on")
    with broker, Connection(broker.url) as connection:
        channel = connection.channel()
        channel.confirm_select()
        channel.queue_declare("q", durable=True)
        for n in range(5):
            channel.basic_publish("", "q", body(n), Basic(delivery_mode=2, message_id=f"m{n}"))
        assert channel.wait_for_confirms(60) == []
    rot(tmp_path, body(2))
    with broker:
        queue = f"{broker.http_url}/api/queues/%2F/q"
        lease = http.post(f"{queue}/leases", json={"count": 5, "owner": "me"}).json()
        assert http.delete(f"{queue}/leases/{lease['id']}").status_code in (200, 204)
        (one,) = http.get(f"{broker.http_url}/api/damaged").json()

        def where(id: str) -> tuple[str, str]:
            url = broker.http_url.replace("http://", "http://guest:guest@")
            return http.get(f"{broker.http_url}/api/messages?message_id={id}").text, warren("where", id, "--url", url)[
                1
            ]

        until(lambda: '"damaged_id"' in where("m2")[0])
        said = where("m2")[1]
        assert "damaged on disk, and set aside in queue 'q': its checksum does not match; " in said
        assert f"`warren damaged drop {one['id']}` gives it up" in said
        assert "waiting in queue 'q'" in where("m3")[1]
        assert http.delete(f"{broker.http_url}/api/damaged/{one['id']}").status_code == 204
        assert '"damaged_id"' not in where("m2")[0]


def test_a_released_lease_gives_back_all_but_what_is_damaged(tmp_path: Path, http: web.Client) -> None:
    broker = rotten_broker(tmp_path)
    with broker:
        queue = f"{broker.http_url}/api/queues/%2F/q"
        lease = http.post(f"{queue}/leases", json={"count": 5, "owner": "me"}).json()
        assert http.delete(f"{queue}/leases/{lease['id']}").status_code in (200, 204)
        assert taken(broker, 9) == others(2, count=5)
        assert len(http.get(f"{broker.http_url}/api/damaged").json()) == 1


def until(question: Callable[[], bool]) -> None:
    import time

    for _ in range(6000):
        if question():
            return
        time.sleep(0.01)
    raise AssertionError("it did not come about")


def test_the_scrub_finds_what_nobody_asked_for(tmp_path: Path, http: web.Client) -> None:
    broker = Broker(data_dir=tmp_path, scrub_rate="100MB", scrub_interval=0.01)
    with broker, Connection(broker.url) as connection:
        channel = connection.channel()
        channel.confirm_select()
        channel.queue_declare("q", durable=True)
        for n in range(50):
            channel.basic_publish("", "q", body(n), Basic(delivery_mode=2))
        assert channel.wait_for_confirms(60) == []
        metrics = f"{broker.http_url}/metrics"

        def passes() -> int:
            found = re.search(r"^warren_scrub_passes(?:_total)? (\d+)", http.get(metrics).text, re.M)
            assert found is not None
            return int(found[1])

        before = passes()
        until(lambda: passes() > before + 1)
        assert http.get(f"{broker.http_url}/api/damaged").json() == []
        rot(tmp_path, body(20))
        until(lambda: http.get(f"{broker.http_url}/api/damaged").json() != [])
        (one,) = http.get(f"{broker.http_url}/api/damaged").json()
        assert one["place"].startswith("segment ") and "'q'" in one["owner"]
        assert http.get(f"{broker.http_url}/api/health/checks/log").status_code == 503
        assert taken(broker, 99) == [body(n) for n in range(50)], "what memory has is delivered: it is not damaged"
        assert http.get(f"{broker.http_url}/api/damaged").json() == [], "and then nobody holds it any more"


def test_the_scrub_keeps_to_its_rate_and_its_interval(tmp_path: Path) -> None:
    """On the clock that is handed in: so many bytes, then as much time as they are worth."""
    core = filled(tmp_path, 5000)
    core.log.flush()
    scrub = core.log.scrub
    end = int(core.log.find(1).end)
    now, rate = 0, 10_000
    waits = []
    while scrub.passes == 0:
        wait = int(scrub.step(now, rate, 1_000_000))
        waits.append((now, int(scrub.bytes)))
        now += max(wait, 1)
    assert scrub.bytes == end
    assert all(read <= rate * (at / 1000 + 1) + 600_000 for at, read in waits), "one batch ahead at most"
    assert now >= 1000 * (end - 600_000) // rate
    began = 0
    while scrub.passes == 1 and now < 5_000_000:
        before = scrub.bytes
        now += max(int(scrub.step(now, rate, 1_000_000)), 1)
        if scrub.bytes > before and not began:
            began = now
    assert began >= 1_000_000 and scrub.passes == 2


def test_scrub_settings_are_read_from_the_configuration_file(tmp_path: Path) -> None:
    from warrenmq.server.config import SettingsError, load

    config = tmp_path / "warren.toml"
    config.write_text('scrub_rate = "2MiB"\nscrub_interval = 60\n')
    found = load({"config": str(config)}, {})
    assert (found.scrub_rate, found.scrub_interval) == (2 << 20, 60.0)
    config.write_text("scrub_rate = -1\n")
    with pytest.raises(SettingsError, match="scrub_rate: -1"):
        load({"config": str(config)}, {})


def test_verify_works_beside_a_running_broker(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with Broker(data_dir=folder, scrub_rate=0) as broker, Connection(broker.url) as connection:
        channel = connection.channel()
        channel.confirm_select()
        channel.queue_declare("q", durable=True)
        for n in range(50):
            channel.basic_publish("", "q", body(n), Basic(delivery_mode=2))
        assert channel.wait_for_confirms(60) == []
        status, output = warren("log", "verify", str(folder))
        assert status == 0 and "beside a running broker: 1 segments" in output and "all of it checks" in output
        channel.basic_publish("", "q", b"a later commit", Basic(delivery_mode=2))
        assert channel.wait_for_confirms(60) == []
        rot(folder, body(33))
        status, output = warren("log", "verify", str(folder))
        assert status == 1 and "damaged: segment 1, record 33\n" in output and "1 messages do not check" in output
    status, output = warren("log", "verify", str(folder))
    assert status == 1 and "damaged: segment 1, record 33, held by queue 'q' in vhost '/'" in output


def test_a_disk_that_fails_while_damaged_messages_are_about_changes_nothing(tmp_path: Path) -> None:
    disk = FaultyDisk()
    filled(tmp_path).stop()
    rot(tmp_path, body(10))
    core = Core(tmp_path, disk)
    client, told = consume(core, prefetch=50)
    assert len(told) == 50
    disk.fail("sync")
    client.publish("", "q", b"perhaps")
    core.log.flush()
    assert core.broker.services.pressure.log_failing and core.broker.services.damaged.count() == 1
    client.send("basic.ack", delivery_tag=0, multiple=True)
    client.send("basic.qos", prefetch_count=1000)
    client.send("basic.consume", queue="q", consumer_tag="another")
    assert len(told) + len(client.bodies()) == COUNT - 1
    disk.repair()
    core.retry()
    assert core.broker.services.damaged.drop(str(core.notes.named("message_damaged")[0]["id"]))


def test_a_backup_of_a_running_broker_says_how_many_messages_are_damaged_and_refuses_its_own_folder(
    tmp_path: Path, http: web.Client
) -> None:
    folder = tmp_path / "data"
    with rotten_broker(folder) as broker:
        url = f"{broker.http_url}/api/backup"
        (tmp_path / "link").symlink_to(folder)
        for target in (folder, folder / "copy", tmp_path / "link" / "copy"):
            answer = http.post(url, json={"folder": str(target)})
            assert answer.status_code == 400, answer.text
            assert answer.json()["reason"].endswith("a backup goes to a folder of its own, outside")
        answer = http.post(url, json={"folder": str(tmp_path / "copy")})
        assert answer.status_code == 201 and answer.json()["damaged"] == 1
        assert (tmp_path / "copy").stat().st_mode & 0o777 == 0o700
