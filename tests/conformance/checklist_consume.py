"""Cases 13 to 16, 24 to 30 and 33 to 40: consuming, acknowledging, limits, the connection itself."""

from __future__ import annotations

import struct
import time

from tests.conformance.checklist import becomes, bodies, checklist, client, closed, declare, ready
from tests.support.brokers import RunningBroker
from tests.support.rawclient import PROTOCOL_HEADER, RawClient, frame, method, publish


def tags_and_bodies(connection: RawClient, count: int) -> list[tuple[str, int, bool, bytes]]:
    """The next deliveries: consumer tag, delivery tag, redelivered, body."""
    found = []
    for _ in range(count):
        got, _, body = connection.wait_message("basic.deliver")
        found.append((got.text("consumer_tag"), got.number("delivery_tag"), bool(got.values["redelivered"]), body))
    return found


@checklist(13, "a requeued message keeps its place")
def requeue_keeps_order(broker: RunningBroker) -> None:
    with client(broker) as c:
        queue = declare(c)
        for number in range(5):
            c.publish(1, "", queue, b"%d" % number)
        for _ in range(3):
            c.call(1, "basic.get", queue=queue)
        c.send_method(1, "basic.nack", delivery_tag=3, multiple=True, requeue=True)
        assert bodies(c, queue, 5) == [b"0", b"1", b"2", b"3", b"4"]


@checklist(14, "with prefetch 1 two consumers take turns and each holds one")
def prefetch_one(broker: RunningBroker) -> None:
    with client(broker) as c:
        queue = declare(c)
        c.call(1, "basic.qos", prefetch_count=1)
        for tag in ("a", "b"):
            c.call(1, "basic.consume", queue=queue, consumer_tag=tag)
        for number in range(4):
            c.publish(1, "", queue, b"%d" % number)
        first = tags_and_bodies(c, 2)
        assert {tag for tag, *_ in first} == {"a", "b"}
        c.quiet(0.2)
        assert ready(c, queue) == 2
        c.send_method(1, "basic.ack", delivery_tag=first[0][1])
        assert tags_and_bodies(c, 1) == [(first[0][0], 3, False, b"2")]


@checklist(15, "an exclusive consumer tolerates no other: 403")
def exclusive_consumer(broker: RunningBroker) -> None:
    with client(broker) as c:
        queue = declare(c)
        c.call(1, "basic.consume", queue=queue, consumer_tag="a", exclusive=True)
        closed(
            c.call(1, "basic.consume", queue=queue, consumer_tag="b"),
            403,
            f"ACCESS_REFUSED - queue '{queue}' in vhost '/' in exclusive use",
        )


@checklist(16, "a consumer tag used twice closes the connection with 530")
def duplicate_tag(broker: RunningBroker) -> None:
    with client(broker) as c:
        queue = declare(c)
        c.call(1, "basic.consume", queue=queue, consumer_tag="t")
        received = c.call(1, "basic.consume", queue=queue, consumer_tag="t")
        assert received.name == "connection.close"
        closed(received, 530, "NOT_ALLOWED - attempt to reuse consumer tag 't'")


@checklist(24, "an exclusive queue is locked for other connections: 405")
def exclusive_queue(broker: RunningBroker) -> None:
    with client(broker) as c, client(broker) as other:
        queue = declare(c)
        closed(
            other.call(1, "queue.declare", queue=queue, passive=True),
            405,
            f"RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '{queue}' in vhost '/'. It could be "
            "originally declared on another connection or the exclusive property value does not match that of the "
            "original declaration.",
        )


def table_keys(head: bytes) -> dict[str, object]:
    """The headers of a content header payload, decoded just enough for x-death."""
    assert struct.unpack_from(">H", head, 12)[0] & 0x2000
    decoded, _ = _table(head, 14)
    return decoded


def _table(data: bytes, position: int) -> tuple[dict[str, object], int]:
    end = position + 4 + int(struct.unpack_from(">I", data, position)[0])
    position += 4
    found: dict[str, object] = {}
    while position < end:
        size = data[position]
        key = data[position + 1 : position + 1 + size].decode()
        found[key], position = _value(data, position + 1 + size)
    return found, end


def _value(data: bytes, position: int) -> tuple[object, int]:
    letter, position = chr(data[position]), position + 1
    if letter == "S":
        end = position + 4 + int(struct.unpack_from(">I", data, position)[0])
        return data[position + 4 : end].decode(), end
    if letter == "A":
        end = position + 4 + int(struct.unpack_from(">I", data, position)[0])
        items, position = [], position + 4
        while position < end:
            item, position = _value(data, position)
            items.append(item)
        return items, end
    if letter == "F":
        return _table(data, position)
    size, code = {"l": (8, ">q"), "T": (8, ">Q"), "I": (4, ">i"), "b": (1, ">b")}[letter]
    return struct.unpack_from(code, data, position)[0], position + size


@checklist(25, "x-death counts over two loops, and a cycle without a rejection ends")
def dead_letters(broker: RunningBroker) -> None:
    with client(broker) as c:
        for name in ("c.work", "c.retry", "c.loop"):
            c.call(1, "queue.delete", queue=name)
        work = declare(c, "c.work", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "c.retry"})
        declare(
            c,
            "c.retry",
            arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "c.work", "x-message-ttl": 30},
        )
        c.publish(1, "", work, b"x")
        c.call(1, "basic.consume", queue=work, consumer_tag="t")
        for loop in (1, 2):
            _, head, _ = c.wait_message("basic.deliver")
            c.send_method(1, "basic.reject", delivery_tag=loop, requeue=False)
        _, head, _ = c.wait_message("basic.deliver")
        headers = table_keys(head)
        deaths = headers["x-death"]
        assert isinstance(deaths, list)
        assert [(death["queue"], death["reason"], death["count"]) for death in deaths] == [
            ("c.retry", "expired", 2),
            ("c.work", "rejected", 2),
        ]
        assert [set(death) for death in deaths] == [
            {"count", "reason", "queue", "time", "exchange", "routing-keys"}
        ] * 2
        assert (headers["x-first-death-queue"], headers["x-first-death-reason"], headers["x-first-death-exchange"]) == (
            "c.work",
            "rejected",
            "",
        )
        loop_queue = declare(
            c,
            "c.loop",
            arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "c.loop", "x-message-ttl": 20},
        )
        c.call(1, "confirm.select")
        c.publish(1, "", loop_queue, b"round")
        c.wait("basic.ack")
        becomes(c, loop_queue, 0)


@checklist(26, "messages expire at the head only: a longer one blocks those behind it")
def ttl_head(broker: RunningBroker) -> None:
    with client(broker) as c:
        queue = declare(c)
        c.publish(1, "", queue, b"long", expiration="60000")
        c.publish(1, "", queue, b"short", expiration="20")
        time.sleep(0.2)  # that nothing happens takes time to see
        assert ready(c, queue) == 2
        assert bodies(c, queue, 1) == [b"long"]
        becomes(c, queue, 0)


@checklist(
    27,
    "a frame_max of 4095 is not negotiated: the connection ends",
    differs="Warren says 530 first, 3.10 hangs up without a word",
)
def frame_max_too_small(broker: RunningBroker) -> None:
    # 530 is what AMQP would say; a running 3.10 hangs up without a word, after three seconds
    with RawClient(broker.port) as c:
        c.send(PROTOCOL_HEADER)
        c.wait("connection.start")
        c.start_ok("guest", "guest")
        c.wait("connection.tune")
        c.frames.clear()
        c.send_method(0, "connection.tune-ok", channel_max=10, frame_max=4095, heartbeat=0)
        if broker.name == "warren":
            closed(
                c.wait("connection.close"),
                530,
                "NOT_ALLOWED - negotiated frame_max = 4095 is lower than the minimum allowed value (4096)",
            )
        else:
            assert c.read() is None


@checklist(28, "one channel too many closes the connection with 530")
def channel_max(broker: RunningBroker) -> None:
    with client(broker, channel_max=2) as c:
        c.open(2)
        c.send_method(3, "channel.open")
        closed(
            c.wait("connection.close"),
            530,
            "NOT_ALLOWED - number of channels opened (2) has reached the negotiated channel_max (2)",
        )


@checklist(29, "heartbeats come every half timeout, and silence ends the connection after two to three timeouts")
def heartbeats(broker: RunningBroker) -> None:
    with RawClient(broker.port).handshake(heartbeat=1) as c:
        started = time.monotonic()
        assert c.read(60) is None
        assert time.monotonic() - started >= 1.9  # at most three timeouts: tests/limits, on the virtual clock
        assert c.heartbeats >= 2


def watermark(broker: RunningBroker, value: float) -> None:
    if not broker.is_warren:
        broker.ctl("set_vm_memory_high_watermark", f"{value:.7f}")
        return
    _, overview = broker.http("GET", "/api/overview")
    assert isinstance(overview, dict)
    status, answer = broker.http("PUT", f"/api/nodes/{overview['node']}/limits", {"memory_high_watermark": value})
    assert status == 204, (status, answer)


@checklist(30, "an alarm blocks publishers only, once they publish, and tells those that can hear it")
def alarms(broker: RunningBroker) -> None:
    with client(broker) as publisher, client(broker, capabilities=()) as deaf, client(broker) as consumer:
        queue = declare(consumer)
        consumer.publish(1, "", queue, b"before")
        consumer.call(1, "basic.qos")
        try:
            watermark(broker, 0.0000001)
            assert consumer.call(1, "basic.qos").name == "basic.qos-ok"  # not blocked: it did not publish
            for each in (publisher, deaf):
                each.publish(1, "", "c.none", b"x")
            assert publisher.wait("connection.blocked").text("reason") == "low on memory"
            assert bodies(consumer, queue, 1) == [b"before"]
            deaf.quiet(0.2)
            assert deaf.frames[-1].name == "channel.open-ok"
        finally:
            watermark(broker, 0.4)
        assert publisher.wait("connection.unblocked").name == "connection.unblocked"
        assert deaf.call(1, "basic.qos").name == "basic.qos-ok"


@checklist(33, "a deleted queue tells its consumers")
def cancel_notify(broker: RunningBroker) -> None:
    with client(broker) as c, client(broker) as other:
        c.call(1, "queue.delete", queue="c.q")
        queue = declare(c, "c.q", exclusive=False)
        other.call(1, "basic.consume", queue=queue, consumer_tag="t")
        c.call(1, "queue.delete", queue=queue)
        assert other.wait("basic.cancel").values == {"consumer_tag": "t", "nowait": True}


@checklist(34, "basic.recover puts everything back, redelivered")
def recover(broker: RunningBroker) -> None:
    with client(broker) as c:
        queue = declare(c)
        for number in range(3):
            c.publish(1, "", queue, b"%d" % number)
        c.call(1, "basic.consume", queue=queue, consumer_tag="t")
        assert tags_and_bodies(c, 3) == [("t", 1, False, b"0"), ("t", 2, False, b"1"), ("t", 3, False, b"2")]
        c.frames.clear()
        c.send_method(1, "basic.recover", requeue=True)
        assert tags_and_bodies(c, 3) == [("t", 4, True, b"0"), ("t", 5, True, b"1"), ("t", 6, True, b"2")]
        assert any(each.name == "basic.recover-ok" for each in c.frames)


@checklist(35, "direct reply-to: a request and its reply without a queue")
def reply_to(broker: RunningBroker) -> None:
    with client(broker) as asker:
        asker.call(1, "basic.consume", queue="amq.rabbitmq.reply-to", consumer_tag="r", no_ack=True)
        with client(broker) as other:
            other.call(1, "queue.delete", queue="c.rpc")
            other.call(1, "queue.declare", queue="c.rpc")
            asker.publish(1, "", "c.rpc", b"6*7", reply_to="amq.rabbitmq.reply-to", correlation_id="7")
            other.send_method(1, "basic.consume", queue="c.rpc", consumer_tag="s", no_ack=True)
            _, head, body = other.wait_message("basic.deliver")
            assert body == b"6*7" and struct.unpack_from(">H", head, 12)[0] == 0x0600
            correlation_end = 15 + head[14]
            assert head[15:correlation_end] == b"7"
            address = head[correlation_end + 1 : correlation_end + 1 + head[correlation_end]].decode()
            assert address.startswith("amq.rabbitmq.reply-to.")
            probe = other.call(1, "queue.declare", queue=address, passive=True)
            assert (probe.number("message_count"), probe.number("consumer_count")) == (0, 1)
            other.publish(1, "", address, b"42", mandatory=True, correlation_id="7")
            got, _, reply = asker.wait_message("basic.deliver")
            assert (got.text("consumer_tag"), reply, got.text("exchange"), got.text("routing_key")) == (
                "r",
                b"42",
                "",
                address,
            )
            other.call(1, "queue.delete", queue="c.rpc")


@checklist(38, "input that comes a byte at a time is the same input")
def byte_at_a_time(broker: RunningBroker) -> None:
    with RawClient(broker.port) as c:

        def trickle(data: bytes) -> None:
            for position in range(len(data)):
                c.send(data[position : position + 1])

        trickle(PROTOCOL_HEADER)
        c.wait("connection.start")
        trickle(method(0, "connection.start-ok", mechanism="PLAIN", response="\0guest\0guest", locale="en_US"))
        c.wait("connection.tune")
        trickle(
            method(0, "connection.tune-ok", channel_max=10, frame_max=4096, heartbeat=0)
            + method(0, "connection.open", virtual_host="/")
        )
        c.wait("connection.open-ok")
        trickle(method(1, "channel.open") + method(1, "queue.declare", exclusive=True))
        queue = c.wait("queue.declare-ok").text("queue")
        trickle(publish(1, "", queue, b"drop by drop", headers={"a": 1}) + frame(8, 0, b""))
        trickle(method(1, "basic.get", queue=queue, no_ack=True))
        assert c.wait_message("basic.get-ok")[2] == b"drop by drop"


@checklist(39, "a server-named queue is what an empty name means from then on")
def empty_names(broker: RunningBroker) -> None:
    with client(broker) as c:
        queue = declare(c)
        assert queue.startswith("amq.gen-") and len(queue) == 30
        c.call(1, "queue.bind", exchange="amq.direct")  # queue and key empty: both are the queue's name
        c.publish(1, "amq.direct", queue, b"bound")
        c.call(1, "basic.consume", consumer_tag="t")
        assert tags_and_bodies(c, 1) == [("t", 1, False, b"bound")]
        assert c.call(1, "queue.unbind", exchange="amq.direct").name == "queue.unbind-ok"
        c.publish(1, "amq.direct", queue, b"unbound", mandatory=True)
        assert c.wait_message("basic.return")[2] == b"unbound"
        assert c.call(1, "queue.purge").name == "queue.purge-ok"
        assert c.call(1, "queue.delete").number("message_count") == 0


@checklist(40, "nothing is bound to the default exchange: 403")
def default_exchange_bind(broker: RunningBroker) -> None:
    with client(broker) as c:
        queue = declare(c)
        closed(
            c.call(1, "queue.bind", queue=queue, exchange="", routing_key="k"),
            403,
            "ACCESS_REFUSED - operation not permitted on the default exchange",
        )


def delayed_exchange(connection: RawClient, **arguments: object) -> None:
    connection.call(1, "exchange.delete", exchange="c.delayed")
    answer = connection.call(
        1,
        "exchange.declare",
        exchange="c.delayed",
        type="x-delayed-message",
        arguments={"x-delayed-type": "direct", **arguments},
    )
    assert answer.name == "exchange.declare-ok", answer


@checklist(
    31, "delayed messages come when due, in order; 0 and negative at once; the header as it was sent", oracle=False
)
def delayed_order(broker: RunningBroker) -> None:
    with client(broker) as c:
        delayed_exchange(c)
        queue = declare(c)
        c.call(1, "queue.bind", queue=queue, exchange="c.delayed", routing_key="k")
        c.call(1, "basic.consume", queue=queue, consumer_tag="t", no_ack=True)
        for delay in (500, 100, 300, 200, 101, 400):
            c.publish(1, "c.delayed", "k", b"%d" % delay, headers={"x-delay": delay})
        c.publish(1, "c.delayed", "k", b"string", headers={"x-delay": "150"})
        c.publish(1, "c.delayed", "k", b"zero", headers={"x-delay": 0})
        c.publish(1, "c.delayed", "k", b"negative", headers={"x-delay": -5})
        c.publish(1, "c.delayed", "k", b"far", headers={"x-delay": 2**32})
        arrived = []
        for _ in range(9):
            _, head, body = c.wait_message("basic.deliver")
            arrived.append(body)
            if body == b"500":
                assert table_keys(head) == {"x-delay": 500}
        assert arrived == [b"zero", b"negative", b"100", b"101", b"string", b"200", b"300", b"400", b"500"]
        c.call(1, "exchange.delete", exchange="c.delayed")


@checklist(
    32,
    "delayed and mandatory, rolled back, deleted",
    oracle=False,
    differs="alternate exchange only at due time, scheduled at commit, cancelled with its exchange",
)
def delayed_interactions(broker: RunningBroker) -> None:
    with client(broker) as c:
        delayed_exchange(c)
        queue = declare(c)
        c.call(1, "queue.bind", queue=queue, exchange="c.delayed", routing_key="k")
        c.call(1, "confirm.select")
        c.publish(1, "c.delayed", "k", b"m", headers={"x-delay": 100}, mandatory=True)
        assert c.wait_message("basic.return")[0].number("reply_code") == 312
        c.wait("basic.ack")
        c.call(1, "basic.consume", queue=queue, consumer_tag="t", no_ack=True)
        assert tags_and_bodies(c, 1)[0][3] == b"m"
        c.open(2)
        c.call(2, "tx.select")
        c.publish(2, "c.delayed", "k", b"rolled back", headers={"x-delay": 50})
        c.call(2, "tx.rollback")
        c.publish(1, "c.delayed", "k", b"deleted", headers={"x-delay": 100})
        c.wait("basic.ack")
        c.call(1, "exchange.delete", exchange="c.delayed")
        c.frames.clear()
        c.quiet(0.3)
        assert c.frames == []
