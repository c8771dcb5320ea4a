"""Policies are put into force in steps: each is short, and what clients see meanwhile is whole."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warrenmq.broker.access.access import NoStore
from warrenmq.broker.definitions import policy_changes
from warrenmq.broker.definitions.policy_changes import PASSED_OVER
from warrenmq.broker.policy.policies import Policies
from warrenmq.broker.policy.policy import Policy, parse_policy
from warrenmq.server.app import STEPS
from warrenmq.testing import Broker
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient

QUEUES = 300


def policy(name: str, pattern: str, priority: int = 0, apply_to: str = "queues", **definition: object) -> Policy:
    said = {key.replace("_", "-"): value for key, value in definition.items()} or {"max-length": 1}
    body = {"pattern": pattern, "definition": said, "priority": priority, "apply-to": apply_to}
    return parse_policy("/", name, body, False)


@pytest.fixture
def core(tmp_path: Path) -> Core:
    core = Core(tmp_path)
    client = core.client()
    for number in range(QUEUES):
        client.call("queue.declare", queue=f"{'odd' if number % 2 else 'even'}-{number}")
    return core


def in_use(core: Core) -> dict[str, str | None]:
    return {name: queue.policy.name for name, queue in core.broker.vhosts["/"].queues.items()}


def finish(core: Core, steps: Iterator[None]) -> int:
    taken = 0
    for _ in steps:
        taken += 1
    core.turn()
    return taken


def test_a_step_touches_one_queue_or_passes_over_a_few(core: Core) -> None:
    steps = policy_changes.set_policy(core.broker, policy("p", "^odd-"), False)
    before, taken = 0, 0
    for _ in steps:
        taken += 1
        now = list(in_use(core).values()).count("p")
        assert now - before <= 1
        before = now
    assert before == QUEUES / 2
    assert taken >= QUEUES / 2 + QUEUES / 2 // PASSED_OVER
    assert {name for name, by in in_use(core).items() if by == "p"} == {
        f"odd-{number}" for number in range(1, QUEUES, 2)
    }


def test_what_a_policy_does_not_concern_is_passed_over(core: Core) -> None:
    assert (
        finish(core, policy_changes.set_policy(core.broker, policy("p", "^nothing"), False)) <= QUEUES / PASSED_OVER + 2
    )


def test_what_is_declared_meanwhile_has_the_policy_and_what_is_deleted_is_left_alone(core: Core) -> None:
    client = core.client()
    steps = policy_changes.set_policy(core.broker, policy("p", "^odd-", max_length=1), False)
    next(steps)
    client.call("queue.declare", queue="odd-new")
    assert in_use(core)["odd-new"] == "p"
    client.call("queue.delete", queue="odd-299")
    client.call("queue.declare", queue="odd-299", arguments={"x-max-length": 7})
    finish(core, steps)
    assert in_use(core)["odd-299"] == "p" and in_use(core)["odd-1"] == "p"


def test_two_changes_at_once_end_as_one_after_the_other(core: Core) -> None:
    first = policy_changes.set_policy(core.broker, policy("p", "^odd-"), False)
    next(first)
    second = policy_changes.set_policy(core.broker, policy("p", "^even-"), False)
    third = policy_changes.set_policy(core.broker, policy("high", "-1", priority=5), False)
    for steps in (second, first, third):
        for _ in range(7):
            next(steps)
    for steps in (third, first, second):
        finish(core, steps)
    found = in_use(core)
    core.restart()
    assert {name: core.broker.registry.policies.effective("/", "queue", name)[0] for name in found} == found
    assert found["even-10"] == "high" and found["even-20"] == "p" and found["odd-3"] is None
    deleting = policy_changes.delete_policy(core.broker, "/", "high", False)
    finish(core, deleting)


def test_deleting_a_policy_brings_the_next_one_back(core: Core) -> None:
    finish(core, policy_changes.set_policy(core.broker, policy("low", "^odd-"), False))
    finish(core, policy_changes.set_policy(core.broker, policy("high", "^odd-1", priority=1), False))
    assert in_use(core)["odd-11"] == "high"
    finish(core, policy_changes.delete_policy(core.broker, "/", "high", False))
    assert in_use(core)["odd-11"] == "low"


def test_a_policy_does_not_restart_the_expiry_of_queues_it_does_not_touch(core: Core) -> None:
    client: CoreClient = core.client()
    client.call("queue.declare", queue="mine", arguments={"x-expires": 1000})
    finish(core, policy_changes.set_policy(core.broker, policy("same", "^mine$", max_length=5), False))
    core.advance(900)
    finish(core, policy_changes.set_policy(core.broker, policy("other", "^odd-"), False))
    finish(core, policy_changes.set_policy(core.broker, policy("low", "^mine$", priority=-1), False))
    finish(core, policy_changes.set_policy(core.broker, policy("same", "^mine$", max_length=5), False))
    finish(core, policy_changes.delete_policy(core.broker, "/", "low", False))
    core.advance(99)
    assert "mine" in core.broker.vhosts["/"].queues
    core.advance(1)
    assert "mine" not in core.broker.vhosts["/"].queues


PATTERNS = st.sampled_from(
    ["^a", "^ab", "^ab$", "^(a|b)c", "b", ".*", "^a.*c$", "c$", "^(?!a)", "^[ab]", "", "^abc|^b", "^b|c"]
)


@given(
    st.lists(st.tuples(PATTERNS, st.integers(-2, 2), st.sampled_from(["all", "queues", "exchanges"])), max_size=8),
    st.text("abc", max_size=4),
    st.sampled_from(["queue", "exchange"]),
)
def test_the_index_finds_what_trying_all_in_order_finds(
    wanted: list[tuple[str, int, str]], name: str, kind: str
) -> None:
    policies = Policies(NoStore())
    for number, (pattern, priority, apply_to) in enumerate(wanted):
        policies.set(policy(f"p{number}", pattern, priority, apply_to))
    expected = None
    for one in policies.in_vhost("/"):
        if one.applies(kind, name, "classic"):
            expected = one.name
            break
    assert policies.effective("/", kind, name)[0] == expected


def test_with_hundreds_of_policies_few_patterns_are_looked_at() -> None:
    """Those that cannot match by how the name begins are not searched, so they remember nothing.

    The names are longer than what such patterns are searched for without remembering.
    """
    policies = Policies(NoStore())
    for number in range(500):
        policies.set(policy(f"p{number}", f"^team-{number}\\.[a-z]*[0-9]*[a-z]*$"))
    for number in range(500):
        assert policies.effective("/", "queue", f"team-{number}." + "q" * 100)[0] == f"p{number}"
    assert sum(one.names.remembered for one in policies.in_vhost("/")) == 500


def test_a_long_piece_of_work_takes_so_many_steps_a_turn_and_is_done_when_nobody_waits() -> None:
    with Broker() as broker:
        server = broker.server
        passes = 0
        seen: list[int] = []

        def work() -> Iterator[None]:
            for _ in range(5 * STEPS + 1):
                seen.append(passes)
                yield

        async def alongside() -> None:
            nonlocal passes
            future = server.work_through("test", work())
            while not future.done():
                passes += 1
                await asyncio.sleep(0)

        broker.run(alongside())
        assert len(seen) == 5 * STEPS + 1
        assert max(seen.count(one) for one in set(seen)) <= STEPS

        seen.clear()

        async def leave() -> None:
            server.work_through("test", work()).cancel()

        broker.run(leave())
        broker.settle()
        assert len(seen) == 5 * STEPS + 1
