"""A mandatory message whose queues fail before any accepted it is returned, and only then."""

from __future__ import annotations

from pathlib import Path

import pytest

from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient, Got
from warrenmq.wire.fields import Field

pytestmark = pytest.mark.pure


def both(tmp_path: Path, mode: str = "confirm.select") -> tuple[Core, CoreClient]:
    """A publisher of a mandatory persistent message that queues a and b have got, and whose commit hangs."""
    core = Core(tmp_path, held=True)
    client = core.client(persistent=True)
    client.open(1, mode)
    for queue in ("a", "b"):
        client.declare(queue)
        client.send("queue.bind", queue=queue, exchange="amq.fanout", routing_key="")
        core.commit()
    client.take()
    client.publish("amq.fanout", "k", b"precious", mandatory=True)
    assert client.take() == []
    return core, client


def kinds(told: list[Got]) -> list[str]:
    return [t.name for t in told]


def test_one_queue_accepts_and_the_other_fails_so_nothing_is_returned_and_one_nack_comes(tmp_path: Path) -> None:
    core, client = both(tmp_path)
    core.broker.fail_queue(core.queue("b"))
    core.turn()
    assert client.take() == []  # a may still accept
    core.commit()
    assert kinds(client.take()) == ["basic.nack"]
    assert core.ready("a") == 1


def test_a_queue_that_keeps_the_message_in_memory_has_accepted_it_at_once(tmp_path: Path) -> None:
    core = Core(tmp_path, held=True)
    client = core.client(persistent=True)
    client.open(1, "confirm.select")
    client.declare("durable")
    client.declare("transient", durable=False)
    for queue in ("durable", "transient"):
        client.send("queue.bind", queue=queue, exchange="amq.fanout", routing_key="")
        core.commit()
    client.take()
    client.publish("amq.fanout", "k", b"precious", mandatory=True)
    core.broker.fail_queue(core.queue("durable"))
    core.turn()
    core.commit()
    assert kinds(client.take()) == ["basic.nack"]


def test_both_queues_fail_so_the_message_is_returned_once_and_then_nacked_once(tmp_path: Path) -> None:
    core, client = both(tmp_path)
    core.broker.fail_queue(core.queue("a"))
    core.turn()
    core.broker.fail_queue(core.queue("b"))
    core.turn()
    told = client.take()
    assert kinds(told) == ["basic.return", "basic.nack"]
    assert told[0].method.int("reply_code") == 312 and told[0].method.str("reply_text") == "NO_ROUTE"
    assert told[0].method.str("exchange") == "amq.fanout" and told[0].method.str("routing_key") == "k"
    assert told[0].body == b"precious"
    assert told[1].method.int("delivery_tag") == 1
    core.commit()
    assert client.take() == []  # settled once


def test_all_its_queues_deleted_normally_so_the_message_is_returned_and_then_acked(tmp_path: Path) -> None:
    core, client = both(tmp_path)
    other = core.client(persistent=True)
    other.open()
    other.send("queue.delete", queue="a")
    assert client.take() == []
    other.send("queue.delete", queue="b")
    assert kinds(client.take()) == ["basic.return", "basic.ack"]
    core.commit()
    assert client.take() == []


def test_one_deleted_and_one_failed_is_returned_and_then_nacked(tmp_path: Path) -> None:
    for first in ("delete", "fail"):
        folder = tmp_path / first
        folder.mkdir()
        core, client = both(folder)
        other = core.client(persistent=True)
        other.open()
        if first == "delete":
            other.send("queue.delete", queue="a")
            core.broker.fail_queue(core.queue("b"))
        else:
            core.broker.fail_queue(core.queue("b"))
            core.turn()
            other.send("queue.delete", queue="a")
        core.turn()
        assert kinds(client.take()) == ["basic.return", "basic.nack"], first


def test_without_confirm_mode_the_return_comes_alone(tmp_path: Path) -> None:
    core, client = both(tmp_path, mode="")
    core.broker.fail_queue(core.queue("a"))
    core.broker.fail_queue(core.queue("b"))
    core.turn()
    assert kinds(client.take()) == ["basic.return"]
    core.commit()
    assert client.take() == []


def test_once_accepted_a_mandatory_message_is_forgotten(tmp_path: Path) -> None:
    core, client = both(tmp_path)
    core.commit()
    assert kinds(client.take()) == ["basic.ack"]
    core.broker.fail_queue(core.queue("a"))
    core.broker.fail_queue(core.queue("b"))
    core.turn()
    assert client.take() == []


def test_of_several_mandatory_messages_those_are_returned_that_no_queue_has_accepted(tmp_path: Path) -> None:
    core, client = both(tmp_path)
    client.publish("amq.fanout", "k", b"second", mandatory=True)  # in the next batch, as the first is on its way
    client.publish("amq.fanout", "k", b"third", mandatory=True)
    core.commit_one()
    assert client.story() == ["ack 1"]
    client.publish("amq.fanout", "k", b"fourth", mandatory=True)
    core.commit_one()
    assert client.story() == ["ack 3+"]
    core.broker.fail_queue(core.queue("a"))
    core.turn()
    assert client.story() == []  # b may still accept the fourth
    core.broker.fail_queue(core.queue("b"))
    core.turn()
    assert client.story() == ["return 312 fourth", "nack 4+"]


def test_a_message_that_is_not_mandatory_is_never_returned(tmp_path: Path) -> None:
    core = Core(tmp_path, held=True)
    client = core.client(persistent=True)
    client.open(1, "confirm.select")
    client.declare("a")
    client.publish("", "a", b"x")
    core.broker.fail_queue(core.queue("a"))
    core.turn()
    assert kinds(client.take()) == ["basic.nack"]


@pytest.mark.parametrize("kind", ["classic", "quorum", "stream"])
def test_a_queue_that_failed_refuses_whatever_its_policy_says_from_then_on(tmp_path: Path, kind: str) -> None:
    core = Core(tmp_path)
    client = core.client(persistent=True)
    client.open(1, "confirm.select")
    client.call("queue.declare", queue="q", durable=True, arguments={"x-queue-type": Field("S", kind)})
    client.take()
    core.broker.fail_queue(core.queue("q"))
    core.policy("^q$", message_ttl=1_000_000)
    client.publish("", "q", b"lost")
    core.turn()
    assert kinds(client.take()) == ["basic.nack"]
    assert core.ready("q") == 0
