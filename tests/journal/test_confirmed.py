"""What the journal says was confirmed is what publishers were told, and nothing else."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warrenmq.log.causes import NACKED
from warrenmq.log.confirmed import Confirmed
from warrenmq.log.event_reader import Fate, Witness
from warrenmq.log.history import tell_all
from warrenmq.log.record import decode_message
from warrenmq.log.settings import LogSettings
from warrenmq.log.unconfirmed import FEW, Unconfirmed
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.testing.faults import FaultyDisk
from warrenmq.wire.content import decode_properties
from warrenmq.wire.fields import from_python
from warrenmq.wire.methods import method_frame

pytestmark = pytest.mark.pure


class Confirms(Witness):
    """Publishes and confirms by message_id."""

    def __init__(self) -> None:
        self.names: dict[int, Any] = {}
        self.ids: dict[int, str] = {}  # by address
        self.published: dict[str, tuple[int, int, int]] = {}  # time, channel, number
        self.acked: dict[str, tuple[int, int, int]] = {}
        self.nacked: list[tuple[int, int, str, str]] = []  # channel, number, message_id, why

    def named(self, who: int, text: bytes) -> None:
        self.names[who] = json.loads(text)

    def message(self, time: int, address: int, data: bytes, at: int, who: int, number: int) -> None:
        self._published(time, address, decode_message(data, at).header, who, number)

    def unlogged(
        self, time: int, who: int, id: int, count: int, number: int, header: bytes, exchange: bytes, keys: bytes
    ) -> None:
        for n in range(count):
            self._published(time, 1 << 62 | (id + n), header, who, number + n if number else 0)

    def _published(self, time: int, address: int, header: bytes, who: int, number: int) -> None:
        id = decode_properties(header).message_id or ""
        self.ids[address] = id
        if who:
            self.published[id] = (int(time), int(self.names[who]["channel"]), int(number))

    def fate(self, time: int, fate: Fate) -> None:
        if fate.what == NACKED and fate.address:
            channel = int(self.names[fate.who]["channel"])
            self.nacked.append((channel, int(fate.number), self.ids.get(fate.address, ""), fate.text.decode()))

    def confirmed(self, time: int, who: int, address: int, count: int, number: int) -> None:
        for n in range(count):
            id = self.ids[address + n]
            assert id not in self.acked, "told twice"
            self.acked[id] = (int(time), int(self.names[who]["channel"]), int(number + n))


def told(core: Core) -> Confirms:
    core.turn()
    core.log.flush()
    confirms = Confirms()
    tell_all(str(core.folder), core.files, confirms)
    return confirms


@pytest.fixture
def core(tmp_path: Path) -> Core:
    return Core(tmp_path, files=FaultyDisk(), held=True)


@pytest.fixture
def client(core: Core) -> CoreClient:
    return confirming(core)


def confirming(core: Core) -> CoreClient:
    client = core.client(persistent=True)
    client.declare("q")
    client.declare("memory", durable=False)
    core.commit()
    client.open(2, "confirm.select")
    client.take()
    return client


def test_a_publish_is_confirmed_when_the_disk_has_it_and_not_before(core: Core, client: CoreClient) -> None:
    for n in range(3):
        client.publish("", "q", b"x", channel=2, message_id=f"m{n}")
    core.clock.set_ms(core.clock.now_ms() + 70)
    core.commit()
    found = told(core)
    assert found.acked.keys() == {"m0", "m1", "m2"}
    for id, (time, *numbers) in found.acked.items():
        published, *expected = found.published[id]
        assert numbers == expected
        assert time - published == 70_000


def test_a_publish_on_a_channel_without_confirms_is_not_confirmed(core: Core, client: CoreClient) -> None:
    client.publish("", "q", b"x", message_id="plain")
    client.publish("", "q", b"x", message_id="mandatory", mandatory=True)
    client.open(3, "tx.select")
    client.publish("", "q", b"x", channel=3, message_id="transaction")
    client.send("tx.commit", 3)
    core.commit()
    found = told(core)
    assert found.published.keys() == {"plain", "mandatory", "transaction"}
    assert found.acked == {}


def test_publishes_before_confirm_select_are_not_confirmed_by_those_behind_it(core: Core, client: CoreClient) -> None:
    client.open(4)
    for id in ("before", "just before"):
        client.publish("", "q", b"x", channel=4, mandatory=True, message_id=id)
    select = method_frame(4, "confirm.select")
    client.feed(
        client.published("", "q", b"x", channel=4, mandatory=True, message_id="in the same turn")
        + select
        + client.published("", "q", b"x", channel=4, message_id="behind")
    )
    core.commit()
    assert told(core).acked.keys() == {"behind"}


def test_what_a_channel_that_closed_was_not_told_is_not_confirmed(core: Core, client: CoreClient) -> None:
    client.publish("", "q", b"x", channel=2, message_id="told")
    core.commit()
    client.publish("", "q", b"x", channel=2, message_id="abandoned")
    client.send("channel.close", 2, reply_code=200, reply_text="", class_id=0, method_id=0)
    core.commit()
    found = told(core)
    assert found.published.keys() == {"told", "abandoned"}
    assert found.acked.keys() == {"told"}


def test_what_the_disk_did_not_take_is_nacked_and_not_confirmed(core: Core, client: CoreClient) -> None:
    disk = core.files
    assert isinstance(disk, FaultyDisk)
    disk.fail("sync")
    client.publish("", "q", b"x", channel=2, message_id="nacked")
    core.commit()
    assert client.story() == ["nack 1+"]
    disk.repair()
    core.retry()
    client.publish("", "q", b"x", channel=2, message_id="later")
    core.commit()
    found = told(core)
    assert found.acked.keys() == {"later"}
    assert found.nacked == [(2, 1, "nacked", "the disk could not take it")]


def test_what_was_nacked_though_a_consumer_has_it_says_why(core: Core, client: CoreClient) -> None:
    disk = core.files
    assert isinstance(disk, FaultyDisk)
    client.send("basic.consume", 1, queue="q", no_ack=False)
    disk.fail("sync")
    client.publish("", "q", b"x", channel=2, message_id="seen")
    core.commit()
    disk.repair()
    core.retry()
    found = told(core)
    assert found.nacked == [(2, 1, "seen", "the disk could not take it")] and not found.acked


def test_what_was_nacked_because_a_queue_failed_says_so(core: Core, client: CoreClient) -> None:
    client.publish("", "q", b"x", channel=2, message_id="lost")
    core.broker.fail_queue(core.queue("q"))
    core.turn()
    core.commit()
    found = told(core)
    assert [one[3] for one in found.nacked] == ["a queue failed before it was safe"] and not found.acked


def test_what_was_nacked_is_not_kept_for_a_confirm_to_come(core: Core, client: CoreClient) -> None:
    disk = core.files
    assert isinstance(disk, FaultyDisk)
    disk.fail("sync")
    client.publish("", "q", b"x", channel=2, message_id="nacked")
    kept = client.connection.channels[2].publishing.sender.named.unconfirmed
    core.commit()
    assert client.story() == ["nack 1+"]
    assert kept is not None and kept.take(1, 1) == []


def test_of_transient_messages_confirms_are_told_where_publishes_are(core: Core, client: CoreClient) -> None:
    client.publish("", "memory", b"x", channel=2, message_id="outcomes", delivery_mode=1)
    core.policy("memory", journal="all")
    client.publish("", "memory", b"x", channel=2, message_id="all", delivery_mode=1)
    core.clock.set_ms(core.clock.now_ms() + 5)
    client.publish("", "memory", b"x", channel=2, message_id="again", delivery_mode=1)
    found = told(core)
    assert found.acked == found.published
    assert found.acked.keys() == {"all", "again"}


def test_acks_and_nacks_of_one_turn_and_what_waits_meanwhile_are_told_apart(core: Core, client: CoreClient) -> None:
    client.declare("full", durable=False, arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    core.policy("memory", journal="all")
    ways = ("memory", "q", "memory", "memory", "full", "memory")
    publishes = [client.published("", way, b"x", channel=2, message_id=f"m{n}") for n, way in enumerate(ways, 1)]
    client.take()
    began = core.clock.now_ms()
    client.feed(b"".join(publishes))
    assert client.story() == ["ack 1+", "ack 3", "ack 4", "ack 6", "nack 5"]
    core.clock.set_ms(began + 70)
    core.commit()
    assert client.story() == ["ack 2"]
    when = {id: (time // 1000 - began, number) for id, (time, _, number) in told(core).acked.items()}
    assert when == {"m1": (0, 1), "m2": (70, 2), "m3": (0, 3), "m4": (0, 4), "m6": (0, 6)}


def test_where_nothing_is_told_no_confirm_is(core: Core, client: CoreClient) -> None:
    client.declare("quiet")
    core.commit()
    core.policy("quiet", journal="off")
    client.publish("", "quiet", b"x", channel=2, message_id="quiet")
    client.publish("", "q", b"x", channel=2, message_id="heard")
    core.commit()
    assert client.story() == ["ack 1", "ack 2"]
    assert told(core).acked.keys() == {"heard"}


def test_a_delayed_message_is_published_by_somebody_and_confirmed(core: Core, client: CoreClient) -> None:
    client.send(
        "exchange.declare",
        exchange="later",
        type="x-delayed-message",
        durable=True,
        arguments={"x-delayed-type": "direct"},
    )
    core.commit()
    client.publish("later", "q", b"x", channel=2, message_id="delayed", headers=from_python({"x-delay": 60_000}))
    core.commit()
    found = told(core)
    assert found.published["delayed"][1:] == found.acked["delayed"][1:] == (2, 1)


def test_a_segment_that_has_the_confirm_alone_names_its_channel(tmp_path: Path) -> None:
    core = Core(tmp_path, held=True, settings=LogSettings(segment_bytes=4096))
    client = confirming(core)
    for n in range(60):
        client.publish("", "q", b"x" * 100, channel=2, message_id=f"m{n}")
        core.commit()
    assert len(list(tmp_path.glob("segment-*.log"))) > 2
    found = told(core)
    assert {id: one[1:] for id, one in found.acked.items()} == {id: one[1:] for id, one in found.published.items()}


# -- whatever happens ----------------------------------------------------------------------------------------------

QUEUES = ["q", "memory", "short", "full", "nowhere", "all"]
steps = st.one_of(
    st.tuples(st.just("publish"), st.sampled_from(QUEUES), st.integers(1, 4)),
    st.tuples(st.just("publish"), st.sampled_from(QUEUES), st.integers(1, 4)),
    st.tuples(st.just("fanout"), st.just(""), st.integers(1, 2)),
    st.tuples(st.just("mandatory"), st.sampled_from(QUEUES), st.just(1)),
    st.tuples(st.just("commit"), st.just(""), st.just(1)),
    st.tuples(st.just("one commit"), st.just(""), st.just(1)),
    st.tuples(st.just("delete"), st.sampled_from(QUEUES), st.just(1)),
    st.tuples(st.just("close"), st.just(""), st.just(1)),
    st.tuples(st.just("disk fails"), st.just(""), st.just(1)),
    st.tuples(st.just("disk mended"), st.just(""), st.just(1)),
)


class Recording:
    """A publisher that writes down what it was told, by message_id."""

    def __init__(self, folder: Path) -> None:
        self.core = Core(folder, files=FaultyDisk(), held=True)
        self.core.policy("all", journal="all")
        self.client = self.core.client(persistent=True)
        self.declare()
        self.core.commit()
        self.channel = 1
        self.count = 0
        self.acked: set[str] = set()
        self.open: dict[tuple[int, int], str] = {}  # by channel and tag
        self.next_channel()

    def declare(self) -> None:
        for queue in ("q", "short", "full"):
            arguments = {"short": {"x-max-length": 1}, "full": {"x-max-length": 0, "x-overflow": "reject-publish"}}
            self.client.send("queue.declare", queue=queue, durable=True, arguments=arguments.get(queue, {}))
        for queue in ("memory", "all"):
            self.client.send("queue.declare", queue=queue, durable=False)
        for queue in ("q", "memory", "short", "all"):
            self.client.send("queue.bind", queue=queue, exchange="amq.fanout", routing_key="")

    def next_channel(self) -> None:
        self.channel += 1
        self.client.open(self.channel, "confirm.select")
        self.tag = 0

    def look(self) -> None:
        for got in self.client.take():
            if got.name in ("basic.ack", "basic.nack"):
                last = int(str(got["delivery_tag"]))
                for tag in range(1 if got["multiple"] else last, last + 1):
                    id = self.open.pop((got.channel, tag), None)
                    if id is not None and got.name == "basic.ack":
                        self.acked.add(id)

    def step(self, what: str, queue: str, count: int) -> None:
        if what in ("publish", "fanout", "mandatory"):
            data = b""
            for _ in range(count):
                self.count += 1
                self.tag += 1
                self.open[self.channel, self.tag] = f"m{self.count}"
                exchange = "amq.fanout" if what == "fanout" else ""
                mandatory, id = what == "mandatory", f"m{self.count}"
                data += self.client.published(
                    exchange, queue, b"x", mandatory=mandatory, channel=self.channel, message_id=id
                )
            self.client.feed(data)
        elif what == "commit":
            self.core.commit()
        elif what == "one commit":
            self.core.commit_one()
        elif what == "delete":
            self.client.send("queue.delete", queue=queue)
            self.declare()
        elif what == "close":
            self.look()
            self.client.send("channel.close", self.channel, reply_code=200, reply_text="", class_id=0, method_id=0)
            self.core.commit()
            self.look()
            self.next_channel()
        elif what == "disk fails":
            assert isinstance(self.core.files, FaultyDisk)
            self.core.files.fail("sync")
        elif what == "disk mended":
            assert isinstance(self.core.files, FaultyDisk)
            self.core.files.repair()
            self.core.retry()
        self.core.settle()
        self.look()


@given(st.lists(steps, min_size=1, max_size=30))
def test_what_the_journal_says_was_confirmed_is_what_the_publisher_was_told(
    history: list[tuple[str, str, int]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        compare(Path(folder), history)


def compare(folder: Path, history: list[tuple[str, str, int]]) -> None:
    recording = Recording(folder)
    for step in [*history, ("disk mended", "", 1), ("commit", "", 1)]:
        recording.step(*step)
    recording.core.advance(60_000)
    recording.look()
    found = told(recording.core)
    told_of = {id for id in recording.acked if id in found.published}  # not: transient, and told by no bad end
    assert found.acked.keys() == told_of
    for id, (time, *numbers) in found.acked.items():
        assert numbers == [*found.published[id][1:]] and time >= found.published[id][0]
    recording.core.crash()


# -- the memory in between -----------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(1, 5), st.booleans()), max_size=40), st.randoms(use_true_random=False))
def test_every_number_is_taken_once_with_its_address(runs: list[tuple[int, bool]], random: Any) -> None:
    unconfirmed = Unconfirmed(2)
    expected: dict[int, int] = {}
    number, address = 1, 1000
    for count, apart in runs:
        unconfirmed.add(number, address, count)
        expected |= {number + n: address + n for n in range(count) if number + n > 2}
        number += count + apart
        address += count
    found: dict[int, int] = {}
    while len(found) < len(expected):
        first = random.randint(1, number)
        for begin, at, count in unconfirmed.take(first, first + random.randint(0, 7)):
            for n in range(count):
                assert begin + n not in found
                found[int(begin) + n] = int(at) + n
    assert found == expected
    assert unconfirmed.take(0, 1 << 40) == []


def test_runs_that_are_over_take_no_room() -> None:
    unconfirmed = Unconfirmed(0)
    unconfirmed.add(1, 1, 1)  # the one that waits longest
    for n in range(2, 10 * FEW):
        unconfirmed.add(n * 2, n, 1)
        unconfirmed.take(n * 2, n * 2)
    assert len(unconfirmed._counts) <= FEW + 1


# -- faults that it finds ------------------------------------------------------------------------------------------


def never(_right: Callable[..., None]) -> Callable[..., None]:
    return lambda *_: None


def twice(right: Callable[..., None]) -> Callable[..., None]:
    def doubled(*arguments: Any) -> None:
        right(*arguments)
        right(*arguments)

    return doubled


def as_the_next(right: Callable[..., None]) -> Callable[..., None]:
    return lambda confirmed, who, number, address, count: right(confirmed, who, number + 1, address, count)


@pytest.mark.uncompiled
@pytest.mark.parametrize("wrong", [never, twice, as_the_next])
def test_a_confirm_that_is_left_out_told_twice_or_of_another_is_found(
    wrong: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Confirmed, "_tell", wrong(Confirmed._tell))
    with pytest.raises(AssertionError):
        compare(tmp_path, [("publish", "q", 3), ("commit", "", 1)])
