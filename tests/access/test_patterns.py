"""No pattern can hang the broker, and no client can buy time with one."""

from __future__ import annotations

import time

import pytest

from warrenmq.broker.access import Access, NoStore, Refused
from warrenmq.broker.patterns import BUDGET, LONGEST, InvalidPattern, NamePattern
from warrenmq.broker.policy import Policies, parse_policy

EVIL = ["(a+)+$", "(a|aa)+$", "(a|a?)+$", "^(([a-z])+.)+[A-Z]([a-z])+$", "(.*a){25}$", "((a*)*)*$", "(?:a|a|a|a)*$"]


@pytest.mark.parametrize("pattern", EVIL)
def test_an_explosive_pattern_costs_a_bounded_time_however_many_names_are_tried(pattern: str) -> None:
    evil = NamePattern(pattern)
    before = time.thread_time()
    for number in range(2000):
        evil.matches("a" * 240 + f"!{number}")
    spent = time.thread_time() - before
    assert spent < BUDGET + 1.8  # the budget, one last search, and 2,000 searches of a pattern that is quick after all


def test_a_pattern_that_wasted_its_budget_matches_nothing_any_more() -> None:
    evil = NamePattern("(a+)+$")
    assert evil.matches("aaaa")
    for number in range(5000):
        evil.matches("a" * 240 + f"!{number}")
        if evil.given_up:
            break
    assert evil.given_up
    assert not evil.matches("aaaaa")


def test_an_honest_pattern_is_never_given_up() -> None:
    honest = NamePattern("^(?!amq\\.).*-(orders|invoices)$")
    for number in range(20_000):
        assert honest.matches(f"shop-{number}-orders")
    assert not honest.given_up


def test_permissions_with_an_explosive_pattern_fail_closed_and_quickly() -> None:
    access = Access(NoStore())
    access.add_user("eve", "x", [])
    access.set_permissions("eve", "/", "(a+)+$", ".*", ".*")
    before = time.thread_time()
    allowed = [access.allowed("eve", "/", "configure", "a" * 250 + f"!{number}") for number in range(500)]
    assert not any(allowed)
    assert time.thread_time() - before < 1
    assert access.allowed("eve", "/", "write", "still fine")


def test_a_policy_with_an_explosive_pattern_does_not_hold_up_thousands_of_queues() -> None:
    policies = Policies(NoStore())
    policies.set(parse_policy("/", "evil", {"pattern": "(a+)+$", "definition": {"max-length": 1}}, False))
    before = time.thread_time()
    for number in range(3000):
        policies.effective("/", "queue", "a" * 200 + f"!{number}")
    assert time.thread_time() - before < 1


@pytest.mark.parametrize(
    "pattern",
    ["(" * 5000 + ")" * 5000, "a" * (LONGEST + 1), "|".join(["a"] * 5000), "[", "(", ")", "*", "(?<", "\\", "a{2,1}"],
)
def test_a_pattern_that_cannot_be_compiled_is_refused_before_it_does_harm(pattern: str) -> None:
    before = time.thread_time()
    with pytest.raises(InvalidPattern):
        NamePattern(pattern)
    assert time.thread_time() - before < 1
    access = Access(NoStore())
    access.add_user("eve", "x", [])
    with pytest.raises(Refused):
        access.set_permissions("eve", "/", pattern, "", "")


def test_results_are_remembered_within_bounds() -> None:
    pattern = NamePattern("^x")
    for number in range(10_000):
        assert pattern.matches(f"x{number}")
    assert len(pattern._results) <= 2048


def test_counted_repeats_do_not_grow_the_program() -> None:
    before = time.thread_time()
    NamePattern("((((a{1,100}){1,100}){1,100}){1,100}){1,100}").matches("a" * 255)
    assert time.thread_time() - before < 1
