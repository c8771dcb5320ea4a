"""What the log tells of each publish: who published it under which number, and why it is in no queue."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from warrenmq.broker.queue.wanted import Wanted
from warrenmq.broker.transfer.transfer import COPY, Transfer
from warrenmq.broker.transfer.ways import ToQueue
from warrenmq.log.causes import DUPLICATE, NACKED, NOT_TAKEN, REFUSED_PUBLISH, RETURNED, UNROUTABLE
from warrenmq.log.event_reader import Fate, Witness
from warrenmq.log.history import tell_all
from warrenmq.log.levels import ALL, BODIES, OFF
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.testing.faults import FaultyDisk
from warrenmq.wire.constants import FRAME_HEADER
from warrenmq.wire.content import Properties, encode_header, frame
from warrenmq.wire.fields import from_python
from warrenmq.wire.methods import method_frame

pytestmark = pytest.mark.pure

WORDS = {
    RETURNED: "returned",
    UNROUTABLE: "unroutable",
    NOT_TAKEN: "not taken",
    NACKED: "nacked",
    REFUSED_PUBLISH: "refused",
    DUPLICATE: "duplicate",
}


class Publishes(Witness):
    """What is said of publishes, with the channel that each came from."""

    def __init__(self) -> None:
        self.names: dict[int, bytes] = {}
        self.published: list[tuple[int, int]] = []
        self.fates: list[tuple[str, int, int, int, str]] = []
        self.contents: list[tuple[bytes, bytes, bytes]] = []
        self.ids: list[int] = []
        self.bodies: list[tuple[int, bytes]] = []
        self.unlogged_by: list[tuple[int, int]] = []

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
            self.contents.append((fate.exchange, fate.keys, fate.header))
            self.ids.append(int(fate.id))

    def unlogged(
        self, time: int, who: int, id: int, count: int, number: int, header: bytes, exchange: bytes, keys: bytes
    ) -> None:
        self.unlogged_by.append((self.channel(who), int(number)))

    def body(self, id: int, body: bytes, lacking: int) -> None:  # noqa: ARG002
        self.bodies.append((int(id), body))


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


@pytest.mark.parametrize("mode", [1, 2])
def test_a_duplicate_is_told_with_its_number_under_the_id_of_the_one_that_was_taken(
    client: CoreClient, mode: int
) -> None:
    core = client.core
    assert isinstance(core, Core)
    core.policy("^amq.fanout$", "exchanges", deduplication_window=3_600_000)
    core.broker.vhosts["/"].set_journal(BODIES, 1)
    client.call("queue.bind", queue="q", exchange="amq.fanout")
    for _ in range(3):
        client.publish("amq.fanout", "k", b"x", channel=2, message_id="m", delivery_mode=mode)
    said = told(core)
    assert said.fates == [("duplicate", 2, 2, 0, ""), ("duplicate", 2, 3, 0, "")]
    assert [content[:2] for content in said.contents] == [(b"amq.fanout", b"\x01k")] * 2
    assert len(set(said.ids)) == 1 and {id for id, _ in said.bodies} <= set(said.ids)
    client.consume("q")
    [(_, taken)] = client.connection.channels[1].outstanding.unacked.tagged()
    assert said.ids[0] == taken.message.id


def test_a_queue_of_which_nothing_is_told_is_not_said_to_have_refused_a_message(client: CoreClient) -> None:
    core = client.core
    assert isinstance(core, Core)
    client.declare("quiet", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    core.policy("^quiet$", journal="off")
    for queue in ("full", "quiet"):
        client.call("queue.bind", queue=queue, exchange="amq.fanout")
        client.publish("", queue, b"x")
    client.call("queue.bind", queue="q", exchange="amq.fanout")
    client.publish("amq.fanout", "", b"x")
    assert [fate[0] for fate in told(core).fates] == ["not taken", "not taken"]


def test_a_dead_letter_that_only_memory_has_is_written_by_nobody_whoever_published_last(client: CoreClient) -> None:
    core = client.core
    assert isinstance(core, Core)
    core.broker.vhosts["/"].set_journal(ALL, 1)
    client.declare("dead")
    letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    client.declare("short", arguments={"x-message-ttl": 1000, **letters})
    client.publish("", "short", b"x", channel=2, delivery_mode=1)
    core.advance(1000)
    assert core.ready("dead") == 1
    assert told(core).unlogged_by == [(2, 1), (0, 0)]


@pytest.mark.parametrize("named", [False, True])
def test_what_waits_in_a_delayed_exchange_in_memory_alone_has_its_channel_and_its_number(
    client: CoreClient, named: bool
) -> None:
    """Also the first, before which the exchange had nothing to be told."""
    core = client.core
    assert isinstance(core, Core)
    later = {"x-delayed-type": "direct"}
    client.call("exchange.declare", exchange="later", type="x-delayed-message", durable=False, arguments=later)
    core.policy("^later$", "exchanges", journal="all")
    for number, channel in enumerate((2, 1, 2)):
        name = {"x-delay-id": f"id-{number}"} if named else {}
        headers = from_python({"x-delay": 1000, **name})
        client.publish("later", "q", b"x", channel=channel, delivery_mode=1, headers=headers)
    assert told(core).unlogged_by == [(2, 1), (1, 0), (2, 2)]


def test_a_copy_that_only_memory_has_is_written_by_nobody_whoever_published_last(client: CoreClient) -> None:
    core = client.core
    assert isinstance(core, Core)
    core.broker.vhosts["/"].set_journal(ALL, 1)
    client.declare("copies")
    client.publish("", "q", b"x", delivery_mode=1)
    client.publish("", "q", b"published last", channel=2, delivery_mode=1)
    copy = Transfer("1", COPY, core.queue("q"), Wanted(), b"", ToQueue(core.queue("copies")), 0, 1, False)
    core.broker.begin_turn()
    assert copy.step(10)
    core.end_turn()
    assert core.ready("copies") == 1
    assert told(core).unlogged_by == [(1, 0), (2, 1), (0, 0)]


def test_a_reply_that_reached_its_channel_is_not_unroutable(client: CoreClient) -> None:
    core = client.core
    assert isinstance(core, Core)
    client.call("basic.consume", queue="amq.rabbitmq.reply-to", no_ack=True)
    client.publish("", "q", b"question", reply_to="amq.rabbitmq.reply-to")
    got = client.call("basic.get", queue="q", no_ack=True)
    assert got.properties is not None and got.properties.reply_to
    core.client().publish("", got.properties.reply_to, b"answer")
    assert told(core).fates == []


@pytest.mark.parametrize("fails", ["the disk", "the queue"])
def test_a_channel_that_is_over_has_nothing_returned_to_it_and_the_journal_says_no_other(
    tmp_path: Path, fails: str
) -> None:
    disk = FaultyDisk()
    core = Core(tmp_path, disk, held=True)
    client = core.client(persistent=True)
    client.declare("q")
    client.publish("", "q", b"x", mandatory=True)
    client.send("channel.close", reply_code=200, reply_text="", class_id=0, method_id=0)
    if fails == "the disk":
        disk.fail()
        core.commit()
        disk.repair()
        core.retry()
    else:
        core.broker.begin_turn()
        core.broker.fail_queue(core.queue("q"))
        core.end_turn()
        core.commit()
    assert told(core).fates == []


# -- refused -------------------------------------------------------------------------------------------------------


def test_a_publish_that_is_refused_is_told_with_what_it_was_and_why(client: CoreClient) -> None:
    core = client.core
    assert isinstance(core, Core)
    what = Properties(delivery_mode=2, expiration="soon", message_id="m")
    client.publish("amq.direct", "a key", b"four", what, channel=2)
    closed = client.closing()
    assert closed.startswith("406 PRECONDITION_FAILED - invalid expiration 'soon'")
    said = told(core)
    assert said.fates == [("refused", 2, 0, 406, closed.removeprefix("406 "))]
    assert said.contents == [(b"amq.direct", b"\x05a key", encode_header(what, 4))]


def test_properties_that_cannot_be_read_are_not_in_the_journal_but_that_they_were_refused_is(
    client: CoreClient,
) -> None:
    core = client.core
    assert isinstance(core, Core)
    unreadable = encode_header(Properties(), 0)[:-2] + b"\x80\x00"  # a content type, it says, and there is none
    publish = method_frame(1, "basic.publish", exchange="amq.topic", routing_key="k", mandatory=False, immediate=False)
    client.feed(publish + frame(FRAME_HEADER, 1, unreadable))
    code, _, text = client.closing().partition(" ")
    said = told(core)
    assert said.fates == [("refused", 1, 0, int(code), text)]
    assert said.contents == [(b"amq.topic", b"\x01k", b"")]


def test_of_a_vhost_at_the_level_off_no_refusal_is_told(client: CoreClient) -> None:
    core = client.core
    assert isinstance(core, Core)
    core.broker.vhosts["/"].set_journal(OFF, 1)
    client.publish("nowhere", "k", b"x")
    assert client.closing().startswith("404 ")
    assert told(core).fates == []


def test_a_publish_that_is_refused_behind_its_number_is_counted_beside_the_confirms(client: CoreClient) -> None:
    """The ledger, which is looked at behind each turn, wants every number to be answered or refused."""
    tally = client.core.broker.services.tally
    for mode, numbered in ((1, 0), (3, 0), (3, 1)):
        client.open(3 + mode + numbered, "confirm.select" if numbered else "")
        client.publish("", "q", b"x", channel=3 + mode + numbered, delivery_mode=mode)
    assert (tally.refused, tally.refused_numbered) == (2, 1)


@pytest.mark.parametrize("level", [ALL, BODIES])
def test_what_is_refused_or_in_no_queue_is_told_with_what_it_said_where_bodies_are_told(
    client: CoreClient, level: int
) -> None:
    core = client.core
    assert isinstance(core, Core)
    core.broker.vhosts["/"].set_journal(level, 1)
    client.publish("", "nowhere", b"unroutable", channel=2)
    client.publish("", "full", b"not taken", channel=2)  # and nacked: its body is told once
    for channel, wrong in ((3, {"expiration": "soon"}), (4, {"delivery_mode": 3})):  # before it has an id, and behind
        client.open(channel)
        client.publish("", "q", b"refused", channel=channel, **wrong)
    said = told(core)
    assert [fate[0] for fate in said.fates] == ["unroutable", "not taken", "nacked", "refused", "refused"]
    first, second, third, fourth, fifth = said.ids
    assert second == third and len({first, second, fourth, fifth}) == 4 and (fourth != 0) == (level == BODIES)
    bodies = [(first, b"unroutable"), (second, b"not taken"), (fourth, b"refused"), (fifth, b"refused")]
    assert said.bodies == (bodies if level == BODIES else [])


def test_refused_publishes_in_several_frames_are_told_apart_with_their_bodies(client: CoreClient) -> None:
    core = client.core
    assert isinstance(core, Core)
    core.broker.vhosts["/"].set_journal(BODIES, 1)
    bodies = [letter * 200_000 for letter in (b"a", b"b")]
    for channel, body in enumerate(bodies, 3):
        client.open(channel)
        client.publish("", "q", body, channel=channel, expiration="soon")
    said = told(core)
    assert [fate[0] for fate in said.fates] == ["refused", "refused"] and len(set(said.ids)) == 2
    assert said.bodies == list(zip(said.ids, bodies, strict=True))
