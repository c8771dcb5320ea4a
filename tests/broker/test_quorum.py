"""Quorum queues with one member: what their clients may expect, and honest about the replicas that are not there."""

from __future__ import annotations

import pytest

from warrenmq.broker.queue.paging import WINDOW
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.wire.content import Properties


def declare(client: CoreClient, **arguments: object) -> None:
    wanted = {"x-queue-type": "quorum", **arguments}
    assert client.call("queue.declare", queue="q", durable=True, arguments=wanted).name == "queue.declare-ok"


def test_failed_deliveries_are_counted_in_a_header(core: Core) -> None:
    client = core.client()
    declare(client)
    client.publish("", "q", b"m", Properties(message_id="1"))
    counts = []
    for _ in range(3):
        got = client.call("basic.get", queue="q")
        assert got.properties is not None and got.properties.message_id == "1"
        headers = got.properties.headers or {}
        counts.append(headers["x-delivery-count"].value if "x-delivery-count" in headers else None)
        client.send("basic.reject", delivery_tag=got["delivery_tag"], requeue=True)
    assert counts == [0, 1, 2]


def test_one_failure_too_many_is_a_dead_letter(core: Core) -> None:
    client = core.client()
    client.call("queue.declare", queue="dead")
    declare(client, **{"x-delivery-limit": 1, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    client.publish("", "q", b"m")
    for _ in range(2):
        got = client.call("basic.get", queue="q")
        client.send("basic.nack", delivery_tag=got["delivery_tag"], requeue=True)
    assert client.call("basic.get", queue="q").name == "basic.get-empty"
    dead = client.call("basic.get", queue="dead")
    assert dead.properties is not None and dead.properties.headers is not None
    assert dead.properties.headers["x-first-death-reason"].value == "delivery_limit"


def counts(client: CoreClient, times: int) -> list[tuple[str, object]]:
    """That many messages, each taken and kept, with their delivery counts."""
    found = []
    for _ in range(times):
        got = client.call("basic.get", queue="q")
        assert got.properties is not None and got.properties.headers is not None
        assert got["redelivered"] or got.properties.headers["x-delivery-count"].value == 0
        found.append((got.body.decode(), got.properties.headers["x-delivery-count"].value))
    return found


def fail(client: CoreClient, times: int) -> None:
    for _ in range(times):
        got = client.call("basic.get", queue="q")
        client.send("basic.nack", delivery_tag=got["delivery_tag"], requeue=True)


@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "crashed"])
@pytest.mark.parametrize("limit", [-1, 400])
def test_the_count_survives_a_restart_and_goes_on(core: Core, clean: bool, limit: int) -> None:
    client = core.client()
    declare(client, **({} if limit < 0 else {"x-delivery-limit": limit}))
    client.fill("q", "x")
    so_far = 0
    for failures in (3, 260, 300):  # beyond what fits beside a size, too
        fail(client, failures - so_far)
        core.restart(clean)
        client = core.client()
        assert counts(client, 1) == [("x", failures)]
        client.send("basic.nack", delivery_tag=1, requeue=True)
        so_far = failures + 1


@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "crashed"])
def test_what_went_to_the_end_is_there_after_a_restart(core: Core, clean: bool) -> None:
    client = core.client()
    declare(client)
    client.fill("q", *"1234")
    fail(client, 2)
    assert [body for body, _ in counts(client, 1)] == ["3"]
    core.restart(clean)  # 3 was with a client: known if that was told to go, else nobody knows how far it got
    found = counts(core.client(), 4)
    assert [body for body, _ in found] == ["3", "4", "1", "2"]
    assert dict(found) | {"3": 0} == {"1": 1, "2": 1, "3": 0, "4": 0}
    assert dict(found)["3"] == (1 if clean else 0)


def test_a_long_queue_counts_what_is_not_in_memory_too(core: Core) -> None:
    client = core.client()
    declare(client)
    for number in range(WINDOW + 100):
        client.publish("", "q", b"%d" % number)
    fail(client, 5)
    core.restart(clean=False)
    client = core.client()
    fail(client, 3)
    client.consume("q", no_ack=True)
    got = client.deliveries()
    bodies = [int(each.body) for each in got]
    assert bodies == [*range(8, WINDOW + 100), *range(8)]
    flagged = [each.headers.get("x-delivery-count") for each in got]
    assert flagged == [None] * (WINDOW + 92) + [1] * 8


def test_a_purge_forgets_the_counts_of_what_it_takes_and_no_others(core: Core) -> None:
    client = core.client()
    declare(client, **{"x-delivery-limit": 9})
    client.fill("q", *"12")
    fail(client, 1)
    kept = client.call("basic.get", queue="q")
    fail(client, 1)
    client.call("queue.purge", queue="q")
    client.send("basic.nack", delivery_tag=kept["delivery_tag"], requeue=True)
    client.fill("q", "3")
    assert counts(client, 2) == [("1", 2), ("3", 0)]
    core.restart(clean=False)
    client = core.client()
    found = {}
    for _ in range(2):
        got = client.call("basic.get", queue="q")
        found[got.body] = got.headers["x-delivery-count"]
    assert found == {b"1": 2, b"3": 0}


def test_an_unsettled_get_keeps_a_queue_from_expiring(core: Core) -> None:
    client = core.client()
    declare(client, **{"x-expires": 1000})
    client.fill("q", *"12")
    got = client.call("basic.get", queue="q")
    core.advance(5000)
    client.send("basic.ack", delivery_tag=got["delivery_tag"])
    core.advance(900)
    assert core.queue("q").ready == 1
    core.advance(200)
    assert "q" not in core.broker.vhosts["/"].queues


def test_transient_messages_survive_a_crash_too(core: Core) -> None:
    client = core.client()
    declare(client)
    client.publish("", "q", b"transient", Properties(delivery_mode=1))
    core.restart(clean=False)
    assert core.client().call("basic.get", queue="q").body == b"transient"


@pytest.mark.parametrize("flag", ["if_unused", "if_empty"])
def test_the_flags_of_delete_are_refused(core: Core, flag: str) -> None:
    client = core.client()
    declare(client)
    refused = client.call("queue.delete", queue="q", **{flag: True})
    assert (refused.name, refused["reply_code"]) == ("connection.close", 540)
    assert flag.replace("_", "-") + " flag set are not supported by quorum queues" in str(refused["reply_text"])


def test_a_global_prefetch_is_refused(core: Core) -> None:
    client = core.client()
    declare(client)
    client.call("basic.qos", prefetch_count=1, **{"global": True})
    refused = client.call("basic.consume", queue="q")
    assert (refused.name, refused["reply_code"]) == ("connection.close", 540)


def test_declaring_one_says_once_that_nothing_is_replicated(core: Core) -> None:
    client = core.client()
    declare(client)
    client.call("queue.declare", queue="r", durable=True, arguments={"x-queue-type": "quorum"})
    noted = [fields for name, fields in core.notes.seen if name == "quorum_queue_without_replicas"]
    assert len(noted) == 1 and noted[0]["replicated"] is False


def test_a_full_quorum_queue_takes_nothing_more(core: Core) -> None:
    client = core.client()
    declare(client, **{"x-max-length": 2, "x-overflow": "reject-publish"})
    client.call("confirm.select")
    for body in (b"a", b"b", b"c"):
        client.publish("", "q", body)
    settled = [got.name for got in client.take() if got.name in ("basic.ack", "basic.nack")]
    assert settled[-1] == "basic.nack" and settled.count("basic.nack") == 1
    assert client.call("queue.declare", queue="q", passive=True)["message_count"] == 2
