"""What an identical publish resolved to before.

A ``Route`` is the result of the stages of the publish path that depend on the publish frame alone. It is pushed out
of validity by whatever changes what it depends on: bindings of an exchange it visited, the coming or going of an
exchange or queue it looked up. Permissions are covered by the access generation that each connection watches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from librt.strings import read_i16_be
from mypy_extensions import i64

from warrenmq.broker.message import Message, Origin
from warrenmq.broker.records import Exchange
from warrenmq.wire.content import HEADER_FIXED
from warrenmq.wire.peek import Peek, peek_properties

if TYPE_CHECKING:
    from warrenmq.broker.queue.queue import Queue

CACHE_LIMIT: Final = 1024  # routes a connection remembers
SWEEP_AT: Final = 4096  # names with dependents, before those without living ones are forgotten
NO_PROPERTIES: Final = Peek()
FRAME_HEADER_SIZE: Final = 7
FLAGS_AT: Final = 12  # in a content header's payload: behind class, weight and body size


@final
class Route:
    """Where publishes with one frame's arguments go, as long as it is ``valid``."""

    def __init__(self, exchange: Exchange, origin: Origin, mandatory: bool) -> None:
        self.exchange: Final = exchange
        self.origin: Final = origin
        self.mandatory: Final = mandatory
        self.queues: list[Queue] = []
        self.waits: bool = False  # is it a delayed exchange, where a message with a delay waits whatever its keys?
        self.static: bool = False  # do ``queues`` hold for every message without special properties?
        self.valid: bool = True


@final
class Memo:
    """The routes of one connection, and what its last publish was: publishers repeat themselves."""

    def __init__(self) -> None:
        self._routes: dict[bytes, Route] = {}
        self._last_arguments: bytes = b""
        self._last_route: Route | None = None
        self._last_octets: bytes = b""
        self._last_properties: Peek = NO_PROPERTIES

    def knows(self, arguments: bytes) -> bool:
        return arguments in self._routes

    def route(self, arguments: bytes) -> Route | None:
        """The route of an identical publish before, if it still holds."""
        route: Route | None
        if arguments == self._last_arguments:
            route = self._last_route
        else:
            route = self._routes.get(arguments)
            self._last_arguments = arguments
            self._last_route = route
        if route is not None and route.valid:
            return route
        self._last_arguments = b""
        return None

    def remember(self, arguments: bytes, route: Route) -> None:
        if len(self._routes) >= CACHE_LIMIT:
            self.forget()
        self._routes[arguments] = route

    def forget(self) -> None:
        """All of them: rights have changed, or the connection is over."""
        for route in self._routes.values():
            route.valid = False
        self._routes.clear()
        self._last_route = None
        self._last_arguments = b""

    def properties(self, message: Message) -> Peek:
        """What the stages ask of the properties; raises AmqpError when they make no sense."""
        frames = message.frames
        if frames:
            at: i64 = FRAME_HEADER_SIZE + FLAGS_AT
            if message.header_size == HEADER_FIXED and read_i16_be(frames, at) == 0:
                return NO_PROPERTIES
            octets = frames[at : FRAME_HEADER_SIZE + message.header_size]
        else:
            octets = message.header_payload[FLAGS_AT:]
        if octets != self._last_octets or not octets:
            self._last_octets = b""
            self._last_properties = peek_properties(message.header())
            self._last_octets = octets
        return self._last_properties


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
