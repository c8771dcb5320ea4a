"""`warren log events` on the folder of a broker that clients used: what became of each durable message."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pika
import pytest
import typer
from typer.testing import CliRunner

from warrenmq.cli.log.command import register
from warrenmq.testing import Broker

LIMITED = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "letters", "x-max-length": 3}


def events(*arguments: str) -> list[dict[str, Any]]:
    app = typer.Typer()
    register(app)
    done = CliRunner().invoke(app, ["log", "events", "--json", *arguments])
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.output.splitlines()]


def persistent(id: str, **more: Any) -> pika.BasicProperties:
    return pika.BasicProperties(delivery_mode=2, message_id=id, **more)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """After one message of each fate."""
    data = tmp_path / "data"
    with Broker(data_dir=str(data)) as broker:
        connection = pika.BlockingConnection(pika.URLParameters(broker.url))
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("letters", durable=True)
        channel.queue_declare("one", durable=True, arguments=LIMITED)
        channel.queue_bind("one", "amq.topic", "a.*")
        for id in ("over", "acked", "rejected", "waiting"):
            channel.basic_publish("amq.topic", "a.b", b"body of " + id.encode(), persistent(id))
        assert channel.basic_get("one")[0].delivery_tag == 1
        channel.basic_ack(1)
        tag = channel.basic_get("one")[0].delivery_tag
        channel.basic_nack(tag, requeue=True)
        tag = channel.basic_get("one")[0].delivery_tag
        channel.basic_reject(tag, requeue=False)
        for message in channel.consume("one", auto_ack=True, inactivity_timeout=None):
            assert message[0].delivery_tag
            break
        channel.cancel()
        channel.queue_declare("astray", durable=True, arguments={"x-dead-letter-exchange": "nowhere"})
        channel.basic_publish("", "astray", b"", persistent("astray"))
        channel.basic_nack(channel.basic_get("astray")[0].delivery_tag, requeue=False)
        channel.queue_declare("gone", durable=True)
        channel.basic_publish("", "gone", b"", persistent("deleted", correlation_id="c-1"))
        channel.basic_publish("", "letters", b"", persistent("purged"))
        channel.queue_purge("letters")
        channel.queue_delete("gone")
        connection.close()
    return data


def life(folder: Path, id: str) -> list[tuple[str, str]]:
    return [(one["event"], one.get("queue", "")) for one in events(str(folder), "--message-id", id)]


def test_every_message_is_told_from_its_publish_to_its_end(folder: Path) -> None:
    assert life(folder, "acked") == [
        ("published", ""),
        ("enqueued", "one"),
        ("confirmed", ""),
        ("fetched", "one"),
        ("acked", "one"),
    ]
    assert life(folder, "rejected")[:2] == [("published", ""), ("enqueued", "one")]
    assert ("rejected_dead_lettered", "one") in life(folder, "rejected")
    assert life(folder, "rejected")[-2:] == [("enqueued", "letters"), ("purged", "letters")]
    assert [one for one in life(folder, "rejected") if one[0] in ("fetched", "requeued")] == [
        ("fetched", "one"),
        ("requeued", "one"),
        ("fetched", "one"),
    ]
    assert ("limit_dead_lettered", "one") in life(folder, "over")
    assert life(folder, "waiting")[-1][0] in ("auto_acked", "delivered")
    assert {one[0] for one in life(folder, "waiting")} == {
        "published",
        "enqueued",
        "confirmed",
        "delivered",
        "auto_acked",
    }
    assert life(folder, "astray")[-2:] == [("rejected_dead_lettered", "astray"), ("letter lost", "astray")]
    assert life(folder, "purged")[-1] == ("purged", "letters")
    assert life(folder, "deleted") == [("published", ""), ("enqueued", "gone"), ("confirmed", "")]
    assert ("queue deleted", "gone") in [(one["event"], one.get("queue")) for one in events(str(folder))]


def test_a_publish_says_by_whom_and_what_a_delivery_to_whom_and_all_say_when(folder: Path) -> None:
    rows = events(str(folder), "--message-id", "acked")
    published = rows[0]
    assert (published["user"], published["vhost"], published["channel"], published["number"]) == ("guest", "/", 1, 2)
    assert (published["exchange"], published["routing_keys"], published["size"]) == ("amq.topic", ["a.b"], 13)
    assert "->" in published["connection"]
    assert rows[1]["position"] == 2 and rows[3]["tag"] == 1 and rows[3]["user"] == "guest"
    names = ("user", "vhost", "connection", "channel", "number")
    assert [rows[2][name] for name in names] == [published[name] for name in names]
    assert all(one["time"].startswith("20") for one in rows)
    assert [one["time"] for one in rows] == sorted(one["time"] for one in rows)
    delivered = [one for one in events(str(folder), "--message-id", "waiting") if one["event"] == "delivered"]
    assert delivered[0]["consumer"]


def test_a_message_is_found_by_number_and_correlation_id_and_a_queue_by_its_name(folder: Path) -> None:
    rows = events(str(folder), "--correlation-id", "c-1")
    assert {one["event"] for one in rows} == {"published", "enqueued", "confirmed"}
    assert events(str(folder), "--id", str(rows[0]["id"])) == rows
    assert {one["event"] for one in events(str(folder), "--queue", "letters")} == {"enqueued", "purged"}


def test_what_consumers_get_from_a_stream_is_told_by_offset(tmp_path: Path) -> None:
    with Broker(data_dir=str(tmp_path / "data")) as broker:
        with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            channel.queue_declare("s", durable=True, arguments={"x-queue-type": "stream"})
            channel.queue_bind("s", "amq.fanout")
            for id in ("first", "second"):
                channel.basic_publish("amq.fanout", "", b"body", persistent(id))
            channel.basic_qos(prefetch_count=10)
            got = channel.consume("s", arguments={"x-stream-offset": "first"}, consumer_tag="reader")
            tags = [next(got)[0].delivery_tag for _ in range(2)]
            channel.basic_ack(tags[-1], multiple=True)
            channel.cancel()
    data = str(tmp_path / "data")
    reads = [one for one in events(data, "--queue", "s") if one["event"] == "read"]
    assert [(one["position"], one["tag"], one["consumer"], one["user"]) for one in reads] == [
        (0, 1, "reader", "guest"),
        (1, 2, "reader", "guest"),
    ]
    assert not any("message" in one for one in reads)
    assert [one["event"] for one in events(data, "--message-id", "second")] == [
        "published",
        "enqueued",
        "confirmed",
        "read",
    ]


def test_a_running_broker_is_no_obstacle_and_no_folder_is_one_clear_line(tmp_path: Path) -> None:
    with Broker(data_dir=str(tmp_path / "data")) as broker:
        with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            channel.queue_declare("q", durable=True)
            channel.basic_publish("", "q", b"body", persistent("here"))
            assert life(tmp_path / "data", "here") == [("published", ""), ("enqueued", "q")]
    app = typer.Typer()
    register(app)
    done = CliRunner().invoke(app, ["log", "events", str(tmp_path / "nowhere")])
    assert done.exit_code == 1 and len(done.output.splitlines()) == 1 and "nowhere" in done.output
