"""The walk: exchange-to-exchange, alternate exchanges, decorators, delayed exchanges, the default exchange."""

from __future__ import annotations

import pytest

from tests.exchange.build import Topology, names
from warrenmq.broker.records import EXCHANGE, QUEUE, BasicMessage, Exchange, Resource
from warrenmq.wire.replies import AmqpError


@pytest.fixture
def house() -> Topology:
    """Exchanges a, b, c (fanout) and queues one, two, three, nothing bound."""
    topology = Topology()
    for name in "abc":
        topology.exchange(name, "fanout")
    for name in ("one", "two", "three"):
        topology.queue(name)
    return topology


class Extra:
    """A decorator that always adds these destinations."""

    name = "extra"

    def __init__(self, *destinations: Resource) -> None:
        self.destinations = list(destinations)

    def applies(self, exchange: Exchange) -> bool:
        return True

    def route(self, exchange: Exchange, message: BasicMessage) -> list[Resource]:
        return self.destinations


def test_the_default_exchange_finds_the_queues_named_by_the_keys_each_once(house: Topology) -> None:
    assert names(house.route("", "two").queues) == ["two"]
    assert names(house.route("", "two", "nope", "one", "two").queues) == ["two", "one"]
    assert house.route("", "nope").queues == []
    assert house.route("", "one").cacheable
    assert names(house.route("", "one").visited) == [""]


def test_a_queue_gets_one_copy_however_many_paths_lead_to_it(house: Topology) -> None:
    for source, destination in (("a", "one"), ("a", "b"), ("a", "c"), ("b", "one"), ("c", "one"), ("c", "two")):
        house.bind(source, destination)
    routed = house.route("a", "k")
    assert names(routed.queues) == ["one", "two"]
    assert names(routed.visited) == ["a", "b", "c"]
    assert routed.cacheable


def test_a_cycle_of_exchanges_ends_and_visits_each_once(house: Topology) -> None:
    for source, destination in (("a", "b"), ("b", "c"), ("c", "a"), ("c", "c"), ("c", "one")):
        house.bind(source, destination)
    routed = house.route("a", "k")
    assert names(routed.queues) == ["one"]
    assert names(routed.visited) == ["a", "b", "c"]


def test_an_exchange_bound_to_itself_still_reaches_its_queues(house: Topology) -> None:
    house.bind("a", "a")
    house.bind("a", "one")
    assert names(house.route("a", "k").queues) == ["one"]


def test_the_keys_go_along_through_every_exchange(house: Topology) -> None:
    house.exchange("topic", "topic")
    house.bind("a", "topic")
    house.bind("topic", "one", "#.x")
    house.bind("topic", "two", "cc")
    assert names(house.route("a", "k.x").queues) == ["one"]
    assert names(house.route("a", "k", "cc").queues) == ["two"]


def test_the_alternate_exchange_gets_what_the_type_did_not_route(house: Topology) -> None:
    house.exchange("d", "direct", {"alternate-exchange": "a"})
    house.bind("d", "one", "k")
    house.bind("a", "two")
    assert names(house.route("d", "k").queues) == ["one"]
    routed = house.route("d", "other")
    assert (names(routed.queues), names(routed.visited)) == (["two"], ["d", "a"])
    assert routed.cacheable


def test_alternate_exchanges_chain_and_a_circle_of_them_ends(house: Topology) -> None:
    house.exchange("d", "direct", {"alternate-exchange": "e"})
    house.exchange("e", "direct", {"alternate-exchange": "f"})
    house.exchange("f", "direct", {"alternate-exchange": "d"})
    routed = house.route("d", "k")
    assert (routed.queues, names(routed.visited), routed.missing) == ([], ["d", "e", "f"], [])
    house.bind("f", "one", "k")
    assert names(house.route("d", "k").queues) == ["one"]


def test_a_binding_to_an_exchange_that_routes_nowhere_still_stops_the_alternate(house: Topology) -> None:
    # Asked of RabbitMQ 3.10: the type returned something, namely an exchange.
    house.exchange("d", "direct", {"alternate-exchange": "a"})
    house.bind("d", "b", "k")
    house.bind("a", "one")
    assert house.route("d", "k").queues == []


def test_a_hop_asks_its_own_alternate(house: Topology) -> None:
    house.exchange("d", "direct", {"alternate-exchange": "b"})
    house.bind("a", "d")
    house.bind("a", "one")
    house.bind("b", "two")
    assert names(house.route("a", "k").queues) == ["one", "two"]


def test_a_missing_alternate_exchange_is_reported_and_otherwise_ignored(house: Topology) -> None:
    house.exchange("d", "direct", {"alternate-exchange": "nowhere"})
    routed = house.route("d", "k")
    assert (routed.queues, routed.missing) == ([], ["nowhere"])


def test_the_default_exchange_is_no_alternate(house: Topology) -> None:
    # Asked of RabbitMQ 3.10: alternate-exchange "" routes nothing and a mandatory message is returned.
    house.exchange("d", "direct", {"alternate-exchange": ""})
    assert house.route("d", "one").queues == []


def test_decorators_add_destinations_which_are_merged_and_deduplicated(house: Topology) -> None:
    house.bind("a", "one")
    house.bind("b", "three")
    house.exchanges["a"].decorators = [
        Extra(Resource("/", QUEUE, "one"), Resource("/", QUEUE, "two")),
        Extra(Resource("/", EXCHANGE, "b"), Resource("/", QUEUE, "gone"), Resource("other", QUEUE, "three")),
    ]
    routed = house.route("a", "k")
    assert names(routed.queues) == ["one", "two", "three"]
    assert not routed.cacheable


def test_a_decorators_destinations_do_not_stop_the_alternate_exchange(house: Topology) -> None:
    d = house.exchange("d", "direct", {"alternate-exchange": "a"})
    house.bind("a", "one")
    d.decorators = [Extra(Resource("/", QUEUE, "two"))]
    assert names(house.route("d", "k").queues) == ["two", "one"]


def test_only_keys_and_bindings_make_a_result_cacheable(house: Topology) -> None:
    house.exchange("h", "headers")
    house.exchange("r", "x-random")
    house.exchange("delay", "x-delayed-message", {"x-delayed-type": "fanout"})
    house.bind("b", "h")
    house.bind("c", "r")
    assert house.route("a", "k").cacheable
    assert [house.route(name, "k").cacheable for name in ("h", "r", "delay", "b", "c")] == [False] * 5


def test_a_delayed_exchange_keeps_a_message_with_a_delay_and_routes_one_without(house: Topology) -> None:
    house.exchange("delay", "x-delayed-message", {"x-delayed-type": "direct", "alternate-exchange": "a"})
    house.bind("delay", "one", "k")
    house.bind("a", "two")
    for headers in (None, {}, {"x-delay": 0}, {"x-delay": -5}):
        routed = house.route("delay", "k", headers=headers)
        assert (names(routed.queues), routed.scheduled) == (["one"], [])
    routed = house.route("delay", "k", headers={"x-delay": 100})
    assert (routed.queues, names(routed.scheduled)) == ([], ["delay"])
    # neither now nor because it waits does it go to the alternate; when due and unroutable it does
    routed = house.route("delay", "other", headers={"x-delay": 100})
    assert (routed.queues, names(routed.scheduled)) == ([], ["delay"])
    assert names(house.route("delay", "other", headers={"x-delay": 100}, due=True).queues) == ["two"]


def test_a_delayed_exchange_behind_another_delays_at_that_hop_only(house: Topology) -> None:
    house.exchange("delay", "x-delayed-message", {"x-delayed-type": "fanout"})
    house.bind("a", "one")
    house.bind("a", "delay")
    house.bind("delay", "two")
    routed = house.route("a", "k", headers={"x-delay": 100})
    assert (names(routed.queues), names(routed.scheduled)) == (["one"], ["delay"])
    assert names(house.route("delay", "k", headers={"x-delay": 100}, due=True).queues) == ["two"]


def test_a_delivery_time_in_the_past_is_no_delay(house: Topology) -> None:
    house.exchange("delay", "x-delayed-message", {"x-delayed-type": "fanout"})
    house.bind("delay", "one")
    assert names(house.route("delay", "k", headers={"x-deliver-at": 5000}, now_ms=4999).scheduled) == ["delay"]
    assert names(house.route("delay", "k", headers={"x-deliver-at": 5000}, now_ms=5000).queues) == ["one"]


def test_a_delay_that_is_no_number_is_refused_where_it_matters_only(house: Topology) -> None:
    house.exchange("delay", "x-delayed-message", {"x-delayed-type": "fanout"})
    house.bind("a", "one")
    assert names(house.route("a", "k", headers={"x-delay": "soon"}).queues) == ["one"]
    with pytest.raises(AmqpError, match="soon"):
        house.route("delay", "k", headers={"x-delay": "soon"})
