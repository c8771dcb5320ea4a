"""Streams over AMQP 0-9-1: what RabbitMQ 3.10 does and says, Warren does and says.

The generator of the other differential tests empties queues with basic.get, which a stream has not; so streams have
scripts of their own, fixed ones for every argument and refusal, and random ones for writers and readers.

RabbitMQ hands out whole *chunks* (whatever was written to disk together): its `last` begins with the last chunk, and a
reader gets the rest of a chunk beyond its prefetch. Warren's unit is the message (docs/streams.md). Scripts where that
would show write one message at a time; then both are the same.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from tests.support.brokers import RunningBroker
from warrenmq.client import Channel, ChannelClosed, Connection, ConnectionClosed, Message, Properties
from warrenmq.wire.fields import Field, value_end
from warrenmq.wire.octets import shortstr_end

QUIET = 0.4  # seconds without a delivery that mean there is none
STREAM: dict[str, object] = {"x-queue-type": "stream"}
Script = Callable[[Connection, str], list[object]]


def told(name: str, work: Callable[[], object]) -> object:
    """What came of it: the answer, or code and text of the close, with this run's name taken out."""
    try:
        return work()
    except (ChannelClosed, ConnectionClosed) as error:
        kind = "channel" if isinstance(error, ChannelClosed) else "connection"
        return f"{kind} closed: {error.code} {error.text.replace(name, 'NAME')} ({error.class_id}, {error.method_id})"


def alike(warren: RunningBroker, rabbitmq: RunningBroker, script: Script) -> None:
    name = f"stream-{uuid.uuid4().hex[:8]}"
    found = []
    for broker in (warren, rabbitmq):
        with Connection(broker.url, timeout=60) as connection:
            found.append(script(connection, name))
        with Connection(broker.url, timeout=60) as connection:
            connection.channel().queue_delete(name)
    assert found[0] == found[1]


def declared(connection: Connection, name: str, **arguments: object) -> Channel:
    channel = connection.channel()
    channel.queue_declare(name, durable=True, arguments={**STREAM, **arguments})
    channel.confirm_select()
    return channel


def write(channel: Channel, name: str, bodies: list[bytes], together: bool = True) -> None:
    for body in bodies:
        channel.basic_publish("", name, body, Properties(headers={"n": Field("I", len(body))}, delivery_mode=2))
        if not together:
            assert channel.wait_for_confirms(60) == []
    assert channel.wait_for_confirms(60) == []


def shown(message: Message) -> tuple[object, ...]:
    headers = message.properties.headers or {}
    offset = headers.get("x-stream-offset")
    rest = sorted(headers.keys() - {"x-stream-offset"})
    return (offset, bytes(message.body), rest, message.exchange, message.redelivered, message.properties.delivery_mode)


def read(connection: Connection, name: str, offset: object, count: int, prefetch: int = 10) -> list[object]:
    """The first messages a reader gets, acknowledged one by one; then nothing more for a moment if it was to be all."""
    channel = connection.channel()
    channel.basic_qos(prefetch)
    arguments: dict[str, object] = {} if offset is None else {"x-stream-offset": offset}
    channel.basic_consume(name, "reader", arguments=arguments)
    found: list[object] = []
    while len(found) < count:
        message = channel.next_message(1.0)
        if message is None:
            break
        found.append(shown(message))
        channel.basic_ack(message.delivery_tag)
    channel.close()
    return found


def entries(message: Message) -> list[bytes]:
    """The headers as they stand on the wire, in some order: RabbitMQ sorts them."""
    header = message.header
    at, end = 18, 18 + int.from_bytes(header[14:18], "big")  # there is no property before them
    found = []
    while at < end:
        stop = int(value_end(header, shortstr_end(header, at, end), end))
        found.append(header[at:stop])
        at = stop
    return sorted(found)


STALE: list[dict[str, Field]] = [
    {"x-stream-offset": Field("l", 77)},
    {"a": Field("I", 1), "x-stream-offset": Field("l", 77), "z": Field("S", "z")},
    {"x-stream-offset": Field("S", "text"), "z": Field("I", 1)},
    {"x-stream-offsex": Field("l", 4), "y-stream-offset": Field("l", 4)},
    {},
]


def test_a_message_from_another_stream_has_the_offset_of_this_one_and_no_other(
    warren: RunningBroker, rabbitmq: RunningBroker
) -> None:
    def script(connection: Connection, name: str) -> list[object]:
        channel = declared(connection, name)
        for headers in STALE:
            channel.basic_publish("", name, b"x", Properties(headers=headers))
            assert channel.wait_for_confirms(60) == []
        reader = connection.channel()
        reader.basic_qos(10)
        reader.basic_consume(name, "reader", arguments={"x-stream-offset": "first"})
        found: list[object] = []
        while len(found) < len(STALE):
            message = reader.next_message(60)
            assert message is not None
            found.append(entries(message))
        reader.close()
        return found

    alike(warren, rabbitmq, script)


@pytest.mark.parametrize(
    ("value", "of_rabbitmq"),
    [
        (Field("F", {"a": Field("I", 1)}), None),
        (Field("A", [Field("I", 1)]), None),
        (Field("D", Decimal("1.25")), "connection closed: 541 INTERNAL_ERROR (0, 0)"),
        (Field("V", None), Field("V", None)),
    ],
    ids=["table", "array", "decimal", "void"],
)
def test_headers_of_any_type_pass_where_rabbitmq_drops_some(
    warren: RunningBroker, rabbitmq: RunningBroker, value: Field, of_rabbitmq: object
) -> None:
    def header(connection: Connection, name: str) -> object:
        channel = declared(connection, name)
        channel.basic_publish("", name, b"x", Properties(headers={"h": value}))
        assert channel.wait_for_confirms(60) == []
        reader = connection.channel()
        reader.basic_qos(1)
        reader.basic_consume(name, arguments={"x-stream-offset": "first"})
        message = reader.next_message(60)
        assert message is not None and message.properties.headers is not None
        return message.properties.headers.get("h")

    for broker, expected in ((warren, value), (rabbitmq, of_rabbitmq)):
        name = f"stream-{uuid.uuid4().hex[:8]}"
        connection = Connection(broker.url, timeout=60)
        assert told(name, partial(header, connection, name)) == expected, broker.name
        connection.abort()


DECLARES: list[dict[str, Any]] = [
    {"durable": True},
    {"durable": False},
    {"durable": True, "exclusive": True},
    {"durable": True, "auto_delete": True},
    {"durable": True, "arguments": {"x-max-age": "1h"}},
    {"durable": True, "arguments": {"x-max-age": "1x"}},
    {"durable": True, "arguments": {"x-max-age": 5}},
    {"durable": True, "arguments": {"x-max-length-bytes": 1_000_000}},
    {"durable": True, "arguments": {"x-max-length-bytes": -1}},
    {"durable": True, "arguments": {"x-stream-max-segment-size-bytes": 10_000}},
    {"durable": True, "arguments": {"x-stream-max-segment-size-bytes": -1}},
    {"durable": True, "arguments": {"x-max-length": 5}},
    {"durable": True, "arguments": {"x-message-ttl": 1000}},
    {"durable": True, "arguments": {"x-expires": 1000}},
    {"durable": True, "arguments": {"x-dead-letter-exchange": "x"}},
    {"durable": True, "arguments": {"x-max-priority": 3}},
    {"durable": True, "arguments": {"x-overflow": "drop-head"}},
    {"durable": True, "arguments": {"x-single-active-consumer": True}},
]


@pytest.mark.parametrize("asked", DECLARES, ids=repr)
def test_a_stream_is_declared_or_refused_alike(
    warren: RunningBroker, rabbitmq: RunningBroker, asked: dict[str, Any]
) -> None:
    arguments = {**STREAM, **asked.get("arguments", {})}
    flags = {key: value for key, value in asked.items() if key != "arguments"}

    def script(connection: Connection, name: str) -> list[object]:
        def declare() -> object:
            answer = connection.channel().queue_declare(name, arguments=arguments, **flags)
            return answer.int("message_count"), answer.int("consumer_count")

        return [told(name, declare), told(name, declare)]

    alike(warren, rabbitmq, script)


def test_an_age_that_is_no_time_is_named_where_rabbitmq_crashes(warren: RunningBroker, rabbitmq: RunningBroker) -> None:
    """Bad input gets a clear error; 3.10 closes the connection with 541 and says nothing."""
    found = []
    for broker in (warren, rabbitmq):
        with Connection(broker.url, timeout=60) as connection:
            channel = connection.channel()
            arguments: dict[str, object] = {**STREAM, "x-max-age": "soon"}
            found.append(told("nobody", lambda: channel.queue_declare("nobody", durable=True, arguments=arguments)))  # noqa: B023
    assert "406 PRECONDITION_FAILED - invalid arg 'x-max-age'" in str(found[0])
    assert str(found[1]).startswith("connection closed: 541")


def test_what_a_stream_cannot_do_is_refused_alike(warren: RunningBroker, rabbitmq: RunningBroker) -> None:
    def script(connection: Connection, name: str) -> list[object]:
        write(declared(connection, name), name, [b"a", b"b"])

        def consume(prefetch: int, arguments: dict[str, object], **flags: bool) -> object:
            channel = connection.channel()
            if prefetch:
                channel.basic_qos(prefetch)
            channel.basic_consume(name, "reader", arguments=arguments, **flags)
            channel.close()
            return "accepted"

        offsets: list[object] = ["first", "last", "next", "middle", "", True, -1, 0, 1, 1 << 40, Field("d", 1.5), None]
        found: list[object] = [told(name, lambda: consume(0, {})), told(name, lambda: consume(5, {}, no_ack=True))]
        found += [told(name, lambda at=at: consume(5, {"x-stream-offset": at})) for at in offsets]  # type: ignore[misc]
        return found

    alike(warren, rabbitmq, script)


@pytest.mark.parametrize("what", ["get", "purge"])
def test_streams_have_no_get_and_no_purge_in_the_same_words(
    warren: RunningBroker, rabbitmq: RunningBroker, what: str
) -> None:
    def script(connection: Connection, name: str) -> list[object]:
        declared(connection, name)
        channel = connection.channel()
        work: Callable[[], object] = (
            (lambda: channel.basic_get(name)) if what == "get" else (lambda: channel.queue_purge(name))
        )
        return [told(name, work)]

    alike(warren, rabbitmq, script)


@pytest.mark.parametrize("offset", ["first", "last", 0, 3, 9, 10, 50, Field("T", 0), None])
def test_readers_begin_at_the_same_message(warren: RunningBroker, rabbitmq: RunningBroker, offset: object) -> None:
    def script(connection: Connection, name: str) -> list[object]:
        channel = declared(connection, name)
        write(channel, name, [b"%d" % n for n in range(10)], together=False)
        reader = connection.channel()
        reader.basic_qos(50)
        arguments: dict[str, object] = {} if offset is None else {"x-stream-offset": offset}
        reader.basic_consume(name, "reader", arguments=arguments)
        found: list[object] = []
        while (message := reader.next_message(QUIET)) is not None:
            found.append(shown(message))
        write(channel, name, [b"later"])
        while (message := reader.next_message(QUIET)) is not None:
            found.append(shown(message))
        return found

    alike(warren, rabbitmq, script)


def test_acknowledgements_are_credit_for_as_many_more(warren: RunningBroker, rabbitmq: RunningBroker) -> None:
    def script(connection: Connection, name: str) -> list[object]:
        write(declared(connection, name), name, [b"%d" % n for n in range(20)], together=False)
        reader = connection.channel()
        reader.basic_qos(4)
        reader.basic_consume(name, "reader", arguments={"x-stream-offset": "first"})
        found: list[object] = []

        def arrive() -> None:
            count = 0
            while reader.next_message(QUIET) is not None:
                count += 1
            found.append(count)

        arrive()
        reader.basic_ack(2, True)
        arrive()
        reader.basic_ack(6, True)
        arrive()
        return found

    alike(warren, rabbitmq, script)


@pytest.mark.parametrize("seed", range(6))
def test_random_writers_and_readers_see_the_same_stream(
    warren: RunningBroker, rabbitmq: RunningBroker, seed: int
) -> None:
    def script(connection: Connection, name: str) -> list[object]:
        rng = random.Random(seed)
        channel = declared(connection, name)
        written = 0
        found: list[object] = []
        for _ in range(8):
            bodies = [b"%d" % (written + n) + b"x" * rng.choice((0, 10, 5000)) for n in range(rng.randrange(1, 40))]
            write(channel, name, bodies)
            written += len(bodies)
            start: object = rng.choice(("first", rng.randrange(written), 0))
            begin = start if isinstance(start, int) else 0
            count = rng.randrange(1, written - begin + 1)
            found.append(read(connection, name, start, count, rng.choice((1, 7, 100))))
        found.append(connection.channel().queue_declare(name, durable=True, passive=True).int("consumer_count"))
        return found

    alike(warren, rabbitmq, script)


@pytest.mark.parametrize("requeue", [True, False])
def test_a_refusal_over_several_queues_goes_by_their_names_up_to_the_first_stream(
    warren: RunningBroker, rabbitmq: RunningBroker, requeue: bool
) -> None:
    name = f"mixed-{uuid.uuid4().hex[:8]}"
    kinds = {"a": "classic", "b": "stream", "c": "stream", "d": "classic"}
    letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": f"{name}-dead"}
    found = []
    for broker in (warren, rabbitmq):
        with Connection(broker.url, timeout=60) as connection:
            channel = connection.channel()
            channel.queue_declare(f"{name}-dead", durable=True)
            channel.confirm_select()
            for letter, kind in kinds.items():
                arguments = {"x-queue-type": kind} | (letters if kind == "classic" else {})
                channel.queue_declare(f"{name}-{letter}", durable=True, arguments=arguments)
                channel.basic_publish("", f"{name}-{letter}", b"x", Properties(delivery_mode=2))
            assert channel.wait_for_confirms(60) == []
            channel.basic_qos(10)
            for letter in reversed(kinds):
                wanted = {"x-stream-offset": "first"} if kinds[letter] == "stream" else {}
                channel.basic_consume(f"{name}-{letter}", letter, arguments=wanted)
                got: list[Message] = []
                while not got:
                    got = channel.receive(60)
            said: list[object] = [told(name, partial(refuse_all, channel, requeue))]
        said.append(counted(broker, name))
        found.append(said)
    assert found[0] == found[1]


def refuse_all(channel: Channel, requeue: bool) -> None:
    channel.basic_nack(0, multiple=True, requeue=requeue)
    channel.basic_qos(1)


def counted(broker: RunningBroker, name: str) -> list[int]:
    """How many wait in the classic queues, once what was refused is back or dead."""
    with Connection(broker.url, timeout=60) as connection:
        channel = connection.channel()
        deadline = time.monotonic() + 60
        while True:
            counts = [
                channel.queue_declare(f"{name}-{letter}", passive=True).int("message_count")
                for letter in ("a", "d", "dead")
            ]
            if sum(counts) == 2 or time.monotonic() > deadline:
                return counts
            time.sleep(0.05)
