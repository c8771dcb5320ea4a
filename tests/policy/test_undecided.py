"""Who was looked at while a policy's pattern was given up gets the policy when the pattern is back."""

from __future__ import annotations

import pytest

from tests.limits.gate import advance
from tests.policy.test_policy_changes import finish, policy
from warrenmq.broker.access.patterns import BUDGET, TIME_LIMIT
from warrenmq.broker.definitions import policy_changes
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient

pytestmark = pytest.mark.pure

AT_ONCE = int(BUDGET / TIME_LIMIT) + 1  # searches that are stopped before patience is used up
SLOW = "(a+)+$"  # explodes where a long row of a's ends with something else


def given_up(core: Core) -> CoreClient:
    """A client of a broker whose policies have no patience left."""
    client = core.client()
    finish(core, policy_changes.set_policy(core.broker, policy("p", SLOW, 0, "all", alternate_exchange="e"), False))
    for number in range(AT_ONCE):
        client.call("queue.declare", queue="a" * 240 + f"!{number}", auto_delete=True)
    assert "pattern_given_up" in [name for name, _ in core.notes.seen]
    return client


def policies(core: Core) -> list[str | None]:
    vhost = core.broker.vhosts["/"]
    return [vhost.queues["aaaa"].policy.name, vhost.exchanges["aaa"].policy.name]


def test_what_was_declared_meanwhile_gets_its_policy_when_the_pattern_is_back(core: Core) -> None:
    client = given_up(core)
    client.call("queue.declare", queue="aaaa")
    client.call("exchange.declare", exchange="aaa", type="direct")
    assert policies(core) == [None, None]
    advance(core, 7_000)
    assert policies(core) == [None, None]
    advance(core, 60_000)
    assert policies(core) == ["p", "p"]
    assert core.broker.vhosts["/"].exchanges["aaa"].alternate == "e"


def test_what_existed_when_a_policy_was_set_gets_it_when_the_pattern_is_back(core: Core) -> None:
    client = given_up(core)
    finish(core, policy_changes.delete_policy(core.broker, "/", "p", False))
    client.call("queue.declare", queue="aaaa")
    client.call("exchange.declare", exchange="aaa", type="direct")
    client.call("queue.declare", queue="a" * 240 + "!")
    client.call("queue.declare", queue="b")
    finish(core, policy_changes.set_policy(core.broker, policy("p", SLOW, 0, "all", max_length=5), False))
    finish(core, policy_changes.set_policy(core.broker, policy("q", SLOW, 0, "all", max_length=5), False))
    advance(core, 120_000)
    assert policies(core) == ["p", "p"]
    assert core.broker.vhosts["/"].queues["b"].policy.name is None


def test_what_is_gone_by_then_is_forgotten(core: Core) -> None:
    client = given_up(core)
    client.call("queue.declare", queue="aaaa")
    client.call("exchange.declare", exchange="aaa", type="direct")
    client.call("queue.delete", queue="aaaa")
    client.call("exchange.delete", exchange="aaa")
    undecided = core.broker.undecided
    assert not [name for name in undecided._names if len(name.name) < 10]
    advance(core, 120_000)
    assert not undecided._names and undecided.due < 0


def test_very_many_are_looked_at_some_a_turn(core: Core) -> None:
    client = given_up(core)
    many = [f"{'a' * (number + 1)}" for number in range(60)] + [f"b{number}" for number in range(1000)]
    for name in many:
        client.send("queue.declare", queue=name, nowait=True)
    broker = core.broker
    left = [len(broker.undecided._names)]
    while broker.undecided.due >= 0:
        core.clock.set_ms(broker.undecided.due)
        broker.begin_turn()
        broker.run_timers()
        broker.end_turn()
        left.append(len(broker.undecided._names))
        assert len(left) < 100
    looked = [before - after for before, after in zip(left, left[1:], strict=False)]
    assert left[0] >= 60 and left[-1] == 0 and max(looked) <= 400
    queues = broker.vhosts["/"].queues
    assert all(queues[name].policy.name == ("p" if name[0] == "a" else None) for name in many)
