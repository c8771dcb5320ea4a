"""Calls that the broker must refuse, with the words it must refuse them in.

Duty: choose one. Soft ones end the channel, hard ones the connection. Not here: legal steps (generator.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.differential.operations import Op, op
from tests.differential.values import (
    BAD_ARGUMENTS,
    BAD_CONSUME_ARGUMENTS,
    BAD_EXPIRATIONS,
    BAD_WEIGHTS,
    CHANNELS,
)

if TYPE_CHECKING:
    from tests.differential.generator import Generator


def bad_publish(g: Generator, channel: str) -> Op:
    body = "bad"
    queue = g.known_queue()
    chance = g.random.randrange(9)
    if chance == 0:
        return op(channel, "basic.publish", exchange="x9", routing_key="k", body=body)
    if chance == 1:
        return op(channel, "basic.publish", exchange="amq.rabbitmq.trace", routing_key="k", body=body)
    if chance in (2, 3):
        wrong = g.random.choice(BAD_EXPIRATIONS)
        return op(channel, "basic.publish", routing_key=queue, properties={"expiration": wrong}, body=body)
    if chance == 4:
        both = {"user_id": "nobody", **({"expiration": "abc"} if g.flip(0.5) else {})}
        return op(channel, "basic.publish", routing_key=queue, properties=both, body=body)
    if chance in (5, 6):
        name = g.random.choice(("CC", "BCC"))
        wrong_list = g.random.choice(("q0", 1, None, {"a": 1}, True, 1.5))
        return op(channel, "basic.publish", routing_key=queue, properties={"headers": {name: wrong_list}}, body=body)
    if chance == 7:
        return op(
            channel, "basic.publish", routing_key=queue, body=body, properties={"reply_to": "amq.rabbitmq.reply-to"}
        )
    return op(
        channel,
        "basic.publish",
        exchange="x9",
        routing_key="k",
        body=body,
        properties={"user_id": "nobody", "expiration": "x", "headers": {"CC": 1}},
    )


def wrong(g: Generator, channel: str) -> Op:
    chance = g.random.random()
    if chance < 0.25 and g.may_end(channel[0]):
        for each in [each for each in CHANNELS if each[0] == channel[0]]:
            g.forget(each)
        return hard(g, channel)
    if chance < 0.5:
        return bad_publish(g, channel)
    queue, exchange = g.known_queue(), g.exchange()
    choices: list[Op] = [
        op(channel, "basic.ack", delivery_tag=g.random.choice((99, 1, 2**63))),
        op(channel, "basic.ack", delivery_tag=0),
        op(channel, "basic.ack", delivery_tag="settled"),
        op(channel, "basic.ack", delivery_tag=99, multiple=True),
        op(channel, "basic.nack", delivery_tag=0, requeue=True),
        op(channel, "basic.nack", delivery_tag=77),
        op(channel, "basic.reject", delivery_tag=g.random.choice((0, 55, "settled"))),
        op(channel, "basic.ack", delivery_tag=f"other:{g.channel()}"),
        op(channel, "queue.declare", queue="q9", passive=True),
        op(channel, "queue.declare", queue="amq.own"),
        op(channel, "queue.declare", queue="q3", arguments=g.random.choice(BAD_ARGUMENTS)),
        op(channel, "queue.declare", queue="q3", arguments=g.random.choice(BAD_ARGUMENTS)),
        op(channel, "queue.declare", queue="q3", arguments=g.random.choice(BAD_ARGUMENTS)),
        op(channel, "exchange.declare", exchange="x9", type="direct", passive=True),
        op(channel, "exchange.declare", exchange="amq.own", type="direct"),
        op(channel, "exchange.declare", exchange="", type="direct"),
        op(channel, "exchange.declare", exchange="amq.direct", type="fanout", durable=True),
        op(channel, "exchange.declare", exchange="x3", type="direct", arguments={"alternate-exchange": 1}),
        op(
            channel,
            "exchange.declare",
            exchange="x3",
            type="x-consistent-hash",
            arguments={"hash-header": "h", "hash-property": "message_id"},
        ),
        op(channel, "exchange.declare", exchange="x3", type="x-consistent-hash", arguments={"hash-property": "nope"}),
        op(channel, "exchange.delete", exchange="amq.topic"),
        op(channel, "exchange.delete", exchange=""),
        op(channel, "exchange.bind", destination="", source=exchange),
        op(channel, "exchange.bind", source="x9", destination="amq.direct"),
        op(channel, "exchange.bind", source="", destination="amq.direct"),
        op(channel, "exchange.bind", source="amq.direct", destination="x9"),
        op(channel, "queue.bind", queue=queue, exchange="", routing_key="k"),
        op(channel, "queue.unbind", queue=queue, exchange="", routing_key="k"),
        op(channel, "queue.bind", queue=queue, exchange="x9"),
        op(channel, "queue.bind", queue="q9", exchange=exchange),
        op(
            channel,
            "queue.bind",
            queue=queue,
            exchange="amq.headers",
            arguments={"x-match": g.random.choice(("some", 1, None))},
        ),
        op(channel, "queue.purge", queue="q9"),
        op(channel, "basic.get", queue="q9"),
        op(channel, "basic.consume", queue="q9"),
        op(
            channel,
            "basic.consume",
            queue=queue,
            consumer_tag="wrong",
            arguments=g.random.choice(BAD_CONSUME_ARGUMENTS),
        ),
        op(channel, "queue.delete", queue=queue, if_empty=True, if_unused=True),
        op(channel, "tx.commit"),
        op(channel, "tx.rollback"),
        op(channel, "tx.select"),
        op(channel, "confirm.select"),
        op(channel, "basic.consume", queue="amq.rabbitmq.reply-to"),
    ]
    if g.type_of(exchange) == "x-consistent-hash":
        choices += [
            op(channel, "queue.bind", queue=queue, exchange=exchange, routing_key=g.random.choice(BAD_WEIGHTS))
        ] * 10
    return g.random.choice(choices)


def hard(g: Generator, channel: str) -> Op:
    """Ends the connection."""
    tags = [tag for queue in g.guess.queues.values() for tag, at in queue.consumers.items() if at == channel and tag]
    return g.random.choice(
        (
            op(channel, "exchange.declare", exchange="x3", type="no-such-type"),
            op(channel, "basic.publish", routing_key=g.known_queue(), immediate=True, body="now"),
            op(channel, "basic.recover", requeue=False),
            op(channel, "basic.recover-async", requeue=False),
            op(channel, "basic.qos", prefetch_size=10),
            op(channel, "channel.flow", active=False),
            op(channel, "channel.open"),
            op(
                channel,
                "raw",
                what=g.random.choice(
                    (
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
                ),
            ),
            op(channel, "basic.consume", queue=g.known_queue(), consumer_tag=g.random.choice(tags))
            if tags
            else op(channel, "channel.flow", active=False),
        )
    )
