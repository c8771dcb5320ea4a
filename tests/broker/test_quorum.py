"""Quorum queues with one member: what their clients may expect, and honest about the replicas that are not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.harness import Client, Core
from warrenmq.wire.content import Properties


@pytest.fixture
def core(tmp_path: Path) -> Core:
    return Core(tmp_path)


def declare(client: Client, **arguments: object) -> None:
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
    assert counts == [None, 1, 2]


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
