"""No pattern can hang the broker, no client can buy time with one, and an honest one is never given up."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from warrenmq.broker.access.access import Access, NoStore, Refused
from warrenmq.broker.access.pattern_form import LONGEST_NAME, read_form
from warrenmq.broker.access.pattern_size import LARGEST as LARGEST_SIZE
from warrenmq.broker.access.pattern_size import compiled_size
from warrenmq.broker.access.patterns import (
    BUDGET,
    LONGEST,
    REMEMBERED,
    TIME_LIMIT,
    InvalidPattern,
    NamePattern,
    Patience,
)
from warrenmq.broker.policy.policies import Policies
from warrenmq.broker.policy.policy import parse_policy
from warrenmq.broker.services.clock import VirtualClock
from warrenmq.testing.core import Core, Events

EVIL = ["(a+)+$", "(a|aa)+$", "(a|a?)+$", "^(([a-z])+.)+[A-Z]([a-z])+$", "((a*)*)*$", "(?:a|a|a|a)*$"]
HONEST = [".*", "^reply-.*$", "^reply-[0-9a-f]+$", "^(?!amq\\.).*", "^[a-z]+-[0-9a-f]*[0-9]*$"]
AT_ONCE = int(BUDGET / TIME_LIMIT) + 1  # searches that are stopped before patience is used up


@pytest.mark.parametrize("pattern", HONEST)
def test_an_honest_permission_is_not_given_up_even_where_no_patience_is_left(tmp_path: Path, pattern: str) -> None:
    core = Core(tmp_path)
    core.broker.registry.access.add_user("alice", "x", [])
    core.broker.registry.access.set_permissions("alice", "/", pattern, ".*", "(a+)+$")
    client = core.client("alice", "x")
    for number in range(AT_ONCE + 1):
        client.call("basic.get", queue="a" * 240 + f"!{number}")
        client.send("channel.close-ok")
        client.open(1)
    assert "pattern_given_up" in [name for name, _ in core.notes.seen]
    for number in range(3000):
        assert client.call("queue.declare", queue=f"reply-{number}").name == "queue.declare-ok"


class Interrupted:
    """A compiled pattern on a machine so busy that every search with a time limit runs out of it."""

    def __init__(self, pattern: str) -> None:
        self._compiled = re.compile(pattern)

    def search(self, name: str, timeout: float | None = None) -> object:
        if timeout is not None:
            raise TimeoutError
        return self._compiled.search(name)


@pytest.mark.parametrize("pattern", HONEST)
def test_an_honest_permission_asked_for_names_of_the_usual_length_does_not_depend_on_time(
    pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regex, "compile", Interrupted)
    honest = NamePattern(pattern, Patience(VirtualClock(), Events(), "x"))
    assert all(honest.matches(f"reply-{number}") for number in range(100))
    assert honest.stopped == 0


@pytest.mark.parametrize("pattern", HONEST[:-1])
def test_a_pattern_that_is_quick_by_its_form_is_never_stopped(pattern: str) -> None:
    form = read_form(pattern)
    assert form is not None and (form.globs is not None or form.cheap_up_to == LONGEST_NAME)


@pytest.mark.parametrize(
    ("pattern", "at_least"), [("^[a-z]+-[0-9a-f]*[0-9]*$", 50), ("^\\w+-\\w+-\\w+-\\w+$", 20), ("[a-z]+-[0-9]+$", 50)]
)
def test_a_pattern_of_several_repeats_is_quick_for_names_of_the_usual_length(pattern: str, at_least: int) -> None:
    form = read_form(pattern)
    assert form is not None and at_least <= form.cheap_up_to < LONGEST_NAME


@pytest.mark.parametrize("pattern", [*EVIL, "(.*a){25}$", "(a|b)(a|b)*", "a?" * 30 + "a" * 30, "(a|a)" * 40 + "b"])
def test_a_pattern_that_may_explode_is_not_quick_by_its_form(pattern: str) -> None:
    form = read_form(pattern)
    assert form is None or (form.globs is None and form.cheap_up_to < 0)


@pytest.mark.parametrize("pattern", EVIL)
def test_however_many_names_are_tried_an_explosive_pattern_gets_less_than_a_hundredth_of_the_time(pattern: str) -> None:
    clock = VirtualClock()
    evil = NamePattern(pattern, Patience(clock, Events(), "x"))
    for number in range(500):
        evil.matches("a" * 240 + f"!{number}")
    assert 0 < evil.stopped <= AT_ONCE
    begun = clock.now_ms()
    for number in range(10_000):
        clock.set_ms(clock.now_ms() + 10)
        evil.matches("a" * 240 + f"!!{number}")
    seconds = (clock.now_ms() - begun) / 1000
    assert int(evil.stopped) * TIME_LIMIT <= BUDGET + TIME_LIMIT + seconds / 100


def test_an_explosive_pattern_is_given_up_said_so_and_comes_back(tmp_path: Path) -> None:
    core = Core(tmp_path)
    core.broker.registry.access.add_user("eve", "x", [])
    core.broker.registry.access.set_permissions("eve", "/", "(a+)+$", ".*", ".*")
    client = core.client("eve", "x")
    assert client.call("queue.declare", queue="aaaa").name == "queue.declare-ok"
    for number in range(50):
        assert client.call("queue.declare", queue="a" * 240 + f"!{number}").name == "channel.close"
        client.send("channel.close-ok")
        client.open(1)
    told = [(name, fields) for name, fields in core.notes.seen if name.startswith("pattern_")]
    assert [name for name, _ in told] == ["pattern_given_up"]
    assert told[0][1]["pattern"] == "(a+)+$"
    assert told[0][1]["of"] == "permissions of user 'eve' in vhost '/'"
    assert client.call("queue.declare", queue="aaaaa").name == "channel.close"
    client.send("channel.close-ok")
    client.open(1)
    assert client.call("queue.bind", queue="aaaa", exchange="amq.direct").name == "queue.bind-ok"  # others work
    core.advance(10_000)
    assert client.call("queue.declare", queue="aaaaa").name == "queue.declare-ok"
    told = [(name, fields) for name, fields in core.notes.seen if name.startswith("pattern_")]
    assert [name for name, _ in told] == ["pattern_given_up", "pattern_back"]


def test_what_is_given_up_again_and_again_is_reported_once_a_minute() -> None:
    clock, notes = VirtualClock(), Events()
    evil = NamePattern("(a+)+$", Patience(clock, notes, "x"))
    for number in range(300):
        evil.matches("a" * 240 + f"!{number}")
        clock.set_ms(clock.now_ms() + 400)
    assert 2 <= len([name for name, _ in notes.seen if name == "pattern_given_up"]) <= 3
    assert len(notes.seen) <= 6


def test_permissions_with_an_explosive_pattern_fail_closed_and_cost_nobody_else() -> None:
    access = Access(NoStore(), VirtualClock(), Events())
    for user in ("eve", "bob"):
        access.add_user(user, "x", [])
        access.set_permissions(user, "/", "(a+)+$", "^[a-z]+-[0-9a-f]*[0-9]*$", ".*")
    assert not any(access.allowed("eve", "/", "configure", "a" * 250 + f"!{number}") for number in range(500))
    assert access.permissions[("eve", "/")].configure_pattern.stopped <= AT_ONCE
    assert access.allowed("eve", "/", "write", "still-0f")
    assert access.allowed("bob", "/", "configure", "aaa")


def test_a_hundred_policies_with_explosive_patterns_share_one_patience() -> None:
    policies = Policies(NoStore(), VirtualClock(), Events())
    for number in range(100):
        body: dict[str, object] = {"pattern": f"(a+)+{number}$", "definition": {"max-length": 1}}
        policies.set(parse_policy("/", f"evil{number}", body, False))
    for number in range(300):
        policies.effective("/", "queue", "a" * 200 + f"!{number}")
    # each is tried once, if briefly, because an honest one must not pay for the others
    assert sum(policy.names.stopped for policy in policies.in_vhost("/")) <= AT_ONCE + 100


@pytest.mark.parametrize(
    "pattern",
    [
        "(" * 5000 + ")" * 5000,
        "a" * (LONGEST + 1),
        "|".join(["a"] * 5000),
        "[",
        "(",
        ")",
        "*",
        "(?<",
        "\\",
        "a{2,1}",
        "[z-a]",
        "a**",
        "(a",
        "a)",
        "(?",
        "[[:alpha:]",
        "[]",
    ],
)
def test_a_pattern_that_cannot_be_compiled_is_refused_before_it_does_harm(pattern: str) -> None:
    with pytest.raises(InvalidPattern):
        NamePattern(pattern)
    access = Access(NoStore())
    access.add_user("eve", "x", [])
    with pytest.raises(Refused):
        access.set_permissions("eve", "/", pattern, "", "")


def nested(times: int, quantifier: str, opened: str = "(", closed: str = ")") -> str:
    return opened * times + "a" + (closed + quantifier) * times


@pytest.mark.parametrize(
    "pattern",
    [
        nested(20, "{2}"),
        nested(20, "+"),
        nested(20, "{1,9}", "(?:"),
        nested(20, "{2,}", "(?="),
        nested(10, "{5}?"),
        nested(10, "{2}+"),
        nested(3, "{1000}"),
        nested(2, "{999999999999}"),
        "[(]" + nested(20, "{2}", "(?:[])(]"),
        "[^])]\\[" + nested(20, "{2}"),
        "(?:)" * 20 + nested(20, "{2}"),
        "(?:\\))*" + nested(20, "{2}"),
        nested(20, "  {2}", "(?x:"),
        "(?x)" + nested(20, "#[\n{2}", "(?:#)\n"),
        "(?ix)" + nested(20, "{2}", "(", "#[(\n)"),
    ],
)
def test_a_pattern_that_would_be_enormous_when_compiled_is_refused_unseen(pattern: str) -> None:
    assert compiled_size(pattern) > LARGEST_SIZE
    with pytest.raises(InvalidPattern, match="^regular expression is too large$"):
        NamePattern(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        r"^(?:[a-z]{2,8}\.)+[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
        r"^(([0-9]{1,3}\.){3}[0-9]{1,3}|([0-9a-f]{1,4}:){7}[0-9a-f]{1,4})(:[0-9]{1,5})?$",
        r"(?x) ^ amq\. (gen|rpc)+ [-] .{22} $  # generated",
        "(?:" + "|".join(f"queue-{number}" for number in range(300)) + ")+",
        nested(6, "+"),
        nested(90, "*"),
        "[({2}]{2}" * 300,
        r"\({2}\){2}" * 300,
    ],
)
def test_a_pattern_that_people_write_is_not(pattern: str) -> None:
    assert compiled_size(pattern) <= LARGEST_SIZE
    NamePattern(pattern)


def test_results_are_remembered_within_bounds_and_what_is_asked_often_stays() -> None:
    pattern = NamePattern("^(?:x)+[a-z ]*[0-9]*[a-z]*$")
    for number in range(10_000):
        assert pattern.matches(f"x{number}")
        assert pattern.matches("x often")
        assert pattern.remembers("x often")
    assert pattern.remembered <= 2 * REMEMBERED


def test_counted_repeats_do_not_grow_the_program() -> None:
    assert NamePattern("((((a{1,100}){1,100}){1,100}){1,100}){1,100}").matches("a" * 255)


PARTS = st.sampled_from(
    [
        "a",
        "b",
        "ab",
        ".*",
        ".+",
        ".",
        "^",
        "$",
        "\\.",
        "(a|b)",
        "(ab|)",
        "(?:a|bb)",
        "[ab]",
        "[^a]",
        "[]a]",
        "\\d",
        "x?",
        "a*",
        "b+",
        "a*?",
        "|",
        "(a",
        ")",
        "(?!a)",
        "(?=b)",
        "\\",
        "{",
        "}",
        "]",
        "^a",
        "b$",
        "(^a|b$)",
        "a{2}",
        "\\w+",
        "(.*)",
        "\\n",
    ]
)


@given(st.lists(PARTS, max_size=6).map("".join), st.lists(st.sampled_from(["a", "b", "x", ".", "0", "\n"]), max_size=8))
@example("^(a|b)$", ["a", "\n"])
@example("a.+b", ["a", "b", "b"])
@example(".*", ["\n"])
def test_a_name_matches_as_the_regular_expression_says(pattern: str, characters: list[str]) -> None:
    name = "".join(characters)
    try:
        expected = regex.compile(pattern).search(name) is not None
    except regex.error:
        with pytest.raises(InvalidPattern):
            NamePattern(pattern)
        return
    found = NamePattern(pattern)
    assert found.matches(name) is expected
    if expected and found.prefixes is not None:
        assert name.startswith(tuple(found.prefixes))
