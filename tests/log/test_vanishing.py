"""Messages that vanish: each is named by the journal with its cause, at the default level (docs/vanished.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pika
import pika.exceptions
import pytest

from tests.log.test_journal_files import in_order, rows_of, warren
from tests.log.test_told_events import events
from warrenmq.testing import Broker

pytest.importorskip("pyarrow.parquet")

QUORUM = {"x-queue-type": "quorum", "x-delivery-limit": 0}


class Trial:
    """A client, and what it publishes under a message_id of its own."""

    def __init__(self, broker: Broker, mode: int) -> None:
        self.connection = pika.BlockingConnection(pika.URLParameters(broker.url))
        self.channel = self.connection.channel()
        self.mode = mode

    def declare(self, queue: str, **arguments: Any) -> str:
        self.channel.queue_declare(
            queue, durable=True, arguments={k.replace("_", "-"): v for k, v in arguments.items()}
        )
        return queue

    def publish(self, id: str, key: str, exchange: str = "", mandatory: bool = False, **more: Any) -> None:
        properties = pika.BasicProperties(delivery_mode=self.mode, message_id=id, correlation_id="c-" + id, **more)
        self.channel.basic_publish(exchange, key, b"body", properties, mandatory=mandatory)

    def reject(self, queue: str, requeue: bool = False) -> None:
        tag = self.channel.basic_get(queue)[0].delivery_tag
        self.channel.basic_nack(tag, requeue=requeue)

    def settle(self) -> None:
        """What was published before has been dealt with."""
        self.channel.queue_declare("", exclusive=True)


def vanish(trial: Trial) -> None:
    """Every way in which a message goes without having been consumed."""
    trial.publish("unroutable", "nowhere", "amq.topic")
    trial.publish("returned", "nowhere", "amq.topic", mandatory=True)
    trial.publish("over", trial.declare("short", x_max_length=1))
    trial.publish("newest", "short")
    full = trial.declare("full", x_max_length=0, x_overflow="reject-publish")
    trial.publish("not taken", full)
    trial.publish("expired", trial.declare("brief", x_message_ttl=1))
    trial.publish("at once", trial.declare("rest"), expiration="0")
    trial.publish("astray", trial.declare("astray", x_dead_letter_exchange="missing"))
    trial.reject("astray")
    trial.publish("rejected", trial.declare("plain"))
    trial.reject("plain")
    trial.channel.queue_declare("tired", durable=True, arguments=QUORUM)
    trial.publish("tired", "tired")
    trial.settle()
    trial.reject("tired", requeue=True)
    trial.publish("purged", trial.declare("purged"))
    trial.channel.queue_purge("purged")
    trial.publish("deleted", trial.declare("deleted"))
    trial.channel.queue_delete("deleted")
    while trial.channel.queue_declare("brief", passive=True).method.message_count:
        trial.connection.sleep(0.01)
    trial.publish("left behind", trial.declare("durable"))
    trial.settle()


def test_of_persistent_messages_every_one_that_vanishes_is_named_with_its_cause(tmp_path: Path) -> None:
    told = ends(tmp_path, 2)
    assert told["unroutable"] == [("unroutable", None)]
    assert told["returned"] == [("returned", None)]
    assert told["over"][-1] == ("limit_gone", "short")
    assert told["not taken"] == [("not taken", "full")]
    assert told["expired"][-1] == ("expired_gone", "brief")
    assert told["at once"][-1] == ("expired_gone", "rest")
    assert told["astray"][-2:] == [("rejected_dead_lettered", "astray"), ("letter lost", "astray")]
    assert told["rejected"][-1] == ("rejected_gone", "plain")
    assert told["tired"][-1] == ("delivery_limit_gone", "tired")
    assert told["purged"][-1] == ("purged", "purged")
    assert told["deleted"][-1] == ("enqueued", "deleted")
    assert ("queue deleted", "deleted") in told["all"]
    assert told["left behind"][-1] == ("enqueued", "durable")


def test_of_transient_messages_every_one_that_vanishes_is_named_with_its_cause(tmp_path: Path) -> None:
    told = ends(tmp_path, 1)
    assert told["unroutable"] == [("unroutable", None)]
    assert told["returned"] == [("returned", None)]
    assert told["over"] == [("limit_gone", "short")]
    assert told["not taken"] == [("not taken", "full")]
    assert told["expired"] == [("expired_gone", "brief")]
    assert told["at once"] == [("expired_gone", "rest")]
    assert told["astray"] == [("rejected_dead_lettered", "astray"), ("letter lost", "astray")]
    assert told["rejected"] == [("rejected_gone", "plain")]
    assert told["tired"][-1] == ("delivery_limit_gone", "tired")  # a quorum queue keeps it on disk
    assert told["purged"] == [("purged", "purged")]
    assert told["deleted"] == [("deleted", "deleted")]
    assert told["left behind"] == [("forgotten", "durable")]
    assert told["newest"] == [("forgotten", "short")]


def ends(folder: Path, mode: int) -> dict[str, list[tuple[str, str | None]]]:
    """The events of each message of a trial, by its message_id; of all of them under "all"."""
    with Broker(data_dir=str(folder / "data")) as broker:
        trial = Trial(broker, mode)
        vanish(trial)
        trial.connection.close()
    told = {"all": [(row["event"], row.get("queue")) for row in events(str(folder / "data"))]}
    for row in events(str(folder / "data")):
        id = row.get("message_id")
        if id is not None and id not in told:
            life = events(str(folder / "data"), "--message-id", id)
            told[id] = [(one["event"], one.get("queue")) for one in life]
    the_files_say_the_same(folder)
    return told


def the_files_say_the_same(folder: Path) -> None:
    status, output = warren("export", str(folder / "data"), str(folder / "journal"))
    assert status == 0, output
    told = events(str(folder / "data"))
    left_out = [row for row in told if row["event"] == "left out"]  # of each file for itself
    told = [row for row in told if row not in left_out]
    for row in told:
        if "exchange" not in row:
            row.pop("id", None)
    written = [row for row in rows_of(folder / "journal") if row["event"] != "gap" or "number" in row]
    counted = [row for row in written if row["event"] == "left out"]
    assert sum(row["number"] for row in counted) == sum(row["number"] for row in left_out)
    written = [row for row in written if row not in counted]
    assert in_order(written) == in_order(told)  # but for segments that are gone, which the log says nothing of


def test_a_refused_publish_is_told_with_reply_code_and_text(tmp_path: Path) -> None:
    with Broker(data_dir=str(tmp_path / "data")) as broker:
        connection = pika.BlockingConnection(pika.URLParameters(broker.url))
        channel = connection.channel()
        channel.basic_publish("missing", "key", b"body", pika.BasicProperties(message_id="refused"))
        with pytest.raises(pika.exceptions.ChannelClosedByBroker):
            channel.queue_declare("", exclusive=True)
        channel = connection.channel()
        channel.basic_publish("", "q", b"", pika.BasicProperties(message_id="who", user_id="somebody else"))
        with pytest.raises(pika.exceptions.ChannelClosedByBroker):
            channel.queue_declare("", exclusive=True)
        connection.close()
    (row,) = events(str(tmp_path / "data"), "--message-id", "refused")
    assert (row["event"], row["code"], row["exchange"], row["routing_keys"]) == ("refused", 404, "missing", ["key"])
    assert row["text"] == "NOT_FOUND - no exchange 'missing' in vhost '/'"
    assert (row["user"], row["vhost"], row["size"]) == ("guest", "/", 4)
    (row,) = events(str(tmp_path / "data"), "--message-id", "who")
    assert (row["event"], row["code"]) == ("refused", 406)
    the_files_say_the_same(tmp_path)


def test_a_nack_is_told_with_the_queue_that_did_not_take_it_and_its_limit(tmp_path: Path) -> None:
    with Broker(data_dir=str(tmp_path / "data")) as broker:
        trial = Trial(broker, 1)
        trial.channel.confirm_delivery()
        trial.declare("full", x_max_length=0, x_overflow="reject-publish")
        trial.channel.queue_bind("full", "amq.fanout")
        trial.channel.queue_bind(trial.declare("open"), "amq.fanout")
        with pytest.raises(pika.exceptions.NackError):
            trial.publish("nacked", "", "amq.fanout")
        trial.connection.close()
    rows = events(str(tmp_path / "data"), "--message-id", "nacked")
    assert [(row["event"], row.get("queue"), row.get("text")) for row in rows] == [
        ("not taken", "full", "max-length 0"),
        ("nacked", None, "a queue did not take it"),
        ("forgotten", "open", None),
    ]
    assert [row.get("number") for row in rows] == [1, 1, None]
    the_files_say_the_same(tmp_path)


def test_a_queue_that_no_definition_names_has_its_name(tmp_path: Path) -> None:
    with Broker(data_dir=str(tmp_path / "data")) as broker:
        trial = Trial(broker, 2)
        queue = trial.channel.queue_declare("", exclusive=True, arguments={"x-max-length": 1}).method.queue
        for id in ("first", "second"):
            trial.publish(id, queue)
        trial.settle()
        trial.connection.close()
    (row,) = events(str(tmp_path / "data"), "--message-id", "first")
    assert (row["event"], row["queue"], row["vhost"]) == ("limit_gone", queue, "/")
    (row,) = events(str(tmp_path / "data"), "--message-id", "second")
    assert (row["event"], row["queue"], row["vhost"]) == ("deleted", queue, "/")


def test_a_flood_of_transient_messages_to_nowhere_is_told_in_part_and_the_rest_is_counted(tmp_path: Path) -> None:
    with Broker(data_dir=str(tmp_path / "data")) as broker:
        trial = Trial(broker, 1)
        for n in range(3000):
            trial.publish(str(n), "nowhere", "amq.topic")
        trial.settle()
        trial.connection.close()
    rows = events(str(tmp_path / "data"))
    told = [row for row in rows if row["event"] == "unroutable"]
    gaps = [row for row in rows if row["event"] == "gap"]
    assert len(told) + sum(row["events"] for row in gaps) == 3000
    assert [row["message_id"] for row in told[:1000]] == [str(n) for n in range(1000)]


def test_a_reply_that_reached_the_channel_that_listens_is_not_unroutable(tmp_path: Path) -> None:
    with Broker(data_dir=str(tmp_path / "data")) as broker:
        connection = pika.BlockingConnection(pika.URLParameters(broker.url))
        channel = connection.channel()
        got: list[bytes] = []
        channel.basic_consume("amq.rabbitmq.reply-to", lambda *message: got.append(message[3]), auto_ack=True)
        channel.queue_declare("q")
        channel.basic_publish("", "q", b"ask", pika.BasicProperties(reply_to="amq.rabbitmq.reply-to"))
        properties = channel.basic_get("q", auto_ack=True)[1]
        channel.basic_publish("", properties.reply_to, b"answer")
        while not got:
            connection.process_data_events(0.01)
        connection.close()
    assert [row["event"] for row in events(str(tmp_path / "data"))] == ["left out"], "that there was one in a queue"
