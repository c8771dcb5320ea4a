"""`warren trace`: the firehose as lines, chosen, and turned off again."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from tests.cli.conftest import Run
from warrenmq.cli.main import run
from warrenmq.client import Connection
from warrenmq.testing import Broker


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as one:
        yield one


def tracing(warren: Run, url: str) -> bool:
    return "true" in warren("ctl", "-q", "list_vhosts", "tracing", "--no-table-headers", "--url", url)[1]


@pytest.fixture
def traced(warren: Run, broker: Broker, capfd: pytest.CaptureFixture[str]) -> Callable[..., list[str]]:
    """The lines that a trace with these options prints of what the test does meanwhile."""

    def call(work: Callable[[], None], *options: str) -> list[str]:
        statuses: list[int] = []
        command = ["trace", "-u", broker.url, "--timeout", "60", *options]
        thread = threading.Thread(target=lambda: statuses.append(run(command)))
        assert not tracing(warren, broker.url)
        thread.start()
        deadline = time.monotonic() + 60
        while not tracing(warren, broker.url):
            assert time.monotonic() < deadline and thread.is_alive()
        capfd.readouterr()
        work()
        thread.join(60)
        assert statuses == [0]
        out = capfd.readouterr().out
        assert not tracing(warren, broker.url)  # as it was before
        return out.splitlines()

    return call


def test_publishes_and_deliveries_are_lines(traced: Callable[..., list[str]], broker: Broker) -> None:
    def work() -> None:
        with Connection(broker.url) as connection:
            channel = connection.channel()
            channel.queue_declare("q")
            channel.queue_bind("q", "amq.topic", "a.#")
            channel.basic_publish("amq.topic", "a.b", b"one\ttwo")
            connection.flush()
            assert channel.basic_get("q", no_ack=True) is not None

    head, *lines = [line.split("\t") for line in traced(work, "-n", "2")]
    assert head == ["TIME", "WHAT", "EXCHANGE", "ROUTING KEYS", "QUEUES", "BYTES", "BODY"]
    assert [line[1:] for line in lines] == [
        ["published", "amq.topic", "a.b", "q", "7", "one\\ttwo"],
        ["delivered", "amq.topic", "a.b", "q", "7", "one\\ttwo"],
    ]


CHOICES = [["--exchange", "amq.dir*"], ["--queue", "wanted"], ["--key", "want?d"], ["-e", "amq.direct", "-q", "w*"]]


@pytest.mark.parametrize("options", CHOICES)
def test_only_what_was_asked_for_is_shown(traced: Callable[..., list[str]], broker: Broker, options: list[str]) -> None:
    def work() -> None:
        with Connection(broker.url) as connection:
            channel = connection.channel()
            for name in ("other", "wanted"):
                channel.queue_declare(name)
                channel.queue_bind(name, "amq.direct" if name == "wanted" else "amq.topic", name)
                channel.basic_publish("amq.direct" if name == "wanted" else "amq.topic", name, name.encode() + b"\xff")
            connection.flush()
            channel.basic_qos(0)

    (line,) = traced(work, *options, "-n", "1", "--json")
    row = json.loads(line)
    assert (row["what"], row["exchange"], row["routing_keys"]) == ("published", "amq.direct", ["wanted"])
    assert (row["queues"], row["user"], row["payload_encoding"]) == (["wanted"], "guest", "base64")


def test_what_is_wrong_is_one_line(warren: Run, broker: Broker) -> None:
    for options, status in ((["-u", "amqp://127.0.0.1:1/"], 3), (["-u", broker.url, "-p", "nowhere"], 3)):
        found, out, err = warren("trace", *options, "--timeout", "1")
        assert (found, out) == (status, "") and err.startswith("warren trace: ") and len(err.splitlines()) == 1
