"""What happens at once happens a bounded number of messages a turn, and nobody can tell but by the time it takes."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from tests.limits.gate import advance
from warrenmq.broker.channel.settling import FEW, READ
from warrenmq.broker.connection.jobs import QUEUES
from warrenmq.broker.queue.paging import WINDOW
from warrenmq.broker.services.turn import EXPIRIES, SLICE
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.wire.content import Properties, content_frames, encode_header
from warrenmq.wire.methods import method_frame

pytestmark = pytest.mark.slices

MANY = 3 * EXPIRIES + 500
HELD = SLICE + 400


def publish(client: CoreClient, name: str, bodies: range, **properties: Any) -> None:
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
    while 0 <= core.broker.services.timers.next_due() <= core.clock.now_ms():
        before = int(core.queue(name).ready)
        core.broker.begin_turn()
        core.broker.services.timers.run_next(core.broker.services.turn.now)
        core.broker.end_turn()
        lost.append(before - int(core.queue(name).ready))
    return lost


def one_slice(core: Core) -> None:
    core.broker.begin_turn()
    core.broker.services.timers.run_next(core.broker.services.turn.now)
    core.broker.end_turn()


@pytest.fixture(params=[False, True], ids=["transient", "durable"])
def expiring(core: Core, request: pytest.FixtureRequest) -> CoreClient:
    client = core.client()
    durable = bool(request.param)
    client.call(
        "queue.declare",
        queue="q",
        durable=durable,
        arguments={"x-message-ttl": 1000, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"},
    )
    client.call("queue.declare", queue="dead", durable=durable)
    publish(client, "q", range(MANY), delivery_mode=2 if durable else 1)
    core.clock.set_ms(core.clock.now_ms() + 500)
    publish(client, "q", range(MANY, MANY + 3), delivery_mode=2 if durable else 1)
    client.take()
    core.clock.set_ms(core.clock.now_ms() + 500)
    return client


def test_messages_that_expire_together_leave_a_bounded_number_a_turn_and_in_order(
    core: Core, expiring: CoreClient
) -> None:
    lost = turn_after_turn(core, "q")
    assert sum(lost) == MANY and max(lost) <= EXPIRIES and len(lost) >= MANY // EXPIRIES
    expiring.call("basic.consume", queue="dead", no_ack=True)
    assert expiring.delivered() == [str(number) for number in range(MANY)]


def test_a_crash_between_two_slices_finds_each_message_in_one_queue(tmp_path: Path) -> None:
    core = Core(tmp_path)
    client = core.client()
    arguments = {"x-message-ttl": 1000, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    client.call("queue.declare", queue="q", durable=True, arguments=arguments)
    client.call("queue.declare", queue="dead", durable=True)
    publish(client, "q", range(MANY), delivery_mode=2)
    core.clock.set_ms(core.clock.now_ms() + 1000)
    one_slice(core)
    moved = int(core.queue("dead").ready)
    assert 0 < moved <= EXPIRIES
    core.restart(clean=False)
    assert (core.queue("dead").ready, core.queue("q").ready) == (moved, MANY - moved)


def test_who_asks_in_the_middle_is_answered_behind_the_end(core: Core, expiring: CoreClient) -> None:
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


def test_a_consumer_gets_nothing_that_expired_and_the_rest_when_that_is_done(core: Core, expiring: CoreClient) -> None:
    one_slice(core)
    reader = core.client()
    reader.call("basic.consume", queue="q", no_ack=True)
    assert reader.delivered() == [] and core.queue("q").ready > 3
    turn_after_turn(core, "q")
    reader.feed(b"")
    assert reader.delivered() == [str(number) for number in range(MANY, MANY + 3)]


def test_a_flood_of_messages_that_expire_at_once_leaves_none_behind(core: Core) -> None:
    client = core.client()
    client.call("queue.declare", queue="q", arguments={"x-message-ttl": 0})
    publish(client, "q", range(MANY))
    assert core.queue("q").ready == 0


# --- very many at once by one method


@pytest.fixture
def holding(core: Core) -> CoreClient:
    """A client that holds more than a slice of unacknowledged messages."""
    client = core.client()
    client.call("queue.declare", queue="dead")
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    client.call("queue.declare", queue="q", arguments=arguments)
    publish(client, "q", range(HELD))
    client.call("basic.consume", queue="q")
    assert len(client.deliveries()) == HELD
    return client


def hold_more(client: CoreClient) -> int:
    """As much again: the second slice is a whole one, and there is a third. How many it holds then."""
    publish(client, "q", range(HELD, HELD + SLICE))
    assert len(client.deliveries()) == SLICE
    return HELD + SLICE


def settled_by_turn(core: Core, client: CoreClient, method: str, **values: Any) -> list[int]:
    """How many messages the queue was rid of in each turn until none is left."""
    found = []
    before = int(core.queue("q").unacked)
    client.send(method, delivery_tag=0, multiple=True, **values)
    while before:
        now = int(core.queue("q").unacked)
        found.append(before - now)
        before = now
        advance(core, 1)
        assert len(found) < 100
    return found


@pytest.mark.parametrize("method", ["basic.ack", "basic.nack"])
def test_one_ack_or_nack_for_very_many_messages_takes_a_slice_a_turn(
    core: Core, holding: CoreClient, method: str
) -> None:
    more = {"requeue": False} if method == "basic.nack" else {}
    held = hold_more(holding) if method == "basic.ack" else HELD
    found = settled_by_turn(core, holding, method, **more)
    assert sum(found) == held and max(found) <= SLICE and len(found) >= (held + SLICE - 1) // SLICE
    assert core.ready("dead") == (held if method == "basic.nack" else 0)
    if method == "basic.nack":
        holding.call("basic.consume", queue="dead", no_ack=True)
        assert holding.delivered() == [str(number) for number in range(HELD)]


def test_what_comes_behind_it_waits_for_the_end(core: Core, holding: CoreClient) -> None:
    holding.take()
    holding.send("basic.ack", delivery_tag=0, multiple=True)
    holding.send("queue.delete", queue="q", if_empty=True)
    holding.connection.pause_writing()
    holding.connection.resume_writing()
    core.turn()
    holding._collect()
    assert holding.take() == [] and core.queue("q").unacked > 0
    for _ in range(10):
        advance(core, 1)
    holding._collect()
    assert [got.name for got in holding.take()] == ["queue.delete-ok", "basic.cancel"]


def test_what_was_acknowledged_stays_acknowledged_when_the_client_goes_in_the_middle(
    core: Core, holding: CoreClient
) -> None:
    holding.send("basic.ack", delivery_tag=0, multiple=True)
    holding.connection.lost("gone")
    for _ in range(10):
        advance(core, 1)
    assert (core.queue("q").ready, core.queue("q").unacked) == (0, 0)


def test_a_broker_that_stops_in_the_middle_has_settled_all_of_it(core: Core, holding: CoreClient) -> None:
    holding.send("basic.ack", delivery_tag=0, multiple=True)
    core.broker.shut_down("over")
    assert (core.queue("q").ready, core.queue("q").unacked) == (0, 0)
    advance(core, 1)  # nothing is left to be done


def test_a_broker_whose_loop_goes_on_meanwhile_gives_back_so_many_a_turn_and_to_no_other_client(
    core: Core, holding: CoreClient
) -> None:
    other = core.client()
    other.call("basic.consume", queue="q", no_ack=True)
    other.take()
    found: list[int] = []
    for _ in core.broker.shut_down_in_steps("over"):
        core.turn()
        core.broker.begin_turn()
        found.append(int(core.queue("q").ready))
    given = [now - before for before, now in zip([0, *found], found, strict=False)]
    assert sum(given) == HELD and len([one for one in given if one]) >= 2
    assert max(given) <= SLICE + FEW
    assert [got.name for got in other.take()] == ["connection.close"]
    assert [got.name for got in holding.take()][-1:] == ["connection.close"]


def test_what_a_client_settled_before_a_stop_is_settled_before_it_is_told(core: Core, holding: CoreClient) -> None:
    holding.send("basic.ack", delivery_tag=0, multiple=True)
    steps = core.broker.shut_down_in_steps("over")
    while core.queue("q").unacked:
        assert "connection.close" not in [got.name for got in holding.take()]
        next(steps)
        core.turn()
        core.broker.begin_turn()
    for _ in steps:
        core.turn()
        core.broker.begin_turn()
    assert [got.name for got in holding.take()][-1:] == ["connection.close"]
    assert (core.queue("q").ready, core.queue("q").unacked) == (0, 0)


@pytest.mark.parametrize("each", [250, 5000], ids=["few each", "many each"])
def test_many_acks_at_once_share_the_bound_of_a_turn(core: Core, holding: CoreClient, each: int) -> None:
    tags = [*range(each, HELD, each), HELD - 1]
    holding.feed(b"".join(method_frame(1, "basic.ack", delivery_tag=tag, multiple=True) for tag in tags))
    assert HELD - int(core.queue("q").unacked) < SLICE + FEW and core.queue("q").unacked > 1
    for _ in range(20):
        advance(core, 1)
    assert core.queue("q").unacked == 1


def test_deliveries_that_need_no_ack_in_between_do_not_have_all_others_moved(core: Core, holding: CoreClient) -> None:
    holding.call("queue.declare", queue="other")
    holding.call("basic.consume", queue="other", no_ack=True)
    publish(holding, "other", range(1000))
    tracemalloc.start()
    publish(holding, "q", range(1))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert core.queue("q").unacked == HELD + 1
    assert peak < 20 * HELD  # a list of them alone may grow by so much


# --- giving back


def give_back(client: CoreClient, how: str) -> None:
    if how == "basic.nack":
        client.send("basic.nack", delivery_tag=0, multiple=True, requeue=True)
    elif how == "basic.recover":
        client.send("basic.recover", requeue=True)
    elif how == "channel.close":
        client.send("channel.close", reply_code=200, reply_text="", class_id=0, method_id=0)
    else:
        client.connection.lost("gone")
        client.core.broker.end_turn()


WAYS = ["basic.nack", "basic.recover", "channel.close", "connection lost"]


@pytest.mark.parametrize("way", WAYS)
def test_messages_go_back_a_slice_a_turn_and_nobody_gets_one_before_all_are_back(
    core: Core, holding: CoreClient, way: str
) -> None:
    held = hold_more(holding) if way == "basic.nack" else HELD
    holding.call("basic.cancel", consumer_tag=str(next(iter(holding.connection.channels[1].consumers.by_tag))))
    reader = core.client()
    reader.call("basic.consume", queue="q", no_ack=True)
    asking, writer = core.client(), core.client()
    give_back(holding, way)
    asking.send("queue.declare", queue="q", passive=True)
    publish(writer, "q", range(held, held + 1))
    turns = [int(core.queue("q").ready)]
    while core.queue("q").unacked:
        assert reader.delivered() == [] and asking.take() == []
        advance(core, 1)
        turns.append(int(core.queue("q").ready))
        assert len(turns) < 100
    steps = [after - before for before, after in zip([0, *turns[:-2]], turns[:-1], strict=True)]
    assert max(steps) <= SLICE + 1 and len(turns) >= (held + SLICE - 1) // SLICE  # and what was published
    advance(core, 1)
    for client in (reader, asking):
        client.feed(b"")
    assert reader.delivered() == [*(f"{number}*" for number in range(held)), str(held)]
    assert [got["message_count"] for got in asking.take()] == [0]


def test_what_was_given_back_is_there_again_after_a_stop_in_the_middle(tmp_path: Path) -> None:
    core = Core(tmp_path)
    client = core.client()
    client.call("queue.declare", queue="q", durable=True)
    publish(client, "q", range(HELD), delivery_mode=2)
    client.call("basic.consume", queue="q")
    assert len(client.deliveries()) == HELD
    client.send("basic.nack", delivery_tag=0, multiple=True, requeue=True)
    assert core.queue("q").unacked > 0
    core.restart()
    client = core.client()
    client.call("basic.consume", queue="q", no_ack=True)
    assert client.delivered() == [f"{number}*" for number in range(HELD)]


def test_content_that_must_be_read_again_counts_for_more(core: Core) -> None:
    client = core.client()
    client.call("queue.declare", queue="q", durable=True)
    publish(client, "q", range(HELD), delivery_mode=2)
    client.call("basic.consume", queue="q", consumer_tag="c")
    assert len(client.deliveries()) == HELD
    client.call("basic.cancel", consumer_tag="c")
    client.send("basic.nack", delivery_tag=0, multiple=True, requeue=True)
    first = int(core.queue("q").ready)
    advance(core, 1)
    assert WINDOW <= first < SLICE and core.queue("q").ready - first <= SLICE // READ


def test_a_queue_deleted_in_the_middle_takes_all_of_it_along(core: Core, holding: CoreClient) -> None:
    give_back(holding, "basic.nack")
    core.broker.begin_turn()
    vhost = core.broker.vhosts["/"]
    vhost.remove_queue(vhost.queues["q"])
    core.broker.end_turn()
    for _ in range(10):
        advance(core, 1)
    holding.take()
    assert holding.call("queue.declare", queue="q")["message_count"] == 0


# --- a limit far below what is there


def test_a_much_lower_limit_drops_a_bounded_number_a_turn_oldest_first(core: Core) -> None:
    client = core.client()
    client.call("queue.declare", queue="dead")
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    client.call("queue.declare", queue="q", arguments=arguments)
    publish(client, "q", range(MANY))
    core.policy("^q$", max_length=3)
    asking = core.client()
    asking.send("queue.declare", queue="q", passive=True)
    dropped = [MANY - int(core.queue("q").ready)]
    while core.queue("q").ready > 3:
        assert asking.take() == []
        before = int(core.queue("q").ready)
        advance(core, 1)
        dropped.append(before - int(core.queue("q").ready))
        assert len(dropped) < 100
    assert max(dropped) <= EXPIRIES and len(dropped) > 3
    for _ in range(3):
        advance(core, 1)
    asking.feed(b"")
    assert [got["message_count"] for got in asking.take()] == [3]
    client.call("basic.consume", queue="dead", no_ack=True)
    assert client.delivered() == [str(number) for number in range(MANY - 3)]


def test_publishes_do_not_outrun_the_dropping(core: Core) -> None:
    client = core.client()
    client.call("queue.declare", queue="q")
    publish(client, "q", range(MANY))
    core.policy("^q$", max_length=3)
    publish(client, "q", range(MANY))
    assert core.queue("q").ready < MANY


# --- very many queues and connections


@pytest.mark.parametrize("way", ["connection.close", "connection lost"])
def test_exclusive_queues_go_with_their_connection_a_bounded_number_a_turn(core: Core, way: str) -> None:
    client = core.client()
    count = 3 * QUEUES + 10
    client.feed(
        b"".join(
            method_frame(1, "queue.declare", queue=f"x{number}", exclusive=True, nowait=True) for number in range(count)
        )
    )
    queues = core.broker.vhosts["/"].queues
    assert len(queues) == count
    if way == "connection.close":
        client.send("connection.close", 0, reply_code=200, reply_text="", class_id=0, method_id=0)
    else:
        give_back(client, way)
    turns = [count, len(queues)]
    while queues:
        assert client.take() == []
        advance(core, 1)
        client._collect()
        turns.append(len(queues))
        assert len(turns) < 50
    gone = [before - after for before, after in zip(turns, turns[1:], strict=False)]
    assert max(gone) <= QUEUES and len(gone) >= 3
    for _ in range(3):
        advance(core, 1)
    client._collect()
    assert [got.name for got in client.take()] == (["connection.close-ok"] if way == "connection.close" else [])


@pytest.mark.parametrize("requeue", [True, False])
@pytest.mark.parametrize("count", [2, 300], ids=["few", "many"])
def test_a_refusal_goes_by_the_names_of_the_queues_up_to_the_first_stream(
    core: Core, count: int, requeue: bool
) -> None:
    client = core.client()
    client.declare("dead", False, {})
    for name in ("a!", "d"):
        client.declare(name, False, {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    for name in ("a", "b"):
        client.declare(name, True, {"x-queue-type": "stream"})
    client.send("basic.qos", prefetch_count=1000)
    for name in ("d", "b", "a", "a!"):
        publish(client, name, range(count))
        offset = {"x-stream-offset": "first"} if name in ("a", "b") else {}
        client.send("basic.consume", queue=name, arguments=offset)
        core.log.flush()
        core.turn()
    client.take()
    client.send("basic.nack", delivery_tag=0, multiple=True, requeue=requeue)
    core.settle()
    (close,) = [got for got in client.take() if got.name == "connection.close"]
    assert "stream queues queue 'a' in vhost" in str(close["reply_text"])
    assert (core.ready("a!"), core.ready("d"), core.ready("dead")) == (count, count, 0)
    client = core.client()
    client.declare("0", False, {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    client.send("basic.qos", prefetch_count=1000)
    publish(client, "0", range(count))
    for name in ("a", "0"):
        offset = {"x-stream-offset": "first"} if name in ("a", "b") else {}
        client.send("basic.consume", queue=name, arguments=offset)
        core.log.flush()
        core.turn()
    client.send("basic.nack", delivery_tag=0, multiple=True, requeue=requeue)
    core.settle()
    assert core.ready("0") + core.ready("dead") == count and core.ready("dead") == (0 if requeue else count)


def test_what_several_consumers_of_a_quorum_queue_held_is_put_in_order_before_any_goes_back(core: Core) -> None:
    count = 2 * SLICE + 200  # more than are looked at in a turn
    client = core.client()
    client.declare("q", arguments={"x-queue-type": "quorum", "x-delivery-limit": 5})
    client.call("basic.qos", prefetch_count=60_000)
    for tag in ("b", "a"):
        client.call("basic.consume", queue="q", consumer_tag=tag)
    publish(client, "q", range(count))
    client.send("channel.close", reply_code=200, reply_text="", class_id=0, method_id=0)
    back = [core.queue("q").ready]
    while back[-1] < count:
        advance(core, 1)
        back.append(core.queue("q").ready)
        assert len(back) < 50
    assert back[:2] == [0, 0] and back[2] > 0
    other = core.client()
    other.call("basic.consume", queue="q", no_ack=True)
    for _ in range(50):
        advance(core, 1)
    got = [int(body.rstrip("*")) for body in other.delivered()]
    assert got == [*range(1, count, 2), *range(0, count, 2)]
