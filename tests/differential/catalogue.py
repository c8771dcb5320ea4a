"""Every value of the pools once, in a sequence of its own: what chance may leave out is tried here for certain.

Duty: short fixed sequences. Not here: running them (test_differential.py).
"""

from __future__ import annotations

from typing import Any

from tests.differential.operations import Op, op
from tests.differential.values import (
    BAD_ARGUMENTS,
    BAD_CONSUME_ARGUMENTS,
    BAD_EXPIRATIONS,
    BAD_WEIGHTS,
    BAD_X_MATCH,
    CONSUME_ARGUMENTS,
    LENGTH_ARGUMENTS,
    MATCH_VALUES,
    PLAIN_ARGUMENTS,
    TABLE_VALUES,
    X_MATCH,
)
from tests.support.rawclient import Typed

RAW = (
    "unknown method",
    "header first",
    "body first",
    "method instead of header",
    "header of another class",
    "too much body",
    "bad frame end",
    "unknown frame type",
    "closed channel",
    "truncated method",
)


def chunks(steps: list[Op], size: int) -> list[list[Op]]:
    return [steps[start : start + size] for start in range(0, len(steps), size)]


def sequences() -> list[list[Op]]:
    return [*arguments(), *inequivalence(), *properties(), *matching(), *hashing(), *hard_errors(), *faults_in_order()]


def arguments() -> list[list[Op]]:
    """Each argument alone: refused in the same words, or accepted by both."""
    steps = [op("a1", "queue.declare", queue="q0", arguments=each) for each in BAD_ARGUMENTS]
    found = chunks(steps, 12)
    for each in (*LENGTH_ARGUMENTS, *PLAIN_ARGUMENTS):
        found.append(
            [
                op("a1", "queue.declare", queue="q0", arguments=each),
                op("a1", "queue.declare", queue="q0"),
                *[op("a1", "basic.publish", routing_key="q0", body=f"m{number}") for number in range(5)],
            ]
        )
    consume = [
        op("a1", "basic.consume", queue="q0", arguments=each) for each in (*BAD_CONSUME_ARGUMENTS, *CONSUME_ARGUMENTS)
    ]
    values: list[Any] = [*TABLE_VALUES]
    names = (
        "x-max-length",
        "x-overflow",
        "x-dead-letter-exchange",
        "x-single-active-consumer",
        "x-queue-type",
        "x-max-priority",
    )
    for name in names:
        found += chunks(
            [
                step
                for each in values
                for step in (
                    op("a1", "queue.declare", queue="q0", arguments={name: each}),
                    op("a1", "queue.delete", queue="q0"),
                )
            ],
            12,
        )
    found += chunks(
        [
            op("a1", "exchange.declare", exchange="x0", type="direct", arguments={"alternate-exchange": each})
            for each in values
            if not isinstance(each, str)
        ],
        12,
    )
    return [*found, [op("a1", "queue.declare", queue="q0"), *consume]]


def inequivalence() -> list[list[Op]]:
    """Declared one way and then another, both ways round."""
    found = []
    ways: tuple[dict[str, Any], ...] = (
        {},
        {"durable": True},
        {"auto_delete": True},
        {"exclusive": True},
        {"arguments": {"x-max-length": 5}},
        {"arguments": {"x-max-length": Typed("l", 5)}},
        {"arguments": {"x-max-length": 6}},
        {"arguments": {"x-message-ttl": 600000}},
        {"arguments": {"x-overflow": "drop-head"}},
        {"arguments": {"x-queue-type": "classic"}},
        {"arguments": {"other": 1}},
        {"arguments": {"x-dead-letter-exchange": "x0"}},
        {"arguments": {"x-single-active-consumer": True}},
        {"arguments": {"x-max-priority": 3}},
        {"arguments": {"x-queue-mode": "lazy"}},
        {"arguments": {"x-expires": 600000}},
    )
    for first in ways:
        steps = [op("a1", "queue.declare", queue="q0", **first)]
        steps += [op("a2", "queue.declare", queue="q0", **second) for second in ways]
        found.append([*steps, op("b1", "queue.declare", queue="q0", **first)])
    # which of several differences is named
    rest: dict[str, Any] = {
        "x-expires": 600000,
        "x-message-ttl": 600000,
        "x-dead-letter-exchange": "x0",
        "x-dead-letter-routing-key": "k",
        "x-max-length": 5,
        "x-max-length-bytes": 50,
        "x-max-priority": 3,
        "x-overflow": "drop-head",
        "x-queue-mode": "lazy",
        "x-queue-version": 1,
        "x-single-active-consumer": True,
    }
    pairs = [{one: rest[one], other: rest[other]} for one in rest for other in rest if one < other]
    found += [
        [op("a1", "queue.declare", queue="q0"), *each]
        for each in chunks([op("a1", "queue.declare", queue="q0", arguments=each) for each in pairs], 12)
    ]
    flags: list[dict[str, Any]] = [
        {"durable": True, "auto_delete": True},
        {"durable": True, "arguments": {"x-max-length": 1}},
        {"auto_delete": True, "arguments": {"x-max-length": 1}},
        {"exclusive": True, "durable": True},
    ]
    found.append(
        [op("a1", "queue.declare", queue="q0"), *[op("a1", "queue.declare", queue="q0", **each) for each in flags]]
    )
    kinds: tuple[dict[str, Any], ...] = (
        {"type": "direct"},
        {"type": "fanout"},
        {"type": "topic"},
        {"type": "headers"},
        {"type": "x-consistent-hash"},
        {"type": "x-random"},
        {"type": "direct", "durable": True},
        {"type": "direct", "auto_delete": True},
        {"type": "direct", "internal": True},
        {"type": "direct", "arguments": {"alternate-exchange": "x1"}},
        {"type": "direct", "arguments": {"alternate-exchange": "x2"}},
        {"type": "direct", "arguments": {"other": 1}},
    )
    for first in kinds:
        found.append(
            [
                op("a1", "exchange.declare", exchange="x0", **first),
                *[op("a1", "exchange.declare", exchange="x0", **second) for second in kinds],
            ]
        )
    return found


def properties() -> list[list[Op]]:
    """Each property value through a queue, and each wrong one."""
    found = [
        [
            op("a1", "queue.declare", queue="q0"),
            *[
                op("a1", "basic.publish", routing_key="q0", properties={"headers": {"any": each}}, body="m")
                for each in TABLE_VALUES
            ],
        ]
    ]
    found += chunks(
        [op("a1", "basic.publish", properties={"expiration": each}, body="m") for each in (*BAD_EXPIRATIONS, "0")], 12
    )
    found += chunks(
        [op("a1", "basic.publish", properties={"delivery_mode": each}, body="m") for each in (0, 1, 2, 3, 255)], 12
    )
    for name in ("CC", "BCC"):
        found += chunks(
            [op("a1", "basic.publish", properties={"headers": {name: each}}, body="m") for each in TABLE_VALUES], 12
        )
        found.append(
            [
                op("a1", "queue.declare", queue="q0"),
                op("a1", "queue.declare", queue="q1"),
                *[
                    op("a1", "basic.publish", routing_key="q0", properties={"headers": {name: each}}, body=f"m{number}")
                    for number, each in enumerate(
                        (["q1"], ["q1", "q0"], [], ["q9"], [1, "q1"], [[]], [Typed("x", "q1")], ["q1", "q1"])
                    )
                ],
            ]
        )
    return found


def matching() -> list[list[Op]]:
    """Every headers binding against every message."""
    found = []
    for match in (*X_MATCH, None):
        for bound in ({}, {"h": 1}, {"h": None}, {"x-h": 1}, {"h": 1, "g": "v"}, {"h": 1, "x-h": 1}):
            arguments: dict[str, Any] = {**({"x-match": match} if match else {}), **bound}
            found.append(
                [
                    op("a1", "queue.declare", queue="q0"),
                    op("a1", "exchange.declare", exchange="x0", type="headers"),
                    op("a1", "queue.bind", queue="q0", exchange="x0", arguments=arguments),
                    op(
                        "a1",
                        "burst",
                        steps=[
                            op("a1", "basic.publish", exchange="x0", body=f"m{number}", properties={"headers": headers})
                            for number, headers in enumerate(
                                (
                                    {},
                                    *({"h": each} for each in MATCH_VALUES),
                                    {"x-h": 1},
                                    {"h": 1, "g": "v"},
                                    {"g": "v"},
                                    {"h": 1, "x-h": 1},
                                    {"h": 2, "x-h": 1},
                                )
                            )
                        ]
                        + [op("a1", "basic.publish", exchange="x0", body="none")],
                    ),
                ]
            )
    wrong = [
        op("a1", "queue.bind", queue="q0", exchange="amq.headers", arguments={"x-match": each})
        for each in (*BAD_X_MATCH, None, True)
    ]
    return [*found, [op("a1", "queue.declare", queue="q0"), *wrong]]


def hashing() -> list[list[Op]]:
    declare = op("a1", "exchange.declare", exchange="x0", type="x-consistent-hash")
    steps = [op("a1", "queue.bind", queue="q0", exchange="x0", routing_key=each) for each in (*BAD_WEIGHTS, "1", "7")]
    wrong: tuple[dict[str, Any], ...] = (
        {"hash-header": "h", "hash-property": "message_id"},
        {"hash-property": "nope"},
        {"hash-property": 1},
        {"hash-header": 1},
        {"hash-header": ""},
        {"hash-property": ""},
    )
    refused = [op("a1", "exchange.declare", exchange="x1", type="x-consistent-hash", arguments=each) for each in wrong]
    return [[op("a1", "queue.declare", queue="q0"), declare, *steps], refused]


def hard_errors() -> list[list[Op]]:
    found = [[op("b1", "raw", what=each)] for each in RAW]
    others = [
        op("b1", "exchange.declare", exchange="x0", type="no-such-type"),
        op("b1", "exchange.declare", exchange="x0", type=""),
        op("b1", "basic.publish", immediate=True, body="now"),
        op("b1", "basic.recover", requeue=False),
        op("b1", "basic.recover-async", requeue=False),
        op("b1", "basic.qos", prefetch_size=10),
        op("b1", "channel.flow", active=False),
        op("b1", "channel.open"),
    ]
    return found + [[each] for each in others]


def faults_in_order() -> list[list[Op]]:
    """Two faults in one call: which one is named shows the order of the checks."""
    wrong = {
        "user_id": "nobody",
        "expiration": "x",
        "headers": {"CC": 1},
        "reply_to": "amq.rabbitmq.reply-to",
        "delivery_mode": 9,
    }
    names = list(wrong)
    steps = [
        op("a1", "basic.publish", routing_key="q0", properties={name: wrong[name] for name in (one, other)}, body="m")
        for position, one in enumerate(names)
        for other in names[position + 1 :]
    ]
    steps += [
        op("a1", "basic.publish", exchange=exchange, properties={name: wrong[name]}, body="m")
        for exchange in ("x9", "amq.rabbitmq.trace")
        for name in names
    ]
    return chunks(steps, 12)
