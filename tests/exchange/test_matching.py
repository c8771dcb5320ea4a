"""What each exchange type sends where: promises by example."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

import pytest

from tests.exchange.build import Arguments, bind, exchange, message, names, queue, unbind
from warrenmq.broker.exchange.consistent_hash import ConsistentHashExchange
from warrenmq.broker.exchange.headers import HeadersExchange
from warrenmq.broker.exchange.topic import TopicExchange
from warrenmq.broker.records import Exchange
from warrenmq.broker.services.randomness import Randomness
from warrenmq.wire.content import Properties
from warrenmq.wire.fields import Field, from_python


def routed(source: Exchange, *keys: str, headers: Arguments | None = None) -> list[str]:
    return names(source.matcher.route(message(*keys, headers=headers)))


def test_direct_sends_by_equal_key_to_each_queue_once_for_all_keys_together() -> None:
    x = exchange("x", "direct")
    a, b = queue("a"), queue("b")
    bind(x, a, "one")
    bind(x, b, "one")
    bind(x, a, "two")
    assert routed(x, "one") == ["a", "b"]
    assert routed(x, "two") == ["a"]
    assert routed(x, "two", "one") == ["a", "b"]
    assert routed(x, "one", "two") == ["a", "b"]
    assert routed(x, "ONE") == routed(x, "") == []


def test_a_queue_stays_bound_until_the_last_of_its_bindings_goes() -> None:
    for type in ("direct", "fanout", "topic"):
        x = exchange("x", type)
        q = queue("q")
        first = bind(x, q, "k", {"n": 1})
        second = bind(x, q, "k", {"n": 2})
        unbind(first)
        assert routed(x, "k") == ["q"]
        unbind(second)
        assert routed(x, "k") == []


def test_fanout_sends_to_all_whatever_the_key() -> None:
    x = exchange("x", "fanout")
    bind(x, queue("a"), "k")
    bind(x, queue("b"))
    assert routed(x, "other") == ["a", "b"]


@pytest.mark.parametrize(
    "pattern, matching, not_matching",
    [
        ("", [""], ["a", "."]),
        ("a.b", ["a.b"], ["a", "a.b.c", "a.B", "a..b", ""]),
        ("*", ["a", "*", "#"], ["", "a.b", "."]),
        ("*.*", ["a.b", "."], ["a", "a.b.c"]),
        ("a.*.c", ["a.b.c", "a..c", "a.*.c"], ["a.c", "a.b.b.c"]),
        ("#", ["", "a", "a.b", ".."], []),
        ("a.#", ["a", "a.b", "a.b.c", "a."], ["", "b.a"]),
        ("#.z", ["z", "a.z", "a.b.z", "z.z"], ["", "z.a"]),
        ("a.#.z", ["a.z", "a.b.z", "a.b.c.z", "a.z.z"], ["a", "z", "a.b"]),
        ("#.*", ["a", "a.b"], [""]),
        ("#.#", ["", "a", "a.b.c"], []),
        ("*.#.*", ["a.b", "a.b.c"], ["a", ""]),
        ("#.a.#.b.#", ["a.b", "x.a.y.b.z", "a.a.b.b"], ["b.a", "a", ""]),
        ("a#", ["a#"], ["a", "ab"]),
        ("a*.b", ["a*.b"], ["ax.b"]),
    ],
)
def test_topic_matches_word_by_word(pattern: str, matching: list[str], not_matching: list[str]) -> None:
    x = exchange("x", "topic")
    bind(x, queue("q"), pattern)
    assert [key for key in matching if routed(x, key) != ["q"]] == []
    assert [key for key in not_matching if routed(x, key)] == []


def test_topic_finds_a_queue_once_however_many_of_its_patterns_match() -> None:
    x = exchange("x", "topic")
    q = queue("q")
    for pattern in ("#", "a.#", "a.*", "a.b", "#.b", "#.#"):
        bind(x, q, pattern)
    assert routed(x, "a.b") == ["q"]
    assert routed(x, "a.b", "c.d") == ["q"]


def test_topic_forgets_removed_patterns_without_a_trace() -> None:
    x = exchange("x", "topic")
    kept = bind(x, queue("kept"), "a.b")
    gone = [bind(x, queue(f"q{n}"), pattern) for n, pattern in enumerate(["a.b.c", "a.*.#", "#", "", "a", "x.y.z"])]
    for binding in gone:
        unbind(binding)
    assert routed(x, "a.b") == ["kept"]
    assert routed(x, "a.b.c") == []
    unbind(kept)
    assert isinstance(x.matcher, TopicExchange)
    assert x.matcher.is_empty()


def test_headers_all_is_the_default_and_any_needs_one() -> None:
    x = exchange("x", "headers")
    bind(x, queue("default"), "", {"a": 1, "b": 2})
    bind(x, queue("all"), "", {"x-match": "all", "a": 1, "b": 2})
    bind(x, queue("any"), "", {"x-match": "any", "a": 1, "b": 2})
    assert routed(x, headers={"a": 1, "b": 2, "c": 3}) == ["default", "all", "any"]
    assert routed(x, headers={"a": 1, "b": 3}) == ["any"]
    assert routed(x, headers={"c": 3}) == []
    assert routed(x) == []


def test_headers_all_of_nothing_matches_everything_and_any_of_nothing_matches_nothing() -> None:
    x = exchange("x", "headers")
    bind(x, queue("all"))
    bind(x, queue("any"), "", {"x-match": "any"})
    bind(x, queue("all-x"), "", {"x-ignored": 1})
    bind(x, queue("any-x"), "", {"x-match": "any", "x-ignored": 1})
    assert routed(x) == ["all", "all-x"]
    assert routed(x, headers={"x-ignored": 1}) == ["all", "all-x"]


def test_headers_with_x_forms_compare_names_that_start_with_x() -> None:
    x = exchange("x", "headers")
    bind(x, queue("all"), "", {"x-match": "all", "a": 1, "x-b": 2})
    bind(x, queue("all-with-x"), "", {"x-match": "all-with-x", "a": 1, "x-b": 2})
    bind(x, queue("any"), "", {"x-match": "any", "a": 1, "x-b": 2})
    bind(x, queue("any-with-x"), "", {"x-match": "any-with-x", "a": 1, "x-b": 2})
    assert routed(x, headers={"a": 1}) == ["all", "any", "any-with-x"]
    assert routed(x, headers={"x-b": 2}) == ["any-with-x"]
    assert routed(x, headers={"a": 1, "x-b": 2}) == ["all", "all-with-x", "any", "any-with-x"]
    assert routed(x, headers={"x-match": "any-with-x"}) == []


def test_a_void_argument_asks_for_presence_only() -> None:
    x = exchange("x", "headers")
    bind(x, queue("q"), "", {"a": None})
    values: list[object] = [1, "s", None, [], {}]
    assert [routed(x, headers={"a": value}) for value in values] == [["q"]] * 5
    assert routed(x, headers={"b": 1}) == []
    bind(x, queue("both"), "", {"a": None, "b": 2})
    assert routed(x, headers={"a": 1, "b": 2}) == ["q", "both"]


ONE = [Field("b", 1), Field("B", 1), Field("s", 1), Field("u", 1), Field("I", 1), Field("i", 1), Field("l", 1)]
# Each line: values that RabbitMQ 3.10 calls equal. Values of different lines are not equal.
EQUAL = [
    [*ONE, Field("T", 1), Field("f", 1.0), Field("d", 1.0)],
    [Field("S", "1"), Field("x", b"1")],
    [Field("S", b"\xff"), Field("x", b"\xff")],
    [Field("t", True)],
    [Field("S", "true")],
    [Field("V", None)],
    [Field("D", Decimal("1"))],
    [Field("D", Decimal("1.0"))],
    [Field("A", []), Field("F", {})],
    [Field("A", [Field("I", 1)])],
    [Field("A", [Field("l", 1)])],
    [Field("F", from_python({"a": 1, "b": 2}))],
    [Field("F", from_python({"b": 2, "a": 1}))],
    [Field("d", 0.1)],
]


@pytest.mark.parametrize("line", range(len(EQUAL)))
def test_header_values_are_equal_when_rabbitmq_says_so(line: int) -> None:
    for wanted in EQUAL[line]:
        if wanted.kind == "V":
            continue
        x = exchange("x", "headers")
        bind(x, queue("q"), "", {"k": wanted})
        for other, values in enumerate(EQUAL):
            for value in values:
                assert routed(x, headers={"k": value}) == (["q"] if other == line else []), (wanted, value)


def test_headers_order_is_that_of_the_bindings_and_removal_leaves_nothing() -> None:
    x = exchange("x", "headers")
    bindings = [
        bind(x, queue("a"), "", {"x-match": "any", "p": 1, "q": None}),
        bind(x, queue("b"), "", {"p": 1}),
        bind(x, queue("c")),
        bind(x, queue("d"), "", {"p": 1, "q": 2}),
    ]
    assert routed(x, headers={"q": 2, "p": 1}) == ["a", "b", "c", "d"]
    for binding in bindings:
        unbind(binding)
    assert isinstance(x.matcher, HeadersExchange)
    assert x.matcher.is_empty()


def test_consistent_hash_sends_one_key_to_one_queue_and_shares_by_weight() -> None:
    x = exchange("x", "x-consistent-hash")
    for name, weight in (("a", "1"), ("b", "2"), ("c", "5")):
        bind(x, queue(name), weight)
    share: Counter[str] = Counter()
    for number in range(8000):
        first = routed(x, f"key-{number}")
        assert len(first) == 1
        assert routed(x, f"key-{number}", "cc") == first
        share.update(first)
    assert 800 < share["a"] < 1200 and 1700 < share["b"] < 2300 and 4600 < share["c"] < 5400


def test_consistent_hash_moves_only_what_a_new_queue_takes_over() -> None:
    x = exchange("x", "x-consistent-hash")
    for name in "abcd":
        bind(x, queue(name), "1")
    before = {f"k{n}": routed(x, f"k{n}") for n in range(2000)}
    bind(x, queue("e"), "1")
    after = {key: routed(x, key) for key in before}
    moved = [key for key in before if before[key] != after[key]]
    assert 300 < len(moved) < 500
    assert all(after[key] == ["e"] for key in moved)


def test_consistent_hash_knows_a_queue_once_and_any_unbind_takes_it_away() -> None:
    x = exchange("x", "x-consistent-hash")
    a, b = queue("a"), queue("b")
    first, second = bind(x, a, "1"), bind(x, a, "1000")
    bind(x, b, "1")
    share = Counter(routed(x, str(n))[0] for n in range(1000))
    assert 400 < share["a"] < 600
    unbind(second)
    assert {routed(x, str(n))[0] for n in range(100)} == {"b"}
    unbind(first)
    assert {routed(x, str(n))[0] for n in range(100)} == {"b"}


def test_consistent_hash_may_hash_a_header_or_a_property_instead_of_the_key() -> None:
    by_header = exchange("x", "x-consistent-hash", {"hash-header": "h"})
    by_property = exchange("x", "x-consistent-hash", {"hash-property": "message_id"})
    for name in "abcdefgh":
        bind(by_header, queue(name), "1")
        bind(by_property, queue(name), "1")
    assert len({routed(by_header, f"k{n}", headers={"h": "same"})[0] for n in range(50)}) == 1
    assert len({routed(by_header, "k", headers={"h": n})[0] for n in range(50)}) == 8
    assert len({routed(by_header, f"k{n}")[0] for n in range(50)}) == 1

    def of_id(n: int, key: str = "k") -> str:
        return names(by_property.matcher.route(message(key, properties=Properties(message_id=f"id{n}"))))[0]

    assert len({of_id(n) for n in range(50)}) == 8
    assert len({of_id(1, f"k{n}") for n in range(50)}) == 1
    assert not by_header.matcher.by_key_alone() and not by_property.matcher.by_key_alone()
    assert exchange("x", "x-consistent-hash").matcher.by_key_alone()


def test_consistent_hash_chooses_the_same_queue_in_every_process() -> None:
    # Spark workers must agree with the broker, so the hash is fixed for good: these are recorded values.
    x = exchange("x", "x-consistent-hash")
    for name in "abcde":
        bind(x, queue(name), "3")
    assert isinstance(x.matcher, ConsistentHashExchange)
    assert "".join(routed(x, f"key-{n}")[0] for n in range(16)) == RECORDED


RECORDED = "cbecbecbdbdabcbc"


def test_random_sends_to_one_destination_by_chance_and_counts_bindings() -> None:
    x = exchange("x", "x-random", random=Randomness(7))
    a, b = queue("a"), queue("b")
    for key in "123":
        bind(x, a, key)
    last = bind(x, b, "1")
    share = Counter(routed(x, "k")[0] for _ in range(1000))
    assert 680 < share["a"] < 820 and share["a"] + share["b"] == 1000
    unbind(last)
    assert {routed(x, "k")[0] for _ in range(50)} == {"a"}
    assert routed(exchange("x", "x-random"), "k") == []
    assert not x.matcher.by_key_alone()
