"""Why a message goes where it goes: the walk once more, slowly, writing down what matched and what did not.

Duty: a tree of steps for people (``warren explain``, the HTTP API). Not here: routing that counts; a test keeps the two
in agreement. An ``x-random`` exchange shows all it may choose from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mypy_extensions import i64

from warrenmq.broker.exchange.consistent_hash import ConsistentHashExchange
from warrenmq.broker.exchange.delayed import DelayedExchange, has_to_wait
from warrenmq.broker.exchange.fanout import FanoutExchange
from warrenmq.broker.exchange.headers import HeadersExchange, conditions_of, x_match
from warrenmq.broker.exchange.random import RandomExchange
from warrenmq.broker.exchange.topic import TopicExchange, words_of
from warrenmq.broker.records import EXCHANGE, BasicMessage, Binding, Destination, Exchange, Resource
from warrenmq.wire.erlang import field_term
from warrenmq.wire.fields import to_python

BINDING: Final = "binding"
DEFAULT: Final = "default"
DECORATOR: Final = "decorator"
ALTERNATE: Final = "alternate"


@dataclass
class Reached:
    """A way out of an exchange that the message takes."""

    how: str  # binding, default, decorator or alternate
    destination: Resource
    key: str = ""
    arguments: dict[str, object] = field(default_factory=dict)
    note: str = ""
    repeated: bool = False  # reached before: no second copy, no second visit
    step: Step | None = None  # what happens at the exchange reached


@dataclass
class Missed:
    """A binding the message does not take, and why. ``nearness`` orders them: higher came closer."""

    destination: Resource
    key: str
    arguments: dict[str, object]
    reason: str
    nearness: int


@dataclass
class Step:
    """The events at one exchange."""

    exchange: Resource
    type: str
    reached: list[Reached] = field(default_factory=list)
    missed: list[Missed] = field(default_factory=list)  # nearest first
    bindings: int = 0
    scheduled: bool = False  # the message waits here
    missing_alternate: str = ""
    note: str = ""


def queues_in(step: Step) -> list[str]:
    """The names of the queues a tree ends in, each once."""
    found: dict[str, bool] = {}
    for way in step.reached:
        if way.step is not None:
            found.update(dict.fromkeys(queues_in(way.step), True))
        elif way.destination.kind != EXCHANGE:
            found[way.destination.name] = True
    return list(found)


def scheduled_in(step: Step) -> list[str]:
    """The names of the delayed exchanges at which the message waits."""
    found = [step.exchange.name] if step.scheduled else []
    for way in step.reached:
        if way.step is not None:
            found.extend(scheduled_in(way.step))
    return found


def facts(step: Step) -> dict[str, object]:
    """A tree for programs: an exchange, what it reached and by which rule, what it did not reach and why, and a word
    more where there is one to say."""
    reached: list[dict[str, object]] = []
    for way in step.reached:
        one: dict[str, object] = {"how": way.how, "to": way.destination.kind, "name": way.destination.name}
        if way.how == BINDING:
            one["key"] = way.key
            one["arguments"] = way.arguments
        if way.step is not None:
            one["way"] = facts(way.step)
        reached.append(one)
    missed = [
        {"to": miss.destination.kind, "name": miss.destination.name, "key": miss.key, "reason": miss.reason}
        for miss in step.missed
    ]
    found: dict[str, object] = {
        "exchange": step.exchange.name,
        "type": step.type,
        "reached": reached,
        "missed": missed,
    }
    if step.note:
        found["note"] = step.note
    if step.missing_alternate:
        found["missing_alternate"] = step.missing_alternate
    return found


def explain(
    exchange: Exchange,
    message: BasicMessage,
    exchanges: Mapping[str, Exchange],
    queues: Mapping[str, Destination],
    due: bool = False,
    now_ms: i64 = 0,
) -> Step:
    """The tree of the walk of ``walk.route`` with the same arguments."""
    first = Step(exchange.name, exchange.type)
    seen: dict[Destination, bool] = {exchange: True}
    pending: list[tuple[Exchange, Step]] = [(exchange, first)]
    at = 0
    while at < len(pending):
        current, step = pending[at]
        at += 1
        for way, destination in _ways(current, message, exchanges, queues, due, now_ms, step):
            step.reached.append(way)
            if destination in seen:
                way.repeated = True
                continue
            seen[destination] = True
            if isinstance(destination, Exchange):
                following = Step(destination.name, destination.type)
                way.step = following
                pending.append((destination, following))
    return first


Way = tuple[Reached, Destination]


def _ways(
    exchange: Exchange,
    message: BasicMessage,
    exchanges: Mapping[str, Exchange],
    queues: Mapping[str, Destination],
    due: bool,
    now_ms: i64,
    step: Step,
) -> list[Way]:
    ways: list[Way] = []
    if not exchange.name.name:
        for key in dict.fromkeys(message.routing_keys):
            queue = queues.get(key)
            if queue is not None:
                ways.append((Reached(DEFAULT, queue.name, key), queue))
            else:
                step.note = f"there is no queue '{key}'"
        return ways
    matcher = exchange.matcher
    bindings = list(exchange.bindings_out.values())
    step.bindings = len(bindings)
    if isinstance(matcher, DelayedExchange):
        if not due and has_to_wait(message.content.headers, now_ms):
            step.scheduled = True
            return ways
        matcher = matcher.inner
    chosen = _chosen(exchange, message, bindings)
    matched: dict[Binding, bool] = dict.fromkeys(chosen, True)
    for binding in chosen:
        ways.append((_by_binding(binding), binding.destination))
    if isinstance(matcher, RandomExchange) and len(bindings) > 1:
        step.note = f"one of these {len(bindings)}, at random"
    elif isinstance(matcher, ConsistentHashExchange) and chosen:
        step.note = f"one of {len(bindings)}, by hash"
    else:
        for binding in bindings:
            if binding not in matched:
                step.missed.append(_missed(exchange, binding, message))
        step.missed.sort(key=_nearness, reverse=True)
        if not bindings:
            step.note = "nothing is bound here"
    for each in exchange.decorators:
        decorator: Any = each
        for name in decorator.route(exchange, message):
            found: Destination | None = None
            if name.virtual_host == exchange.name.virtual_host:
                found = exchanges.get(name.name) if name.kind == EXCHANGE else queues.get(name.name)
            if found is not None:
                ways.append((Reached(DECORATOR, found.name, note=str(decorator.name)), found))
    if not chosen and exchange.alternate:
        alternate = exchanges.get(exchange.alternate)
        if alternate is None:
            step.missing_alternate = exchange.alternate
        else:
            by_argument = "alternate-exchange" in exchange.arguments
            note = "by argument" if by_argument else f"by policy '{exchange.policy.name}'"
            ways.append((Reached(ALTERNATE, alternate.name, note=note), alternate))
    return ways


def _chosen(exchange: Exchange, message: BasicMessage, bindings: list[Binding]) -> list[Binding]:
    """The bindings that lead the message on."""
    matcher = exchange.matcher.inner if isinstance(exchange.matcher, DelayedExchange) else exchange.matcher
    if isinstance(matcher, RandomExchange):
        return bindings
    if isinstance(matcher, ConsistentHashExchange):
        destinations = matcher.route(message)
        return [binding for binding in bindings if binding.destination in destinations][:1]
    if isinstance(matcher, (TopicExchange, HeadersExchange)):
        return [binding for binding in bindings if _alone(matcher, binding, message)]
    if isinstance(matcher, FanoutExchange):
        return bindings
    return [binding for binding in bindings if binding.key in message.routing_keys]


def _alone(matcher: TopicExchange | HeadersExchange, binding: Binding, message: BasicMessage) -> bool:
    """Whether this binding would do, were it the only one."""
    only = TopicExchange() if isinstance(matcher, TopicExchange) else HeadersExchange()
    only.bind(binding)
    return len(only.route(message)) > 0


def _by_binding(binding: Binding) -> Reached:
    return Reached(BINDING, binding.destination.name, binding.key, to_python(binding.arguments))


def _nearness(missed: Missed) -> int:
    return missed.nearness


def _missed(exchange: Exchange, binding: Binding, message: BasicMessage) -> Missed:
    matcher = exchange.matcher.inner if isinstance(exchange.matcher, DelayedExchange) else exchange.matcher
    key = message.routing_keys[0]
    if isinstance(matcher, TopicExchange):
        reason, nearness = _why_not_topic(binding.key, key)
    elif isinstance(matcher, HeadersExchange):
        reason, nearness = _why_not_headers(binding, message)
    else:
        reason, nearness = f"the key is '{key}'", _common(binding.key, key)
    if len(message.routing_keys) > 1 and not isinstance(matcher, HeadersExchange):
        reason += f" (nor does any of the {len(message.routing_keys) - 1} keys in CC and BCC do)"
    return Missed(binding.destination.name, binding.key, to_python(binding.arguments), reason, nearness)


def _common(one: str, other: str) -> int:
    count = 0
    while count < len(one) and count < len(other) and one[count] == other[count]:
        count += 1
    return count


def _why_not_topic(pattern: str, key: str) -> tuple[str, int]:
    words = words_of(key)
    asked = words_of(pattern)
    for at, word in enumerate(asked):
        if word == "#":
            return f"what follows '#' does not fit '{'.'.join(words[at:])}'", at
        if at >= len(words):
            return f"the key ends before '{word}'", at
        if word != "*" and word != words[at]:
            return f"word {at + 1} of the key is '{words[at]}', not '{word}'", at
    return f"the key goes on with '{'.'.join(words[len(asked) :])}'", len(asked)


def _why_not_headers(binding: Binding, message: BasicMessage) -> tuple[str, int]:
    headers = message.content.headers
    failing: list[str] = []
    holding = 0
    for condition in conditions_of(binding.arguments):
        if condition.holds(headers):
            holding += 1
            continue
        sent = headers.get(condition.name)
        if sent is None:
            failing.append(f"header '{condition.name}' is missing")
        else:
            wanted = binding.arguments[condition.name]
            same = field_term(sent) == field_term(wanted)
            types = f" ({_letter(sent.kind)} against {_letter(wanted.kind)})" if same else ""
            failing.append(f"header '{condition.name}' is {field_term(sent)}, not {field_term(wanted)}{types}")
    if not failing:
        return f"x-match '{x_match(binding.arguments)}' has nothing to compare", 0
    return ", ".join(failing), holding


def _letter(kind: str) -> str:
    return f"wire type '{kind}'"
