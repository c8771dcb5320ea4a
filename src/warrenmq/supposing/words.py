"""Which words of a routing key can change where an exchange sends it.

Duty: keys that differ only in words no binding names (an order's number, a device's id) go the same way, so they are
one key to the judge. Not here: how keys are compared by their words (``lexicon.py``), and matching, which stays the
broker's.
"""

from __future__ import annotations

from warrenmq.broker.definitions.router import Topology
from warrenmq.broker.exchange import types
from warrenmq.broker.records import Exchange

# The one looks at a key word by word, the other at the whole of it, against their bindings' keys; the rest at none.
BY_KEY = frozenset(("topic", "direct"))
NOT_BY_KEY = frozenset(("fanout", "headers", "x-random"))


def telling_words(topology: Topology, exchange: Exchange) -> frozenset[str] | None:
    """All words that bindings name from here on; None when something on the way may look at a key differently.

    Empty when nothing looks at the key at all; else the empty word is always among them.
    """
    if not exchange.name.name:
        return frozenset({""}.union(*(name.split(".") for name in topology.queues)))
    words: set[str] = set()
    reached = {exchange.name.name}
    pending = [exchange]
    while pending:
        here = pending.pop()
        inner = types.delayed_type(here.arguments) if here.type == types.DELAYED else here.type
        if here.decorators or (inner not in BY_KEY and inner not in NOT_BY_KEY):
            return None
        following = [here.alternate] if here.alternate else []
        for binding in here.bindings_out.values():
            if inner in BY_KEY:
                words.update(binding.key.split("."))
            if binding.destination.name.kind == "exchange":
                following.append(binding.destination.name.name)
        if inner in BY_KEY:
            words.add("")  # a key may end in a dot, or have nothing between two
        for name in following:
            found = topology.exchanges.get(name)
            if found is not None and name not in reached:
                reached.add(name)
                pending.append(found)
    return frozenset(words)
