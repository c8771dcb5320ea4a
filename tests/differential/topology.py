"""The steps that make and unmake queues, exchanges and bindings.

Duty: choose such a step. Not here: the rest of the protocol (generator.py) and calls that must be refused
(mistakes.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.differential import families as special
from tests.differential.guess import QueueGuess
from tests.differential.operations import Op, op
from tests.differential.values import (
    EXCHANGES,
    KEYS,
    LENGTH_ARGUMENTS,
    MATCH_VALUES,
    PLAIN_ARGUMENTS,
    QUEUES,
    TABLE_VALUES,
    TOPIC_KEYS,
    WEIGHTS,
    X_MATCH,
)

if TYPE_CHECKING:
    from tests.differential.generator import Generator


def queue_arguments(g: Generator) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if g.flip(0.12):
        found.update(g.random.choice(PLAIN_ARGUMENTS))
    if "length" in g.families and g.flip(0.3):
        found.update(g.random.choice(LENGTH_ARGUMENTS))
    if "single-active" in g.families and g.flip(0.5):
        found["x-single-active-consumer"] = g.flip(0.9)
    if "priority" in g.families and g.flip(0.6):
        found["x-max-priority"] = g.random.choice((1, 3, 9))
    if "dead-letter" in g.families and g.flip(0.7):
        found.update(dead_letter_arguments(g))
        if g.flip(0.3) and "x-max-length" not in found:
            found["x-max-length"] = g.random.choice((0, 1, 2))
        if "x-max-length" in found and g.flip(0.3):
            found["x-overflow"] = "reject-publish-dlx"
    if "ttl" in g.families and g.flip(0.6):
        found["x-message-ttl"] = g.random.choice((0, 500, 500, 600000))
    if "ttl" in g.families and g.flip(0.1):
        found["x-expires"] = 500
    return found


def dead_letter_arguments(g: Generator) -> dict[str, Any]:
    """Mostly to a next queue by name; also through exchanges, to nowhere, and back to itg."""
    found: dict[str, Any] = {"x-dead-letter-exchange": g.random.choice(("", "", "", "x0", "x1", "x9"))}
    if g.flip(0.75):
        found["x-dead-letter-routing-key"] = g.random.choice((*QUEUES, "k", "a.b"))
    return found


def declare_queue(g: Generator, channel: str, new: bool = False) -> Op:
    known = g.guess.queues
    if not new and g.flip(0.08):
        values: dict[str, Any] = {"queue": "", **g.flags(exclusive=0.5, auto_delete=0.4, durable=0.3)}
        g.guess.queues[f"gen:{g.guess.generated}"] = QueueGuess(values)
        g.guess.generated += 1
        return op(channel, "queue.declare", **values)
    name = g.random.choice(QUEUES)
    if name in known and not new:
        values = dict(known[name].values)
        if g.flip(0.12):
            flag = g.random.choice(("durable", "exclusive", "auto_delete", "arguments"))
            values[flag] = queue_arguments(g) if flag == "arguments" else not values.get(flag, False)
        values.pop("nowait", None)
        values.update(g.flags(nowait=0.1, passive=0.2))
        return op(channel, "queue.declare", **values)
    values = {"queue": name, **g.flags(durable=0.5, exclusive=0.08, auto_delete=0.12, nowait=0.06)}
    arguments = queue_arguments(g)
    if arguments:
        values["arguments"] = arguments
    if "quorum" in g.families and g.flip(0.7):
        values = special.quorum_queue(g, name)
    if name not in known:
        known[name] = QueueGuess(values)
    return op(channel, "queue.declare", **values)


def exchange_arguments(g: Generator, type_: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if g.flip(0.3):
        found["alternate-exchange"] = g.random.choice((*EXCHANGES, "amq.fanout", "amq.direct"))
    if type_ == "x-consistent-hash" and g.flip(0.5):
        found.update(
            g.random.choice(
                (
                    {"hash-header": "h"},
                    {"hash-property": "message_id"},
                    {"hash-property": "correlation_id"},
                    {"hash-property": "timestamp"},
                )
            )
        )
    if g.flip(0.05):
        found["unknown"] = "kept"
    return found


def declare_exchange(g: Generator, channel: str, new: bool = False) -> Op:
    known = g.guess.exchanges
    name = g.random.choice(EXCHANGES)
    if name in known and not new:
        values = dict(known[name])
        if g.flip(0.12):
            change = g.random.choice(("durable", "auto_delete", "internal", "type", "arguments"))
            if change == "type":
                values["type"] = g.random.choice(("direct", "fanout", "topic", "headers"))
            elif change == "arguments":
                values["arguments"] = exchange_arguments(g, values["type"])
            else:
                values[change] = not values.get(change, False)
        values.pop("nowait", None)
        values.update(g.flags(nowait=0.1, passive=0.2))
        return op(channel, "exchange.declare", **values)
    type_ = g.random.choice(
        ("direct", "direct", "fanout", "topic", "topic", "headers", "x-consistent-hash", "x-random")
    )
    values = {"exchange": name, "type": type_, **g.flags(durable=0.4, auto_delete=0.15, internal=0.06, nowait=0.06)}
    arguments = exchange_arguments(g, type_)
    if arguments:
        values["arguments"] = arguments
    if name not in known:
        known[name] = values
    return op(channel, "exchange.declare", **values)


def binding_key(g: Generator, type_: str) -> str:
    if type_ == "topic":
        return g.random.choice(TOPIC_KEYS)
    if type_ == "x-consistent-hash":
        return g.random.choice(WEIGHTS)
    return g.random.choice(KEYS)


def binding_arguments(g: Generator, type_: str) -> dict[str, Any]:
    if type_ == "headers" and g.flip(0.9):
        found: dict[str, Any] = {"x-match": g.random.choice(X_MATCH)} if g.flip(0.8) else {}
        for name in ("h", "g", "x-h"):
            if g.flip(0.5):
                found[name] = g.random.choice(MATCH_VALUES)
        return found
    return {"note": g.random.choice(TABLE_VALUES)} if g.flip(0.08) else {}


def bind(g: Generator, channel: str) -> Op:
    source = g.exchange()
    type_ = g.type_of(source)
    values: dict[str, Any] = {"routing_key": binding_key(g, type_)}
    arguments = binding_arguments(g, type_)
    if arguments:
        values["arguments"] = arguments
    # Where the exchange itself chooses among its bindings, one binding keeps the choice the same on both.
    chooses = type_ in ("x-random", "x-consistent-hash")
    if chooses and any(each.get("exchange", each.get("source")) == source for _, each in g.guess.bindings):
        return passive(g, channel)
    if g.guess.exchanges and g.flip(0.25) and not chooses:
        values = {"destination": g.random.choice(list(g.guess.exchanges)), "source": source, **values}
        name = "exchange.bind"
    else:
        values = {"queue": g.queue(), "exchange": source, **values}
        name = "queue.bind"
    g.guess.bindings.append((name, values))
    return op(channel, name, **values, **g.flags(nowait=0.1))


def unbind(g: Generator, channel: str) -> Op:
    if g.guess.bindings and g.flip(0.85):
        name, values = g.random.choice(g.guess.bindings)
        return op(channel, name.replace("bind", "unbind"), **values)
    return op(channel, "queue.unbind", queue=g.queue(), exchange=g.exchange(), routing_key=g.random.choice(KEYS))


def passive(g: Generator, channel: str) -> Op:
    if g.flip(0.5):
        return op(channel, "queue.declare", queue=g.known_queue(), passive=True)
    return op(channel, "exchange.declare", exchange=g.exchange(), type="direct", passive=True)


def purge(g: Generator, channel: str) -> Op:
    return op(channel, "queue.purge", queue=g.queue(), **g.flags(nowait=0.15))


def delete_queue(g: Generator, channel: str) -> Op:
    name = g.queue()
    flags = g.flags(if_unused=0.2, if_empty=0.2, nowait=0.1)
    if not flags:
        g.guess.queues.pop(name, None)
    return op(channel, "queue.delete", queue=name, **flags)


def delete_exchange(g: Generator, channel: str) -> Op:
    known = list(g.guess.exchanges)
    name = g.random.choice(known) if known else "x0"
    g.guess.exchanges.pop(name, None)
    return op(channel, "exchange.delete", exchange=name, **g.flags(if_unused=0.3, nowait=0.1))
