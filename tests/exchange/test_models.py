"""The real routing against a naive model, on random topologies and messages."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.exchange import model
from tests.exchange.build import bind, exchange, message, names, queue, unbind
from tests.exchange.strategies import Plan, header_arguments, headers, keys, patterns, plans
from warrenmq.broker.exchange.explain import explain, queues_in
from warrenmq.broker.exchange.headers import HeadersExchange
from warrenmq.broker.exchange.topic import TopicExchange
from warrenmq.broker.records import Binding
from warrenmq.wire.fields import Field

many = settings(max_examples=300)


@many
@given(st.lists(st.tuples(patterns, st.booleans()), max_size=12), st.lists(keys, min_size=1, max_size=3))
def test_topic_matches_what_the_regular_expressions_match(bound: list[tuple[str, bool]], sent: list[str]) -> None:
    x = exchange("x", "topic")
    bindings: list[Binding] = []
    for number, (pattern, _) in enumerate(bound):
        bindings.append(bind(x, queue(f"{number}"), pattern))
    for binding, (_, removed) in zip(bindings, bound, strict=True):
        if removed:
            unbind(binding)
    expected = {
        str(number)
        for number, (pattern, removed) in enumerate(bound)
        if not removed and any(model.topic_matches(pattern, key) for key in sent)
    }
    found = names(x.matcher.route(message(*sent)))
    assert len(found) == len(set(found))
    assert set(found) == expected
    for binding in bindings:
        unbind(binding)
    assert isinstance(x.matcher, TopicExchange)
    assert x.matcher.is_empty()


@many
@given(st.lists(st.tuples(header_arguments(), st.booleans()), max_size=8), headers)
def test_headers_match_what_the_plain_rules_match(
    bound: list[tuple[dict[str, object], bool]], sent: dict[str, Field]
) -> None:
    x = exchange("x", "headers")
    bindings = [bind(x, queue(f"{number}"), "", arguments) for number, (arguments, _) in enumerate(bound)]
    for binding, (_, removed) in zip(bindings, bound, strict=True):
        if removed:
            unbind(binding)
    expected = [
        str(number)
        for number, (arguments, removed) in enumerate(bound)
        if not removed and model.headers_match(arguments, sent)
    ]
    assert names(x.matcher.route(message("", headers=sent))) == expected
    for binding in bindings:
        unbind(binding)
    assert isinstance(x.matcher, HeadersExchange)
    assert x.matcher.is_empty()


@many
@given(plans(), st.lists(keys, min_size=1, max_size=3), headers, st.data())
def test_the_walk_finds_what_the_model_finds_and_explain_agrees(
    plan: Plan, sent: list[str], with_headers: dict[str, Field], data: st.DataObject
) -> None:
    topology = plan.build()
    source = data.draw(st.sampled_from(["", *plan.types]))
    expected, missing = model.route(plan, source, sent, with_headers)
    routed = topology.route(source, *sent, headers=with_headers)
    assert len(routed.queues) == len(set(names(routed.queues)))
    assert set(names(routed.queues)) == expected
    assert set(routed.missing) == missing
    assert len(routed.visited) == len(set(names(routed.visited)))
    told = explain(
        topology.exchanges[source],
        message(*sent, headers=with_headers, exchange=source),
        topology.exchanges,
        topology.queues,
    )
    assert set(queues_in(told)) == expected


@many
@given(plans(), st.lists(keys, min_size=1, max_size=3), headers, st.data())
def test_a_walk_that_tells_its_hops_goes_the_same_way_and_each_hop_is_one_that_matches(
    plan: Plan, sent: list[str], with_headers: dict[str, Field], data: st.DataObject
) -> None:
    topology = plan.build()
    source = data.draw(st.sampled_from(["", *plan.types]))
    routed = topology.route(source, *sent, headers=with_headers)
    told = topology.route(source, *sent, headers=with_headers, tell=True)
    assert names(told.queues) == names(routed.queues)
    assert names(told.visited) == names(routed.visited)
    assert (told.missing, told.cacheable) == (routed.missing, routed.cacheable)
    assert told.hops is not None and routed.hops is None
    for found in told.queues:
        hops = json.loads(b"[%s]" % told.hops[found].text(found, 1 << 16))
        model.follow(plan, source, sent, with_headers, hops, found.name.name)


@many
@given(plans(), st.lists(st.booleans(), max_size=12), keys, headers, st.data())
def test_the_hops_are_those_of_the_bindings_that_are_left(
    plan: Plan, removed: list[bool], key: str, with_headers: dict[str, Field], data: st.DataObject
) -> None:
    topology = plan.build()
    source = data.draw(st.sampled_from(list(plan.types)))
    for each, gone in zip(list(plan.bindings), removed, strict=False):
        if gone:
            unbind(topology.bind(each.source, each.destination, each.key, each.arguments))
            plan.bindings = [
                one for one in plan.bindings if model.said(one) != model.said(each) or one.source != each.source
            ]
    told = topology.route(source, key, headers=with_headers, tell=True)
    assert told.hops is not None
    assert set(names(told.queues)) == model.route(plan, source, [key], with_headers)[0]
    for found in told.queues:
        hops = json.loads(b"[%s]" % told.hops[found].text(found, 1 << 16))
        model.follow(plan, source, [key], with_headers, hops, found.name.name)


@many
@given(plans(), keys, headers, headers, st.data())
def test_a_cacheable_result_does_not_depend_on_headers(
    plan: Plan, key: str, one: dict[str, Field], other: dict[str, Field], data: st.DataObject
) -> None:
    topology = plan.build()
    source = data.draw(st.sampled_from(list(plan.types)))
    first = topology.route(source, key, headers=one)
    if first.cacheable:
        second = topology.route(source, key, headers=other)
        assert second.cacheable
        assert names(first.queues) == names(second.queues)
