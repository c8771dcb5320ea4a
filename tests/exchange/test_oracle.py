"""Routing against a running RabbitMQ 3.10: the same topology, the same messages, the same queues and the same texts."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.exchange.build import Arguments, bind, exchange, message, names, queue
from tests.exchange.strategies import EXCHANGES, QUEUES, Plan, headers, keys, plans
from tests.exchange.test_types import BAD_HASH_ARGUMENTS, BAD_WEIGHTS, BAD_X_MATCH, GOOD_WEIGHTS, UNKNOWN_TYPES
from tests.support.brokers import RunningBroker
from warrenmq.broker.exchange.arguments import routing_keys_of
from warrenmq.client import Channel, ChannelClosed, Connection, ConnectionClosed, Properties, Returned
from warrenmq.wire.fields import Field, Table, from_python
from warrenmq.wire.replies import AmqpError

PREFIX = "routing-oracle-"
_number = itertools.count()


@dataclass
class Sent:
    exchange: str
    key: str
    headers: Table
    copies: list[str] = field(default_factory=list)

    def table(self) -> Table:
        table = dict(self.headers)
        if self.copies:
            table["CC"] = Field("A", [Field("S", copy) for copy in self.copies])
        return table


@st.composite
def messages(draw: st.DrawFn, exchanges: list[str]) -> list[Sent]:
    sent = []
    for _ in range(draw(st.integers(4, 12))):
        copies = draw(st.lists(keys, max_size=2)) if draw(st.booleans()) else []
        sent.append(Sent(draw(st.sampled_from(exchanges)), draw(keys), draw(headers), copies))
    return sent


@pytest.fixture(scope="module")
def channel(rabbitmq: RunningBroker) -> Iterator[Channel]:
    connection = Connection(rabbitmq.url)
    channel = connection.channel()
    for name in QUEUES:
        channel.queue_declare(PREFIX + name, exclusive=True)
    channel.confirm_select()
    yield channel
    connection.close()


def build(channel: Channel, plan: Plan, names_of: dict[str, str]) -> None:
    for name, type in plan.types.items():
        arguments: dict[str, object] = {}
        if name in plan.alternates:
            alternate = plan.alternates[name]
            arguments["alternate-exchange"] = names_of.get(alternate, alternate)
        channel.exchange_declare(names_of[name], type, arguments=from_python(arguments))
    for each in plan.bindings:
        # without waiting: the publishes behind it come later on the same channel
        method = "exchange.bind" if each.destination in plan.types else "queue.bind"
        ends: dict[str, object] = {"source": names_of[each.source], "destination": names_of[each.destination]}
        if method == "queue.bind":
            ends = {"exchange": names_of[each.source], "queue": names_of[each.destination]}
        table = from_python(each.arguments)
        channel.send(method, routing_key=each.key, arguments=table, nowait=True, **ends)


def observe(channel: Channel, plan: Plan, sent: list[Sent]) -> tuple[list[list[str]], list[bool]]:
    """The queues each message arrived in, and whether it was returned."""
    tag = next(_number)
    names_of = {name: f"{PREFIX}{tag}-{name}" for name in EXCHANGES}
    names_of.update({name: PREFIX + name for name in QUEUES})
    build(channel, plan, names_of)
    channel.take_events()
    for number, each in enumerate(sent):
        properties = Properties(headers=each.table())
        channel.basic_publish(names_of.get(each.exchange, each.exchange), each.key, b"%d" % number, properties, True)
    assert channel.wait_for_confirms(60) == []
    returned = [False] * len(sent)
    for event in channel.take_events():
        if isinstance(event, Returned):
            returned[int(event.body)] = True
    arrived: list[list[str]] = [[] for _ in sent]
    for name in QUEUES:
        while (got := channel.basic_get(PREFIX + name, no_ack=True)) is not None:
            arrived[int(got.body)].append(name)
    for name in plan.types:
        channel.send("exchange.delete", exchange=names_of[name], nowait=True)
    return arrived, returned


@settings(max_examples=400, suppress_health_check=list(HealthCheck))
@given(plan=plans(extras=False), data=st.data())
def test_random_messages_through_random_topologies_reach_the_queues_they_reach_in_rabbitmq(
    channel: Channel, plan: Plan, data: st.DataObject
) -> None:
    sent = data.draw(messages(list(plan.types)))
    topology = plan.build()
    expected = []
    for each in sent:
        routing_keys, _ = routing_keys_of(each.key, each.table())
        routed = topology.route(each.exchange, *routing_keys, headers=each.table())
        expected.append(sorted(names(routed.queues)))
    arrived, returned = observe(channel, plan, sent)
    assert arrived == expected
    assert returned == [not queues for queues in expected]


def test_the_default_exchange_with_copies_reaches_the_same_queues(channel: Channel) -> None:
    sent = [
        Sent("", PREFIX + "q1", {}, [PREFIX + "q2", PREFIX + "q1", "nope"]),
        Sent("", "nope", {}, [PREFIX + "q3"]),
        Sent("", "nope", {}, []),
    ]
    assert observe(channel, Plan(), sent) == ([["q1", "q2"], ["q3"], []], [False, False, True])


def test_consistent_hash_and_random_choose_one_queue_in_the_same_shares(channel: Channel) -> None:
    for type in ("x-consistent-hash", "x-random"):
        name = f"{PREFIX}{next(_number)}"
        channel.exchange_declare(name, type)
        ours = exchange(name, type)
        for weight, each in ((1, "q1"), (3, "q2")):
            bindings = ["1"] if weight == 1 else (["3"] if type == "x-consistent-hash" else ["1", "2", "3"])
            for key in bindings:
                channel.queue_bind(PREFIX + each, name, key)
                bind(ours, queue(each), key)
        for number in range(2000):
            channel.basic_publish(name, f"key-{number % 1000}", b"%d" % (number % 1000), None, True)
        assert channel.wait_for_confirms(60) == []
        assert channel.take_events() is not None
        arrived: dict[int, set[str]] = {}
        share: Counter[str] = Counter()
        for each in ("q1", "q2"):
            while (got := channel.basic_get(PREFIX + each, no_ack=True)) is not None:
                arrived.setdefault(int(got.body), set()).add(each)
                share[each] += 1
        our_share = Counter(names(ours.matcher.route(message(f"key-{n % 1000}")))[0] for n in range(2000))
        assert share.total() == 2000
        if type == "x-consistent-hash":
            assert all(len(queues) == 1 for queues in arrived.values())
        for count in (share, our_share):
            assert 0.2 < count["q1"] / 2000 < 0.3
        channel.exchange_delete(name)


# --- texts


@pytest.fixture(scope="module")
def url(rabbitmq: RunningBroker) -> str:
    return rabbitmq.url


def said_by(url: str, *calls: tuple[str, dict[str, object]]) -> tuple[int, str] | None:
    """The error the last of these calls ends with, on a channel and with a queue of its own."""
    with Connection(url) as connection:
        channel = connection.channel()
        channel.queue_declare(PREFIX + "t", exclusive=True)
        try:
            for name, values in calls:
                channel.call(name, **values)
        except (ChannelClosed, ConnectionClosed) as error:
            return error.code, error.text
    return None


def said_by_us(type: str, arguments: Arguments, key: str | None = None, binding: Arguments | None = None) -> object:
    try:
        made = exchange(PREFIX + "x", type, arguments)
        if key is not None:
            bind(made, queue("q"), key, binding)
    except AmqpError as error:
        return error.code, error.text
    return None


def declare(type: str, arguments: Arguments) -> tuple[str, dict[str, object]]:
    table = from_python(arguments)
    return "exchange.declare", {"exchange": PREFIX + "x", "type": type, "auto_delete": True, "arguments": table}


def bound(key: str, arguments: Arguments) -> tuple[str, dict[str, object]]:
    table = from_python(arguments)
    return "queue.bind", {"exchange": PREFIX + "x", "queue": PREFIX + "t", "routing_key": key, "arguments": table}


DECLARES: list[tuple[str, Arguments]] = [
    *[(name, {}) for name, _ in UNKNOWN_TYPES],
    *[("x-consistent-hash", arguments) for arguments, _, _ in BAD_HASH_ARGUMENTS],
]


@pytest.mark.parametrize("type, arguments", DECLARES, ids=str)
def test_a_refused_declare_is_refused_in_the_same_words(url: str, type: str, arguments: Arguments) -> None:
    theirs = said_by(url, declare(type, arguments))
    assert theirs is not None
    assert said_by_us(type, arguments) == theirs


NO_NAMES: list[object] = [1, True, None, b"x", [], {}, 1.5, Field("T", 1)]


@pytest.mark.parametrize("value", NO_NAMES, ids=str)
def test_an_alternate_exchange_that_is_no_name_is_refused_in_the_same_words(
    url: str, warren: RunningBroker, value: object
) -> None:
    call = declare("direct", {"alternate-exchange": value})
    theirs = said_by(url, call)
    assert theirs is not None
    assert said_by(warren.url, call) == theirs


BINDS: list[tuple[str, str, Arguments]] = [
    *[("x-consistent-hash", key, {}) for key in GOOD_WEIGHTS if len(key) < 9],
    *[("x-consistent-hash", key, {}) for key, _ in BAD_WEIGHTS],
    *[
        ("headers", "", {"x-match": value}) for value, text in BAD_X_MATCH if text.isprintable()
    ],  # the client reads UTF-8 texts only
    *[("headers", "", {"x-match": form}) for form in ("all", "any", "all-with-x", "any-with-x")],
]


@pytest.mark.parametrize("type, key, arguments", BINDS, ids=str)
def test_a_bind_is_taken_or_refused_in_the_same_words(url: str, type: str, key: str, arguments: Arguments) -> None:
    theirs = said_by(url, declare(type, {}), bound(key, arguments))
    assert said_by_us(type, {}, key, arguments) == theirs
    with Connection(url) as connection:
        connection.channel().exchange_delete(PREFIX + "x")
