"""What one broker defines beside what another does: what is new, what is the same, what differs.

Duty: comparing exported definitions by name. What only one of the two documents says of a thing is no difference, as
brokers of different versions say different things. Not here: exporting and importing (``command.py``).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

Definitions = dict[str, Any]

#: what exports hold -> the fields that name one of them
NAMED_BY: dict[str, tuple[str, ...]] = {
    "vhosts": ("name",),
    "users": ("name",),
    "permissions": ("vhost", "user"),
    "topic_permissions": ("vhost", "user", "exchange"),
    "parameters": ("vhost", "component", "name"),
    "policies": ("vhost", "name"),
    "exchanges": ("vhost", "name"),
    "queues": ("vhost", "name"),
    "bindings": ("vhost", "source", "destination_type", "destination", "routing_key", "arguments"),
}
SALTED = ("password_hash", "hashing_algorithm")  # of the same password another one each time


@dataclass
class Comparison:
    """The outcome of comparing. ``new``: definitions in RabbitMQ's form, ready for import; ``different``: kind, name
    and the fields."""

    new: Definitions = field(default_factory=dict)
    same: dict[str, int] = field(default_factory=dict)
    different: list[str] = field(default_factory=list)


def compare(source: Definitions, target: Definitions, vhosts: set[str] | None = None) -> Comparison:
    """What of ``source``, or of these vhosts of it, is in ``target``."""
    found = Comparison()
    for kind, fields in NAMED_BY.items():
        there = {_name(one, fields): one for one in target.get(kind, [])}
        new = []
        for one in source.get(kind, []):
            if vhosts is not None and (one.get("vhost") or (one["name"] if kind == "vhosts" else None)) not in vhosts:
                continue  # also users, who belong to no vhost
            other = there.get(_name(one, fields))
            if other is None:
                new.append(one)
                continue
            unlike = [name for name in one.keys() & other.keys() - set(SALTED) if one[name] != other[name]]
            found.same[kind] = found.same.get(kind, 0) + (not unlike)
            if unlike:
                found.different.append(_different(kind, fields, one, other, sorted(unlike)))
        found.new[kind] = new
    return found


def _name(one: Definitions, fields: tuple[str, ...]) -> str:
    return json.dumps([one.get(name) for name in fields], sort_keys=True)


def _different(
    kind: str, fields: tuple[str, ...], one: dict[str, Any], other: dict[str, Any], unlike: list[str]
) -> str:
    place = f" in vhost '{one['vhost']}'" if "vhost" in one else ""
    name = ", ".join(str(one[name]) for name in fields if name != "vhost")
    told = "; ".join(f"{name}: {json.dumps(one[name])} there, {json.dumps(other[name])} here" for name in unlike)
    return f"{kind}: {name}{place}: {told}"
