"""What the journal says consumers got from streams is what they got."""

from __future__ import annotations

import json
from typing import Any

import pytest

from warrenmq.log.event_reader import Witness
from warrenmq.log.history import tell_all
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.wire.fields import Field

pytestmark = pytest.mark.pure

STREAM = {"x-queue-type": "stream"}


class Reads(Witness):
    """What is told of deliveries."""

    def __init__(self) -> None:
        self.names: dict[int, Any] = {}
        self.queues: dict[int, str] = {}
        self.runs: list[tuple[str, str, int, int, int]] = []  # consumer, stream, first offset, how many, first tag
        self.others: list[int] = []  # addresses of ordinary deliveries

    def named(self, who: int, text: bytes) -> None:
        self.names[who] = json.loads(text)

    def defined(self, kind: str, key: str, value: bytes) -> None:
        if kind == "queue":
            found = json.loads(value)
            self.queues[int(found["id"])] = found["name"]

    def read(self, time: int, who: int, queue: int, offset: int, count: int, tag: int) -> None:
        self.runs.append((self.names[who]["consumer"], self.queues[queue], int(offset), int(count), int(tag)))

    def delivered(
        self, time: int, who: int, queue: int, position: int, address: int, count: int, tag: int, flags: int
    ) -> None:
        self.others.append(int(address))


def told(core: Core) -> Reads:
    core.advance(2000)
    core.log.flush()
    reads = Reads()
    tell_all(str(core.folder), core.files, reads)
    return reads


@pytest.fixture
def client(core: Core) -> CoreClient:
    client = core.client(persistent=True)
    client.declare("s", arguments=STREAM)
    client.declare("q")
    return client


def consume(client: CoreClient, tag: str, prefetch: int = 100, offset: int = 0, channel: int = 1) -> None:
    client.call("basic.qos", channel, prefetch_count=prefetch)
    arguments = {"x-stream-offset": Field("l", offset)}
    client.send("basic.consume", channel, queue="s", consumer_tag=tag, arguments=arguments)


def test_a_replay_is_a_run_whatever_was_published_in_between(core: Core, client: CoreClient) -> None:
    for n in range(50):
        client.publish("", "s", b"x")
        client.publish("", "q", b"between") if n % 3 else None
    consume(client, "c")
    assert len(client.deliveries()) == 50
    reads = told(core)
    assert reads.runs == [("c", "s", 0, 50, 1)]
    assert reads.others == []


def test_every_consumer_has_its_own_and_a_second_replay_is_told_again(core: Core, client: CoreClient) -> None:
    for _ in range(4):
        client.publish("", "s", b"x")
    consume(client, "all")
    client.open(2)
    consume(client, "some", 3, 2, channel=2)
    client.publish("", "s", b"x")
    assert told(core).runs == [
        ("all", "s", 0, 4, 1),
        ("some", "s", 2, 2, 1),
        ("all", "s", 4, 1, 5),
        ("some", "s", 4, 1, 3),
    ]


def test_no_more_is_told_than_the_prefetch_lets_through(core: Core, client: CoreClient) -> None:
    for _ in range(5):
        client.publish("", "s", b"x")
    consume(client, "c", prefetch=2)
    assert told(core).runs == [("c", "s", 0, 2, 1)]
    client.send("basic.ack", delivery_tag=2, multiple=True)
    assert told(core).runs == [("c", "s", 0, 2, 1), ("c", "s", 2, 2, 3)]


def test_at_the_level_all_a_stream_is_told_the_same(core: Core, client: CoreClient) -> None:
    core.policy("s", journal="all")
    client.publish("", "s", b"x", delivery_mode=1)
    consume(client, "c")
    reads = told(core)
    assert (reads.runs, reads.others) == ([("c", "s", 0, 1, 1)], [])
