"""Six fixed sequences that between them touch every rule a planted fault may break.

Duty: data for test_planted_faults.py. Each must agree on both brokers as long as no fault is planted.
"""

from __future__ import annotations

from typing import Any

from tests.differential.operations import Op, op


def publish(channel: str, key: str, body: str, exchange: str = "", **more: Any) -> Op:
    return op(channel, "basic.publish", exchange=exchange, routing_key=key, body=body, **more)


PUBLISHING = [
    op("a1", "confirm.select"),
    op("a1", "queue.declare", queue="q0", durable=True),
    op("a1", "queue.declare", queue="q1", arguments={"x-max-length": 2, "x-overflow": "reject-publish"}),
    op("a1", "exchange.declare", exchange="x0", type="fanout", internal=True),
    op("a1", "exchange.declare", exchange="x1", type="direct"),
    op("a1", "queue.bind", queue="q0", exchange="x1", routing_key="k"),
    op("a1", "burst", steps=[publish("a1", "q0", f"m{number}") for number in range(5)]),
    op("a1", "burst", steps=[publish("a1", "q1", f"n{number}", mandatory=True) for number in range(4)]),
    publish("a1", "nowhere", "m5", mandatory=True, properties={"headers": {}, "message_id": "kept"}),
    publish("a1", "nowhere", "m6"),
    publish("a1", "other", "m7", "x1", mandatory=True),
    publish("a1", "k", "m8", "x1", mandatory=True, properties={"delivery_mode": 2}),
    publish("a1", "q0", "m9", properties={"headers": {"CC": ["q1", "q2"], "BCC": ["q0"], "h": 1}}),
    publish("a1", "nowhere", "m10", properties={"headers": {"BCC": ["q0"]}}),
    publish("a1", "k", "m11", "x0"),
    op("a1", "confirm.select"),
    publish("a1", "q0", "m12", properties={"expiration": "-1"}),
    publish("a1", "q0", "m13", properties={"user_id": "guest", "expiration": "600000"}),
    publish("a1", "q0", "m14", properties={"user_id": "nobody"}),
    op("b1", "basic.get", queue="q0", no_ack=True),
    publish("b1", "q0", "m15", pad=9000),
]

ROUTING = [
    *[op("a1", "queue.declare", queue=queue) for queue in ("q0", "q1", "q2", "q3")],
    op("a1", "exchange.declare", exchange="x0", type="topic", arguments={"alternate-exchange": "x1"}),
    op("a1", "exchange.declare", exchange="x1", type="headers"),
    op("a1", "exchange.declare", exchange="x2", type="direct"),
    op("a1", "queue.bind", queue="q0", exchange="x0", routing_key="a.*"),
    op("a1", "queue.bind", queue="q1", exchange="x0", routing_key="a.#"),
    op("a1", "exchange.bind", destination="x2", source="x0", routing_key="#.c"),
    op("a1", "queue.bind", queue="q1", exchange="x2", routing_key="a.b.c"),
    op("a1", "queue.bind", queue="q2", exchange="x2", routing_key="a.b.c"),
    op("a1", "queue.bind", queue="q3", exchange="x1", arguments={"x-match": "any", "h": 1, "g": "v"}),
    op("a1", "queue.bind", queue="q2", exchange="x1", arguments={"x-match": "all", "h": 1, "g": "v", "x-h": 1}),
    *[publish("a1", key, f"m{number}", "x0") for number, key in enumerate(("a", "a.b", "a.b.c", "c", "x.c", "a..c"))],
    publish("a1", "elsewhere", "m6", "x0", properties={"headers": {"h": 1}}),
    publish("a1", "elsewhere", "m7", "x0", mandatory=True, properties={"headers": {"h": 1, "g": "v"}}),
    publish("a1", "elsewhere", "m8", "x0", mandatory=True, properties={"headers": {"h": "1"}}),
    publish("a1", "a.b", "m11", "x0", properties={"headers": {"h": 1, "g": "v"}}),
    publish("a1", "x.c", "m12", "x0", properties={"headers": {"h": 1, "g": "v"}}),
    op("a1", "exchange.bind", destination="x0", source="x2", routing_key="a.b.c"),
    publish("a1", "a.b.c", "m9", "x0"),
    op("a1", "queue.unbind", queue="q0", exchange="x0", routing_key="a.*"),
    publish("a1", "a.b", "m10", "x0"),
]

SETTLING = [
    op("a1", "queue.declare", queue="q0"),
    *[publish("a1", "q0", f"m{number}") for number in range(8)],
    op("a1", "basic.qos", prefetch_count=4),
    op("a1", "basic.consume", queue="q0", consumer_tag="t0"),
    op("a1", "basic.ack", delivery_tag="held:1", multiple=True),
    op("a1", "basic.nack", delivery_tag="held:1", requeue=True),
    op("a1", "basic.reject", delivery_tag="held:0", requeue=False),
    op("b1", "basic.get", queue="q0"),
    op("a1", "basic.cancel", consumer_tag="t0"),
    op("a1", "basic.nack", delivery_tag="held:0", requeue=True),
    op("a1", "basic.nack", delivery_tag="held:0", requeue=True),
    op("b1", "basic.get", queue="q0"),
    op("b1", "basic.ack", delivery_tag="settled"),
    op("b1", "basic.get", queue="q0"),
    op("b1", "basic.get", queue="q0"),
    op("b1", "basic.recover", requeue=True),
    op("b1", "basic.get", queue="q0"),
    op("b1", "basic.ack", delivery_tag=0),
    op("b1", "basic.get", queue="q0"),
    op("b1", "basic.ack", delivery_tag=0, multiple=True),
    op("b1", "basic.get", queue="q0", no_ack=True),
    op("b1", "basic.ack", delivery_tag=2),
]

TRANSACTIONS = [
    op("a1", "queue.declare", queue="q0"),
    publish("a1", "q0", "m0"),
    publish("a1", "q0", "m1"),
    op("a1", "tx.select"),
    publish("a1", "q0", "m2"),
    publish("a1", "nowhere", "m3", mandatory=True),
    op("a1", "tx.rollback"),
    publish("a1", "nowhere", "m4", mandatory=True),
    publish("a1", "q0", "m5"),
    op("a1", "tx.commit"),
    op("a1", "basic.get", queue="q0"),
    op("a1", "basic.ack", delivery_tag="held:0"),
    op("a1", "tx.rollback"),
    op("a1", "basic.ack", delivery_tag="held:0"),
    op("a1", "tx.commit"),
    op("a1", "basic.get", queue="q0"),
    op("a1", "basic.nack", delivery_tag="held:0", requeue=True),
    op("a1", "tx.commit"),
    op("a1", "basic.get", queue="q0"),
    op("a1", "confirm.select"),
    op("a1", "tx.commit"),
]

TOPOLOGY = [
    op("a1", "queue.declare", queue="q0", arguments={"x-max-length": 5}),
    op("a1", "queue.declare", queue="q0", arguments={"x-max-length": 6}),
    op("a1", "queue.declare", queue="q0", durable=True, arguments={"x-max-length": 5}),
    op("a1", "queue.declare", queue="q1", exclusive=True),
    op("b1", "queue.declare", queue="q1", passive=True),
    op("a1", "queue.declare", queue="q2", auto_delete=True),
    op("a1", "basic.consume", queue="q2", consumer_tag="t0"),
    op("a2", "basic.consume", queue="q2", consumer_tag="t1", arguments={"x-priority": 5}),
    *[publish("b1", "q2", f"m{number}") for number in range(3)],
    op("a2", "basic.cancel", consumer_tag="t1"),
    op("a2", "basic.consume", queue="q2", consumer_tag="t2"),
    *[publish("b1", "q2", f"n{number}") for number in range(4)],
    op("b1", "queue.delete", queue="q2", if_unused=True),
    op("b1", "queue.delete", queue="q2"),
    publish("b1", "q0", "m3"),
    op("b1", "queue.delete", queue="q0", if_empty=True),
    op("b1", "queue.purge", queue="q0"),
    op("b1", "basic.consume", queue="q0", consumer_tag="t3", exclusive=True),
    op("a1", "basic.consume", queue="q0", consumer_tag="t4"),
    op("a1", "queue.declare", queue="q3", auto_delete=True),
    op("a1", "basic.consume", queue="q3", consumer_tag="t5", no_ack=True),
    op("a1", "basic.cancel", consumer_tag="t5"),
    op("a1", "queue.declare", queue="q3", passive=True),
    op("a1", "exchange.declare", exchange="x0", type="direct", auto_delete=True),
    op("a1", "queue.bind", queue="q0", exchange="x0", routing_key="k"),
    op("a1", "exchange.delete", exchange="x0", if_unused=True),
    op("a1", "queue.unbind", queue="q0", exchange="x0", routing_key="k"),
    op("a1", "exchange.declare", exchange="x0", type="direct", passive=True),
    op("a1", "connection.close", reply_code=200, reply_text="done"),
    op("b1", "queue.declare", queue="q1", passive=True),
]

LIMITS = [
    op("a1", "queue.declare", queue="q1"),
    op(
        "a1",
        "queue.declare",
        queue="q0",
        arguments={"x-max-length": 2, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q1"},
    ),
    *[publish("a1", "q0", f"m{number}", properties={"headers": {"h": number}}) for number in range(4)],
    op("a1", "exchange.declare", exchange="x0", type="fanout"),
    op("a1", "queue.bind", queue="q0", exchange="x0"),
    publish("a1", "k", "m4", "x0"),
    op("a1", "basic.get", queue="q0"),
    op("a1", "basic.get", queue="q0"),
    op("a1", "basic.reject", delivery_tag="held:0", requeue=False),
    op("a1", "basic.reject", delivery_tag="held:0", requeue=False),
    op("a1", "basic.get", queue="q1"),
    op(
        "a1",
        "queue.declare",
        queue="q2",
        arguments={"x-message-ttl": 0, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q1"},
    ),
    publish("a1", "q2", "m5", properties={"expiration": "600000"}),
    op("a1", "queue.declare", queue="q3", arguments={"x-max-priority": 3}),
    *[publish("a1", "q3", f"p{each}", properties={"priority": each}) for each in (0, 3, 1, 9)],
    op("a1", "basic.get", queue="q3", no_ack=True),
    op("a1", "basic.get", queue="q3", no_ack=True),
    op("a1", "basic.get", queue="q3", no_ack=True),
]

SCENARIOS = {
    "publishing": PUBLISHING,
    "routing": ROUTING,
    "settling": SETTLING,
    "transactions": TRANSACTIONS,
    "topology": TOPOLOGY,
    "limits": LIMITS,
}
