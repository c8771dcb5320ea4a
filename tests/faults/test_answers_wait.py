"""What a client may conclude from an answer: what it names is on disk, whoever changed it."""

from __future__ import annotations

from pathlib import Path

import pytest

from warrenmq.testing.core import Core

pytestmark = pytest.mark.pure

DECLARED = [
    ("queue.declare", {"queue": "q", "durable": True}),
    ("exchange.declare", {"exchange": "x", "type": "direct", "durable": True}),
]


@pytest.mark.parametrize(("method", "values"), DECLARED)
def test_a_second_client_is_not_told_of_a_declaration_before_it_is_on_disk(
    tmp_path: Path, method: str, values: dict[str, object]
) -> None:
    core = Core(tmp_path, held=True)
    first, second = core.client(persistent=True), core.client(persistent=True)
    for client in (first, second):
        client.open()
        client.send(method, 1, **values)
    assert first.take() == [] and second.take() == []
    core.commit()
    assert first.names() == second.names() == [method + "-ok"]


@pytest.mark.parametrize(("method", "values"), DECLARED)
def test_a_passive_declaration_is_answered_when_what_it_found_is_on_disk(
    tmp_path: Path, method: str, values: dict[str, object]
) -> None:
    core = Core(tmp_path, held=True)
    first, second = core.client(persistent=True), core.client(persistent=True)
    for client in (first, second):
        client.open()
    first.send(method, 1, **values)
    second.send(method, 1, **{**values, "passive": True})
    assert first.take() == [] and second.take() == []
    core.commit()
    assert first.names() == second.names() == [method + "-ok"]
    second.send(method, 1, **{**values, "passive": True})
    assert second.names() == [method + "-ok"], "nothing is open any more"


ABSENT = [
    ("queue.delete", {"queue": "q"}, "queue.delete", {"queue": "q"}),
    ("exchange.delete", {"exchange": "x"}, "exchange.delete", {"exchange": "x"}),
    ("queue.unbind", {"queue": "q", "exchange": "x", "routing_key": "k"}, "queue.unbind", None),
    ("exchange.unbind", {"destination": "x", "source": "y", "routing_key": "k"}, "exchange.unbind", None),
]


@pytest.mark.parametrize(("method", "values", "again", "same"), ABSENT, ids=[case[0] for case in ABSENT])
def test_whoever_finds_a_thing_deleted_is_told_when_that_is_on_disk(
    tmp_path: Path, method: str, values: dict[str, object], again: str, same: dict[str, object] | None
) -> None:
    core = Core(tmp_path, held=True)
    first, second = core.client(persistent=True), core.client(persistent=True)
    for client in (first, second):
        client.open()
    first.declare("q")
    for name in ("x", "y"):
        first.send("exchange.declare", exchange=name, type="direct", durable=True)
    first.send("queue.bind", queue="q", exchange="x", routing_key="k")
    first.send("exchange.bind", destination="x", source="y", routing_key="k")
    core.commit()
    first.take()
    first.send(method, 1, **values)
    second.send(again, 1, **(values if same is None else same))
    assert first.take() == [] and second.take() == []
    core.commit()
    assert first.names() == second.names() == [method + "-ok"]


def test_what_follows_a_purge_without_an_answer_waits_for_it(tmp_path: Path) -> None:
    core = Core(tmp_path, held=True)
    client = core.client(persistent=True)
    client.open()
    client.declare("q")
    client.publish("", "q", b"x")
    core.commit()
    client.send("queue.purge", queue="q", nowait=True)
    client.send("queue.declare", queue="t", durable=False)
    assert client.take() == []
    core.commit()
    assert client.names() == ["queue.declare-ok"]


def test_the_confirm_of_a_transient_message_says_nothing_about_an_acknowledgement(tmp_path: Path) -> None:
    """That of a persistent one comes behind the sync of both."""
    core = Core(tmp_path, held=True)
    client = core.client(persistent=True)
    client.open(1, "confirm.select")
    client.declare("q")
    client.declare("other")
    client.publish("", "q", b"x")
    core.commit()
    client.send("basic.consume", queue="q", consumer_tag="c")
    core.commit()
    client.take()
    client.send("basic.ack", delivery_tag=1)
    client.publish("", "other", b"transient", delivery_mode=1)
    assert client.names() == ["basic.ack"], "before anything of this was written"
    client.publish("", "other", b"persistent")
    assert client.take() == []
    core.crash()
    again = Core(tmp_path)
    assert again.queue("q").ready == 1 and again.queue("other").ready == 0


def test_a_binding_made_twice_is_answered_when_the_first_is_on_disk(tmp_path: Path) -> None:
    core = Core(tmp_path, held=True)
    client = core.client(persistent=True)
    client.open()
    client.declare("q")
    for _ in range(2):
        client.send("queue.bind", queue="q", exchange="amq.direct", routing_key="k")
    assert client.take() == []
    core.commit()
    assert client.names() == ["queue.bind-ok", "queue.bind-ok"]


def test_a_delete_is_answered_when_it_is_on_disk(tmp_path: Path) -> None:
    core = Core(tmp_path, held=True)
    client = core.client(persistent=True)
    client.open()
    client.declare("q")
    client.send("queue.delete", queue="q")
    assert client.take() == []
    core.commit()
    assert client.names() == ["queue.delete-ok"]


TRANSIENT = [
    ("queue.declare", {"queue": "t"}),
    ("queue.declare", {"queue": "t", "passive": True}),
    ("exchange.declare", {"exchange": "t", "type": "direct"}),
    ("exchange.declare", {"exchange": "t", "passive": True}),
    ("queue.bind", {"queue": "t", "exchange": "amq.direct"}),
    ("exchange.bind", {"destination": "t", "source": "amq.direct"}),
]


@pytest.mark.parametrize(("method", "values"), TRANSIENT)
def test_whoever_declares_what_is_not_durable_does_not_wait_for_the_disk_or_for_others(
    tmp_path: Path, method: str, values: dict[str, object]
) -> None:
    core = Core(tmp_path, held=True)
    client, other = core.client(persistent=True), core.client(persistent=True)
    client.open()
    other.open()
    client.send("queue.declare", queue="t", durable=False)
    client.send("exchange.declare", exchange="t", type="direct", durable=False)
    assert client.names() == ["queue.declare-ok", "exchange.declare-ok"]
    other.send("queue.declare", queue="q", durable=True)
    client.send(method, 1, **values)
    assert client.names() == [method + "-ok"]
    assert other.take() == []


def test_what_follows_on_the_channel_stays_behind_a_held_answer(tmp_path: Path) -> None:
    core = Core(tmp_path, held=True)
    client = core.client(persistent=True)
    client.open()
    client.send("queue.declare", queue="q", durable=True)
    client.send("basic.get", queue="q")
    client.send("queue.declare", queue="t", durable=False)
    assert client.take() == []
    core.commit()
    assert client.names() == ["queue.declare-ok", "basic.get-empty", "queue.declare-ok"]


def test_a_message_from_basic_get_comes_back_flagged_after_a_crash(tmp_path: Path) -> None:
    """So the answer waits until the log knows that the message may have been seen."""
    core = Core(tmp_path, held=True)
    client = core.client(persistent=True)
    client.open(1, "confirm.select")
    client.declare("q")
    client.publish("", "q", b"x")
    core.commit()
    client.take()
    client.send("basic.get", queue="q")
    assert client.take() == []
    core.commit()
    (got,) = client.take()
    assert got.name == "basic.get-ok" and not got.method.bit("redelivered")
    core.crash()
    again = Core(tmp_path)
    client = again.client(persistent=True)
    client.open()
    client.send("basic.get", queue="q")
    (got,) = client.take()
    assert got.body == b"x" and got.method.bit("redelivered")
