"""What a client may conclude from an answer: what it names is on disk, whoever changed it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.rig import Rig

DECLARED = [
    ("queue.declare", {"queue": "q", "durable": True}),
    ("exchange.declare", {"exchange": "x", "type": "direct", "durable": True}),
]


@pytest.mark.parametrize(("method", "values"), DECLARED)
def test_a_second_client_is_not_told_of_a_declaration_before_it_is_on_disk(
    tmp_path: Path, method: str, values: dict[str, object]
) -> None:
    rig = Rig(tmp_path, held=True)
    first, second = rig.client(), rig.client()
    for client in (first, second):
        client.open()
        client.call(method, 1, **values)
    assert first.told() == [] and second.told() == []
    rig.commit()
    assert first.names() == second.names() == [method + "-ok"]


def test_a_binding_made_twice_is_answered_when_the_first_is_on_disk(tmp_path: Path) -> None:
    rig = Rig(tmp_path, held=True)
    client = rig.client()
    client.open()
    client.declare("q")
    for _ in range(2):
        client.call("queue.bind", queue="q", exchange="amq.direct", routing_key="k")
    assert client.told() == []
    rig.commit()
    assert client.names() == ["queue.bind-ok", "queue.bind-ok"]


def test_a_delete_is_answered_when_it_is_on_disk(tmp_path: Path) -> None:
    rig = Rig(tmp_path, held=True)
    client = rig.client()
    client.open()
    client.declare("q")
    client.call("queue.delete", queue="q")
    assert client.told() == []
    rig.commit()
    assert client.names() == ["queue.delete-ok"]


def test_transient_declarations_do_not_wait(tmp_path: Path) -> None:
    rig = Rig(tmp_path, held=True)
    client = rig.client()
    client.open()
    client.call("queue.declare", queue="t", durable=False)
    assert client.names() == ["queue.declare-ok"]


def test_what_follows_on_the_channel_stays_behind_a_held_answer(tmp_path: Path) -> None:
    rig = Rig(tmp_path, held=True)
    client = rig.client()
    client.open()
    client.call("queue.declare", queue="q", durable=True)
    client.call("basic.get", queue="q")
    client.call("queue.declare", queue="t", durable=False)
    assert client.told() == []
    rig.commit()
    assert client.names() == ["queue.declare-ok", "basic.get-empty", "queue.declare-ok"]


def test_a_message_from_basic_get_comes_back_flagged_after_a_crash(tmp_path: Path) -> None:
    """So the answer waits until the log knows that the message may have been seen."""
    rig = Rig(tmp_path, held=True)
    client = rig.client()
    client.open(1, "confirm.select")
    client.declare("q")
    client.publish("", "q", b"x")
    rig.commit()
    client.told()
    client.call("basic.get", queue="q")
    assert client.told() == []
    rig.commit()
    (got,) = client.told()
    assert got.name == "basic.get-ok" and not got.method.bit("redelivered")
    rig.abandon()
    again = Rig(tmp_path)
    client = again.client()
    client.open()
    client.call("basic.get", queue="q")
    (got,) = client.told()
    assert got.body == b"x" and got.method.bit("redelivered")
