"""`warren peek`: the command line's view of a queue."""

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
    with Broker(clock="virtual", data_dir=tmp_path) as broker:
        yield broker


@pytest.fixture
def channel(broker: Broker) -> Channel:
    channel = Connection(broker.url).channel()
    channel.queue_declare("orders")
    channel.confirm_select()
    for number in range(5):
        headers = from_python({"tenant": f"t{number % 2}"})
        channel.basic_publish("", "orders", b"order %d" % number + b"." * 1000 * number, Properties(headers=headers))
    channel.wait_for_confirms(10)
    return channel


def run(broker: Broker, *arguments: str) -> Result:
    command = ["peek", *arguments, "--url", broker.http_url.replace("//", "//guest:guest@")]
    return CliRunner().invoke(build_app("peek"), command)


def positions(broker: Broker, *arguments: str) -> list[int]:
    shown = run(broker, "orders", "--json", *arguments)
    assert shown.exit_code == 0, shown.output
    return [one["position"] for one in json.loads(shown.stdout)]


def test_a_table_of_what_waits_and_what_is_held_without_bodies(broker: Broker, channel: Channel) -> None:
    channel.basic_get("orders")
    broker.advance(150)
    shown = run(broker, "orders")
    assert shown.exit_code == 0
    title, first, second, *_ = shown.stdout.splitlines()
    assert title.split()[:3] == ["POSITION", "STATE", "AGE"] and len(shown.stdout.splitlines()) == 6
    assert first.split()[:4] == ["1", "unacked", "2m30s", "2m30s"] and "basic.get on 127.0.0.1:" in first
    assert second.split()[:3] == ["2", "waiting", "2m30s"] and "order" not in second.replace("orders", "")


def test_bodies_are_shown_when_asked_for(broker: Broker, channel: Channel) -> None:
    assert "order 0\n" in run(broker, "orders", "--body", "--limit", "1").stdout


def test_options_choose_messages(broker: Broker, channel: Channel) -> None:
    channel.basic_get("orders")
    broker.advance(60)
    assert positions(broker) == [1, 2, 3, 4, 5]
    assert positions(broker, "--held") == [1] and positions(broker, "--waiting") == [2, 3, 4, 5]
    assert positions(broker, "--header", "tenant=t1") == [2, 4]
    assert positions(broker, "--larger", "2k", "--smaller", "3100") == [4]
    assert positions(broker, "--text", "order 3") == [4]
    assert positions(broker, "--key", "ord*") == [1, 2, 3, 4, 5] and positions(broker, "--key", "ord") == []
    assert positions(broker, "--older", "30s", "--limit", "2") == [1, 2] and positions(broker, "--younger", "30s") == []
    assert positions(broker, "--from", "4") == [4, 5]


def test_a_page_that_ends_before_the_queue_says_where_to_go_on(broker: Broker, channel: Channel) -> None:
    shown = run(broker, "orders", "--limit", "2")
    assert "more from position 3 on: --from 3" in shown.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nobody"], "warren peek: no queue 'nobody' in vhost '/'"),
        (["orders", "--held", "--waiting"], "choose one"),
        (["orders", "--older", "long"], "--older: 'long' is no time span"),
        (["orders", "--larger", "much"], "--larger: 'much' is no size"),
        (["orders", "--header", "tenant"], "a header is name=value"),
    ],
)
def test_what_is_wrong_is_said(broker: Broker, channel: Channel, arguments: list[str], said: str) -> None:
    shown = run(broker, *arguments)
    assert shown.exit_code == 2 and said in shown.stderr
