"""A turn takes a bounded amount of what clients send, in order, and whoever asks little is answered in between."""

from __future__ import annotations

import pytest

from tests.limits.gate import advance
from tests.rules.test_slices import publish
from warrenmq.broker.services.pacing import COPIES, LITTLE, METHOD, OCTETS
from warrenmq.broker.services.turn import WORK
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.wire.content import Properties, content_frames, encode_header
from warrenmq.wire.methods import method_frame

pytestmark = pytest.mark.pure

A_TURN = WORK // METHOD
MANY = 2 * A_TURN + 500
BINDS = b"".join(
    method_frame(1, "queue.bind", queue="q", exchange="amq.direct", routing_key=f"k{n}", arguments={}, nowait=True)
    for n in range(MANY)
)


@pytest.fixture
def client(core: Core) -> CoreClient:
    client = core.client()
    client.call("queue.declare", queue="q")
    client.take()
    return client


def give(client: CoreClient, data: bytes) -> None:
    """One read of a socket, in a turn of its own; the turns that it leaves work for do not come yet."""
    core = client.core
    core.broker.begin_turn()
    client.connection.feed(data)
    core.broker.end_turn()
    client._collect()


def bound(core: Core) -> int:
    return len(core.queue("q").bindings_in)


def one_turn(core: Core) -> None:
    core.broker.begin_turn()
    core.broker.run_timers()
    core.broker.end_turn()


def test_a_flood_of_methods_is_taken_a_bounded_number_a_turn_and_in_order(core: Core, client: CoreClient) -> None:
    give(client, BINDS + method_frame(1, "queue.declare", queue="q", passive=True))
    turns = [0, bound(core)]
    while core.broker.services.pacing.waiting():
        assert client.sink.paused and client.take() == []
        one_turn(core)
        client._collect()
        turns.append(bound(core))
        assert len(turns) < 20
    steps = [after - before for before, after in zip(turns, turns[1:], strict=False)]
    assert max(steps) <= A_TURN and len(steps) >= 3 and sum(steps) == MANY
    assert not client.sink.paused
    assert [got.name for got in client.take()] == ["queue.declare-ok"]
    assert [binding.key for binding in core.queue("q").bindings_in.values()] == [f"k{n}" for n in range(MANY)]


def test_who_asks_little_is_answered_in_between_and_who_asks_much_in_turn(core: Core, client: CoreClient) -> None:
    asking, other = core.client(), core.client()
    core.broker.begin_turn()
    client.connection.feed(BINDS)
    asking.connection.feed(method_frame(1, "queue.declare", queue="q", passive=True))
    other.connection.feed(method_frame(1, "basic.qos", prefetch_count=1) * 200)
    core.broker.end_turn()
    asking._collect()
    other._collect()
    assert [got.name for got in asking.take()] == ["queue.declare-ok"]
    assert other.take() == []
    assert 200 * len(method_frame(1, "basic.qos", prefetch_count=1)) > LITTLE
    one_turn(core)  # the first takes all of the turn again ...
    other._collect()
    assert bound(core) < MANY and other.take() == []
    one_turn(core)  # ... and is behind the other then
    other._collect()
    assert len(other.take()) == 200


def test_further_reads_of_the_same_pass_are_kept_and_reading_stops(core: Core, client: CoreClient) -> None:
    core.broker.begin_turn()
    reads = 0
    while not client.sink.paused:
        publish_one = method_frame(1, "basic.publish", routing_key="q") + content_frames(
            1, encode_header(Properties(), 3), b"abc", 131072
        )
        client.connection.feed(publish_one * 4000)
        reads += 1
        assert reads < 100
    core.broker.end_turn()
    size = 4000 * len(publish_one)
    assert reads == -(-WORK // (size >> OCTETS)) + 1
    assert core.queue("q").ready == 4000 * (reads - 1)
    one_turn(core)
    assert core.queue("q").ready == 4000 * reads and not client.sink.paused


def test_a_message_for_very_many_queues_counts_for_each(core: Core, client: CoreClient) -> None:
    for number in range(200):
        client.call("queue.declare", queue=f"c{number}")
        client.call("queue.bind", queue=f"c{number}", exchange="amq.fanout")
    one = method_frame(1, "basic.publish", exchange="amq.fanout")
    message = one + content_frames(1, encode_header(Properties(), 3), b"abc", 131072)
    give(client, message * 500)
    turns = [0, int(core.queue("c0").ready)]
    while core.broker.services.pacing.waiting():
        one_turn(core)
        turns.append(int(core.queue("c0").ready))
    assert max(b - a for a, b in zip(turns, turns[1:], strict=False)) <= WORK // (200 >> COPIES) + 1
    assert turns[-1] == 500 == core.queue("c199").ready


def test_a_client_that_goes_in_the_middle_takes_the_rest_of_its_input_along(core: Core, client: CoreClient) -> None:
    give(client, BINDS)
    done = bound(core)
    core.broker.begin_turn()
    client.connection.lost("gone")
    core.broker.end_turn()
    advance(core, 5)
    assert bound(core) == done < MANY and not core.broker.services.pacing.waiting()


def test_a_refused_method_in_the_middle_ends_the_channel_and_nothing_behind_it_counts(
    core: Core, client: CoreClient
) -> None:
    wrong = method_frame(1, "queue.bind", queue="q", exchange="nobody", routing_key="", arguments={}, nowait=True)
    cut = BINDS.index(
        method_frame(
            1, "queue.bind", queue="q", exchange="amq.direct", routing_key=f"k{A_TURN + 100}", arguments={}, nowait=True
        )
    )
    give(client, BINDS[:cut] + wrong + BINDS[cut:])
    advance(core, 5)
    client._collect()
    assert bound(core) == A_TURN + 100
    assert [got.name for got in client.take()] == ["channel.close"]


def test_a_client_that_does_not_read_its_answers_is_heard_again_when_it_does(core: Core, client: CoreClient) -> None:
    give(client, BINDS)
    client.connection.pause_writing()
    one_turn(core)
    before = bound(core)
    one_turn(core)
    assert bound(core) == before < MANY
    core.broker.begin_turn()
    client.connection.resume_writing()
    core.broker.end_turn()
    advance(core, 5)
    assert bound(core) == MANY


def test_publishes_into_one_queue_are_not_cut(core: Core, client: CoreClient) -> None:
    """The ordinary way of a message is counted by the read only."""
    publish(client, "q", range(5000))
    assert core.queue("q").ready == 5000


def collect(clients: list[CoreClient]) -> None:
    for client in clients:
        client._collect()


def test_very_many_who_ask_little_are_answered_over_several_turns(core: Core) -> None:
    """Each costs more than its octets say: what it asks for is one message of very many bindings, say."""
    clients = [core.client() for _ in range(50)]
    asked = method_frame(1, "queue.declare", queue="", exclusive=True)
    core.broker.begin_turn()
    for client in clients:
        client.connection.feed(asked)
        core.broker.services.pacing.copied(WORK // 10 << COPIES)
    core.broker.end_turn()
    collect(clients)
    assert sum(bool(client.take()) for client in clients) == 20
    while core.broker.services.pacing.waiting():
        one_turn(core)
        collect(clients)
    assert all(client.take() for client in clients[20:])
