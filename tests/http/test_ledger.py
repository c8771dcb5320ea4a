"""The ledger as operators see it: over HTTP, as metrics, as a health check, on the command line."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.crash.process import BrokerProcess
from tests.http.conftest import Api
from tests.support import planting, web
from warrenmq.broker.queue.classic import ClassicQueue
from warrenmq.cli.main import build_app
from warrenmq.client import Connection, Properties


@dataclass(frozen=True)
class Fault(planting.Fault):
    """For a broker of its own."""


def counts_twice(right: Any, self: Any, entry: Any) -> None:
    right(self, entry)
    self.deliveries.acked += 1


FAULTS = (Fault("an acknowledgement counts twice", ClassicQueue.settle, counts_twice),)


def warren(url: str, *arguments: str) -> tuple[int, str]:
    address = url.replace("//", "//guest:guest@")
    result = CliRunner().invoke(build_app("ledger"), ["ledger", *arguments, "--url", address])
    return result.exit_code, result.output


@pytest.fixture(scope="module")
def used(api: Api) -> Iterator[Api]:
    """A queue with one message of five left, one of them acknowledged, one with a consumer, two fetched for good."""
    with Connection(api.broker.url) as connection:
        channel = connection.channel()
        channel.queue_declare("mine", durable=True)
        channel.confirm_select()
        channel.publish_many("", "mine", [b"%d" % number for number in range(5)], Properties(delivery_mode=2))
        assert channel.wait_for_confirms(60) == []
        for _ in range(2):
            assert channel.basic_get("mine", no_ack=True) is not None
        message = channel.basic_get("mine")
        assert message is not None
        channel.basic_ack(message.delivery_tag)
        assert channel.basic_get("mine") is not None
        channel.queue_declare("mine", passive=True)
        yield api


def lines(found: dict[str, Any], sum: str) -> dict[str, int]:
    (one,) = [one for one in found["sums"] if one["sum"] == sum]
    return {part: count for side in ("came", "left", "here") for part, count in one[side].items() if count}


SUMS = ["entries", "streams", "order", "routing", "answers", "transactions", "delayed"]
EXPECTED = {"published": 5, "acked": 1, "auto_acked": 2, "unacked": 1, "waiting": 1}


def test_one_queue_one_vhost_and_everything_are_told_apart(used: Api) -> None:
    for path in ("/queues/%2F/mine/ledger", "/ledger/%2F", "/ledger"):
        found = used.get(path)
        assert found["even"] and found["queues"] == [] and lines(found, "entries") == EXPECTED
    assert [one["sum"] for one in used.get("/ledger")["sums"]] == SUMS
    assert lines(used.get("/ledger"), "answers") == {"published": 5, "acked": 5}
    assert used.ask("GET", "/ledger/nowhere").status_code == 404
    assert used.ask("GET", "/queues/%2F/nowhere/ledger").status_code == 404


def test_who_may_see_it(used: Api) -> None:
    for name, tags in (("monitor", "monitoring"), ("reader", "management"), ("stranger", "management")):
        used.put(f"/users/{name}", {"password": "p", "tags": tags})
    used.put("/permissions/%2F/reader", {"configure": "", "write": "", "read": "mine"})
    seen = {
        name: [
            used.ask("GET", path, user=(name, "p")).status_code
            for path in ("/ledger", "/ledger/%2F", "/queues/%2F/mine/ledger", "/health/checks/ledger")
        ]
        for name in ("monitor", "reader", "stranger")
    }
    assert seen == {
        "monitor": [200, 200, 401, 200],  # to read a queue takes permissions
        "reader": [401, 200, 200, 401],
        "stranger": [401, 401, 401, 401],
    }


def metrics(url: str) -> dict[str, float]:
    text = web.get(f"{url}/metrics").text
    rows = [line.rsplit(" ", 1) for line in text.splitlines() if line.startswith("warren_ledger")]
    return {name: float(value) for name, value in rows}


def awaited(url: str, difference: float) -> dict[str, float]:
    """After two more looks: the first of them may have been under way."""
    before = metrics(url)["warren_ledger_passes_total"]
    while (found := metrics(url))["warren_ledger_passes_total"] < before + 2:
        time.sleep(0.1)
    assert found['warren_ledger_difference{sum="entries"}'] == difference
    return found


def test_metrics_that_must_be_nothing_and_the_parts(used: Api) -> None:
    found = awaited(used.broker.http_url, 0)
    assert all(found[f'warren_ledger_difference{{sum="{sum}"}}'] == 0 for sum in SUMS)
    assert found["warren_ledger_queues_off"] == 0
    assert found['warren_ledger_messages{part="acked",side="left",sum="entries"}'] == 1
    assert used.get("/health/checks/ledger") == {"status": "ok"}


def test_the_command_line_prints_tables(used: Api) -> None:
    status, output = warren(used.broker.http_url, "--queue", "mine")
    assert status == 0 and output.endswith("everything adds up\n")
    assert [line.split() for line in output.splitlines()[:7]] == [
        ["entries"],
        ["published", "5"],
        ["left", "acked", "1"],
        ["left", "auto", "acked", "2"],
        ["here", "waiting", "1"],
        ["here", "unacked", "1"],
        ["difference", "0"],
    ]
    status, output = warren(used.broker.http_url, "--json")
    assert status == 0 and json.loads(output)["even"] is True
    assert warren(used.broker.http_url, "--vhost", "/")[0] == 0
    assert warren(used.broker.http_url, "--queue", "nowhere")[0] == 2


def test_a_difference_is_seen_everywhere_and_the_command_exits_with_1(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path, FAULTS[0])
    with contextlib.ExitStack() as stack:
        stack.callback(broker.end)
        broker.start()
        url = f"http://127.0.0.1:{broker.http_port}"
        with Connection(broker.url) as connection:
            channel = connection.channel()
            channel.queue_declare("off")
            channel.basic_publish("", "off", b"x")
            message = channel.basic_get("off")
            assert message is not None
            channel.basic_ack(message.delivery_tag)
            channel.queue_declare("off", passive=True)
            status, output = warren(url)
            assert status == 1 and "queue 'off' in vhost '/': entries off by -1" in output
            awaited(url, -1)
            answer = web.get(f"{url}/api/health/checks/ledger", auth=("guest", "guest"))
            assert answer.status_code == 503 and "'off'" in answer.json()["reason"]
        assert "ledger_difference" in broker.log
