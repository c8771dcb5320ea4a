"""Every field type comes back as RabbitMQ gives it: in arguments and client properties over HTTP, in dead letters."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

from tests.conformance.misuse_content import LETTERS, table_of
from tests.support.brokers import RunningBroker, shared_rabbitmq, shared_warren
from tests.support.rawclient import HEADER, METHOD, RawClient, frame, header, longstr, payload, shortstr

#: What shows over HTTP otherwise than in RabbitMQ, on purpose: a decimal by its value (RabbitMQ puts a point between
#: scale and digits) and void as null (there it is the text "undefined", which an import takes for a text).
OURS = {"D, decimal": 2.56, "V, void": None}
EVERY = longstr(b"".join(shortstr(name) + value for name, value in LETTERS.items()))


def until(ask: Callable[[], Any]) -> Any:
    """RabbitMQ's HTTP API learns of things a moment later."""
    deadline = time.monotonic() + 300
    while not (found := ask()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def entity(broker: RunningBroker, path: str) -> Any:
    status, answer = broker.http("GET", f"/api/{path}")
    return answer if status == 200 else None


def seen_in_arguments(broker: RunningBroker) -> dict[str, Any]:
    with RawClient(broker.port).handshake().open(1) as client:
        client.call(1, "queue.declare", queue="f.q", exclusive=True, arguments=EVERY)
        client.call(1, "exchange.declare", exchange="f.x", type="fanout", auto_delete=True, arguments=EVERY)
        client.call(1, "queue.bind", queue="f.q", exchange="f.x", arguments=EVERY)
        queue = until(lambda: entity(broker, "queues/%2F/f.q"))
        exchange = until(lambda: entity(broker, "exchanges/%2F/f.x"))
        bindings = until(lambda: entity(broker, "exchanges/%2F/f.x/bindings/source"))
        client.finish()
    return {"queue": queue["arguments"], "exchange": exchange["arguments"], "binding": bindings[0]["arguments"]}


def test_every_type_shows_in_arguments_as_in_rabbitmq() -> None:
    expected = seen_in_arguments(shared_rabbitmq())
    assert expected["queue"]["L, unsigned long"] == expected["queue"]["l, long"] == -1  # signed, whatever its name
    assert seen_in_arguments(shared_warren()) == {where: shown | OURS for where, shown in expected.items()}


def seen_in_client_properties(broker: RunningBroker, properties: bytes) -> Any:
    with RawClient(broker.port) as client:
        client.send(b"AMQP\x00\x00\x09\x01")
        client.wait("connection.start")
        client.send_method(
            0,
            "connection.start-ok",
            mechanism="PLAIN",
            response="\0guest\0guest",
            locale="en_US",
            client_properties=properties,
        )
        if client.wait("connection.tune").name != "connection.tune":
            return [each.text("reply_text") for each in client.frames if each.name == "connection.close"]
        client.send_method(0, "connection.tune-ok", channel_max=10, frame_max=131072)
        client.call(0, "connection.open", virtual_host="/")
        name = "{}:{} -> {}:{}".format(*client.socket.getsockname(), *client.socket.getpeername())
        shown = until(lambda: entity(broker, f"connections/{quote(name)}"))
        client.finish()
    return shown["client_properties"]


def test_every_type_shows_in_client_properties_as_in_rabbitmq() -> None:
    expected = seen_in_client_properties(shared_rabbitmq(), EVERY)
    assert len(expected) == len(LETTERS)
    assert seen_in_client_properties(shared_warren(), EVERY) == expected | OURS


@pytest.mark.parametrize("value", [b"Z\x00", b"I\x00", b"d\x7f\xf0" + bytes(6)], ids=["unknown", "short", "infinite"])
def test_a_wrong_client_property_ends_the_connection(broker: RunningBroker, value: bytes) -> None:
    """RabbitMQ without a word, Warren with the reason (in the list of differences)."""
    answer = seen_in_client_properties(broker, table_of(value))
    assert answer == ([f"FRAME_ERROR - {answer[0][14:]}"] if broker.is_warren and answer else [])
    assert bool(answer) == broker.is_warren


def dead_letter(broker: RunningBroker, headers: bytes) -> tuple[bytes, Any]:
    """The headers of a dead letter, and of the same message over HTTP, where the broker wrote the table anew."""
    with RawClient(broker.port).handshake().open(1) as client:
        client.call(1, "queue.declare", queue="f.dead", exclusive=False, auto_delete=True)
        client.call(
            1,
            "queue.declare",
            queue="f.q",
            exclusive=True,
            arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "f.dead", "x-message-ttl": 0},
        )
        properties = header(0)[:12] + b"\x20\x00" + headers
        client.send(frame(METHOD, 1, payload("basic.publish", routing_key="f.q")) + frame(HEADER, 1, properties))
        until(lambda: client.call(1, "queue.declare", queue="f.dead", passive=True).number("message_count"))
        status, shown = broker.http(
            "POST", "/api/queues/%2F/f.dead/get", {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}
        )
        assert status == 200 and isinstance(shown, list)
        client.call(1, "basic.consume", queue="f.dead", no_ack=True)
        _, head, _ = client.wait_message()
        client.finish()
    entries = {key: item for key, item in shown[0]["properties"]["headers"].items() if not key.startswith("x-")}
    return head[18 : 18 + len(headers) - 4], entries


def test_every_type_in_a_header_is_in_the_dead_letter_as_in_rabbitmq() -> None:
    octets, shown = dead_letter(shared_rabbitmq(), EVERY)
    assert b"L, unsigned longl" in octets  # L goes in, l comes out
    assert dead_letter(shared_warren(), EVERY) == (octets, shown | OURS)


def strange(broker: RunningBroker) -> Any:
    """A message none of whose names is UTF-8, over HTTP."""
    with RawClient(broker.port).handshake().open(1) as client:
        client.call(1, "queue.declare", queue="f.q", auto_delete=True)
        client.call(1, "queue.bind", queue="f.q", exchange="amq.topic", routing_key="f.*")
        client.publish(1, "amq.topic", b"f.\xff", b"x", message_id=b"\xfe", headers={b"h\xfd": b"\xfc"})  # type: ignore[arg-type]
        client.call(1, "queue.declare", queue="f.q", passive=True)
        status, shown = broker.http(
            "POST", "/api/queues/%2F/f.q/get", {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}
        )
        assert status == 200, shown
        client.call(1, "queue.delete", queue="f.q")
        client.finish()
    return shown


def test_octets_that_are_no_utf_8_show_over_http_as_in_rabbitmq() -> None:
    assert strange(shared_warren()) == strange(shared_rabbitmq())


def number(letter: str, value: int) -> bytes:
    return letter.encode() + struct.pack({"L": ">Q", "l": ">q", "I": ">i"}[letter], value)


#: Of type L, and what may be taken for it: alone, beyond 63 bits, in an array and in a table.
NUMBERS = {
    "L": number("L", 5),
    "l": number("l", 5),
    "I": number("I", 5),
    "L, the largest": number("L", 2**64 - 1),
    "l, -1": number("l", -1),
    "L in an array": b"A" + longstr(number("L", 5)),
    "l in an array": b"A" + longstr(number("l", 5)),
    "L in a table": b"F" + longstr(b"\x01a" + number("L", 5)),
    "l in a table": b"F" + longstr(b"\x01a" + number("l", 5)),
}


def matched(client: RawClient, bound: str) -> dict[str, int]:
    """How many messages with each of the numbers in a header reach a queue that is bound by one of them."""
    client.call(1, "queue.bind", queue="f.q", exchange="amq.headers", arguments=table_of(NUMBERS[bound]))
    found = {}
    for name, value in NUMBERS.items():
        properties = header(0)[:12] + b"\x20\x00" + table_of(value)
        client.send(frame(METHOD, 1, payload("basic.publish", exchange="amq.headers")) + frame(HEADER, 1, properties))
        assert client.wait("basic.ack").name == "basic.ack"
        found[f"{bound}, {name}"] = client.call(1, "queue.purge", queue="f.q").number("message_count")
    client.call(1, "queue.unbind", queue="f.q", exchange="amq.headers", arguments=table_of(NUMBERS[bound]))
    return found


def bindings_that_match(broker: RunningBroker) -> dict[str, int]:
    with RawClient(broker.port).handshake().open(1) as client:
        client.call(1, "confirm.select")
        client.call(1, "queue.declare", queue="f.q", exclusive=True)
        found = {name: count for bound in NUMBERS for name, count in matched(client, bound).items()}
        for name in ("L", "l", "I"):  # is a binding with L taken away by what is like it?
            client.call(1, "queue.bind", queue="f.q", exchange="amq.headers", arguments=table_of(NUMBERS["L"]))
            client.call(1, "queue.unbind", queue="f.q", exchange="amq.headers", arguments=table_of(NUMBERS[name]))
            found[f"unbound, {name}"] = matched(client, "L in an array")["L in an array, L"]
            properties = header(0)[:12] + b"\x20\x00" + table_of(NUMBERS["L"])
            client.send(
                frame(METHOD, 1, payload("basic.publish", exchange="amq.headers")) + frame(HEADER, 1, properties)
            )
            client.wait("basic.ack")
            found[f"left, {name}"] = client.call(1, "queue.purge", queue="f.q").number("message_count")
            client.call(1, "queue.unbind", queue="f.q", exchange="amq.headers", arguments=table_of(NUMBERS["L"]))
        client.finish()
    return found


def test_a_binding_by_a_number_of_type_l_takes_the_messages_it_takes_in_rabbitmq() -> None:
    expected = bindings_that_match(shared_rabbitmq())
    assert 20 < sum(expected.values()) < len(expected)
    assert bindings_that_match(shared_warren()) == expected


def where_else_l_may_stand(broker: RunningBroker) -> dict[str, Any]:
    """Consumers' arguments, copies' keys, what a client says it can do."""
    found: dict[str, Any] = {}
    for name in ("L", "L, the largest", "L in an array", "L in a table"):
        value = NUMBERS[name]
        with RawClient(broker.port).handshake().open(1) as client:
            client.call(1, "queue.declare", queue="f.q", exclusive=True)
            client.call(1, "basic.consume", queue="f.q", arguments=table_of(value))
            consumers = until(lambda: [one for one in ask_consumers(broker) if one["queue"]["name"] == "f.q"])
            found[f"consumer, {name}"] = consumers[0]["arguments"]
            client.finish()
        for key in ("CC", "BCC"):
            with RawClient(broker.port).handshake().open(1) as client:
                client.call(1, "confirm.select")
                properties = header(0)[:12] + b"\x20\x00" + longstr(shortstr(key) + value)
                client.send(frame(METHOD, 1, payload("basic.publish")) + frame(HEADER, 1, properties))
                found[f"{key}, {name}"] = client.wait("basic.ack", channel=1).values.get("reply_text")
                client.finish()
    with RawClient(broker.port) as client:
        client.send(b"AMQP\x00\x00\x09\x01")
        client.wait("connection.start")
        client.send_method(
            0,
            "connection.start-ok",
            mechanism="PLAIN",
            response="\0guest\0guest",
            locale="en_US",
            client_properties=longstr(shortstr("capabilities") + NUMBERS["L in a table"]),
        )
        found["capabilities"] = client.wait("connection.tune").name
    return found


def ask_consumers(broker: RunningBroker) -> Any:
    return broker.http("GET", "/api/consumers/%2F")[1]


def test_type_l_is_taken_or_refused_as_in_rabbitmq_wherever_else_it_stands() -> None:
    expected = where_else_l_may_stand(shared_rabbitmq())
    assert expected["consumer, L, the largest"] == {"a": -1} and expected["capabilities"] == "connection.tune"
    assert where_else_l_may_stand(shared_warren()) == expected
