"""Publishing and getting over HTTP take the same path as any client's messages."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pika
import pytest

from tests.http.conftest import Api
from warrenmq.broker.channel.body_frames import BodyFrames
from warrenmq.client import Connection
from warrenmq.http.direct import FRAME_MAX, Direct
from warrenmq.http.endpoint import LONG_LIST, MOST_VALUES
from warrenmq.http.objects.definitions import MOST_PARTS
from warrenmq.testing import Broker


def publish(api: Api, queue: str, **more: Any) -> Any:
    body = {"routing_key": queue, "properties": {}, "payload": "x", "payload_encoding": "string"} | more
    answer = api.ask("POST", "/exchanges/%2F/amq.default/publish", body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def get(api: Api, queue: str, ackmode: str = "ack_requeue_false", count: int = 10, **more: Any) -> list[Any]:
    body = {"count": count, "ackmode": ackmode, "encoding": "auto"} | more
    answer = api.ask("POST", f"/queues/%2F/{queue}/get", body)
    assert answer.status_code == 200, answer.text
    found: list[Any] = answer.json()
    return found


def test_properties_headers_and_body_reach_an_amqp_client_as_published(api: Api) -> None:
    api.put("/queues/%2F/typed", {"durable": True})
    properties = {
        "content_type": "text/plain",
        "content_encoding": "utf-8",
        "delivery_mode": 2,
        "priority": 3,
        "correlation_id": "c",
        "reply_to": "r",
        "expiration": "60000",
        "message_id": "m",
        "timestamp": 1700000000,
        "type": "t",
        "user_id": "guest",
        "app_id": "a",
        "headers": {"n": 1, "s": "x", "list": [1, "two"], "t": True},
    }
    payload = bytes(range(256))
    assert publish(
        api, "typed", properties=properties, payload=base64.b64encode(payload).decode(), payload_encoding="base64"
    ) == {"routed": True}
    connection = pika.BlockingConnection(pika.ConnectionParameters(port=api.broker.port))
    method, found, body = connection.channel().basic_get("typed", auto_ack=True)
    connection.close()
    assert body == payload
    for name, value in properties.items():
        assert getattr(found, name) == value


def test_an_unroutable_message_is_not_routed_and_an_unknown_exchange_is_an_error(api: Api) -> None:
    assert publish(api, "no-such-queue") == {"routed": False}
    answer = api.ask(
        "POST",
        "/exchanges/%2F/none/publish",
        {"routing_key": "", "properties": {}, "payload": "", "payload_encoding": "string"},
    )
    assert (answer.status_code, answer.json()["reason"]) == (400, "404 NOT_FOUND - no exchange 'none' in vhost '/'")


def test_what_is_published_over_http_counts_at_its_exchange(api: Api) -> None:
    """The numbers are RabbitMQ 3.10's; a counter that stands at nothing is left out, as there."""
    api.put("/exchanges/%2F/counted", {"type": "fanout"})
    path = "/exchanges/%2F/counted"
    message = {"routing_key": "", "properties": {}, "payload": "x", "payload_encoding": "string"}
    assert "message_stats" not in api.get(path)
    api.ask("POST", path + "/publish", message)
    assert api.get(path)["message_stats"] == {"publish_in": 1, "publish_in_details": {"rate": 0.0}}
    for queue in ("counted-1", "counted-2"):
        api.put(f"/queues/%2F/{queue}", {})
        api.ask("POST", f"/bindings/%2F/e/counted/q/{queue}", {})
    api.ask("POST", path + "/publish", message)
    stats = api.get(path)["message_stats"]
    assert (stats["publish_in"], stats["publish_out"]) == (2, 2)


def test_the_timestamp_at_the_head_of_a_queue_is_shown(api: Api) -> None:
    api.put("/queues/%2F/stamped", {})
    shown = []
    for timestamp in (1_500_000_000, 1_400_000_000):
        publish(api, "stamped", properties={"timestamp": timestamp})
    publish(api, "stamped")
    for _ in range(4):
        shown.append(api.get("/queues/%2F/stamped")["head_message_timestamp"])
        get(api, "stamped", count=1)
    assert shown == [1_500_000_000, 1_400_000_000, None, None]


@pytest.mark.parametrize("ackmode", ["ack_requeue_true", "reject_requeue_true"])
def test_looking_at_messages_leaves_them_in_order_and_flagged_redelivered(api: Api, ackmode: str) -> None:
    name = f"looked-at-{ackmode}"
    api.put(f"/queues/%2F/{name}", {})
    for payload in "abc":
        publish(api, name, payload=payload)
    first = get(api, name, ackmode, 2)
    assert [(one["payload"], one["redelivered"], one["message_count"]) for one in first] == [
        ("a", False, 2),
        ("b", False, 1),
    ]
    again = get(api, name)
    assert [(one["payload"], one["redelivered"]) for one in again] == [("a", True), ("b", True), ("c", False)]
    assert get(api, name) == []


def test_rejected_without_requeue_goes_to_the_dead_letter_exchange(api: Api) -> None:
    api.put("/queues/%2F/dead", {})
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    api.put("/queues/%2F/doomed", {"arguments": arguments})
    publish(api, "doomed", payload="last words")
    get(api, "doomed", "reject_requeue_false")
    (dead,) = get(api, "dead")
    assert dead["payload"] == "last words"
    assert dead["properties"]["headers"]["x-death"][0]["reason"] == "rejected"


def test_bodies_that_are_no_text_come_as_base64_and_may_be_cut(api: Api) -> None:
    api.put("/queues/%2F/binary", {})
    publish(api, "binary", payload="//8A", payload_encoding="base64")
    (whole,) = get(api, "binary", "ack_requeue_true")
    assert (whole["payload"], whole["payload_encoding"], whole["payload_bytes"]) == ("//8A", "base64", 3)
    (cut,) = get(api, "binary", truncate=1)
    assert (cut["payload"], cut["payload_bytes"]) == ("/w==", 3)
    assert "properties" in cut and cut["properties"] == []


LIMIT = 16 << 20


def long_body(api: Api, queue: str, *sizes: int) -> None:
    api.put(f"/queues/%2F/{queue}", {})
    with Connection(api.broker.url) as connection:
        channel = connection.channel()
        channel.confirm_select()
        for size in sizes:
            channel.basic_publish("", queue, b"x" * size)
        channel.wait_for_confirms(60)


def test_a_message_that_is_too_long_to_be_shown_stays_and_the_answer_says_what_to_do(api: Api) -> None:
    long_body(api, "long", 3, LIMIT + 1, 5)
    (first,) = get(api, "long")
    assert first["payload"] == "xxx"
    body = {"count": 10, "ackmode": "ack_requeue_false", "encoding": "auto"}
    answer = api.ask("POST", "/queues/%2F/long/get", body)
    assert answer.status_code == 400
    said = f"the message has {LIMIT + 1} bytes, and no more than {LIMIT} are shown: give truncate, "
    assert answer.json()["reason"] == said + "or take it with an AMQP client"
    assert api.get("/queues/%2F/long")["messages_ready"] == 2
    cut, last = get(api, "long", truncate=4)
    assert (cut["payload"], cut["payload_bytes"], last["payload"]) == ("xxxx", LIMIT + 1, "xxxx")
    shown = api.get("/queues/%2F/long")
    assert (shown["messages_ready"], shown["messages_unacknowledged"]) == (0, 0)


@pytest.mark.parametrize("ackmode", ["ack_requeue_false", "reject_requeue_false", "ack_requeue_true"])
def test_an_answer_ends_before_it_is_too_long(api: Api, ackmode: str) -> None:
    queue = f"sum-{ackmode}"
    long_body(api, queue, LIMIT // 2, LIMIT // 2, 1, 1)
    assert [each["payload_bytes"] for each in get(api, queue, ackmode)] == [LIMIT // 2, LIMIT // 2]
    left = api.get(f"/queues/%2F/{queue}")["messages_ready"]
    assert left == (4 if ackmode == "ack_requeue_true" else 2)


def test_a_long_body_is_taken_from_the_broker_some_at_a_time() -> None:
    """Nothing of it is cut or copied when the broker hands it over."""
    with Broker() as broker:
        server = broker.server

        async def write() -> int:
            server.begin()
            async with Direct(server, "guest", server.broker.vhosts["/"]) as channel:
                frames = BodyFrames(1, [bytes(LIMIT)], LIMIT, FRAME_MAX - 8)
                channel.write_body(frames)
                return int(frames.left)

        assert broker.run(write()) == LIMIT


def test_nothing_is_left_behind_by_a_request(api: Api) -> None:
    api.put("/queues/%2F/tidy", {})
    publish(api, "tidy")
    get(api, "tidy", "ack_requeue_true")
    assert api.get("/connections") == [] and api.get("/channels") == []
    assert api.get("/queues/%2F/tidy")["messages_unacknowledged"] == 0


def test_a_body_beyond_the_limit_is_refused_before_it_is_read(api: Api) -> None:
    answer = api.ask("PUT", "/queues/%2F/large", b"{" + b" " * (17 << 20) + b"}")
    assert answer.status_code == 413


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"a":' * 100_000, b"\xff\xfe", b"{", b'"text"', b"nul"])
def test_malformed_json_is_a_bad_request_whatever_it_is(api: Api, body: bytes) -> None:
    for method, path in (("PUT", "/queues/%2F/x"), ("POST", "/definitions"), ("PUT", "/users/x")):
        answer = api.ask(method, path, body)
        assert answer.status_code == 400, (path, answer.text)
        reason = answer.json()["reason"]
        assert reason in ("not_json", "failed_to_parse_json") or (body == b'"text"' and "doubly-JSON-encoded" in reason)


def test_deeply_nested_arguments_are_refused(api: Api) -> None:
    nested: Any = 1
    for _ in range(500):
        nested = [nested]
    answer = api.ask("PUT", "/queues/%2F/deep", {"arguments": {"a": nested}})
    assert (answer.status_code, answer.json()["reason"]) == (400, "nested too deeply")
    answer = api.ask("POST", "/definitions", {"queues": [{"name": "deep", "vhost": "/", "arguments": {"a": nested}}]})
    assert (answer.status_code, answer.json()["reason"]) == (400, "nested deeper than 100 levels")


@pytest.mark.parametrize("size", [4 << 20, (4 << 20) + 1, 9 << 20])
def test_a_long_message_that_no_queue_takes_is_answered(api: Api, size: int) -> None:
    """It comes back some at a time, and the confirm behind it."""
    message = {"routing_key": "nowhere", "properties": {}, "payload": "x" * size, "payload_encoding": "string"}
    answer = api.ask("POST", "/exchanges/%2F/amq.default/publish", message)
    assert (answer.status_code, answer.json()) == (200, {"routed": False})


@pytest.mark.parametrize(
    ("method", "path", "member", "rest"),
    [
        ("POST", "/exchanges/%2F/amq.default/publish", "properties", {"payload": "", "payload_encoding": "string"}),
        ("PUT", "/queues/%2F/many", "arguments", {}),
        ("PUT", "/exchanges/%2F/many", "arguments", {"type": "direct"}),
        ("POST", "/bindings/%2F/e/amq.direct/q/q", "arguments", {}),
        ("PUT", "/policies/%2F/many", "definition", {"pattern": "x"}),
        ("PUT", "/parameters/shovel/%2F/many", "value", {}),
    ],
)
def test_very_many_values_are_refused_before_anybody_looks_at_each(
    api: Api, method: str, path: str, member: str, rest: dict[str, Any]
) -> None:
    many = {f"name{number}": 1 for number in range(MOST_VALUES + 1)}
    answer = api.ask(method, path, {"routing_key": "q", **rest, member: many})
    assert answer.status_code == 400
    assert answer.json()["reason"] == f"the body has more than {MOST_VALUES} values"


def test_a_long_payload_may_have_as_many_commas_as_it_likes(api: Api) -> None:
    api.put("/queues/%2F/commas", {})
    text = "," * (MOST_VALUES + 100_000)
    message = {"routing_key": "commas", "properties": {}, "payload": text, "payload_encoding": "string"}
    assert api.ask("POST", "/exchanges/%2F/amq.default/publish", message).json() == {"routed": True}


@pytest.mark.parametrize("text", [",", '",', "\\,", '\\",'])
def test_a_header_may_have_as_many_commas_as_it_likes(api: Api, text: str) -> None:
    """What counts are values: commas, quotes and backslashes in a text are none of them."""
    api.put("/queues/%2F/commas", {})
    properties = {"headers": {"long": text * (MOST_VALUES + 100)}}
    message = {"routing_key": "commas", "properties": properties, "payload": "", "payload_encoding": "string"}
    assert api.ask("POST", "/exchanges/%2F/amq.default/publish", message).json() == {"routed": True}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "/queues/%2F/many", {"junk": dict.fromkeys(map(str, range(MOST_VALUES + 1)))}),
        ("PUT", "/queues/%2F/many", dict.fromkeys(map(str, range(MOST_VALUES + 1)))),
        ("PUT", "/users/many", {"tags": ["x" * 9] * (MOST_VALUES + 1)}),
        ("POST", "/users/bulk-delete", {"users": ["x"] * (LONG_LIST + 1)}),
        ("PUT", "/policies/%2F/many", [0] * 40_000),
    ],
)
def test_very_many_values_anywhere_in_a_request_are_refused_before_they_are_read(
    api: Api, method: str, path: str, body: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    decode = msgspec.json.decode

    def reading(data: bytes, **more: Any) -> Any:
        read.append(len(data))
        return decode(data, **more)

    monkeypatch.setattr(msgspec.json, "decode", reading)
    answer = api.ask(method, path, body)
    assert answer.status_code == 400 and "values" in answer.json()["reason"]
    assert max(read, default=0) < 1000


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (b'{"queues": [' + b"0," * 100_000 + b"0]}", "queues: not everything in this list is an object"),
        (b'{"queues": [' + b"{}," * (MOST_PARTS + 1) + b"{}]}", f"queues: more than {MOST_PARTS} objects"),
        (b'{"queues": {' + b'"a":0,' * 20_000 + b'"a":0}}', f"queues: one has more than {MOST_VALUES} values"),
        (b'{"queues": [{' + b'"a":0,' * 20_000 + b'"a":0}]}', f"queues: one has more than {MOST_VALUES} values"),
    ],
)
def test_definitions_that_are_none_are_refused_however_many_they_are(api: Api, document: bytes, reason: str) -> None:
    answer = api.ask("POST", "/definitions", document)
    assert answer.status_code == 400 and reason in answer.json()["reason"]
    assert len(answer.content) < 200_000


def test_what_no_section_of_definitions_is_may_have_as_many_values_as_it_likes(api: Api) -> None:
    """It is not read: RabbitMQ passes over it, too."""
    junk = b",".join(b'"a%d": 0' % number for number in range(50_000))
    document = b'{"junk": {' + junk + b"}, " + junk + b', "vhosts": [{"name": "behind junk"}]}'
    assert api.ask("POST", "/definitions", document).status_code == 204
    assert api.get("/vhosts/behind%20junk")["name"] == "behind junk"
