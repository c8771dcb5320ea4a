"""Dead letters: where they go, what is written on them, and how a circle ends."""

from __future__ import annotations

import pytest

from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient, Got
from warrenmq.wire.content import Properties
from warrenmq.wire.fields import from_python

pytestmark = pytest.mark.pure

NOW = 1_700_000_000  # the virtual clock's start, in seconds


@pytest.fixture
def client(core: Core) -> CoreClient:
    client = core.client()
    client.call("queue.declare", queue="dead")
    return client


def declare(client: CoreClient, name: str, dlx: str = "", key: str | None = "dead", **arguments: object) -> None:
    wanted: dict[str, object] = {"x-dead-letter-exchange": dlx}
    if key is not None:
        wanted["x-dead-letter-routing-key"] = key
    wanted |= {"x-" + name.replace("_", "-"): value for name, value in arguments.items()}
    assert client.call("queue.declare", queue=name, arguments=wanted).name == "queue.declare-ok"


def reject(client: CoreClient, name: str) -> Got:
    """Take the next message and refuse it."""
    got = client.call("basic.get", queue=name)
    client.send("basic.reject", delivery_tag=got["delivery_tag"])
    return got


def deaths(got: Got) -> list[dict[str, object]]:
    found = got.headers["x-death"]
    assert isinstance(found, list)
    return found


def test_a_rejected_message_is_dead_lettered_with_its_history(client: CoreClient) -> None:
    declare(client, "q")
    client.publish("", "q", b"body", Properties(content_type="text/plain", headers=from_python({"mine": 1})))
    reject(client, "q")
    got = client.call("basic.get", queue="dead")
    assert got.body == b"body" and got["exchange"] == "" and got["routing_key"] == "dead"
    assert got["redelivered"] is False
    assert got.properties is not None and got.properties.content_type == "text/plain"
    found = got.headers
    assert found["mine"] == 1
    assert found["x-first-death-queue"] == "q" and found["x-first-death-reason"] == "rejected"
    assert found["x-first-death-exchange"] == ""
    assert deaths(got) == [
        {"count": 1, "reason": "rejected", "queue": "q", "time": NOW, "exchange": "", "routing-keys": ["q"]}
    ]


def test_without_a_key_of_its_own_the_letter_keeps_all_its_keys(client: CoreClient) -> None:
    client.call("exchange.declare", exchange="dlx", type="direct")
    client.call("queue.declare", queue="b")
    client.call("queue.bind", queue="dead", exchange="dlx", routing_key="q")
    client.call("queue.bind", queue="b", exchange="dlx", routing_key="copy")
    declare(client, "q", "dlx", None)
    client.publish("", "q", b"x", Properties(headers=from_python({"CC": ["copy"]})))
    reject(client, "q")
    assert client.drain("dead") == ["x"]
    got = client.call("basic.get", queue="b")
    assert got["routing_key"] == "q" and deaths(got)[0]["routing-keys"] == ["q", "copy"]
    assert got.headers["CC"] == ["copy"]


def test_with_a_key_of_its_own_cc_is_taken_off(client: CoreClient) -> None:
    declare(client, "q")
    client.publish("", "q", b"x", Properties(headers=from_python({"CC": ["nowhere"]})))
    reject(client, "q")
    got = client.call("basic.get", queue="dead")
    assert "CC" not in got.headers and deaths(got)[0]["routing-keys"] == ["q", "nowhere"]


def test_bcc_routes_but_shows_nowhere(client: CoreClient) -> None:
    declare(client, "q")
    client.publish("", "nowhere", b"x", Properties(headers=from_python({"BCC": ["q"]})))
    reject(client, "q")
    got = client.call("basic.get", queue="dead")
    assert "BCC" not in got.headers and deaths(got)[0]["routing-keys"] == ["nowhere"]


def test_a_missing_exchange_drops_the_letter_and_one_declared_later_gets_the_next(client: CoreClient) -> None:
    declare(client, "q", "later", None)
    client.fill("q", "lost", "kept")
    reject(client, "q")
    client.call("exchange.declare", exchange="later", type="fanout")
    client.call("queue.bind", queue="dead", exchange="later")
    reject(client, "q")
    assert client.drain("dead") == ["kept"]


def test_a_chain_of_queues_is_written_down_newest_first_and_the_rest_turned_round(
    core: Core, client: CoreClient
) -> None:
    declare(client, "one", key="two", message_ttl=1000)
    declare(client, "two", key="three", max_length=0)
    declare(client, "three")
    client.fill("one", "x")
    core.advance(1000)
    reject(client, "three")
    got = client.call("basic.get", queue="dead")
    assert [(d["queue"], d["reason"], d["count"]) for d in deaths(got)] == [
        ("three", "rejected", 1),
        ("one", "expired", 1),
        ("two", "maxlen", 1),
    ]
    assert got.headers["x-first-death-queue"] == "one"
    assert deaths(got)[2]["time"] == NOW + 1


def test_a_message_that_goes_round_by_rejects_counts_its_rounds(client: CoreClient) -> None:
    declare(client, "work", key="retry")
    declare(client, "retry", key="work")
    client.fill("work", "x")
    for _ in range(3):
        reject(client, "work")
        reject(client, "retry")
    got = client.call("basic.get", queue="work")
    assert [(d["queue"], d["reason"], d["count"]) for d in deaths(got)] == [
        ("retry", "rejected", 3),
        ("work", "rejected", 3),
    ]


def test_the_usual_retry_circle_with_a_ttl_goes_on_because_it_contains_a_reject(core: Core, client: CoreClient) -> None:
    declare(client, "work", key="wait")
    declare(client, "wait", key="work", message_ttl=100)
    client.fill("work", "x")
    for _ in range(5):
        reject(client, "work")
        core.advance(100)
    got = client.call("basic.get", queue="work")
    assert [(d["queue"], d["count"]) for d in deaths(got)] == [("wait", 5), ("work", 5)]
    assert deaths(got)[0]["time"] == NOW, "the time of the first such death"


def test_a_circle_without_a_reject_ends_after_one_round(core: Core, client: CoreClient) -> None:
    declare(client, "a", key="b", message_ttl=10)
    declare(client, "b", key="a", message_ttl=10)
    client.fill("a", "x")
    core.advance(10)
    assert core.queue("b").ready == 1
    core.advance(10_000)
    assert (core.queue("a").ready, core.queue("b").ready) == (0, 0)


def test_a_circle_is_cut_for_its_queue_only_and_others_get_their_copy(core: Core, client: CoreClient) -> None:
    client.call("exchange.declare", exchange="dlx", type="fanout")
    declare(client, "a", "dlx", None, message_ttl=10)
    for name in ("a", "dead"):
        client.call("queue.bind", queue=name, exchange="dlx")
    client.fill("a", "x")
    core.advance(10)
    core.advance(10_000)
    assert core.queue("a").ready == 0
    assert client.drain("dead") == ["x"]


def test_a_letter_finds_its_way_through_exchanges_bound_to_each_other_once(client: CoreClient) -> None:
    for name in ("outer", "inner"):
        client.call("exchange.declare", exchange=name, type="fanout")
    client.call("exchange.bind", source="outer", destination="inner")
    client.call("exchange.bind", source="inner", destination="outer")
    client.call("queue.bind", queue="dead", exchange="inner")
    client.call("queue.bind", queue="dead", exchange="outer")
    declare(client, "q", "outer", None)
    client.fill("q", "x")
    reject(client, "q")
    assert client.drain("dead") == ["x"]


def test_a_deleted_or_purged_queue_writes_no_letters(client: CoreClient) -> None:
    declare(client, "q")
    client.fill("q", "a", "b")
    client.call("queue.purge", queue="q")
    client.fill("q", "c")
    client.call("queue.delete", queue="q")
    assert client.drain("dead") == []


def test_a_letter_keeps_its_priority(client: CoreClient) -> None:
    client.call("queue.declare", queue="sorted", arguments={"x-max-priority": 9})
    declare(client, "q", key="sorted")
    client.fill("q", "low", priority=1)
    client.fill("q", "high", priority=8)
    reject(client, "q")
    reject(client, "q")
    assert client.get("sorted", no_ack=True) == "high"


def test_letters_keep_the_order_in_which_they_died(client: CoreClient) -> None:
    declare(client, "q")
    client.fill("q", *"abcdef")
    for _ in range(6):
        client.call("basic.get", queue="q")
    client.take()
    client.send("basic.nack", delivery_tag=6, multiple=True)
    assert client.drain("dead") == list("abcdef")
