"""`warren explain --live`: the next message that matches, its way, and each delivery of it; on either broker."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import warrenmq
from tests.cli.conftest import Run
from tests.support.brokers import RunningBroker, rabbitmq  # noqa: F401 (fixture)
from warrenmq.cli.explain.live import Wanted, as_published, is_same
from warrenmq.client import Connection, Properties
from warrenmq.testing import Broker
from warrenmq.wire.fields import from_python


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as one:
        yield one


class Following:
    """The command in a process of its own, as somebody at a terminal has it, who ends it with Ctrl-C."""

    def __init__(self, url: str, http_url: str, *options: str) -> None:
        source = str(Path(warrenmq.__file__).parents[1])
        self.process = subprocess.Popen(
            [sys.executable, "-m", "warrenmq", "explain", *options, "--live", "--json"],
            env={**os.environ, "PYTHONPATH": source, "WARREN_URL": url, "WARREN_HTTP_URL": http_url},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None and self.process.stderr is not None
        self.out, self.err = self.process.stdout, self.process.stderr

    def __enter__(self) -> Following:
        assert "waiting for what is published" in self.err.readline()
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait(60)
        self.out.close()
        self.err.close()

    def hop(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out.readline())
        return found

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(60)


def tracing(warren: Run, url: str) -> bool:
    return "true" in warren("ctl", "-q", "list_vhosts", "tracing", "--no-table-headers", "--url", url)[1]


def follow_one_that_dies(url: str, http_url: str = "") -> list[dict[str, Any]]:
    """The hops of a message that goes over two exchanges, is delivered, rejected and delivered as a dead letter."""
    with Connection(url) as connection:
        channel = connection.channel()
        channel.exchange_declare("events", "topic", durable=True)
        channel.exchange_declare("inner", "fanout", durable=True)
        channel.exchange_declare("dlx", "fanout", durable=True)
        channel.queue_declare("orders", durable=True, arguments={"x-dead-letter-exchange": "dlx"})
        channel.queue_declare("dead", durable=True)
        channel.exchange_bind("inner", "events", "order.#")
        channel.queue_bind("orders", "inner", "")
        channel.queue_bind("dead", "dlx", "")
        with Following(url, http_url, "events", "order.*", "-H", "tenant=acme", "--follow", "600") as following:
            for key, tenant in (("order.new", "other"), ("bid.new", "acme"), ("order.new.eu", "acme")):
                properties = Properties(headers=from_python({"tenant": tenant}), content_type="text/plain")
                channel.basic_publish("events", key, f"{key} of {tenant}".encode(), properties)
            connection.flush()
            hops = [following.hop()]
            channel.basic_consume("dead", no_ack=True)
            other, message = channel.basic_get("orders"), channel.basic_get("orders")
            assert other is not None and message is not None and message.routing_key == "order.new.eu"
            hops.append(following.hop())
            channel.basic_nack(message.delivery_tag, requeue=False)
            connection.flush()
            hops.append(following.hop())
            assert following.interrupt() == 0
    return hops


def seen(hops: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(hop["hop"], hop["exchange"], hop["routing_keys"], hop["queues"], hop["user"]) for hop in hops]


THE_WAY = [
    ("published", "events", ["order.new.eu"], ["orders"], "guest"),
    ("delivered", "events", ["order.new.eu"], ["orders"], "guest"),
    ("delivered", "dlx", ["order.new.eu"], ["dead"], "guest"),
]


def test_each_hop_of_the_next_message_that_matches_is_told(warren: Run, broker: Broker) -> None:
    hops = follow_one_that_dies(broker.url)
    assert seen(hops) == THE_WAY
    (inner,) = hops[0]["way"]["reached"]
    assert (inner["name"], inner["key"], inner["way"]["reached"][0]["name"]) == ("inner", "order.#", "orders")
    assert [(one["queue"], one["reason"]) for one in hops[2]["deaths"]] == [("orders", "rejected")]
    assert not tracing(warren, broker.url)  # as it was before


@pytest.mark.oracle
def test_rabbitmq_is_followed_as_well(rabbitmq: RunningBroker) -> None:  # noqa: F811
    assert seen(follow_one_that_dies(rabbitmq.url, rabbitmq.http_url.replace("://", "://guest:guest@"))) == THE_WAY


def test_one_is_sent_only_when_asked_for(warren: Run, broker: Broker) -> None:
    assert warren("declare", "queue", "q", WARREN_URL=broker.url)[0] == 0
    status, out, err = warren("explain", "", "q", "--live", "--timeout", "1", WARREN_URL=broker.url)
    assert (status, out) == (1, "") and err.splitlines()[-1] == (
        "warren explain: nothing was published to exchange '' with a key like 'q' within 1 s (--send sends one)"
    )
    assert warren("get", "q", WARREN_URL=broker.url)[0] == 1
    status, out, err = warren(
        *("explain", "", "q", "--live", "--send", "--body", "hé", "-H", "a=b", "--follow", "0.1"), WARREN_URL=broker.url
    )
    assert (status, err) == (0, "")
    told, *tree, summary, waits = out.splitlines()
    assert " published to '' with 'q', 3 octets, by user 'guest', " in told
    assert tree == ["exchange '' direct", "└── ✓ queue named by the key → queue 'q'"]
    assert (summary, waits) == ("reaches 1 queue: q", "delivered to nobody within 0.1 s: waits in q")
    (line,) = warren("get", "q", "--json", WARREN_URL=broker.url)[1].splitlines()
    sent = json.loads(line)
    assert (sent["payload"], sent["properties"]["headers"]) == ("hé", {"a": "b"})
    assert not tracing(warren, broker.url)


def test_one_that_no_queue_takes_is_status_1_with_the_reason(warren: Run, broker: Broker) -> None:
    for line in ("declare queue q", "bind amq.topic q a.b"):
        assert warren(*line.split(), WARREN_URL=broker.url)[0] == 0
    status, out, _ = warren("explain", "amq.topic", "a.c", "--live", "--send", WARREN_URL=broker.url)
    assert status == 1 and "word 2 of the key is 'c', not 'b'" in out
    assert out.splitlines()[-1] == "unroutable: dropped, or returned with 312 NO_ROUTE if mandatory"


def test_a_queue_that_is_in_no_definitions_is_named_apart(warren: Run, broker: Broker) -> None:
    with Connection(broker.url) as connection:
        channel = connection.channel()
        own = channel.queue_declare("", exclusive=True).str("queue")
        channel.queue_bind(own, "amq.fanout", "")
        line = ("explain", "amq.fanout", "k", "--live", "--send", "--follow", "0.1")
        status, out, _ = warren(*line, WARREN_URL=broker.url)
        assert status == 0
        assert out.splitlines()[-3:-1] == [
            f"in no definitions (exclusive, or changed meanwhile): {own}",
            f"reaches 1 queue: {own}",
        ]


RIGHTS = "configure and write for ^amq[.]gen and read for ^amq[.](gen|rabbitmq[.]trace) are needed"


@pytest.mark.parametrize(
    ("login", "options", "status", "said"),
    [
        ("watcher", [], 2, "may not read the definitions at "),
        ("chief", [], 2, f"user 'chief' may not read the firehose: in vhost '/' {RIGHTS}"),
        ("guest", ["--definitions", "x.json"], 2, "name either --definitions or --live, not both"),
        ("guest", ["--send", "-p", "nowhere"], 3, "NOT_ALLOWED - vhost nowhere not found"),
        ("guest", ["--follow", "0"], 2, "--follow"),
        ("guest", ["-H", "novalue"], 2, "header 'novalue' is neither name=text nor name:=JSON"),
    ],
)
def test_what_is_wrong_is_one_line_with_the_cure(
    login: str, options: list[str], status: int, said: str, warren: Run, broker: Broker
) -> None:
    assert warren("user", "add", "watcher", "guest", "--tag", "monitoring", WARREN_URL=broker.url)[0] == 0
    assert warren("user", "add", "chief", "guest", "--tag", "administrator", WARREN_URL=broker.url)[0] == 0
    assert warren("permission", "set", "chief", "^$", "^$", "^$", WARREN_URL=broker.url)[0] == 0
    url = broker.url.replace("guest:", f"{login}:")
    found, out, err = warren("explain", "amq.topic", "k", "--live", *options, "-u", url)
    assert (found, out) == (status, "") and said in err and len(err.splitlines()) == 1


def test_a_firehose_that_is_off_names_who_turns_it_on(warren: Run, broker: Broker) -> None:
    assert warren("user", "add", "watcher", "guest", "--tag", "monitoring", WARREN_URL=broker.url)[0] == 0
    assert warren("permission", "set", "watcher", WARREN_URL=broker.url)[0] == 0
    url = broker.url.replace("guest:", "watcher:")
    assert warren("trace", "--timeout", "1", "-u", url) == (
        2,
        "",
        "warren trace: the firehose of vhost '/' is off, and user 'watcher' may not turn it on: an administrator does, "
        "with `warren ctl trace_on -p /`\n",
    )
    assert warren("ctl", "trace_on", "--url", broker.url)[0] == 0
    assert warren("trace", "--timeout", "0.1", "-u", url) == (0, "", "")  # on: whoever may read it does
    assert tracing(warren, broker.url)


def test_send_without_live_sends_nothing(warren: Run, broker: Broker) -> None:
    status, out, err = warren("explain", "", "q", "--send", WARREN_URL=broker.url)
    assert (status, out, err) == (2, "", "warren explain: --send goes with --live: without it no message is sent\n")


@pytest.mark.pure
def test_a_message_is_known_again_by_its_id_or_else_by_what_it_says() -> None:
    sent = {"what": "published", "body": b"x", "properties": {"headers": {"a": 1}, "expiration": "5"}}
    later = {"what": "delivered", "body": b"x", "properties": {"headers": {"a": 1, "x-death": [{}]}}}
    assert is_same(sent, later)
    assert not is_same(sent, later | {"body": b"y"})
    assert not is_same(sent, later | {"what": "published"})
    assert not is_same(sent, later | {"properties": {"headers": {"a": 2}}})
    named = {"message_id": "m"}
    assert is_same(sent | {"properties": named}, later | {"properties": named | {"headers": {"more": 1}}})
    assert not is_same(sent | {"properties": named}, later | {"properties": {"message_id": "n"}})


@pytest.mark.pure
def test_copies_of_a_message_are_part_of_its_way() -> None:
    row = {"exchange": "e", "routing_keys": ["k", "c", "b"], "properties": {"headers": {"CC": ["c"]}}}
    assert as_published(row) == ("e", "k", {"CC": ["c"], "BCC": ["b"]})
    assert as_published({"exchange": "e", "routing_keys": ["k"], "properties": {}}) == ("e", "k", None)
    wanted = Wanted("e*", "b", {})
    assert wanted.is_met_by({**row, "what": "published"}) and not wanted.is_met_by({**row, "what": "delivered"})
