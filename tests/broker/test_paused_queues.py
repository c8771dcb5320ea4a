"""A paused queue takes messages and hands none out, whatever asks for them, until it is resumed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import web
from warrenmq.client import Connection
from warrenmq.client import Properties as Basic
from warrenmq.testing import Broker

PERSISTENT = Basic(delivery_mode=2)
KINDS: dict[str, dict[str, object]] = {
    "classic": {},
    "with priorities": {"x-max-priority": 3},
    "limited": {"x-max-length": 100},
    "quorum": {"x-queue-type": "quorum"},
    "stream": {"x-queue-type": "stream"},
}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(clock="virtual", data_dir=tmp_path) as broker:
        yield broker


class Paused:
    """A queue, a client, and the API."""

    def __init__(self, broker: Broker, **arguments: object) -> None:
        self.broker = broker
        self.connect()
        self.channel.queue_declare("q", durable=True, arguments=arguments)

    def connect(self) -> None:
        self.channel = Connection(self.broker.url).channel()
        self.channel.confirm_select()
        self.http = web.Client(base_url=f"{self.broker.http_url}/api/queues/%2F/q", auth=("guest", "guest"))

    def ask(self, verb: str) -> None:
        answer = self.http.put(f"/{verb}")
        assert answer.status_code == 204, answer.text

    def publish(self, *bodies: str) -> None:
        for body in bodies:
            self.channel.basic_publish("", "q", body.encode(), PERSISTENT)
        self.channel.wait_for_confirms(60)

    def state(self) -> tuple[str, int, int]:
        shown = self.http.get("").json()
        return shown["state"], shown["messages_ready"], shown["messages_unacknowledged"]

    def got(self) -> str | None:
        message = self.channel.basic_get("q", no_ack=True)
        return None if message is None else message.body.decode()


@pytest.mark.parametrize("kind", KINDS)
def test_a_consumer_of_a_paused_queue_gets_nothing_until_it_is_resumed_and_then_all_in_order(
    broker: Broker, kind: str
) -> None:
    q = Paused(broker, **KINDS[kind])
    q.channel.basic_qos(prefetch_count=10)
    offset: dict[str, object] = {"x-stream-offset": "first"} if kind == "stream" else {}
    q.channel.basic_consume("q", arguments=offset)
    q.ask("pause")
    q.publish("a", "b", "c")
    assert q.state()[0] == "paused" and q.state()[2] == 0
    q.ask("resume")
    found = []
    for message in q.channel.messages(timeout=60):
        found.append(message.body.decode())
        q.channel.basic_ack(message.delivery_tag)
        if len(found) == 3:
            break
    assert found == ["a", "b", "c"]
    assert q.state()[0] == "running"


def test_what_a_consumer_holds_stays_its_own_and_may_be_settled_while_the_queue_is_paused(broker: Broker) -> None:
    q = Paused(broker)
    q.publish("a", "b")
    q.channel.basic_qos(prefetch_count=1)
    q.channel.basic_consume("q")
    held = next(iter(q.channel.messages(timeout=60)))
    q.ask("pause")
    assert q.state() == ("paused", 1, 1)
    q.channel.basic_ack(held.delivery_tag)
    q.channel.queue_declare("q", passive=True)  # answered after the ack
    assert q.state() == ("paused", 1, 0)


def test_basic_get_and_leases_find_a_paused_queue_empty_while_peek_move_and_purge_go_on(broker: Broker) -> None:
    q = Paused(broker)
    q.publish("a", "b", "c")
    q.ask("pause")
    assert q.got() is None
    assert q.http.post("/leases", json={"count": 5}).json()["count"] == 0
    got = q.http.post("/get", json={"count": 5, "ackmode": "ack_requeue_false", "encoding": "auto"})
    assert got.json() == []
    assert [one["payload"] for one in q.http.get("/peek").json()["items"]] == ["a", "b", "c"]
    q.ask("resume")
    assert q.got() == "a"
    q.ask("pause")
    assert q.http.delete("/contents").status_code == 204
    assert q.state() == ("paused", 0, 0)


def test_a_durable_queue_is_paused_after_a_restart_and_one_declared_anew_is_not(broker: Broker) -> None:
    q = Paused(broker)
    q.publish("a")
    q.ask("pause")
    broker.restart()
    q.connect()
    assert q.state()[0] == "paused" and q.got() is None
    q.channel.queue_delete("q")
    q.channel.queue_declare("q", durable=True)
    assert q.state()[0] == "running"
    q.ask("pause")
    q.ask("resume")
    broker.restart()
    q.connect()
    assert q.state()[0] == "running"


def test_only_who_may_configure_a_queue_pauses_it(broker: Broker) -> None:
    q = Paused(broker)
    api = web.Client(base_url=f"{broker.http_url}/api", auth=("guest", "guest"))
    api.put("/users/reader", json={"password": "x", "tags": "management"})
    api.put("/permissions/%2F/reader", json={"configure": "^other$", "write": ".*", "read": ".*"})
    for verb in ("pause", "resume"):
        assert web.Client(auth=("reader", "x")).put(f"{q.http.base_url}{verb}").status_code == 401
    assert q.state()[0] == "running"
    api.put("/permissions/%2F/reader", json={"configure": "^q$", "write": "", "read": ""})
    assert web.Client(auth=("reader", "x")).put(f"{q.http.base_url}pause").status_code == 204
    assert q.state()[0] == "paused"
    assert api.put("/queues/%2F/none/pause").status_code == 404
