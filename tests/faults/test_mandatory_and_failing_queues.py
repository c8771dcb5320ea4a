"""A mandatory message whose queues fail before any accepted it is returned, and only then."""

from __future__ import annotations

from pathlib import Path

from tests.faults.rig import Client, Rig, Told


def both(tmp_path: Path, mode: str = "confirm.select") -> tuple[Rig, Client]:
    """A publisher of a mandatory persistent message that queues a and b have got, and whose commit hangs."""
    rig = Rig(tmp_path, held=True)
    client = rig.client()
    client.open(1, mode)
    for queue in ("a", "b"):
        client.declare(queue)
        client.call("queue.bind", queue=queue, exchange="amq.fanout", routing_key="")
        rig.commit()
    client.told()
    client.publish("amq.fanout", "k", b"precious", mandatory=True)
    assert client.told() == []
    return rig, client


def kinds(told: list[Told]) -> list[str]:
    return [t.name for t in told]


def test_one_queue_accepts_and_the_other_fails_so_nothing_is_returned_and_one_nack_comes(tmp_path: Path) -> None:
    rig, client = both(tmp_path)
    rig.broker.fail_queue(rig.queue("b"))
    rig.turn()
    assert client.told() == []  # a may still accept
    rig.commit()
    assert kinds(client.told()) == ["basic.nack"]
    assert client.ready("a") == 1


def test_a_queue_that_keeps_the_message_in_memory_has_accepted_it_at_once(tmp_path: Path) -> None:
    rig = Rig(tmp_path, held=True)
    client = rig.client()
    client.open(1, "confirm.select")
    client.declare("durable")
    client.declare("transient", durable=False)
    for queue in ("durable", "transient"):
        client.call("queue.bind", queue=queue, exchange="amq.fanout", routing_key="")
        rig.commit()
    client.told()
    client.publish("amq.fanout", "k", b"precious", mandatory=True)
    rig.broker.fail_queue(rig.queue("durable"))
    rig.turn()
    rig.commit()
    assert kinds(client.told()) == ["basic.nack"]


def test_both_queues_fail_so_the_message_is_returned_once_and_then_nacked_once(tmp_path: Path) -> None:
    rig, client = both(tmp_path)
    rig.broker.fail_queue(rig.queue("a"))
    rig.turn()
    rig.broker.fail_queue(rig.queue("b"))
    rig.turn()
    told = client.told()
    assert kinds(told) == ["basic.return", "basic.nack"]
    assert told[0].method.int("reply_code") == 312 and told[0].method.str("reply_text") == "NO_ROUTE"
    assert told[0].method.str("exchange") == "amq.fanout" and told[0].method.str("routing_key") == "k"
    assert told[0].body == b"precious"
    assert told[1].method.int("delivery_tag") == 1
    rig.commit()
    assert client.told() == []  # settled once


def test_all_its_queues_deleted_normally_so_the_message_is_returned_and_then_acked(tmp_path: Path) -> None:
    rig, client = both(tmp_path)
    other = rig.client()
    other.open()
    other.call("queue.delete", queue="a")
    assert client.told() == []
    other.call("queue.delete", queue="b")
    assert kinds(client.told()) == ["basic.return", "basic.ack"]
    rig.commit()
    assert client.told() == []


def test_one_deleted_and_one_failed_is_returned_and_then_nacked(tmp_path: Path) -> None:
    for first in ("delete", "fail"):
        folder = tmp_path / first
        folder.mkdir()
        rig, client = both(folder)
        other = rig.client()
        other.open()
        if first == "delete":
            other.call("queue.delete", queue="a")
            rig.broker.fail_queue(rig.queue("b"))
        else:
            rig.broker.fail_queue(rig.queue("b"))
            rig.turn()
            other.call("queue.delete", queue="a")
        rig.turn()
        assert kinds(client.told()) == ["basic.return", "basic.nack"], first


def test_without_confirm_mode_the_return_comes_alone(tmp_path: Path) -> None:
    rig, client = both(tmp_path, mode="")
    rig.broker.fail_queue(rig.queue("a"))
    rig.broker.fail_queue(rig.queue("b"))
    rig.turn()
    assert kinds(client.told()) == ["basic.return"]
    rig.commit()
    assert client.told() == []


def test_once_accepted_a_mandatory_message_is_forgotten(tmp_path: Path) -> None:
    rig, client = both(tmp_path)
    rig.commit()
    assert kinds(client.told()) == ["basic.ack"]
    rig.broker.fail_queue(rig.queue("a"))
    rig.broker.fail_queue(rig.queue("b"))
    rig.turn()
    assert client.told() == []


def test_a_message_that_is_not_mandatory_is_never_returned(tmp_path: Path) -> None:
    rig = Rig(tmp_path, held=True)
    client = rig.client()
    client.open(1, "confirm.select")
    client.declare("a")
    client.publish("", "a", b"x")
    rig.broker.fail_queue(rig.queue("a"))
    rig.turn()
    assert kinds(client.told()) == ["basic.nack"]
