"""The journal tells by which binding a message came to a queue: as a naive match over the definitions finds it."""

from __future__ import annotations

import dataclasses
import json
import tempfile
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.exchange import model
from tests.exchange.strategies import Bound, Plan, header_arguments, headers, keys, patterns, plans
from warrenmq.broker.queue.wanted import Wanted
from warrenmq.broker.transfer.transfer import Transfer
from warrenmq.broker.transfer.ways import ToQueue
from warrenmq.journal.names import queue_of
from warrenmq.journal.routes import Ways
from warrenmq.log.event_reader import Witness, tell
from warrenmq.log.files import Files
from warrenmq.log.history import tell_all
from warrenmq.log.holders import read_holders
from warrenmq.log.layout import WITHOUT_RECORD
from warrenmq.log.levels import ALL
from warrenmq.log.listing import Listing
from warrenmq.log.record import decode_message, holder_count, holders_start
from warrenmq.log.settings import LogSettings
from warrenmq.testing.core import Core
from warrenmq.wire.content import decode_properties
from warrenmq.wire.fields import Field

pytestmark = pytest.mark.pure

DIRECT, TOPIC, FANOUT = "amq.direct", "amq.topic", "amq.fanout"
Hops = list[dict[str, Any]]


class Routes(Witness):
    """Of each message and queue that it entered, how the journal says that it came there."""

    def __init__(self) -> None:
        self.ways = Ways({})
        self.entries: list[tuple[int, int, Hops | None]] = []  # message and queue
        self._queues: dict[int, str] = {}
        self._ids: dict[int, str] = {}

    def defined(self, kind: str, _key: str, value: bytes) -> None:
        found = queue_of(kind, value)
        if found is not None:
            self._queues[found[0]] = found[2]

    def route(self, route: int, text: bytes) -> None:
        self.ways.route(route, text)

    def routed(self, route: int, address: int, count: int) -> None:
        self.ways.routed(route, address, count)

    def batch_told(self) -> None:
        self.ways.batch_told()

    def message(self, time: int, address: int, data: bytes, at: int, _who: int, _number: int) -> None:
        self._ids[address] = decode_properties(decode_message(data, at).header).message_id or ""
        for queue, position, _expiry, _flags in read_holders(data, holders_start(data, at), holder_count(data, at)):
            self.entered(time, queue, address, position)

    def unlogged(
        self, _time: int, _who: int, id: int, count: int, _number: int, header: bytes, _exchange: bytes, _keys: bytes
    ) -> None:
        for address in range(WITHOUT_RECORD | id, (WITHOUT_RECORD | id) + count):
            self._ids[address] = decode_properties(header).message_id or ""

    def entered(self, _time: int, queue: int, address: int, _position: int) -> None:
        way = self.ways.way(address, queue)
        hops = None if way < 0 else json.loads(self.ways.ways[way])
        self.entries.append((address, queue, hops))

    def of(self, id: str) -> dict[str, Hops | None]:
        entries = [(queue, hops) for address, queue, hops in self.entries if self._ids[address] == id]
        found = {self._queues[queue]: hops for queue, hops in entries}
        assert len(found) == len(entries)
        return found


def told(folder: Path) -> Routes:
    routes = Routes()
    tell_all(str(folder), Files(), routes)
    return routes


def everything(core: Core) -> None:
    core.broker.begin_turn()
    core.broker.vhosts["/"].set_journal(ALL, 1)
    core.end_turn()


binding_steps = st.tuples(st.sampled_from(["bind", "unbind"]), st.integers(0, 20), patterns, header_arguments())
publish_steps = st.tuples(
    st.sampled_from(["publish", "transient", "transaction"]),
    st.integers(0, 20),
    st.lists(keys, min_size=1, max_size=3),
    headers,
)


@settings(max_examples=60)
@given(plans(), st.lists(st.one_of(publish_steps, publish_steps, binding_steps), min_size=1, max_size=25))
def test_the_told_binding_is_one_that_a_naive_match_over_the_definitions_finds(plan: Plan, steps: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Publisher(Path(folder), plan).carry_out(steps)


class Publisher:
    """A client of a broker that has what is planned, and what was planned when each message was sent."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.folder = folder
        self.plan = plan
        self.core = Core(folder)
        everything(self.core)
        self.client = self.core.client()
        self.client.open(2, "tx.select")
        self.sent: dict[str, tuple[Plan, str, list[str], dict[str, Field]]] = {}
        for name in plan.queues:
            self.client.call("queue.declare", queue=name, durable=name in ("q1", "q2"))
        for name, type in plan.types.items():
            arguments: dict[str, object] = {}
            if name in plan.alternates:
                arguments["alternate-exchange"] = plan.alternates[name]
            if name in plan.extras:
                arguments["x-extra-destinations"] = plan.extras[name]
            self.client.call("exchange.declare", exchange=name, type=type, durable=True, arguments=arguments)
        for each in plan.bindings:
            self.bind(each, "bind")

    def bind(self, each: Bound, verb: str) -> None:
        of: dict[str, Any] = {"routing_key": each.key, "arguments": each.arguments}
        if each.destination in self.plan.queues:
            self.client.call(f"queue.{verb}", queue=each.destination, exchange=each.source, **of)
        else:
            self.client.call(f"exchange.{verb}", destination=each.destination, source=each.source, **of)

    def carry_out(self, steps: list[tuple[str, int, Any, Any]]) -> None:
        for what, number, one, other in steps:
            if what == "bind":
                source = list(self.plan.types)[number % len(self.plan.types)]
                destination = [*self.plan.queues, *self.plan.types][number % (4 + len(self.plan.types))]
                kind = self.plan.types[source]
                made = Bound(source, destination, one, other if kind == "headers" else {})
                self.plan.bindings.append(made)
                self.bind(made, "bind")
            elif what == "unbind":
                if self.plan.bindings:
                    gone = self.plan.bindings[number % len(self.plan.bindings)]
                    self.bind(gone, "unbind")
                    self.plan.bindings = [
                        each
                        for each in self.plan.bindings
                        if each.source != gone.source or model.said(each) != model.said(gone)
                    ]
            else:
                self.publish(what, ["", *self.plan.types][number % (1 + len(self.plan.types))], one, other)
        self.core.stop()
        self.judge()

    def publish(self, what: str, exchange: str, sent: list[str], with_headers: dict[str, Field]) -> None:
        id = str(len(self.sent))
        keys = list(dict.fromkeys(sent)) if exchange else ["q1", "q3", "nowhere"][: len(sent)]
        properties: dict[str, Any] = {"message_id": id, "delivery_mode": 1 if what == "transient" else 2}
        more = {"CC": Field("A", [Field("S", key) for key in keys[1:]])} if len(keys) > 1 else {}
        properties["headers"] = {**with_headers, **more}
        self.sent[id] = (
            dataclasses.replace(self.plan, bindings=list(self.plan.bindings)),
            exchange,
            keys,
            properties["headers"],
        )
        channel = 2 if what == "transaction" else 1
        self.client.publish(exchange, keys[0], b"", channel=channel, **properties)
        if what == "transaction":
            self.client.call("tx.commit", 2)

    def judge(self) -> None:
        routes = told(self.folder)
        for id, (plan, exchange, sent, with_headers) in self.sent.items():
            found = routes.of(id)
            assert set(found) == model.route(plan, exchange, sent, with_headers)[0]
            for queue, hops in found.items():
                assert hops is not None
                model.follow(plan, exchange, sent, with_headers, hops, queue)


# -- what the broker itself sends


def one_hop(exchange: str, key: str, **more: object) -> Hops:
    return [{"exchange": exchange, "key": key, **more}]


def test_a_dead_letter_is_told_with_the_binding_of_its_own_exchange(tmp_path: Path) -> None:
    core = Core(tmp_path)
    everything(core)
    client = core.client(persistent=True)
    client.declare("q", arguments={"x-dead-letter-exchange": TOPIC})
    client.declare("dead")
    client.send("queue.bind", queue="q", exchange=DIRECT, routing_key="k")
    client.send("queue.bind", queue="dead", exchange=TOPIC, routing_key="#")
    for id, mode in (("kept", 2), ("transient", 1)):
        client.publish(DIRECT, "k", b"", message_id=id, delivery_mode=mode)
        got = client.call("basic.get", queue="q")
        client.send("basic.reject", delivery_tag=got["delivery_tag"], requeue=False)
    core.stop()
    for id in ("kept", "transient"):
        assert told(tmp_path).of(id) == {"q": one_hop(DIRECT, "k"), "dead": one_hop(TOPIC, "#")}


def test_letters_of_a_turn_in_which_their_messages_came_are_told_apart_from_them(tmp_path: Path) -> None:
    """A message without a record and its letter have one number."""
    core = Core(tmp_path)
    everything(core)
    client = core.client()
    client.call("queue.declare", queue="q", arguments={"x-max-length": 1, "x-dead-letter-exchange": TOPIC})
    client.call("queue.declare", queue="dead")
    client.send("queue.bind", queue="q", exchange=DIRECT, routing_key="k")
    client.send("queue.bind", queue="dead", exchange=TOPIC, routing_key="#")
    client.feed(b"".join(client.published(DIRECT, "k", b"", message_id=str(number)) for number in range(5)))
    core.stop()
    found = told(tmp_path)
    for number in range(4):
        assert found.of(str(number)) == {"q": one_hop(DIRECT, "k"), "dead": one_hop(TOPIC, "#")}
    assert found.of("4") == {"q": one_hop(DIRECT, "k")}


@pytest.mark.parametrize("durable", [True, False])
def test_a_delayed_message_is_told_with_the_binding_that_matched_when_it_was_due(tmp_path: Path, durable: bool) -> None:
    core = Core(tmp_path)
    everything(core)
    client = core.client(persistent=True)
    of = {"x-delayed-type": "topic"}
    client.call("exchange.declare", exchange="later", type="x-delayed-message", durable=durable, arguments=of)
    client.declare("q")
    client.send("queue.bind", queue="q", exchange="later", routing_key="early.*")
    client.publish("later", "early.bird", b"", message_id="m", headers={"x-delay": Field("I", 1000)})
    client.send("queue.unbind", queue="q", exchange="later", routing_key="early.*")
    client.send("queue.bind", queue="q", exchange="later", routing_key="*.bird")
    core.advance(2000)
    core.stop()
    found = told(tmp_path)
    assert [hops for _, _, hops in found.entries if hops is not None] == [one_hop("later", "*.bird")]


def test_in_a_transaction_the_default_exchange_names_the_queue_that_is_there_at_the_commit(tmp_path: Path) -> None:
    core = Core(tmp_path)
    everything(core)
    client = core.client(persistent=True)
    client.open(2, "tx.select")
    client.declare("q")
    client.publish("", "q", b"", channel=2, message_id="m")
    client.call("queue.delete", queue="q")
    client.declare("q")
    client.call("tx.commit", 2)
    core.stop()
    assert told(tmp_path).of("m") == {"q": one_hop("", "q")}


def test_several_bindings_that_match_are_counted_and_one_of_them_is_named(tmp_path: Path) -> None:
    core = Core(tmp_path)
    client = core.client(persistent=True)
    client.declare("q")
    for key in ("a.*", "a.#", "b.*"):
        client.send("queue.bind", queue="q", exchange=TOPIC, routing_key=key)
    client.publish(TOPIC, "a.b", b"", message_id="two")
    client.send("queue.unbind", queue="q", exchange=TOPIC, routing_key="a.#")
    client.publish(TOPIC, "a.b", b"", message_id="one")
    core.stop()
    ((hop,),) = [hops for hops in told(tmp_path).of("two").values() if hops]
    assert hop["key"] in ("a.*", "a.#") and hop["bindings"] == 2
    assert told(tmp_path).of("one") == {"q": one_hop(TOPIC, "a.*")}


def test_each_segment_names_the_routes_that_are_taken_in_it(tmp_path: Path) -> None:
    core = Core(tmp_path, settings=LogSettings(segment_bytes=3000, slack_bytes=1 << 30))
    client = core.client(persistent=True)
    client.declare("q")
    client.send("queue.bind", queue="q", exchange=TOPIC, routing_key="a.#")
    for number in range(60):
        client.publish(TOPIC, "a.b", b"x" * 200, message_id=str(number))
        core.log.flush()
    core.stop()
    listing = Listing(str(tmp_path), Files())
    assert len(listing.numbers()) > 4
    for number in listing.numbers():  # each by itself: whoever begins there knows nobody
        routes = Routes()
        cursor = listing.cursor(number)
        assert cursor is not None
        while cursor.next():
            tell(cursor.header, cursor.messages, cursor.changes, routes)
        cursor.close()
        assert all(hops == one_hop(TOPIC, "a.#") for _, _, hops in routes.entries)


def test_messages_with_a_key_of_their_own_that_go_one_way_are_one_route_and_one_run(tmp_path: Path) -> None:
    core = Core(tmp_path)
    client = core.client(persistent=True)
    client.declare("q")
    client.send("queue.bind", queue="q", exchange=TOPIC, routing_key="#")
    client.feed(b"".join(client.published(TOPIC, f"key.{n}", b"", message_id=str(n)) for n in range(500)))
    core.stop()
    assert count_events(tmp_path) == {"route": 1, "routed": 1}


def count_events(folder: Path) -> Counter[str]:
    counts: Counter[str] = Counter()

    class Counting(Witness):
        def route(self, _route: int, _text: bytes) -> None:
            counts["route"] += 1

        def routed(self, _route: int, _address: int, _count: int) -> None:
            counts["routed"] += 1

    tell_all(str(folder), Files(), Counting())
    return counts


def test_a_route_to_very_many_queues_is_told_of_as_many_as_there_is_room_for(tmp_path: Path) -> None:
    core = Core(tmp_path)
    client = core.client(persistent=True)
    for number in range(1200):
        client.send("queue.declare", queue=f"{number}", durable=True)
        client.send("queue.bind", queue=f"{number}", exchange=FANOUT, routing_key="long" * 10)
    client.publish(FANOUT, "", b"", message_id="m")
    core.stop()
    found = told(tmp_path).of("m")
    known = [hops for hops in found.values() if hops is not None]
    assert len(found) == 1200 and 500 < len(known) < 1200
    assert known == [one_hop(FANOUT, "long" * 10)] * len(known)


def test_exchanges_one_behind_the_other_by_the_thousand_lead_a_message_on_and_their_way_is_not_told(
    tmp_path: Path,
) -> None:
    core = Core(tmp_path)
    client = core.client(persistent=True)
    for queue in ("near", "far"):
        client.declare(queue)
    exchanges = ["e" * 40 + str(number) for number in range(1100)]
    for name in exchanges:
        client.send("exchange.declare", exchange=name, type="fanout", durable=True)
    for source, destination in pairwise(exchanges):
        client.send("exchange.bind", destination=destination, source=source, routing_key="")
    client.send("queue.bind", queue="near", exchange=exchanges[0], routing_key="")
    client.send("queue.bind", queue="far", exchange=exchanges[-1], routing_key="")
    client.publish(exchanges[0], "", b"", message_id="m")
    core.stop()
    assert told(tmp_path).of("m") == {"near": one_hop(exchanges[0], ""), "far": None}


def test_arguments_that_are_very_long_are_left_out_of_a_binding(tmp_path: Path) -> None:
    core = Core(tmp_path)
    client = core.client(persistent=True)
    client.declare("q")
    for value in ("short", "long" * 2000):
        arguments = {"h": Field("S", value)}
        client.send("queue.bind", queue="q", exchange="amq.headers", routing_key="k", arguments=arguments)
        client.publish("amq.headers", "", b"", message_id=value[:5], headers={"h": Field("S", value)})
    core.stop()
    assert told(tmp_path).of("short") == {"q": one_hop("amq.headers", "k", arguments={"h": "short"})}
    assert told(tmp_path).of("longl") == {"q": one_hop("amq.headers", "k")}


def test_what_an_operator_moves_is_told_without_a_binding(tmp_path: Path) -> None:
    core = Core(tmp_path)
    client = core.client(persistent=True)
    client.declare("q")
    client.declare("other")
    client.publish("", "q", b"", message_id="m")
    moved = Transfer("1", "move", core.queue("q"), Wanted(), b"", ToQueue(core.queue("other")), 1, 0, False)
    core.broker.begin_turn()
    assert moved.step(10)
    core.end_turn()
    core.stop()
    assert told(tmp_path).of("m") == {"q": one_hop("", "q"), "other": None}
