"""What an identical publish resolved to before.

A ``Route`` is the result of the stages of the publish path that depend on the publish frame alone. It is pushed out
of validity by whatever changes what it depends on: bindings of an exchange it visited, the coming or going of an
exchange or queue it looked up. Permissions are covered by the access generation that each connection watches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from librt.strings import read_i16_be
from mypy_extensions import i64

from warrenmq.broker.deduplication.window import Window
from warrenmq.broker.message import Message, Origin
from warrenmq.broker.records import Exchange
from warrenmq.broker.vhost.dependents import Dependent
from warrenmq.log.events import NOBODY, Named
from warrenmq.wire.content import HEADER_FIXED
from warrenmq.wire.peek import Peek, peek_properties

if TYPE_CHECKING:
    from warrenmq.broker.queue.queue import Queue

CACHE_LIMIT: Final = 1024  # routes a connection remembers
NO_PROPERTIES: Final = Peek()
FRAME_HEADER_SIZE: Final = 7
FLAGS_AT: Final = 12  # in a content header's payload: behind class, weight and body size


@final
class Route(Dependent):
    """The way of publishes with one frame's arguments, as long as it is ``valid``."""

    def __init__(self, exchange: Exchange, origin: Origin, mandatory: bool) -> None:
        super().__init__()
        self.exchange: Final = exchange
        self.origin: Final = origin
        self.mandatory: Final = mandatory
        self.queues: list[Queue] = []
        self.waits: bool = False  # is it a delayed exchange, where a message with a delay waits whatever its keys?
        self.static: bool = False  # do ``queues`` hold for every message with these keys?
        self.plain: bool = False  # need no such message be looked at, not even for its id?
        self.told: Named = NOBODY  # as the journal has the way to them
        self.window: Window | None = None  # of an exchange that takes no message id twice

    def fall(self) -> None:
        """Whoever had found it knows it for a while yet: that keeps no queue that is gone."""
        self.valid = False
        self.queues = []


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
            route.fall()
        self._routes.clear()
        self._last_route = None
        self._last_arguments = b""

    def properties(self, message: Message) -> Peek:
        """What the stages ask of the properties; raises AmqpError when they make no sense."""
        frames = message.frames
        if len(frames) > 0:
            at: i64 = FRAME_HEADER_SIZE + FLAGS_AT
            if message.header_size == HEADER_FIXED and read_i16_be(frames, at) == 0:
                return NO_PROPERTIES
            octets = frames[at : FRAME_HEADER_SIZE + message.header_size]
        else:
            octets = message.header_payload[FLAGS_AT:]
        if octets != self._last_octets or len(octets) == 0:
            self._last_properties = peek_properties(message.header())
            self._last_octets = octets
        return self._last_properties
