"""A queue or an exchange goes with all its bindings at once; exchanges and the log hear of them some a turn, and nobody
can tell."""

from __future__ import annotations

from typing import Any

import pytest

from tests.limits.gate import advance
from warrenmq.broker.exchange.topic import TopicExchange
from warrenmq.broker.services.turn import SLICE
from warrenmq.broker.vhost.forgetting import BINDING, FEW
from warrenmq.broker.vhost.vhost import VHost
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.wire.fields import Field
from warrenmq.wire.methods import method_frame

pytestmark = pytest.mark.pure

A_TURN = SLICE // BINDING
MANY = 2 * A_TURN + 100


def vhost(core: Core) -> VHost:
    return core.broker.vhosts["/"]


def stored(core: Core) -> int:
    """Bindings the log has."""
    assert core.log.flush()
    while core.log.maintain(100):
        pass
    return sum(kind == "binding" for kind, _ in core.log.maintenance.state.definitions)


def declare(client: CoreClient) -> None:
    client.call("queue.declare", queue="q", durable=True)
    client.call("exchange.declare", exchange="e", type="direct", durable=True)


def bind(client: CoreClient, keys: range, prefix: str = "k") -> None:
    bind = b"".join(
        method_frame(1, "queue.bind", queue="q", exchange="e", routing_key=f"{prefix}{key}", arguments={}, nowait=True)
        for key in keys
    )
    client.feed(bind)


@pytest.fixture
def bound(core: Core) -> CoreClient:
    client = core.client()
    declare(client)
    bind(client, range(MANY))
    client.call("queue.declare", queue="other", durable=True)
    client.call("queue.bind", queue="other", exchange="e", routing_key="k1")
    assert stored(core) == MANY + 1
    client.take()
    return client


DELETIONS = [("queue.delete", {"queue": "q"}), ("exchange.delete", {"exchange": "e"})]


@pytest.mark.parametrize(("method", "what"), DELETIONS, ids=["queue", "exchange"])
def test_the_log_is_told_of_a_bounded_number_a_turn(
    core: Core, bound: CoreClient, method: str, what: dict[str, Any]
) -> None:
    bound.call(method, **what)
    assert sum(len(exchange.bindings_out) for exchange in vhost(core).exchanges.values()) == (
        1 if method == "queue.delete" else 0
    )
    left = [MANY + 1, stored(core)]
    while core.broker.services.jobs.busy():
        advance(core, 1)
        left.append(stored(core))
        assert len(left) < 100
    gone = [before - after for before, after in zip(left, left[1:], strict=False)]
    assert max(gone) <= A_TURN + 1 and len(gone) >= 3
    assert left[-1] == (1 if method == "queue.delete" else 0)


def test_what_else_is_bound_there_is_served_meanwhile(core: Core, bound: CoreClient) -> None:
    bound.call("queue.delete", queue="q")
    assert core.broker.services.jobs.busy()
    bound.publish("e", "k1", b"x")
    assert bound.call("basic.get", queue="other").body == b"x"
    bound.publish("e", "k2", b"x", mandatory=True)
    assert [got.name for got in bound.take() if got.name == "basic.return"] == ["basic.return"]


@pytest.mark.parametrize("type", ["direct", "topic", "headers", "fanout"])
def test_exchanges_are_told_of_a_bounded_number_a_turn_and_nobody_finds_what_is_gone(core: Core, type: str) -> None:
    client = core.client()
    client.call("exchange.declare", exchange="lost", type="fanout")
    client.call("queue.declare", queue="found")
    client.call("queue.bind", queue="found", exchange="lost")
    arguments = {"alternate-exchange": Field("S", "lost")}
    client.call("exchange.declare", exchange="e", type=type, arguments=arguments)
    client.call("queue.declare", queue="q")
    bind(client, range(MANY))
    source = vhost(core).exchanges["e"]
    client.publish("e", "k7", b"before")
    assert core.ready("q") == 1
    client.call("queue.delete", queue="q")
    turns = 0
    while source.unbinding:
        client.publish("e", "k7", b"x")
        assert core.ready("found") == turns + 1
        advance(core, 1)
        turns += 1
        assert turns < 100
    assert turns >= MANY // A_TURN
    if isinstance(source.matcher, TopicExchange):
        assert source.matcher.is_empty()
    client.publish("e", "k7", b"x")
    assert core.ready("found") == turns + 1
    client.call("queue.declare", queue="q")
    client.call("queue.bind", queue="q", exchange="e", routing_key="k7")
    client.publish("e", "k7", b"after")
    assert core.ready("q") == 1


@pytest.mark.parametrize("type", ["x-random", "x-consistent-hash"])
def test_an_exchange_that_chooses_is_told_of_all_at_once(core: Core, type: str) -> None:
    client = core.client()
    client.call("exchange.declare", exchange="e", type=type)
    for queue in ("q", "other"):
        client.call("queue.declare", queue=queue)
    bind(client, range(1, FEW + 50), prefix="")
    client.call("queue.bind", queue="other", exchange="e", routing_key="1")
    client.call("queue.delete", queue="q")
    assert vhost(core).exchanges["e"].unbinding == 0
    for number in range(100):
        client.publish("e", str(number), b"x")
    assert core.ready("other") == 100


@pytest.mark.parametrize(("method", "what"), DELETIONS, ids=["queue", "exchange"])
def test_no_binding_comes_back_after_a_crash_in_the_middle_even_if_the_name_does(
    core: Core, bound: CoreClient, method: str, what: dict[str, Any]
) -> None:
    bound.call(method, **what)
    assert core.broker.services.jobs.busy() and stored(core) > 1
    core.restart(clean=False)
    assert stored(core) == (1 if method == "queue.delete" else 0)
    client = core.client()
    declare(client)
    core.restart(clean=False)
    assert not vhost(core).queues["q"].bindings_in


@pytest.mark.parametrize("kind", ["queue", "exchange"])
def test_who_declares_the_name_anew_waits_and_its_bindings_stay(core: Core, bound: CoreClient, kind: str) -> None:
    bound.call(f"{kind}.delete", **{kind: kind[0]})  # type: ignore[arg-type]
    other = core.client()
    if kind == "queue":
        other.send("queue.declare", queue="q", durable=True)
    else:
        other.send("exchange.declare", exchange="e", type="direct", durable=True)
    assert other.take() == []
    for _ in range(20):
        advance(core, 1)
        other._collect()
    assert [got.name for got in other.take()] == [f"{kind}.declare-ok"]
    bind(other, range(5))
    core.restart(clean=False)
    assert len(vhost(core).queues["q"].bindings_in) == 5


def test_who_cannot_wait_makes_the_log_hear_of_all_of_them_first(core: Core, bound: CoreClient) -> None:
    """An import, or the API."""
    bound.call("queue.delete", queue="q")
    core.broker.begin_turn()
    vhost(core).declare_queue("q", True, None, False, {})
    core.broker.end_turn()
    assert stored(core) == 1
    bind(bound, range(5))
    bound.call("queue.delete", queue="q")
    advance(core, 20)
    assert stored(core) == 1 and not core.broker.registry.forgetting


def test_a_broker_that_stops_meanwhile_has_told_the_log_of_all(core: Core, bound: CoreClient) -> None:
    bound.call("queue.delete", queue="q")
    core.restart()
    assert stored(core) == 1


def test_an_exchange_that_is_bound_both_ways_goes_with_all_of_it(core: Core) -> None:
    client = core.client()
    for name in "abc":
        client.call("exchange.declare", exchange=name, type="fanout", durable=True, auto_delete=name == "a")
    for source, destination in zip("abb", "bcb", strict=True):
        client.call("exchange.bind", source=source, destination=destination)
    assert stored(core) == 3
    client.call("exchange.delete", exchange="b")
    found = vhost(core).exchanges
    assert "a" not in found and "b" not in found and not found["c"].bindings_in
    assert stored(core) == 0
