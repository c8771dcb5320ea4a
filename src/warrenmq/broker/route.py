"""What an identical publish resolved to before: the route cache of design §4.

A ``Route`` is the result of the stages of the publish path that depend on the publish frame alone. It is pushed out
of validity by whatever changes what it depends on: bindings of an exchange it visited, the coming or going of an
exchange or queue it looked up. Permissions are covered by the access generation that each connection watches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from warrenmq.broker.message import Origin
from warrenmq.broker.records import Exchange

if TYPE_CHECKING:
    from warrenmq.broker.queue.queue import Queue

CACHE_LIMIT: Final = 1024  # routes a connection remembers
SWEEP_AT: Final = 4096  # names with dependents, before those without living ones are forgotten


@final
class Route:
    def __init__(self, exchange: Exchange, origin: Origin, mandatory: bool) -> None:
        self.exchange: Final = exchange
        self.origin: Final = origin
        self.mandatory: Final = mandatory
        self.queues: list[Queue] = []
        self.logged: bool = False  # does some queue log even transient messages?
        self.waits: bool = False  # is it a delayed exchange, where a message with a delay waits whatever its keys?
        self.static: bool = False  # do ``queues`` hold for every message without special properties?
        self.valid: bool = True


@final
class Dependents:
    """Which routes fall when a name changes. Names are exchange names, or queue names behind the default exchange."""

    def __init__(self) -> None:
        self._routes: dict[str, list[Route]] = {}
        self._limit: dict[str, int] = {}
        self._sweep_at: i64 = SWEEP_AT

    def add(self, name: str, route: Route) -> None:
        routes = self._routes.get(name)
        if routes is None:
            self._routes[name] = [route]
            if len(self._routes) >= self._sweep_at:
                self._sweep()
            return
        routes.append(route)
        limit: i64 = self._limit.get(name, 256)
        if len(routes) > limit:  # forget those that fell for other reasons
            alive = [r for r in routes if r.valid]
            self._routes[name] = alive
            self._limit[name] = max(256, 2 * len(alive))

    def _sweep(self) -> None:
        """Forget names that no living route depends on: keys that were published to once."""
        alive: dict[str, list[Route]] = {}
        for name, routes in self._routes.items():
            for route in routes:
                if route.valid:
                    alive[name] = routes
                    break
        self._routes = alive
        self._limit = {name: limit for name, limit in self._limit.items() if name in alive}
        self._sweep_at = max(SWEEP_AT, 2 * len(alive))

    def all_changed(self) -> None:
        for name in list(self._routes):
            self.changed(name)

    def changed(self, name: str) -> None:
        routes = self._routes.pop(name, None)
        if routes is not None:
            self._limit.pop(name, None)
            for route in routes:
                route.valid = False
