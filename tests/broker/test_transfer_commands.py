"""`warren move`, `copy`, `redrive` and `transfers`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from warrenmq.cli.main import build_app
from warrenmq.client import Channel, Connection, Properties
from warrenmq.testing import Broker
from warrenmq.wire.fields import from_python


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(data_dir=tmp_path) as broker:
        yield broker


@pytest.fixture
def channel(broker: Broker) -> Channel:
    """Three messages in "orders", and three that were rejected there in "dead"."""
    channel = Connection(broker.url).channel()
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    channel.queue_declare("orders", durable=True, arguments=arguments)
    channel.queue_declare("dead", durable=True)
    channel.queue_declare("other", durable=True)
    channel.confirm_select()
    for body in ("d0", "d1", "d2", "o0", "o1", "o2"):
        headers = from_python({"tenant": body[1]})
        channel.basic_publish("", "orders", body.encode(), Properties(delivery_mode=2, headers=headers))
    channel.wait_for_confirms(10)
    for _ in range(3):
        message = channel.basic_get("orders")
        assert message is not None
        channel.basic_reject(message.delivery_tag, requeue=False)
    return channel


def run(broker: Broker, *arguments: str) -> Result:
    url = broker.http_url.replace("//", "//guest:guest@")
    return CliRunner().invoke(build_app(arguments[0]), [*arguments, "--url", url])


def count(channel: Channel, queue: str) -> int:
    return channel.queue_declare(queue, passive=True).int("message_count")


def test_messages_are_moved_and_taken_back(broker: Broker, channel: Channel) -> None:
    shown = run(broker, "move", "orders", "other", "--header", "tenant=1")
    assert shown.exit_code == 0 and "transfer 1: done: 1 of 1 messages moved, 2 bytes" in shown.stdout
    assert "1 to 'other'" in shown.stdout and "warren transfers undo 1" in shown.stdout
    assert (count(channel, "orders"), count(channel, "other")) == (2, 1)
    undone = run(broker, "transfers", "undo", "1")
    assert "undo: done: 1 taken back, 0 not" in undone.stdout
    assert (count(channel, "orders"), count(channel, "other")) == (3, 0)


def test_messages_are_copied(broker: Broker, channel: Channel) -> None:
    assert run(broker, "copy", "orders", "other", "--limit", "2").exit_code == 0
    assert (count(channel, "orders"), count(channel, "other")) == (3, 2)


def test_dead_letters_are_grouped_previewed_and_sent_back(broker: Broker, channel: Channel) -> None:
    shown = run(broker, "redrive", "dead", "--by", "reason", "--by", "queue")
    title, line = shown.stdout.splitlines()
    assert title.split()[-2:] == ["REASON", "QUEUE"] and line.split() == ["3", "6", "0", "1-3", "rejected", "orders"]
    assert "3 of 3 messages would be sent back" in run(broker, "redrive", "dead", "--dry-run").stdout
    assert count(channel, "dead") == 3
    one = json.loads(run(broker, "redrive", "dead", "--reason", "rejected", "--text", "d2", "--json").stdout)
    assert (one["sent"], one["targets"]) == (1, {"orders": 1}) and count(channel, "dead") == 2
    elsewhere = run(broker, "redrive", "dead", "--to", "", "--to-key", "other", "--first-queue", "orders")
    assert "2 to 'other'" in elsewhere.stdout and count(channel, "other") == 2


def test_transfers_are_listed_shown_and_cancelled(broker: Broker, channel: Channel) -> None:
    started = run(broker, "move", "orders", "other", "--rate", "0.5", "--detach")
    assert "transfer 1: " in started.stdout
    assert "cancelled" in run(broker, "transfers", "cancel", "1").stdout
    assert "\n1\tmove\torders\tguest\tcancelled\t" in run(broker, "transfers", "list").stdout
    assert "transfer 1: cancelled" in run(broker, "transfers", "show", "1").stdout
    assert count(channel, "orders") + count(channel, "other") == 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["move", "orders", "nobody"], "no queue 'nobody' in vhost '/'"),
        (["redrive", "dead", "--older", "x"], "--older: 'x' is no time span"),
        (["transfers", "show", "7"], "no transfer '7' in vhost '/'"),
        (["transfers", "undo", "7"], "no transfer '7' in vhost '/'"),
    ],
)
def test_what_is_wrong_is_said(broker: Broker, channel: Channel, arguments: list[str], said: str) -> None:
    shown = run(broker, *arguments)
    assert shown.exit_code == 2 and said in shown.stderr
