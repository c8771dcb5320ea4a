"""The exchange types there are, by name."""

from __future__ import annotations

from typing import Final

from warrenmq.broker.exchange.consistent_hash import ConsistentHashExchange
from warrenmq.broker.exchange.delayed import DelayedExchange
from warrenmq.broker.exchange.direct import DirectExchange
from warrenmq.broker.exchange.fanout import FanoutExchange
from warrenmq.broker.exchange.headers import HeadersExchange
from warrenmq.broker.exchange.random import RandomExchange
from warrenmq.broker.exchange.topic import TopicExchange
from warrenmq.broker.records import ExchangeType
from warrenmq.broker.services.randomness import Randomness
from warrenmq.wire.fields import Table
from warrenmq.wire.replies import COMMAND_INVALID, PRECONDITION_FAILED, AmqpError

DELAYED: Final = "x-delayed-message"
TYPES: Final = ("direct", "fanout", "topic", "headers", "x-consistent-hash", "x-random", DELAYED)

# RabbitMQ says "invalid" instead of "unknown" when the name happens to be a word its runtime already knows. These are
# the likely ones, asked of 3.10; the whole list is as long as Erlang's atom table and not worth copying.
_WORDS_OF_THE_RUNTIME: Final = frozenset(
    ["", "classic", "default", "exchange", "foo", "header", "invalid", "match", "none", "queue", "quorum", "random"]
    + ["stream", "string", "test", "undefined", "Direct"]
)


def create(type: str, arguments: Table, random: Randomness) -> ExchangeType:
    """A new, empty matcher of this type. Raises AmqpError when there is no such type, or none inside a delayed one."""
    if type == DELAYED:
        return DelayedExchange(_create(delayed_type(arguments), arguments, random))
    return _create(type, arguments, random)


def known(type: str) -> None:
    """Raise AmqpError when there is no such exchange type."""
    if type not in TYPES:
        word = "invalid" if type in _WORDS_OF_THE_RUNTIME else "unknown"
        raise AmqpError(COMMAND_INVALID, f"{word} exchange type '{type}'")


def delayed_type(arguments: Table) -> str:
    """The type inside a delayed exchange; ``x-delay-type`` is a common misspelling and is taken as well."""
    field = arguments.get("x-delayed-type")
    if field is None:
        field = arguments.get("x-delay-type")
    if field is None or field.kind != "S" or not isinstance(field.value, str):
        raise AmqpError(PRECONDITION_FAILED, "Invalid argument, 'x-delayed-type' must be an existing exchange type")
    inner = field.value
    if inner == DELAYED:
        raise AmqpError(PRECONDITION_FAILED, "Invalid argument, 'x-delayed-message' can't be used for 'x-delayed-type'")
    known(inner)
    return inner


def _create(type: str, arguments: Table, random: Randomness) -> ExchangeType:
    if type == "direct":
        return DirectExchange()
    if type == "fanout":
        return FanoutExchange()
    if type == "topic":
        return TopicExchange()
    if type == "headers":
        return HeadersExchange()
    if type == "x-consistent-hash":
        return ConsistentHashExchange(arguments)
    if type == "x-random":
        return RandomExchange(random)
    known(type)
    raise AssertionError(f"exchange type {type} is listed but cannot be made")
