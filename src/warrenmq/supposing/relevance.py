"""Which columns of a message can change a verdict, read off the topology.

Duty: what ``facts.py`` may leave out when it looks for distinct messages. A header matters only from exchanges that can
reach one which looks at headers. Not here: verdicts, and what of a key matters (``words.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from warrenmq.broker.definitions.router import Topology
from warrenmq.broker.exchange import types

Place = tuple[str, str]  # vhost, exchange
# 11 digits are always below the longest expiration the broker takes, so these need no second look.
PLAIN_EXPIRATION = r"^[0-9]{1,11}\z"
SALTS = 1009  # how many different throws of the dice equal messages to an x-random exchange get


@dataclass(frozen=True)
class Relevance:
    """The headers and properties that matter to a topology, and the exchanges for which they do."""

    headers: frozenset[str]  # names some exchange looks at
    always: tuple[str, ...]  # names the path itself looks at
    header_exchanges: tuple[str, ...]  # from these, an exchange that looks at headers can be reached
    random: tuple[str, ...]  # from these, x-random can be reached: equal messages get different verdicts
    hashed_by: dict[str, tuple[str, ...]]  # property -> exchanges from which a hash over it can be reached
    rerouted: bool  # an interceptor may send any message to any exchange, so the names above say nothing

    @property
    def header_names(self) -> tuple[str, ...]:
        """All names that anybody looks at, always in the same order."""
        return (*self.always, *sorted(self.headers.difference(self.always)))


def relevance(vhosts: Mapping[str, Topology], rerouted: bool = False) -> Relevance:
    names: set[str] = set()
    by_headers: set[Place] = set()
    by_chance: set[Place] = set()
    hashed: dict[str, set[Place]] = {}
    for vhost, topology in vhosts.items():
        for exchange in topology.exchanges.values():
            here = (vhost, exchange.name.name)
            inner = exchange.type
            if inner == types.DELAYED:
                inner = types.delayed_type(exchange.arguments)
                names.update(("x-delay", "x-deliver-at"))
                by_headers.add(here)
            if inner == "headers":
                for binding in exchange.bindings_out.values():
                    names.update(name for name in binding.arguments if name != "x-match")
                by_headers.add(here)
            elif inner == "x-consistent-hash":
                header = exchange.arguments.get("hash-header")
                if header is not None:
                    names.add(str(header.value))
                    by_headers.add(here)
                hashed_property = exchange.arguments.get("hash-property")
                if hashed_property is not None:
                    hashed.setdefault(str(hashed_property.value), set()).add(here)
            elif inner == "x-random":
                by_chance.add(here)
    return Relevance(
        frozenset(names),
        ("BCC", "CC"),
        _names(_sources(vhosts, by_headers)),
        _names(_sources(vhosts, by_chance)),
        {key: _names(_sources(vhosts, found)) for key, found in hashed.items()},
        rerouted,
    )


def _names(places: set[Place]) -> tuple[str, ...]:
    return tuple(sorted({name for _, name in places}))


def _sources(vhosts: Mapping[str, Topology], targets: set[Place]) -> set[Place]:
    """These exchanges and every exchange from which one of them can be reached."""
    reached = set(targets)
    pending = list(targets)
    while pending:
        vhost, name = pending.pop()
        exchanges = vhosts[vhost].exchanges
        before = {binding.source.name.name for binding in exchanges[name].bindings_in.values()}
        before.update(other.name.name for other in exchanges.values() if name and other.alternate == name)
        for source in before:
            if (vhost, source) not in reached:
                reached.add((vhost, source))
                pending.append((vhost, source))
    return reached
