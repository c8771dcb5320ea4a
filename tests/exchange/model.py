"""Routing written as plainly as possible, to compare the real one with. Slow, and shares no code with it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from tests.exchange.strategies import Bound, Plan
from warrenmq.wire.fields import Field, from_python, to_python


def topic_matches(pattern: str, key: str) -> bool:
    """By regular expression over the key with a dot behind every word."""
    text = "".join(word + "." for word in key.split(".")) if key else ""
    parts = []
    for word in pattern.split(".") if pattern else []:
        if word == "#":
            parts.append(r"(?:[^.]*\.)*")
        elif word == "*":
            parts.append(r"[^.]*\.")
        else:
            parts.append(re.escape(word) + r"\.")
    return re.fullmatch("".join(parts), text) is not None


NUMBERS = "bBsuIilTfd"


def equal(one: Field, other: Field) -> bool:
    """As RabbitMQ compares two headers."""
    a, b = one.value, other.value
    if one.kind in NUMBERS and other.kind in NUMBERS:
        return a == b
    if one.kind in "Sx" and other.kind in "Sx":
        return octets(a) == octets(b)
    if one.kind in "AF" and other.kind in "AF" and not a and not b:
        return True
    if one.kind != other.kind:
        return False
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(p.kind == q.kind and equal(p, q) for p, q in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        pairs = zip(a.items(), b.items(), strict=False)
        same = all(m == n and p.kind == q.kind and equal(p, q) for (m, p), (n, q) in pairs)
        return len(a) == len(b) and same
    return a == b


def octets(value: object) -> object:
    return value.encode() if isinstance(value, str) else value


def headers_match(arguments: Mapping[str, object], headers: Mapping[str, Field]) -> bool:
    form = str(arguments.get("x-match", "all"))
    results = []
    for name, wanted in arguments.items():
        if name == "x-match" or (name.startswith("x-") and not form.endswith("-with-x")):
            continue
        assert isinstance(wanted, Field)
        sent = headers.get(name)
        results.append(sent is not None and (wanted.kind == "V" or equal(wanted, sent)))
    return any(results) if form.startswith("any") else all(results)


def matches(kind: str, binding: Bound, keys: list[str], headers: Mapping[str, Field]) -> bool:
    return (
        kind == "fanout"
        or (kind == "direct" and binding.key in keys)
        or (kind == "topic" and any(topic_matches(binding.key, key) for key in keys))
        or (kind == "headers" and headers_match(binding.arguments, headers))
    )


def route(plan: Plan, exchange: str, keys: list[str], headers: Mapping[str, Field]) -> tuple[set[str], set[str]]:
    """The queues reached and the alternate exchanges that were missing."""
    if exchange == "":
        return {key for key in keys if key in plan.queues}, set()
    queues: set[str] = set()
    missing: set[str] = set()
    visited: set[str] = set()
    todo = {exchange}
    while todo:
        here = todo.pop()
        visited.add(here)
        found = set()
        for binding in plan.bindings:
            if binding.source == here and matches(plan.types[here], binding, keys, headers):
                found.add(binding.destination)
        further = set(found)
        for extra in plan.extras.get(here, []):
            name = extra.removeprefix("exchange:")
            if name in plan.types or name in plan.queues:
                further.add(name)
        alternate = plan.alternates.get(here, "")
        if not found and alternate:
            if alternate in plan.types:
                further.add(alternate)
            else:
                missing.add(alternate)
        queues |= {name for name in further if name in plan.queues}
        todo |= {name for name in further if name in plan.types and name not in visited}
    return queues, missing


Hops = list[dict[str, Any]]


def follow(plan: Plan, exchange: str, keys: list[str], headers: Mapping[str, Field], hops: Hops, queue: str) -> None:
    """Raise where this is no way that the message may take from the exchange to the queue."""
    assert hops[0]["exchange"] == exchange
    if exchange == "":
        assert hops == [{"exchange": "", "key": queue}] and queue in keys
        return
    for hop, following in zip(hops, [one["exchange"] for one in hops[1:]] + [queue], strict=True):
        here = hop["exchange"]
        fitting = [one for one in plan.bindings if one.source == here and matches(plan.types[here], one, keys, headers)]
        if "key" in hop:
            leading = {said(one): one for one in fitting if one.destination == following}
            assert (hop["key"], shown(hop.get("arguments", {}))) in {
                (one.key, shown(to_python(from_python(one.arguments)))) for one in leading.values()
            }
            assert hop.get("bindings", 1) == len(leading)
        elif "alternate" in hop:
            assert not fitting and plan.alternates[here] == hop["alternate"] == following
        else:
            assert hop == {"exchange": here, "decorator": True}
            assert following in [name.removeprefix("exchange:") for name in plan.extras[here]]


def shown(arguments: object) -> str:
    return json.dumps(arguments, sort_keys=True, default=str)


def said(binding: Bound) -> str:
    """What makes it another one than others of its exchange."""
    arguments = sorted((name, repr(value)) for name, value in binding.arguments.items())
    return repr((binding.destination, binding.key, arguments))
