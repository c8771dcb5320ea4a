"""What the log tells of each publish: who published it under which number, and why it is in no queue."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from warrenmq.log.causes import NACKED, NOT_TAKEN, RETURNED, UNROUTABLE
from warrenmq.log.event_reader import Fate, Witness
from warrenmq.log.history import tell_all
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.wire.fields import from_python

pytestmark = pytest.mark.pure

WORDS = {RETURNED: "returned", UNROUTABLE: "unroutable", NOT_TAKEN: "not taken", NACKED: "nacked"}


class Publishes(Witness):
    """What is said of publishes, with the channel that each came from."""

    def __init__(self) -> None:
        self.names: dict[int, bytes] = {}
        self.published: list[tuple[int, int]] = []
        self.fates: list[tuple[str, int, int, int, str]] = []

    def named(self, who: int, text: bytes) -> None:
        self.names[who] = text

    def channel(self, who: int) -> int:
        return int(json.loads(self.names[who])["channel"]) if who else 0

    def message(self, time: int, address: int, data: bytes, at: int, who: int, number: int) -> None:
        self.published.append((self.channel(who), int(number)))

    def fate(self, time: int, fate: Fate) -> None:
        if fate.what in WORDS:
            text = fate.text.decode()
            said = (WORDS[int(fate.what)], self.channel(int(fate.who)), int(fate.number), int(fate.code), text)
            self.fates.append(said)


def told(core: Core) -> Publishes:
    core.turn()
    core.log.flush()
    publishes = Publishes()
    tell_all(str(core.folder), core.files, publishes)
    return publishes


@pytest.fixture
def client(tmp_path: Path) -> CoreClient:
    client = Core(tmp_path).client(persistent=True)
    client.declare("q")
    client.declare("full", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    client.open(2, "confirm.select")
    client.take()
    return client


def test_a_publish_that_is_written_has_its_channel_and_its_number(client: CoreClient) -> None:
    core = client.core
    assert isinstance(core, Core)
    client.publish("", "q", b"not counted")
    for _ in range(2):
        client.publish("", "q", b"counted", channel=2)
    client.publish("", "q", b"in memory alone", channel=2, delivery_mode=1)
    client.publish("", "q", b"mandatory", mandatory=True)
    assert told(core).published == [(1, 0), (2, 1), (2, 2), (1, 1)]


def test_a_publish_that_is_in_no_queue_has_its_cause_once(client: CoreClient) -> None:
    core = client.core
    assert isinstance(core, Core)
    client.publish("", "nowhere", b"x")
    client.publish("", "nowhere", b"x", channel=2)
    client.publish("", "nowhere", b"x", channel=2, mandatory=True)
    client.publish("", "full", b"x")
    client.publish("", "full", b"x", channel=2)
    wanted = from_python({"x-confirm-min-queues": 2})
    client.publish("", "q", b"x", channel=2, headers=wanted)
    said = told(core).fates
    assert [fate[:4] for fate in said] == [
        ("unroutable", 1, 0, 0),
        ("unroutable", 2, 1, 0),
        ("returned", 2, 2, 312),
        ("not taken", 1, 0, 0),
        ("not taken", 2, 3, 0),
        ("nacked", 2, 3, 0),
        ("nacked", 2, 4, 0),
    ]
    texts = [text for *_, text in said]
    assert texts[:3] == ["", "", "NO_ROUTE"] and all(texts[3:5])
    assert texts[5:] == ["a queue did not take it", "fewer queues took it than x-confirm-min-queues"]


def test_a_reply_that_reached_its_channel_is_not_unroutable(client: CoreClient) -> None:
    core = client.core
    assert isinstance(core, Core)
    client.call("basic.consume", queue="amq.rabbitmq.reply-to", no_ack=True)
    client.publish("", "q", b"question", reply_to="amq.rabbitmq.reply-to")
    got = client.call("basic.get", queue="q", no_ack=True)
    assert got.properties is not None and got.properties.reply_to
    core.client().publish("", got.properties.reply_to, b"answer")
    assert told(core).fates == []
