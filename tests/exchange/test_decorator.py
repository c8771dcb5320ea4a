"""Exchange decorators: chosen per exchange, recalculated, and the built-in one."""

from __future__ import annotations

import pytest

from tests.exchange.build import Topology, exchange, message, names
from warrenmq.broker.extensions.decorator import DecoratorRegistry, ExtraDestinations, decorators_for, validate
from warrenmq.broker.extensions.extensions import ExtensionError
from warrenmq.broker.records import QUEUE, BasicMessage, Exchange, Resource
from warrenmq.wire.replies import AmqpError


class OnlyDurable:
    """An outside decorator: copies what passes durable exchanges."""

    name = "only-durable"

    def applies(self, exchange: Exchange) -> bool:
        return exchange.name.name.startswith("d")

    def route(self, exchange: Exchange, message: BasicMessage) -> list[Resource]:
        return [Resource("/", QUEUE, "copies")]


def chosen(source: Exchange, registry: DecoratorRegistry) -> list[str]:
    return [getattr(each, "name") for each in decorators_for(source, registry)]  # noqa: B009


def test_decorators_are_chosen_per_exchange_in_the_order_of_registration() -> None:
    registry = DecoratorRegistry()
    registry.register(OnlyDurable())
    assert chosen(exchange("d", "fanout"), registry) == ["only-durable"]
    assert chosen(exchange("e", "fanout"), registry) == []
    assert chosen(exchange("d", "fanout", {"x-extra-destinations": ["q"]}), registry) == [
        "extra-destinations",
        "only-durable",
    ]


def test_the_default_exchange_has_no_decorators() -> None:
    registry = DecoratorRegistry()
    registry.register(type("Always", (OnlyDurable,), {"applies": lambda self, exchange: True})())
    assert chosen(exchange("", "direct"), registry) == []


def test_extra_destinations_by_argument_go_to_queues_and_exchanges_besides_the_bindings() -> None:
    house = Topology()
    house.exchange("audit", "fanout")
    listed = ["a", "queue:queue:b", "exchange:audit", "gone", "exchange:gone"]
    source = house.exchange("x", "direct", {"x-extra-destinations": listed})
    for name in ("a", "queue:b", "bound", "seen"):
        house.queue(name)
    house.bind("x", "bound", "k")
    house.bind("x", "a", "k")
    house.bind("audit", "seen")
    source.decorators = decorators_for(source, DecoratorRegistry())
    assert names(house.route("x", "k").queues) == ["bound", "a", "queue:b", "seen"]
    assert names(house.route("x", "other").queues) == ["a", "queue:b", "seen"]


def test_extra_destinations_follow_the_policy_but_the_argument_wins() -> None:
    registry = DecoratorRegistry()
    source = exchange("x", "direct")
    source.policy.take("p", None, {"extra-destinations": ["q"]})
    assert chosen(source, registry) == ["extra-destinations"]
    source.policy.take(None, None, {})
    assert chosen(source, registry) == []
    source = exchange("x", "direct", {"x-extra-destinations": ["q"]})
    source.policy.take("p", None, {"extra-destinations": ["other"]})
    assert ExtraDestinations().route(source, message("k")) == [Resource("/", QUEUE, "q")]


@pytest.mark.parametrize("value, text", [("q", "expected array, got longstr"), (["q", 1], "1 is no name")])
def test_extra_destinations_of_another_type_are_refused_at_declare(value: object, text: str) -> None:
    with pytest.raises(AmqpError) as caught:
        validate(exchange("x", "direct", {"x-extra-destinations": value}), DecoratorRegistry())
    assert caught.value.code == 406
    assert caught.value.explanation == f"invalid arg 'x-extra-destinations' for exchange 'x' in vhost '/': {text}"


def test_a_decorator_that_cannot_work_is_refused_in_one_line() -> None:
    registry = DecoratorRegistry()
    registry.register(OnlyDurable())
    for bad, text in [
        (OnlyDurable(), "two decorators of the name 'only-durable'"),
        (object(), "has no 'name'"),
        (type("Half", (), {"name": "half", "applies": print})(), "'half' has no method 'route'"),
    ]:
        with pytest.raises(ExtensionError, match=text):
            registry.register(bad)


def test_a_decorator_is_loaded_by_its_import_name() -> None:
    registry = DecoratorRegistry()
    registry.load("tests.exchange.test_decorator:OnlyDurable")
    assert chosen(exchange("d", "fanout"), registry) == ["only-durable"]
