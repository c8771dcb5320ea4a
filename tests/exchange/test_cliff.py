"""Guards: costs that must not grow with the number of bindings."""

from __future__ import annotations

import time

from tests.exchange.build import bind, exchange, message, names, queue, unbind
from warrenmq.broker.records import BasicMessage, Binding, ExchangeType


def cost(matcher: ExchangeType, sent: BasicMessage, times: int = 2000) -> float:
    """The best of several runs, so that a busy machine does not count."""
    best = float("inf")
    for _ in range(7):
        start = time.perf_counter()
        for _ in range(times):
            matcher.route(sent)
        best = min(best, time.perf_counter() - start)
    return best


def test_a_topic_message_costs_no_more_with_100_000_bindings_than_with_100_when_one_matches() -> None:
    costs = []
    for count in (100, 100_000):
        x = exchange("x", "topic")
        for number in range(count):
            x.matcher.bind(Binding(x, queue(str(number)), f"order.{number}.*.paid", {}))
        sent = message("order.42.eu.paid")
        assert names(x.matcher.route(sent)) == ["42"]
        costs.append(cost(x.matcher, sent))
    assert costs[1] < 3 * costs[0]


def test_a_headers_message_does_not_look_at_bindings_that_ask_for_other_values() -> None:
    costs = []
    for count in (100, 10_000):
        x = exchange("x", "headers")
        for number in range(count):
            bind(x, queue(str(number)), "", {"format": "pdf", "customer": f"c{number}"})
        sent = message("", headers={"format": "pdf", "customer": "c42"})
        assert names(x.matcher.route(sent)) == ["42"]
        costs.append(cost(x.matcher, sent, 500))
    assert costs[1] < 3 * costs[0]


def test_many_hashes_in_one_binding_key_do_not_explode() -> None:
    x = exchange("x", "topic")
    bind(x, queue("q"), ".".join(["#", "a"] * 30))
    start = time.perf_counter()
    assert names(x.matcher.route(message(".".join(["a"] * 29)))) == []
    assert names(x.matcher.route(message(".".join(["a"] * 120)))) == ["q"]
    assert time.perf_counter() - start < 1.0  # a backtracking matcher would need years


def test_removing_bindings_from_a_large_exchange_stays_cheap() -> None:
    for type in ("topic", "headers", "direct", "fanout", "x-random"):
        x = exchange("x", type)
        bindings = [bind(x, queue(str(number)), f"k.{number}", {"n": number}) for number in range(5_000)]
        start = time.perf_counter()
        for binding in bindings:
            unbind(binding)
        assert time.perf_counter() - start < 2.0, type
        assert x.matcher.route(message("k.1", headers={"n": 1})) == []
