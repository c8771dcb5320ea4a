"""What happens at once happens a bounded number of messages a turn, and nobody can tell but by the time it takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.harness import Client, Core
from tests.limits.gate import advance
from tests.rules.desk import delivered, queue
from warrenmq.broker.broker import EXPIRIES
from warrenmq.wire.content import Properties, content_frames, encode_header
from warrenmq.wire.methods import method_frame

pytestmark = pytest.mark.pure

MANY = 3 * EXPIRIES + 500


@pytest.fixture
def core(tmp_path: Path) -> Core:
    return Core(tmp_path)


def publish(client: Client, name: str, bodies: range, **properties: object) -> None:
    one = method_frame(1, "basic.publish", routing_key=name)
    client.feed(
        b"".join(
            one + content_frames(1, encode_header(Properties(**properties), len(str(n))), str(n).encode(), 131072)
            for n in bodies
        )
    )


def turn_after_turn(core: Core, name: str) -> list[int]:
    """How much the queue lost in each turn, until no timer of the rules is due any more."""
    lost = []
    while 0 <= core.broker.timers.next_due() <= core.clock.now_ms():
        before = int(queue(core, name).ready)
        core.broker.begin_turn()
        core.broker.timers.run_next(core.broker.now)
        core.broker.end_turn()
        lost.append(before - int(queue(core, name).ready))
    return lost


def one_slice(core: Core) -> None:
    core.broker.begin_turn()
    core.broker.timers.run_next(core.broker.now)
    core.broker.end_turn()


@pytest.fixture(params=[False, True], ids=["transient", "durable"])
def expiring(core: Core, request: pytest.FixtureRequest) -> Client:
    client = core.client()
    durable = bool(request.param)
    client.call(
        "queue.declare", queue="q", durable=durable,
        arguments={"x-message-ttl": 1000, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"},
    )  # fmt: skip
    client.call("queue.declare", queue="dead", durable=durable)
    publish(client, "q", range(MANY), delivery_mode=2 if durable else 1)
    core.clock.set_ms(core.clock.now_ms() + 500)
    publish(client, "q", range(MANY, MANY + 3), delivery_mode=2 if durable else 1)
    client.take()
    core.clock.set_ms(core.clock.now_ms() + 500)
    return client


def test_messages_that_expire_together_leave_a_bounded_number_a_turn_and_in_order(core: Core, expiring: Client) -> None:
    lost = turn_after_turn(core, "q")
    assert sum(lost) == MANY and max(lost) <= EXPIRIES and len(lost) >= MANY // EXPIRIES
    expiring.call("basic.consume", queue="dead", no_ack=True)
    assert delivered(expiring) == [str(number) for number in range(MANY)]


def test_a_crash_between_two_slices_finds_each_message_in_one_queue(tmp_path: Path) -> None:
    core = Core(tmp_path)
    client = core.client()
    arguments = {"x-message-ttl": 1000, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    client.call("queue.declare", queue="q", durable=True, arguments=arguments)
    client.call("queue.declare", queue="dead", durable=True)
    publish(client, "q", range(MANY), delivery_mode=2)
    core.clock.set_ms(core.clock.now_ms() + 1000)
    one_slice(core)
    moved = int(queue(core, "dead").ready)
    assert 0 < moved <= EXPIRIES
    core.restart(clean=False)
    assert (queue(core, "dead").ready, queue(core, "q").ready) == (moved, MANY - moved)


def test_who_asks_in_the_middle_is_answered_behind_the_end(core: Core, expiring: Client) -> None:
    one_slice(core)
    asking = core.client()
    asking.send("queue.declare", queue="q", passive=True)
    asking.send("basic.get", queue="q", no_ack=True)
    asking.send("basic.get", queue="dead", no_ack=True)
    assert asking.take() == []
    for _ in range(100):
        turn_after_turn(core, "q")
        advance(core, 1)
        asking._collect()
    counted, live, dead = asking.take()
    assert (counted.name, counted["message_count"]) == ("queue.declare-ok", 3)
    assert (live.body, dead.body) == (str(MANY).encode(), b"0")


def test_a_consumer_gets_nothing_that_expired_and_the_rest_when_that_is_done(core: Core, expiring: Client) -> None:
    one_slice(core)
    reader = core.client()
    reader.call("basic.consume", queue="q", no_ack=True)
    assert delivered(reader) == [] and queue(core, "q").ready > 3
    turn_after_turn(core, "q")
    reader.feed(b"")
    assert delivered(reader) == [str(number) for number in range(MANY, MANY + 3)]


def test_a_flood_of_messages_that_expire_at_once_leaves_none_behind(core: Core) -> None:
    client = core.client()
    client.call("queue.declare", queue="q", arguments={"x-message-ttl": 0})
    publish(client, "q", range(MANY))
    assert queue(core, "q").ready == 0
