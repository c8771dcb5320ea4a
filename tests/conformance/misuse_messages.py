"""Misuse of publish, consume and acknowledgements, with two faults at once where the order shows."""

from __future__ import annotations

from typing import Any

from tests.conformance.steps import (
    LIMITED,
    Case,
    call,
    case,
    exchange,
    expect,
    message,
    open_channel,
    pub,
    queue,
    silence,
    tell,
)
from tests.support.rawclient import Typed

#: Every misuse of a content method comes with a body that arrives in one piece and with one that does not: they take
#: different ways through a broker, and the answer must not show it.
BODIES = {"": b"ten octets", ", a body of 70 KiB": bytes(70 << 10)}


def faulty(
    name: str,
    to: str = "m.x",
    key: str = "k",
    setup: dict[str, Any] | None = None,
    user: tuple[str, str] = ("guest", "guest"),
    **more: Any,
) -> list[Case]:
    """One publish that is refused (the fence behind it shows a refusal that did not come), with either body."""
    return [
        case(name + size, exchange(**(setup or {})), pub(to, key, **{"body": body, **more}), user=user)
        for size, body in BODIES.items()
    ]


def refused(name: str, to: str, user: tuple[str, str] = LIMITED, **more: object) -> list[Case]:
    """A publish without permission."""
    return [
        case(name + size, pub(to, "k", body, **more), user=user)  # type: ignore[arg-type]
        for size, body in BODIES.items()
    ]


INTERNAL: dict[str, object] = {"internal": True}
NOBODY: dict[str, Any] = {"user_id": "somebody"}

EXPIRATIONS = {
    "of letters": "abc",
    "negative": "-1",
    "with letters behind": "1x",
    "empty": "",
    "with a point": "1.5",
    "with a blank before": " 1",
    "with a blank behind": "1 ",
    "with a plus": "+5",
    "too long": "315360000001",
    "far too long": "99999999999999999999",
    "of zero": "0",
    "with leading zeros": "007",
}

PUBLISH = [
    *faulty("publish to a missing exchange", "m.none"),
    *faulty("publish with immediate", immediate=True),
    *faulty("publish to an internal exchange", setup=INTERNAL),
    *faulty("publish to amq.rabbitmq.trace", "amq.rabbitmq.trace"),
    *faulty("user-id of another user", user_id="somebody"),
    *faulty("user-id of oneself", user_id="guest"),
    *faulty("user-id empty", user_id=""),
    *(each for name, text in EXPIRATIONS.items() for each in faulty(f"expiration {name}", expiration=text)),
    *faulty("CC that is a string", headers={"CC": "k"}),
    *faulty("CC that is a number", headers={"CC": 5}),
    *faulty("BCC that is a string", headers={"BCC": "k"}),
    *faulty("BCC that is a table", headers={"BCC": {"a": "b"}}),
    *faulty("CC and BCC both wrong", headers={"BCC": "b", "CC": True}),
    *faulty("CC with elements that are no strings", headers={"CC": [1, None, "k2"]}, mandatory=True),
    *faulty("lower-case cc means nothing", headers={"cc": "k"}),
    *faulty("reply-to without a reply consumer", reply_to="amq.rabbitmq.reply-to"),
    *faulty("delivery mode 9", delivery_mode=9),
    *faulty("priority 255", priority=255),
    *faulty(
        "a mandatory message without a route, all properties",
        mandatory=True,
        content_type="text/plain",
        content_encoding="utf-8",
        headers={"a": 1, "b": Typed("b", 2), "n": None, "l": [1, "x"], "BCC": ["z"]},
        delivery_mode=2,
        priority=3,
        correlation_id="c",
        reply_to="r",
        expiration="60000",
        message_id="m",
        timestamp=1700000000,
        type="t",
        user_id="guest",
        app_id="a",
        cluster_id="cl",
    ),
    faulty("a mandatory message without a route and without a body", mandatory=True, body=b"")[0],
    *faulty("a mandatory message to the default exchange", "", "m.none", mandatory=True),
    # two faults: the earlier stage answers
    *faulty("two faults: immediate and missing exchange", "m.none", immediate=True),
    *faulty("two faults: immediate and user-id", immediate=True, **NOBODY),
    *faulty("two faults: missing exchange and user-id", "m.none", **NOBODY),
    *faulty("two faults: missing exchange and expiration", "m.none", expiration="x"),
    *faulty("two faults: internal and user-id", setup=INTERNAL, **NOBODY),
    *faulty("two faults: internal and CC", setup=INTERNAL, headers={"CC": 1}),
    *faulty("two faults: reply-to and user-id", reply_to="amq.rabbitmq.reply-to", **NOBODY),
    *faulty("two faults: reply-to and expiration", reply_to="amq.rabbitmq.reply-to", expiration="x"),
    *faulty("two faults: reply-to and internal", reply_to="amq.rabbitmq.reply-to", setup=INTERNAL),
    *faulty("two faults: user-id and expiration", expiration="x", **NOBODY),
    *faulty("two faults: user-id and CC", headers={"CC": 1}, **NOBODY),
    *faulty("two faults: expiration and CC", headers={"CC": 1}, expiration="x"),
    *faulty("two faults: CC and mandatory without a route", headers={"CC": 1}, mandatory=True),
    *refused("two faults: no permission and missing exchange", "forbidden"),
    *refused("two faults: no permission and immediate", "forbidden", immediate=True),
    *refused("two faults: no permission and user-id", "amq.direct", user_id="x"),
    *refused("no permission on the default exchange", ""),
    case("no permission to declare a queue", queue("forbidden"), user=LIMITED),
    case("no permission to declare an exchange", exchange("forbidden"), user=LIMITED),
    case("no permission to delete a queue", call("queue.delete", queue="forbidden"), user=LIMITED),
    case("no permission to read a missing queue", call("basic.get", queue="forbidden"), user=LIMITED),
    case("no permission to consume", call("basic.consume", queue="forbidden"), user=LIMITED),
    case("no permission to purge", call("queue.purge", queue="forbidden"), user=LIMITED),
    case(
        "no permission to write the queue of a binding",
        queue(),
        exchange(),
        call("queue.bind", queue="m.q", exchange="m.x"),
        user=LIMITED,
    ),
    case(
        "no permission to read the exchange of a binding",
        call("exchange.bind", source="forbidden", destination="m.x"),
        user=LIMITED,
    ),
    case("no permission and passive declare", queue("forbidden", passive=True), user=LIMITED),
    case(
        "no permission for the alternate exchange",
        exchange(arguments={"alternate-exchange": "forbidden"}),
        user=LIMITED,
    ),
    case(
        "no permission for the dead-letter exchange",
        queue(arguments={"x-dead-letter-exchange": "forbidden"}),
        user=LIMITED,
    ),
    case(
        "later publishes behind a refused one are discarded",
        queue(),
        pub("m.none", "k"),
        pub("", "m.q"),
        pub("", "m.q"),
        expect("channel.close"),
        open_channel(1),
        call("queue.declare", queue="m.q", passive=True),
    ),
]

CONSUME = [
    case("consuming a missing queue", call("basic.consume", queue="m.none")),
    case("getting from a missing queue", call("basic.get", queue="m.none")),
    case("getting from an empty queue", queue(), call("basic.get", queue="m.q")),
    case(
        "one consumer tag twice",
        queue(),
        call("basic.consume", queue="m.q", consumer_tag="t"),
        call("basic.consume", queue="m.q", consumer_tag="t"),
    ),
    case(
        "one consumer tag on two channels is allowed",
        queue(),
        open_channel(2),
        call("basic.consume", queue="m.q", consumer_tag="t"),
        call("basic.consume", 2, queue="m.q", consumer_tag="t"),
    ),
    case(
        "an exclusive consumer beside another",
        queue(),
        call("basic.consume", queue="m.q", consumer_tag="a"),
        call("basic.consume", queue="m.q", consumer_tag="b", exclusive=True),
    ),
    case(
        "another consumer beside an exclusive one",
        queue(),
        call("basic.consume", queue="m.q", consumer_tag="a", exclusive=True),
        call("basic.consume", queue="m.q", consumer_tag="b"),
    ),
    case(
        "an exclusive consumer on a single-active-consumer queue",
        queue(arguments={"x-single-active-consumer": True}),
        call("basic.consume", queue="m.q", exclusive=True),
    ),
    case(
        "a consumer priority that is a string",
        queue(),
        call("basic.consume", queue="m.q", consumer_tag="t", arguments={"x-priority": "high"}),
    ),
    case(
        "a negative consumer priority is allowed",
        queue(),
        call("basic.consume", queue="m.q", consumer_tag="t", arguments={"x-priority": -5}),
    ),
    case("cancelling an unknown tag", call("basic.cancel", consumer_tag="nobody")),
    case("a server-made consumer tag", queue(), call("basic.consume", queue="m.q")),
    case("a prefetch size", call("basic.qos", prefetch_size=1)),
    case("a global prefetch", call("basic.qos", prefetch_count=5, global_=True)),
    case("acking an unknown tag", tell("basic.ack", delivery_tag=1), expect("channel.close")),
    case("acking tag 0 alone", tell("basic.ack", delivery_tag=0), expect("channel.close")),
    case(
        "acking tag 0 with multiple and nothing outstanding",
        tell("basic.ack", delivery_tag=0, multiple=True),
        call("basic.qos"),
    ),
    case(
        "acking an unknown tag with multiple", tell("basic.ack", delivery_tag=3, multiple=True), expect("channel.close")
    ),
    case(
        "acking twice",
        queue(),
        pub("", "m.q"),
        call("basic.get", queue="m.q"),
        tell("basic.ack", delivery_tag=1),
        tell("basic.ack", delivery_tag=1),
        expect("channel.close"),
    ),
    case(
        "acking beyond the last with multiple acks nothing",
        queue(),
        pub("", "m.q"),
        pub("", "m.q"),
        call("basic.get", queue="m.q"),
        call("basic.get", queue="m.q"),
        tell("basic.ack", delivery_tag=3, multiple=True),
        expect("channel.close"),
        open_channel(1),
        call("queue.declare", queue="m.q", passive=True),
    ),
    case(
        "acking a hole with multiple",
        queue(),
        pub("", "m.q"),
        pub("", "m.q"),
        call("basic.get", queue="m.q"),
        call("basic.get", queue="m.q"),
        tell("basic.ack", delivery_tag=2),
        tell("basic.ack", delivery_tag=2, multiple=True),
        expect("channel.close"),
    ),
    case(
        "acking an auto-acked delivery",
        queue(),
        pub("", "m.q"),
        call("basic.get", queue="m.q", no_ack=True),
        tell("basic.ack", delivery_tag=1),
        expect("channel.close"),
    ),
    case("nacking an unknown tag", tell("basic.nack", delivery_tag=7, requeue=True), expect("channel.close")),
    case("nacking tag 0 alone", tell("basic.nack", delivery_tag=0), expect("channel.close")),
    case(
        "nacking tag 0 with multiple and nothing outstanding",
        tell("basic.nack", delivery_tag=0, multiple=True),
        call("basic.qos"),
    ),
    case("rejecting an unknown tag", tell("basic.reject", delivery_tag=7), expect("channel.close")),
    case("rejecting tag 0", tell("basic.reject", delivery_tag=0), expect("channel.close")),
    case("recover without requeue", call("basic.recover", requeue=False)),
    case("recover with nothing outstanding", call("basic.recover", requeue=True)),
    case("recover-async without requeue", tell("basic.recover-async", requeue=False), expect("connection.close")),
    case(
        "recover puts a message back, redelivered",
        queue(),
        pub("", "m.q"),
        call("basic.get", queue="m.q"),
        call("basic.recover", requeue=True),
        call("basic.get", queue="m.q"),
    ),
    case("a reply consumer that acknowledges", call("basic.consume", queue="amq.rabbitmq.reply-to")),
    case(
        "a second reply consumer",
        call("basic.consume", queue="amq.rabbitmq.reply-to", no_ack=True),
        call("basic.consume", queue="amq.rabbitmq.reply-to", no_ack=True),
    ),
    case("declaring the reply queue", queue("amq.rabbitmq.reply-to")),
    case("declaring the reply queue passively with no consumer", queue("amq.rabbitmq.reply-to.nobody", passive=True)),
    case(
        "a client that knows cancel is told of a deleted queue",
        queue(),
        call("basic.consume", queue="m.q", consumer_tag="t"),
        call("queue.delete", queue="m.q"),
        expect("basic.cancel"),
    ),
    case(
        "a client that does not know cancel is not told",
        queue(),
        call("basic.consume", queue="m.q", consumer_tag="t"),
        call("queue.delete", queue="m.q"),
        silence,
        capabilities=(),
    ),
    case(
        "a purge leaves outstanding messages",
        queue(),
        pub("", "m.q"),
        pub("", "m.q"),
        call("basic.get", queue="m.q"),
        call("queue.purge", queue="m.q"),
        tell("basic.ack", delivery_tag=1),
        call("basic.get", queue="m.q"),
    ),
    case(
        "a delivery to a consumer without ack",
        queue(),
        pub("", "m.q", b"hello", headers={"a": 1}, message_id="7"),
        call("basic.consume", queue="m.q", consumer_tag="t", no_ack=True),
        message(),
    ),
    case(
        "an empty message is delivered without a body frame",
        queue(),
        pub("", "m.q", b""),
        call("basic.consume", queue="m.q", consumer_tag="t"),
        message(),
    ),
    case(
        "a body of two frames is delivered in two frames",
        queue(),
        pub("", "m.q", b"y" * 5000, frame_max=4096),
        call("basic.consume", queue="m.q", consumer_tag="t"),
        message(),
        frame_max=4096,
    ),
]
