"""Guards: costs that must not grow with the number of bindings, counted in lines of code that run."""

from __future__ import annotations

from functools import partial

import pytest

from tests.exchange.build import bind, exchange, message, names, queue, unbind
from tests.support.lines import lines
from warrenmq.broker.exchange.walk import route
from warrenmq.broker.records import Binding

pytestmark = [pytest.mark.uncompiled, pytest.mark.pure]


def test_a_topic_message_costs_no_more_with_100_000_bindings_than_with_100_when_one_matches() -> None:
    costs = []
    for count in (100, 100_000):
        x = exchange("x", "topic")
        for number in range(count):
            x.matcher.bind(Binding(x, queue(str(number)), f"order.{number}.*.paid", {}))
        sent = message("order.42.eu.paid")
        assert names(x.matcher.route(sent)) == ["42"]
        costs.append(lines(partial(x.matcher.route, sent)))
    assert costs[1] == costs[0]


@pytest.mark.parametrize("type", ["fanout", "direct"])
def test_telling_how_a_queue_was_reached_costs_no_more_when_thousands_of_bindings_lead_to_it(type: str) -> None:
    costs = []
    for count in (100, 5_000):
        x = exchange("x", type)
        q = queue("q")
        for number in range(count):
            bind(x, q, "key", {"n": number})
        sent = message("key")
        hops = route(x, sent, {}, {}, tell=True).hops
        assert hops is not None and hops[q].bindings == count
        costs.append(lines(partial(route, x, sent, {}, {}, tell=True)))
    assert costs[1] == costs[0]


def test_a_headers_message_does_not_look_at_bindings_that_ask_for_other_values() -> None:
    costs = []
    for count in (100, 10_000):
        x = exchange("x", "headers")
        for number in range(count):
            bind(x, queue(str(number)), "", {"format": "pdf", "customer": f"c{number}"})
        sent = message("", headers={"format": "pdf", "customer": "c42"})
        assert names(x.matcher.route(sent)) == ["42"]
        costs.append(lines(partial(x.matcher.route, sent)))
    assert costs[1] == costs[0]


def test_many_hashes_in_one_binding_key_do_not_explode() -> None:
    x = exchange("x", "topic")
    bind(x, queue("q"), ".".join(["#", "a"] * 30))
    found: list[list[str]] = []
    spent = lines(lambda: found.append(names(x.matcher.route(message(".".join(["a"] * 29))))))
    spent += lines(lambda: found.append(names(x.matcher.route(message(".".join(["a"] * 120))))))
    assert found == [[], ["q"]]
    assert spent < 1_000_000  # a backtracking matcher would need years


@pytest.mark.parametrize("type", ["topic", "headers", "direct", "fanout", "x-random"])
def test_removing_bindings_from_a_large_exchange_stays_cheap(type: str) -> None:
    costs = []
    for count in (100, 5_000):
        x = exchange("x", type)
        bindings = [bind(x, queue(str(number)), f"k.{number}", {"n": number}) for number in range(count)]
        costs.append(max(lines(partial(unbind, binding)) for binding in bindings))
        assert x.matcher.route(message("k.1", headers={"n": 1})) == []
    assert costs[1] <= 2 * costs[0]
