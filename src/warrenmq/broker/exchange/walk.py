"""The walk from an exchange to queues: exchange-to-exchange bindings, decorators and alternate exchanges.

Pure: it reads exchanges and changes nothing. Each exchange is visited once, so cycles end; each queue is found once,
however many paths lead to it. At each exchange the order of work is: its type, its decorators, and, when its *type*
found nothing, its alternate exchange. The default exchange has neither decorators nor alternate: it
finds the queues named by the keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, final

from mypy_extensions import i64

from warrenmq.broker.exchange.delayed import DelayedExchange, has_to_wait
from warrenmq.broker.exchange.hop import Hop
from warrenmq.broker.records import EXCHANGE, BasicMessage, Destination, Exchange
from warrenmq.wire.fields import Table


@final
class Routed:
    """The places where a message goes."""

    def __init__(self) -> None:
        self.queues: list[Destination] = []  # each once, in the order found
        self.visited: list[Exchange] = []  # in the order visited, the first one included
        self.scheduled: list[Exchange] = []  # delayed exchanges at which the message has to wait
        self.headers: Table = {}  # of the message, when it has to wait
        self.missing: list[str] = []  # names of alternate exchanges that do not exist
        self.cacheable: bool = True  # nothing but exchange, keys and bindings decided this
        self.hops: dict[Destination, Hop] | None = None  # how each queue and exchange was reached, when that is asked


def route(
    exchange: Exchange,
    message: BasicMessage,
    exchanges: Mapping[str, Exchange],
    queues: Mapping[str, Destination],
    due: bool = False,
    now_ms: i64 = 0,
    tell: bool = False,
) -> Routed:
    """Route a message that was published to ``exchange``.

    ``due`` is for a message that has waited: delayed exchanges then pass it on. ``now_ms`` is the time of day that
    ``x-deliver-at`` is compared with. ``tell``: also by which bindings.
    """
    routed = Routed()
    if tell:
        routed.hops = {}
    if not exchange.name.name:
        routed.visited.append(exchange)
        _by_name(message, queues, routed)
        if routed.hops is not None:
            for queue in routed.queues:
                routed.hops[queue] = Hop(exchange, None, None)
        return routed
    if exchange.decorators or isinstance(exchange.matcher, DelayedExchange):
        walk = _Walk(message, exchanges, queues, due, now_ms, routed)
        walk.visit(exchange)
        walk.visit_pending()
        return routed
    # The common case, one exchange and queues only, needs no bookkeeping.
    found = _found(exchange, message, routed.hops)
    if _only_queues(found) and (found or not exchange.alternate):
        routed.visited.append(exchange)
        routed.queues = found
        routed.cacheable = exchange.matcher.by_key_alone()
        return routed
    walk = _Walk(message, exchanges, queues, due, now_ms, routed)
    walk.spread(exchange, found)
    walk.visit_pending()
    return routed


def waiting_at(exchange: Exchange, headers: Table) -> Routed:
    """What the walk says of a message that has to wait where it was published: for callers who know that it has."""
    routed = Routed()
    routed.visited.append(exchange)
    routed.scheduled.append(exchange)
    routed.headers = headers
    routed.cacheable = False
    return routed


def _found(exchange: Exchange, message: BasicMessage, hops: dict[Destination, Hop] | None) -> list[Destination]:
    """What its type finds, less those that are gone already; what was reached by it is added to the hops."""
    if hops is not None:
        return _told(exchange, message, hops)
    found = exchange.matcher.route(message)
    message.looks += 1 + len(found)
    if exchange.unbinding:
        return [destination for destination in found if not destination.gone]
    return found


def _told(exchange: Exchange, message: BasicMessage, hops: dict[Destination, Hop]) -> list[Destination]:
    before = hops.get(exchange)
    found: list[Destination] = []
    matches = exchange.matcher.matched(message)
    message.looks += 1 + len(matches.first)
    for destination, binding in matches.first.items():
        if exchange.unbinding and destination.gone:
            continue
        found.append(destination)
        if destination not in hops:
            hops[destination] = Hop(exchange, binding, before, matches.count(destination))
    return found


def _only_queues(found: list[Destination]) -> bool:
    for destination in found:
        if isinstance(destination, Exchange):
            return False
    return True


def _by_name(message: BasicMessage, queues: Mapping[str, Destination], routed: Routed) -> None:
    keys = message.routing_keys
    if len(keys) == 1:
        only = queues.get(keys[0])
        if only is not None:
            routed.queues.append(only)
        return
    found: dict[Destination, bool] = {}
    for key in keys:
        queue = queues.get(key)
        if queue is not None:
            found[queue] = True
    routed.queues = list(found)


@final
class _Walk:
    """One walk under way."""

    def __init__(
        self,
        message: BasicMessage,
        exchanges: Mapping[str, Exchange],
        queues: Mapping[str, Destination],
        due: bool,
        now_ms: i64,
        routed: Routed,
    ) -> None:
        self.message: Final = message
        self.exchanges: Final = exchanges
        self.queues: Final = queues
        self.due: Final = due
        self.now_ms: Final[i64] = now_ms
        self.routed: Final = routed
        self.pending: list[Exchange] = []
        self.seen: dict[Destination, bool] = {}

    def visit_pending(self) -> None:
        """Breadth first, as found."""
        at = 0
        while at < len(self.pending):
            self.visit(self.pending[at])
            at += 1

    def visit(self, exchange: Exchange) -> None:
        if (
            isinstance(exchange.matcher, DelayedExchange)
            and not self.due
            and has_to_wait(self.message.content.headers, self.now_ms)
        ):
            # Everything else about it, the alternate exchange too, is decided when it is due.
            self.seen[exchange] = True
            self.routed.visited.append(exchange)
            self.routed.scheduled.append(exchange)
            self.routed.headers = self.message.content.headers
            self.routed.cacheable = False
            return
        self.spread(exchange, _found(exchange, self.message, self.routed.hops))

    def spread(self, exchange: Exchange, found: list[Destination]) -> None:
        """Go on from an exchange whose own type has found these destinations."""
        routed = self.routed
        self.seen[exchange] = True
        routed.visited.append(exchange)
        if not exchange.matcher.by_key_alone():
            routed.cacheable = False
        for destination in found:
            self.reach(destination)
        if exchange.decorators:
            self.decorate(exchange)
        if not found and exchange.alternate:
            alternate = self.exchanges.get(exchange.alternate)
            if alternate is not None:
                self.reach_from(exchange, alternate)
            elif exchange.alternate not in routed.missing:
                routed.missing.append(exchange.alternate)

    def reach(self, destination: Destination) -> None:
        if destination in self.seen:
            return
        self.seen[destination] = True
        if isinstance(destination, Exchange):
            self.pending.append(destination)
        else:
            self.routed.queues.append(destination)

    def reach_from(self, exchange: Exchange, destination: Destination) -> None:
        """By no binding."""
        hops = self.routed.hops
        if hops is not None and destination not in hops:
            hops[destination] = Hop(exchange, None, hops.get(exchange))
        self.reach(destination)

    def decorate(self, exchange: Exchange) -> None:
        """Destinations of the decorators: names, because decorators come from outside; unknown ones are left out."""
        self.routed.cacheable = False
        for each in exchange.decorators:
            decorator: Any = each
            for name in decorator.route(exchange, self.message):
                if name.virtual_host != exchange.name.virtual_host:
                    continue
                destination: Destination | None
                if name.kind == EXCHANGE:
                    destination = self.exchanges.get(name.name)
                else:
                    destination = self.queues.get(name.name)
                if destination is not None:
                    self.reach_from(exchange, destination)
