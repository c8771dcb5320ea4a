"""Leases: held, read again and again, settled by id, back in place when they run out, and all of it durable."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.limits.gate import advance
from tests.rules.test_slices import publish
from tests.support import web
from warrenmq.broker.queue.leases import TAKEN
from warrenmq.cli.ctl.command import main
from warrenmq.client import ChannelClosed, Connection
from warrenmq.client import Properties as Basic
from warrenmq.testing import Broker
from warrenmq.testing.core import Core

PERSISTENT = Basic(delivery_mode=2)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(clock="virtual", data_dir=tmp_path) as broker:
        yield broker


class Queue:
    """A queue with an AMQP channel and the lease API."""

    def __init__(self, broker: Broker, durable: bool = True, **arguments: object) -> None:
        self.broker = broker
        self.connect()
        self.channel.queue_declare("q", durable=durable, arguments=arguments)
        self.channel.confirm_select()

    def connect(self) -> None:
        self.connection = Connection(self.broker.url)
        self.channel = self.connection.channel()
        self.http = web.Client(base_url=f"{self.broker.http_url}/api/queues/%2F/q", auth=("guest", "guest"))

    def publish(self, *bodies: str, properties: Basic = PERSISTENT) -> None:
        for body in bodies:
            self.channel.basic_publish("", "q", body.encode(), properties)
        self.channel.wait_for_confirms(60)

    def lease(self, **wanted: object) -> dict[str, Any]:
        answer = self.http.post("/leases", json=wanted)
        assert answer.status_code == 201, answer.text
        return dict(answer.json())

    def post(self, lease: str, verb: str, **wanted: object) -> httpx.Response:
        return self.http.post(f"/leases/{lease}/{verb}", json=wanted)

    def read(self, lease: str, count: int) -> list[tuple[str, bool]]:
        channel = self.connection.channel()
        channel.basic_consume("q", no_ack=True, arguments={"x-lease": lease})
        found: list[tuple[str, bool]] = []
        for message in channel.messages(timeout=60):
            found.append((message.body.decode(), message.redelivered))
            if len(found) == count:
                break
        channel.close()
        return found

    def waiting(self) -> list[tuple[str, bool]]:
        found = []
        while (message := self.channel.basic_get("q", no_ack=True)) is not None:
            found.append((message.body.decode(), message.redelivered))
        return found

    def counts(self) -> tuple[int, int]:
        shown = self.http.get("").json()
        return shown["messages_ready"], shown["messages_unacknowledged"]


def test_leased_messages_are_out_of_reach_and_count_as_unacknowledged(broker: Broker) -> None:
    q = Queue(broker)
    q.publish("a", "b", "c")
    lease = q.lease(count=2, owner="me", key="1")
    assert lease["count"] == 2
    assert q.counts() == (1, 2)
    assert q.waiting() == [("c", False)]


def test_a_lease_is_read_again_and_again_from_any_connection(broker: Broker) -> None:
    q = Queue(broker)
    q.publish("a", "b", "c")
    lease = q.lease(count=3)["id"]
    assert q.read(lease, 3) == [("a", False), ("b", False), ("c", False)]
    q.connect()
    assert q.read(lease, 3) == [("a", False), ("b", False), ("c", False)]
    assert q.counts() == (0, 3)


def test_the_same_key_gives_the_same_lease(broker: Broker) -> None:
    q = Queue(broker)
    q.publish("a", "b")
    first = q.lease(count=1, owner="me", key="k")
    assert q.lease(count=1, owner="me", key="k")["id"] == first["id"]
    assert q.lease(count=1, owner="other", key="k")["id"] != first["id"]
    assert [one["id"] for one in q.http.get("/leases?owner=me").json()] == [first["id"]]


def test_acking_settles_for_good_in_whole_or_by_range(broker: Broker) -> None:
    q = Queue(broker)
    q.publish("a", "b", "c", "d")
    lease = q.lease(count=4)["id"]
    assert q.post(lease, "ack", first=1, last=2).json() == {"settled": 2, "left": 2}
    assert q.read(lease, 2) == [("a", False), ("d", False)]
    assert q.post(lease, "ack").json() == {"settled": 2, "left": 0}
    assert q.counts() == (0, 0)
    assert q.post(lease, "ack").status_code == 404  # settled already: a commit may be repeated
    broker.restart()
    q.connect()
    assert q.waiting() == []


def test_a_lease_that_runs_out_goes_back_to_its_place_and_settling_it_is_too_late(broker: Broker) -> None:
    q = Queue(broker)
    q.publish("a", "b", "c")
    lease = q.lease(count=2, ttl_ms=60_000)["id"]
    broker.advance(59)
    assert q.counts() == (1, 2)
    broker.advance(2)
    assert q.counts() == (3, 0)
    assert q.post(lease, "ack").status_code == 410
    broker.restart()
    q.connect()
    assert q.post(lease, "ack").status_code == 410
    assert q.waiting() == [("a", True), ("b", True), ("c", False)]


def test_renewing_prolongs_a_lease(broker: Broker) -> None:
    q = Queue(broker)
    q.publish("a")
    lease = q.lease(count=1, ttl_ms=60_000)["id"]
    broker.advance(50)
    assert q.post(lease, "renew", ttl_ms=60_000).status_code == 200
    broker.advance(50)
    assert q.counts() == (0, 1)


def test_released_and_nacked_messages_go_back_flagged_redelivered(broker: Broker) -> None:
    q = Queue(broker)
    q.publish("a", "b", "c")
    lease = q.lease(count=3)["id"]
    assert q.post(lease, "nack", first=1, last=1).json() == {"settled": 1, "left": 2}
    assert q.http.delete(f"/leases/{lease}").json() == {"settled": 2, "left": 0}
    assert q.waiting() == [("a", True), ("b", True), ("c", True)]


def test_a_nack_without_requeue_dead_letters(broker: Broker) -> None:
    q = Queue(broker, **{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})  # type: ignore[arg-type]
    q.channel.queue_declare("dead", durable=True)
    q.publish("a")
    q.post(q.lease(count=1)["id"], "nack", requeue=False)
    message = q.channel.basic_get("dead", no_ack=True)
    assert message is not None and message.body == b"a"
    assert q.counts() == (0, 0)


def test_a_lease_survives_a_restart_with_exactly_its_messages(broker: Broker) -> None:
    q = Queue(broker)
    q.publish("a", "b", "c", "d")
    lease = q.lease(count=3, owner="me", key="k")["id"]
    q.post(lease, "ack", first=0, last=0)
    broker.restart()
    q.connect()
    assert q.counts() == (1, 2)
    assert q.read(lease, 2) == [("b", False), ("c", False)]
    assert q.lease(count=9, owner="me", key="k")["id"] == lease
    assert q.post(lease, "ack").json() == {"settled": 2, "left": 0}
    assert q.waiting() == [("d", False)]


def test_ttl_and_limits_do_not_touch_what_is_leased(broker: Broker) -> None:
    q = Queue(broker, **{"x-message-ttl": 1000, "x-max-length": 2})  # type: ignore[arg-type]
    q.publish("a", "b")
    lease = q.lease(count=2)["id"]
    q.publish("c", "d", "e")
    broker.advance(10)
    assert q.counts() == (0, 2)
    assert q.read(lease, 2) == [("a", False), ("b", False)]


def test_transient_messages_are_leased_too(broker: Broker) -> None:
    q = Queue(broker, durable=False)
    q.publish("a", "b", properties=Basic())
    lease = q.lease(count=2)["id"]
    assert q.read(lease, 2) == [("a", False), ("b", False)]
    assert q.read(lease, 2) == [("a", False), ("b", False)]
    q.post(lease, "ack", first=0, last=0)
    q.http.delete(f"/leases/{lease}")
    assert q.waiting() == [("b", True)]


def test_bytes_bound_a_lease_but_it_never_starves(broker: Broker) -> None:
    q = Queue(broker)
    q.publish("x" * 100, "y" * 100, "z" * 100)
    assert q.lease(bytes=250)["count"] == 2
    assert q.lease(bytes=1)["count"] == 1
    assert q.lease(count=5)["count"] == 0


def test_a_lease_reaches_into_what_is_paged_out(broker: Broker) -> None:
    q = Queue(broker)
    q.channel.publish_many("", "q", [f"{i}".encode() for i in range(9000)], PERSISTENT)
    q.channel.wait_for_confirms(60)
    lease = q.lease(count=8500)["id"]
    assert [body for body, _ in q.read(lease, 8500)] == [str(i) for i in range(8500)]
    q.http.delete(f"/leases/{lease}")
    assert [body for body, _ in q.waiting()] == [str(i) for i in range(9000)]


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({}, "give count, bytes or both"),
        ({"count": 0}, "count: 0"),
        ({"bytes": -1}, "bytes: -1"),
        ({"count": 1, "ttl_ms": 0}, "ttl_ms: 0"),
        ({"count": "many"}, "count"),
    ],
)
def test_a_wrong_request_is_told_what_is_wrong(broker: Broker, wanted: dict[str, object], said: str) -> None:
    q = Queue(broker)
    answer = q.http.post("/leases", json=wanted)
    assert answer.status_code == 400
    assert said in answer.text


def test_an_unknown_lease_is_named(broker: Broker) -> None:
    q = Queue(broker)
    assert q.post("nonsense", "ack").status_code == 404
    with pytest.raises(ChannelClosed, match="no lease 'nonsense'"):
        q.channel.basic_consume("q", arguments={"x-lease": "nonsense"})


def test_a_reader_that_expects_more_messages_than_a_lease_has_left_is_refused(broker: Broker) -> None:
    q = Queue(broker)
    q.publish("a", "b")
    lease = q.lease(count=2)["id"]
    q.post(lease, "ack", first=0, last=0)
    with pytest.raises(ChannelClosed, match="has 1 messages left, x-lease-left is 2"):
        q.connection.channel().basic_consume("q", arguments={"x-lease": lease, "x-lease-left": 2})
    q.connection.channel().basic_consume("q", no_ack=True, arguments={"x-lease": lease, "x-lease-left": 1})


def test_reading_a_lease_needs_read_permission_on_the_queue(broker: Broker) -> None:
    q = Queue(broker)
    q.publish("a")
    admin = web.Client(base_url=f"{broker.http_url}/api", auth=("guest", "guest"))
    admin.put("/users/eve", json={"password": "eve", "tags": "management"})
    admin.put("/permissions/%2F/eve", json={"configure": ".*", "write": ".*", "read": "^$"})
    answer = web.post(f"{broker.http_url}/api/queues/%2F/q/leases", json={"count": 1}, auth=("eve", "eve"))
    assert answer.status_code == 401
    assert q.counts() == (1, 0)


def test_purging_and_deleting_say_how_many_messages_are_leased(
    broker: Broker, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    def ctl(*words: str) -> str:
        assert main(["--url", f"http://guest:guest@127.0.0.1:{broker.http_port}", "-q", *words]) == 0
        return capsys.readouterr().out.strip()

    q = Queue(broker)
    q.publish("a", "b", "c")
    assert q.http.delete("/contents").headers["warren-leased"] == "0"
    assert ctl("purge_queue", "q") == ""
    q.publish("a", "b", "c", "d")
    lease = q.lease(count=3)
    assert q.http.delete("/contents").headers["warren-leased"] == "3"
    assert "queue_purged_around_leases" in caplog.text and "leased=3" in caplog.text
    assert ctl("purge_queue", "q") == "3 leased messages stay with their leases"
    assert q.counts() == (0, 3) and len(q.read(lease["id"], 3)) == 3
    q.publish("e")
    assert ctl("delete_queue", "q") == "Queue was successfully deleted with 1 ready messages and 3 leased ones"
    assert "queue_deleted_with_leases" in caplog.text
    again = Queue(broker)
    again.publish("a", "b")
    again.lease(count=2)
    assert again.http.delete("").headers["warren-leased"] == "2"


@pytest.mark.parametrize("durable", [True, False])
def test_a_large_lease_is_filled_a_bounded_number_a_turn(broker: Broker, durable: bool) -> None:
    q = Queue(broker, durable)
    count = 2 * TAKEN + 100
    mode = 2 if durable else 1
    q.channel.publish_many("", "q", [b"%d" % number for number in range(count)], Basic(delivery_mode=mode))
    q.channel.wait_for_confirms(60)
    assert q.lease(count=count)["count"] == count
    assert q.counts() == (0, count)


def test_a_lease_is_taken_in_slices_and_whoever_asks_with_its_key_gets_all_of_it(tmp_path: Path) -> None:
    core = Core(tmp_path)
    client = core.client()
    client.call("queue.declare", queue="q", durable=True)
    count = 2 * TAKEN + 100
    publish(client, "q", range(count), delivery_mode=2)
    waiting = core.classic("q")
    core.broker.begin_turn()
    lease = waiting.leases.create(count - 50, -1, 60_000, "o", "k")
    core.broker.end_turn()
    turns = [0, int(lease.count())]
    assert waiting.leases.create(1, -1, 60_000, "o", "k") is lease
    while lease.filling:
        core.broker.begin_turn()
        waiting.leases.fill(lease)
        core.broker.end_turn()
        turns.append(int(lease.count()))
    assert max(after - before for before, after in zip(turns, turns[1:], strict=False)) <= TAKEN
    assert (turns[-1], int(waiting.ready)) == (count - 50, 50)
    core.restart(clean=False)
    (found,) = core.classic("q").leases.all()
    assert (int(found.left), int(core.queue("q").ready)) == (count - 50, 50)


@pytest.mark.parametrize("end", ["released", "deleted", "crash"])
def test_a_lease_that_ends_while_it_is_filled_strands_nothing(tmp_path: Path, end: str) -> None:
    core = Core(tmp_path)
    client = core.client()
    client.call("queue.declare", queue="q", durable=True)
    publish(client, "q", range(TAKEN + 100), delivery_mode=2)
    waiting = core.classic("q")
    core.broker.begin_turn()
    lease = waiting.leases.create(TAKEN + 100, -1, 60_000, "", "")
    core.broker.end_turn()
    assert lease.filling and lease.count() == TAKEN
    if end == "crash":
        core.restart(clean=False)
        (found,) = core.classic("q").leases.all()
        assert (int(found.left), int(core.queue("q").ready)) == (TAKEN, 100)
        return
    core.broker.begin_turn()
    if end == "released":
        waiting.leases.release(lease)
    else:
        waiting.vhost.remove_queue(waiting)
    waiting.leases.fill(lease)
    core.broker.end_turn()
    assert not lease.filling and lease.count() == TAKEN
    advance(core, 60_000)
    live = sum(int(segment.live) for segment in core.log.segments.values())
    assert live == (TAKEN + 100 if end == "released" else 0)
    if end == "released":
        assert (int(waiting.ready), int(waiting.unacked)) == (TAKEN + 100, 0)
