"""Which words of a routing key can change where a topic exchange sends it.

Duty: keys that differ only in words no binding names (an order's number, a device's id) go the same way, so they are
one key to the judge. Not here: matching, which stays the broker's.
"""

from __future__ import annotations

from warrenmq.broker.exchange.router import Topology
from warrenmq.broker.records import Exchange

# These look at a key word by word, as a whole against their bindings' keys, or not at all.
UNDERSTOOD = frozenset(("topic", "direct", "fanout", "headers"))
OTHER = "\x00"  # stands for any word that no binding names


def telling_words(topology: Topology, exchange: Exchange) -> frozenset[str] | None:
    """All words that bindings name from here on; None when something on the way may look at a key differently."""
    words = {""}  # an empty key has no words, which is different from having one
    reached = {exchange.name.name}
    pending = [exchange]
    while pending:
        here = pending.pop()
        if here.type not in UNDERSTOOD or here.decorators:
            return None
        following = [here.alternate] if here.alternate else []
        for binding in here.bindings_out.values():
            words.update(binding.key.split("."))
            if binding.destination.name.kind == "exchange":
                following.append(binding.destination.name.name)
        for name in following:
            found = topology.exchanges.get(name)
            if found is not None and name not in reached:
                reached.add(name)
                pending.append(found)
    return None if OTHER in words else frozenset(words)


def reduced(key: str, words: frozenset[str]) -> str:
    return ".".join([word if word in words else OTHER for word in key.split(".")])
