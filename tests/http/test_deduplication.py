"""Deduplication from outside: set by a command, seen at the exchange and in the metrics, over a restart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import web
from warrenmq.cli.ctl import command as ctl
from warrenmq.client import Connection, Properties
from warrenmq.testing import Broker

pytestmark = pytest.mark.pure

AUTH = ("guest", "guest")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(data_dir=tmp_path) as broker:
        yield broker


def set_policy(broker: Broker, definition: str) -> int:
    url = broker.http_url.replace("http://", "http://guest:guest@")
    return ctl.main(["-q", "set_policy", "--apply-to", "exchanges", "once", "^orders$", definition, "--url", url])


def publish(broker: Broker, *ids: str) -> int:
    """The ids, each confirmed; how many messages are in the queue then."""
    with Connection(broker.url) as connection:
        channel = connection.channel()
        channel.exchange_declare("orders", "fanout", durable=True)
        channel.queue_declare("q", durable=True)
        channel.queue_bind("q", "orders", "")
        channel.confirm_select()
        for id in ids:
            channel.basic_publish("orders", "k", b"x", Properties(delivery_mode=2, message_id=id))
        channel.wait_for_confirms(60)
        return channel.queue_declare("q", durable=True).int("message_count")


def memory(broker: Broker) -> dict[str, Any]:
    answer = web.get(f"{broker.http_url}/api/exchanges/%2F/orders", auth=AUTH).json()
    found: dict[str, Any] = answer["deduplication"]
    return found


def metric(broker: Broker, name: str) -> float:
    lines = web.get(f"{broker.http_url}/metrics", auth=AUTH).text.splitlines()
    (line,) = [line for line in lines if line.startswith(f"{name} ")]
    return float(line.split()[1])


def test_a_command_sets_it_and_the_exchange_and_the_metrics_show_it(broker: Broker) -> None:
    assert set_policy(broker, '{"deduplication-window": 3600000, "deduplication-max": 2}') == 0
    assert publish(broker, "a", "a", "b", "c", "c") == 3
    shown = memory(broker)
    since = shown.pop("since")
    assert shown == {"window": 3600000, "max": 2, "ids": 2, "duplicates": 2, "evicted_early": 1}
    assert metric(broker, "warren_deduplication_ids") == 2
    assert metric(broker, "warren_deduplication_duplicates_total") == 2
    assert metric(broker, "warren_deduplication_evicted_early_total") == 1
    broker.restart()
    assert publish(broker, "b", "c") == 3
    assert memory(broker)["since"] == since
    plain = web.get(f"{broker.http_url}/api/exchanges/%2F/amq.fanout", auth=AUTH).json()
    assert "deduplication" not in plain


def test_stop_app_forgets_the_ids_of_what_it_forgets(broker: Broker) -> None:
    set_policy(broker, '{"deduplication-window": 3600000}')
    publish(broker, "kept")
    with Connection(broker.url) as connection:
        channel = connection.channel()
        channel.confirm_select()
        channel.basic_publish("orders", "k", b"x", Properties(delivery_mode=1, message_id="transient"))
        channel.wait_for_confirms(60)
    url = broker.http_url.replace("http://", "http://guest:guest@")
    for verb in ("stop_app", "start_app"):
        assert ctl.main(["-q", verb, "--url", url]) == 0
    assert publish(broker, "kept", "transient") == 2
    assert memory(broker)["duplicates"] == 1


@pytest.mark.parametrize(
    ("definition", "words"),
    [
        ('{"deduplication-window": 0}', "is not a valid deduplication window in milliseconds"),
        ('{"deduplication-window": "1h"}', "is not a valid deduplication window in milliseconds"),
        ('{"deduplication-max": 0}', "is not a valid maximum of remembered ids"),
    ],
)
def test_what_makes_no_sense_is_refused(
    broker: Broker, definition: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert set_policy(broker, definition) != 0
    assert words in capsys.readouterr().err


def test_a_window_beyond_all_measure_is_one(broker: Broker) -> None:
    assert set_policy(broker, '{"deduplication-window": 1' + "0" * 30 + "}") == 0
    assert publish(broker, "a", "a") == 1
