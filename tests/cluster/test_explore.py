"""Small scopes to their end: no order of events violates what must hold, and planted faults are found by all orders.

Under ``soak``: larger scopes, to their end or to as many states as WARREN_TEST_CLUSTER_STATES says.
"""

from __future__ import annotations

import os

import pytest

from warrenmq.cluster.model.explore import (
    ALIKE,
    ALL,
    BOOT_AT_ONCE,
    CONNECT_AT_ONCE,
    DEAF_ENDS,
    LAST_WORDS_AT_ONCE,
    Found,
    Scope,
    explore,
)
from warrenmq.cluster.model.faults import FAULTS, HARMLESS
from warrenmq.cluster.rules import Rules

#: nodes, batches, crashes, campaigns, changes of the set
Numbers = tuple[int, int, int, int, int]

LIMIT = 200_000

#: planted fault -> the scope in which every order is tried until it is found
IN_SCOPE: dict[str, Numbers] = {
    "same-epoch": (2, 1, 1, 1, 0),
    "two-faced": (2, 1, 1, 1, 0),
    "own-unsynced": (2, 1, 1, 1, 0),
    "early-ack": (2, 1, 1, 1, 0),
    "trust-cache": (2, 1, 1, 1, 0),
    "late-sync": (2, 1, 1, 1, 0),
    "watermark": (2, 1, 1, 1, 0),
    "by-position": (2, 1, 1, 1, 0),
    "unclean-election": (2, 1, 1, 1, 1),
    "shrink-early": (2, 1, 1, 1, 1),
    "promise-in-doubt": (2, 1, 1, 1, 1),
    "grow-late": (2, 1, 1, 1, 1),
}
LONG = ["late-sync", "grow-late"]
SHORT = [name for name in IN_SCOPE if name not in LONG]

#: a reduction -> a scope in which it leaves something out, and a fault that is found by way of what it leaves out
REDUCTIONS: dict[str, tuple[int, Numbers, str]] = {
    "a crash and the start after it are one step": (BOOT_AT_ONCE, (2, 0, 1, 1, 0), "trust-cache"),
    "who can connect connects": (CONNECT_AT_ONCE, (2, 0, 1, 1, 0), "by-position"),
    "last words are heard at once": (LAST_WORDS_AT_ONCE, (2, 1, 0, 1, 0), "two-faced"),
    "what nobody hears is forgotten": (DEAF_ENDS, (2, 0, 1, 2, 0), "trust-cache"),
    "nodes have no names": (ALIKE, (3, 1, 0, 0, 0), "own-unsynced"),
}


def explored(rules: Rules, scope: Numbers, *, shortest: bool = False, reductions: int = ALL) -> Found:
    return explore(rules, Scope(*scope), LIMIT, shortest, reductions)


def rules_of(name: str) -> Rules:
    rules = {**FAULTS, **HARMLESS}[name]
    rules.min_in_sync = 2
    return rules


@pytest.mark.pure
@pytest.mark.parametrize(("scope", "least"), [((2, 0, 1, 1, 0), 1400), ((2, 1, 1, 1, 0), 13_000)])
def test_every_order_of_events_in_a_small_scope_holds(scope: Numbers, least: int) -> None:
    found = explored(Rules(), scope)
    assert (found.violation, found.way, found.whole) == ("", [], True)
    assert found.states > least


@pytest.mark.parametrize(("scope", "least"), [((2, 1, 1, 1, 1), 70_000), ((3, 1, 0, 1, 0), 25_000)])
def test_every_order_of_events_holds_with_a_change_of_the_set_and_with_three_nodes(scope: Numbers, least: int) -> None:
    found = explored(Rules(), scope)
    assert (found.violation, found.way, found.whole) == ("", [], True)
    assert found.states > least


def shortest_way(name: str) -> list[str]:
    found = explored(rules_of(name), IN_SCOPE[name], shortest=True)
    assert found.violation
    return found.way


@pytest.mark.pure
@pytest.mark.parametrize("name", SHORT)
def test_a_small_scope_has_the_shortest_way_to_a_fault(name: str) -> None:
    assert 0 < len(shortest_way(name)) <= 10


@pytest.mark.parametrize("name", LONG)
def test_a_small_scope_has_a_fault_that_takes_many_steps(name: str) -> None:
    assert 10 < len(shortest_way(name)) < 20


@pytest.mark.parametrize("name", REDUCTIONS)
def test_a_reduction_leaves_states_out_and_no_fault(name: str) -> None:
    reduction, scope, fault = REDUCTIONS[name]
    every, fewer = explored(Rules(), scope, reductions=0), explored(Rules(), scope, reductions=reduction)
    assert (every.whole, fewer.whole) == (True, True)
    assert fewer.states < every.states
    assert explored(rules_of(fault), (2, 1, 1, 1, 0), shortest=True, reductions=reduction).violation


@pytest.mark.parametrize("scope", [(2, 0, 1, 1, 0), (2, 1, 0, 1, 0)])
def test_with_all_reductions_the_same_faults_are_found_as_with_none(scope: Numbers) -> None:
    for name in [*FAULTS, *HARMLESS]:
        every, fewer = explored(rules_of(name), scope, reductions=0), explored(rules_of(name), scope)
        assert (name, bool(fewer.violation), fewer.whole) == (name, bool(every.violation), every.whole)


@pytest.mark.soak
@pytest.mark.parametrize(
    "scope", [(2, 2, 1, 2, 0), (2, 1, 2, 2, 0), (2, 2, 2, 2, 0), (3, 1, 1, 1, 0), (2, 2, 2, 2, 1), (3, 3, 2, 2, 0)]
)
def test_a_larger_scope_holds(scope: Numbers) -> None:
    found = explore(Rules(), Scope(*scope), int(os.environ.get("WARREN_TEST_CLUSTER_STATES", "20000000")))
    print(f"\n{scope}: {found.states} states{', all there are' if found.whole else ''}", end="")
    assert (found.violation, found.way) == ("", [])
