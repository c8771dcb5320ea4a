"""What a queue keeps in memory: a window; beyond it the content is in the log, and nothing else changes."""

from __future__ import annotations

import pytest

from tests.limits.gate import advance
from warrenmq.broker.queue.queue import Entry
from warrenmq.testing.core import Core
from warrenmq.wire.content import Properties, content_frames, encode_header
from warrenmq.wire.methods import method_frame

PERSISTENT = Properties(delivery_mode=2)
MANY = 9000  # more than a window


def numbers(bodies: list[bytes]) -> list[int]:
    return [int(body) for body in bodies]


def test_a_paged_queue_delivers_in_order_and_counts_what_is_in_memory(core: Core) -> None:
    client = core.client()
    client.call("queue.declare", queue="q", durable=True)
    for i in range(MANY):
        client.publish("", "q", b"%d" % i, PERSISTENT)
    assert core.broker.services.windowed == 8192
    client.call("basic.consume", queue="q", consumer_tag="c", no_ack=True)
    assert numbers(client.bodies()) == list(range(MANY))
    assert core.broker.services.windowed == 0


def settle_down(core: Core) -> None:
    """Very many messages go back a slice a turn: until all are there."""
    while core.broker.services.jobs.busy():
        advance(core, 1)


def test_outstanding_deliveries_beyond_the_window_come_back_whole(core: Core) -> None:
    client = core.client()
    client.call("queue.declare", queue="q", durable=True)
    for i in range(MANY):
        client.publish("", "q", b"%d" % i, PERSISTENT)
    client.call("basic.consume", queue="q", consumer_tag="c")
    assert len(client.deliveries()) == MANY
    outstanding = client.connection.channels[1].outstanding.unacked.tagged()
    absent = [entry for _, entry in outstanding if entry.message.absent]
    assert len(absent) == MANY - 8192
    client.call("basic.cancel", consumer_tag="c")
    client.send("basic.nack", delivery_tag=0, multiple=True, requeue=True)
    settle_down(core)
    client.call("basic.consume", queue="q", consumer_tag="d", no_ack=True)
    again = client.deliveries()
    assert numbers([got.body for got in again]) == list(range(MANY))
    assert all(got["redelivered"] for got in again)


def test_many_queues_share_a_smaller_window(core: Core) -> None:
    client = core.client()
    core.broker.services.windowed = 100_000  # as if other queues held that many
    client.call("queue.declare", queue="q", durable=True)
    for i in range(1000):
        client.publish("", "q", b"%d" % i, PERSISTENT)
    assert core.broker.services.windowed == 100_064
    client.call("basic.consume", queue="q", no_ack=True)
    assert numbers(client.bodies()) == list(range(1000))


def test_transient_messages_spill_under_pressure_and_come_back(core: Core) -> None:
    client = core.client()
    core.broker.services.pressure.memory_half_full = True
    client.call("queue.declare", queue="q")
    for i in range(MANY):
        client.publish("", "q", b"%d" % i, Properties(message_id=str(i)))
    assert core.broker.services.windowed == 8192
    client.call("basic.consume", queue="q", no_ack=True)
    got = client.deliveries()
    assert numbers([one.body for one in got]) == list(range(MANY))
    assert [one.properties.message_id for one in got if one.properties] == [str(i) for i in range(MANY)]


def test_transient_messages_behind_the_window_are_packed_and_come_back_as_they_were(core: Core) -> None:
    client = core.client()
    sent = []
    core.broker.services.windowed = 100_000  # as if other queues held that many
    for queue in ("p", "q"):
        client.call("queue.declare", queue=queue, arguments={"x-max-priority": 1} if queue == "p" else {})
        client.call("queue.bind", queue=queue, exchange="amq.fanout")
    for i in range(3000):
        body = b"%d" % i if i % 500 else b"%d" % i + b"x" * 5000  # some too large to be worth packing
        properties = Properties(message_id=str(i)) if i % 3 else Properties(priority=i % 2)
        sent.append((body, properties.message_id, properties.priority))
        client.publish("amq.fanout", "key", body, properties)
    assert core.broker.services.windowed == 100_000 + 3 * 64
    packs = core.broker.services.transient.packs
    assert packs.count() > 0
    for queue in ("p", "q"):
        client.call("basic.consume", queue=queue, no_ack=True)
        got = client.deliveries()
        seen = [(one.body, one.properties.message_id, one.properties.priority) for one in got if one.properties]
        assert seen == (sent if queue == "q" else sorted(sent, key=lambda one: -(one[2] or 0)))
        assert {one["routing_key"] for one in got} == {"key"}
    assert packs.count() == 0


def test_what_a_consumer_takes_at_the_end_of_the_turn_is_not_packed(core: Core) -> None:
    client = core.client()
    client.call("queue.declare", queue="q")
    client.call("basic.consume", queue="q", no_ack=True)
    one = method_frame(1, "basic.publish", exchange="", routing_key="q")
    message = one + content_frames(1, encode_header(Properties(), 1), b"x", 131072)
    packs = core.broker.services.transient.packs
    client.connection.feed(message * 12_000)  # no turn ends in between
    assert (packs.count(), core.broker.services.windowed) == (0, 12_000)
    client.connection.feed(message * 12_000)
    assert (packs.count() > 0, core.broker.services.windowed) == (True, 16_384)
    core.broker.end_turn()
    assert len(client.bodies()) == 24_000
    assert packs.count() == 0


def test_what_is_packed_for_many_queues_lies_there_once(core: Core) -> None:
    client = core.client()
    for n in range(3):
        client.call("queue.declare", queue=f"q{n}")
        client.call("queue.bind", queue=f"q{n}", exchange="amq.fanout")
    core.broker.services.windowed = 100_000  # as if other queues held that many
    for _ in range(1064):
        client.publish("amq.fanout", "", b"x" * 200)
    packs = core.broker.services.transient.packs
    assert packs.count() == 1
    assert client.call("queue.purge", queue="q0")["message_count"] == 1064
    assert client.call("queue.delete", queue="q1")["message_count"] == 1064
    assert packs.count() == 1
    client.call("basic.consume", queue="q2", no_ack=True)
    assert client.bodies() == [b"x" * 200] * 1064
    assert packs.count() == 0


def test_a_limit_gives_up_what_is_packed_and_an_expired_one_becomes_a_dead_letter_with_its_content(core: Core) -> None:
    client = core.client()
    client.call("queue.declare", queue="dead")
    dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    client.call("queue.declare", queue="q", arguments={"x-max-length": MANY, "x-message-ttl": 1000, **dead})
    for i in range(MANY + 1000):
        client.publish("", "q", b"%d" % i, Properties(message_id=str(i)))
    assert client.call("queue.declare", queue="dead")["message_count"] == 1000
    advance(core, 1000)
    settle_down(core)
    for _ in range(20):
        advance(core, 1)
    client.call("basic.consume", queue="dead", no_ack=True)
    got = client.deliveries()
    assert numbers([one.body for one in got]) == list(range(MANY + 1000))
    assert [one.properties.message_id for one in got if one.properties] == [str(i) for i in range(MANY + 1000)]
    assert core.broker.services.transient.packs.count() == 0


def test_purging_and_deleting_a_paged_queue_leaves_nothing(core: Core) -> None:
    client = core.client()
    for queue in ("a", "b"):
        client.call("queue.declare", queue=queue, durable=True)
        for i in range(MANY):
            client.publish("", queue, b"%d" % i, PERSISTENT)
    assert client.call("queue.purge", queue="a")["message_count"] == MANY
    assert client.call("queue.delete", queue="b")["message_count"] == MANY
    assert core.broker.services.windowed == 0
    core.restart()
    client = core.client()
    assert client.call("queue.declare", queue="a", passive=True)["message_count"] == 0
    assert client.call("queue.declare", queue="b", passive=True).name == "channel.close"


def slices(core: Core) -> int:
    """Let go what is left over, in how many turns; what a channel still knows of a deleted queue is looked at later."""
    turns = 0
    timers = core.broker.services.io_timers
    soon = timers.next_due() + 500
    while 0 <= (due := timers.next_due()) < soon:
        turns += timers.run_next(due)
    return turns


@pytest.mark.parametrize("returned", [False, True], ids=["never delivered", "requeued"])
@pytest.mark.parametrize("how", ["queue.purge", "queue.delete"])
def test_what_a_queue_held_in_memory_is_let_go_in_slices(core: Core, how: str, returned: bool) -> None:
    """Objects in a window or that came back; behind the window what packed messages do not have in common."""
    client = core.client()
    many = 40_000
    client.call("queue.declare", queue="q")
    one = method_frame(1, "basic.publish", exchange="", routing_key="q")
    for n in range(many):
        client.feed(one + content_frames(1, encode_header(Properties(message_id=str(n)), 1), b"x", 131072))
    if returned:
        client.call("basic.consume", queue="q", consumer_tag="c")
        client.call("basic.cancel", consumer_tag="c")
        client.send("basic.nack", delivery_tag=0, multiple=True, requeue=True)
        settle_down(core)
    assert slices(core) == 0
    assert client.call(how, queue="q")["message_count"] == many
    assert core.broker.services.windowed == 0
    assert client.call("queue.declare", queue="q")["message_count"] == 0
    assert slices(core) == (3 if returned else 2) + (how == "queue.delete")  # and the queue is taken apart


def test_a_slice_is_let_go_a_turn_and_what_is_short_at_once(core: Core) -> None:
    long: list[Entry | None] = [None] * 40_000
    core.broker.services.freeing.add([None] * 10_000)
    assert slices(core) == 0
    core.broker.services.freeing.add(long)
    for left in (40_000 - 16_384, 40_000 - 2 * 16_384):
        core.broker.services.io_timers.run_next(core.broker.services.io_timers.next_due())
        assert len(long) == left
    assert slices(core) == 1


def test_the_timestamp_at_the_head_is_told_while_it_is_in_memory(core: Core) -> None:
    client = core.client()
    core.broker.services.windowed = 100_000  # as if other queues held that many: this one keeps 64
    client.call("queue.declare", queue="q", durable=True)
    for i in range(66):
        client.publish("", "q", b"x", Properties(delivery_mode=2, timestamp=i))
    queue = core.broker.vhosts["/"].queues["q"]
    told = []
    for _ in range(67):
        told.append(queue.head_timestamp())
        client.call("basic.get", queue="q", no_ack=True)
    assert told == [*range(64), None, 65, None]  # nothing is read only to be looked at


@pytest.mark.parametrize("clean", [True, False])
def test_a_paged_queue_survives_a_restart(core: Core, clean: bool) -> None:
    client = core.client()
    client.call("queue.declare", queue="q", durable=True)
    for i in range(MANY):
        client.publish("", "q", b"%d" % i, PERSISTENT)
    core.restart(clean)
    client = core.client()
    client.call("basic.consume", queue="q", no_ack=True)
    got = client.deliveries()
    assert numbers([one.body for one in got]) == list(range(MANY))
    assert not any(one["redelivered"] for one in got)  # nobody had consumed before
