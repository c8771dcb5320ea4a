"""/queues/{vhost}/{name}/peek: looking at what is in a queue. Nothing is taken, marked or held; see docs/peek.md.

Permission as for basic.get: read on the queue. People get JSON, a page at a time with bodies cut short, of what waits
and what is held; programs ask for ``application/octet-stream`` and get what waits (``peek_octets.py``).

A page is worked off in slices between which everybody else is served, up to a budget. Then, and when it is full,
``next`` says where to go on; a position, so that pages follow one another however the queue moves.
"""

from __future__ import annotations

import asyncio

from msgspec import UNSET, Struct, UnsetType
from starlette.responses import StreamingResponse

from warrenmq.broker.queue.arguments import STREAM
from warrenmq.broker.queue.held import DAMAGED, LowestHeld, Source
from warrenmq.broker.queue.peek import SLICE, Peeked, Slice, held_in, peek
from warrenmq.broker.queue.place import Place
from warrenmq.broker.queue.queue import Queue
from warrenmq.broker.queue.wanted import TextSearch, Wanted
from warrenmq.http.bridge import Bridge
from warrenmq.http.endpoint import VHOST, Call, Endpoint
from warrenmq.http.errors import bad_request
from warrenmq.http.listing import with_rows
from warrenmq.http.messages.looking_for import NAMES, Filter, filter_of, number
from warrenmq.http.messages.peek_octets import MEDIA_TYPE, octets, synced
from warrenmq.http.models import Json, Object
from warrenmq.http.objects.queues import encode_payload, readable
from warrenmq.http.pacer import Pacer
from warrenmq.http.pieces import paced
from warrenmq.http.views import moment
from warrenmq.log.format import LogError
from warrenmq.wire.fields import printable
from warrenmq.wire.shown import shown_properties

COUNT = 100
MOST = 1000
TRUNCATE = 50_000  # octets of a body, unless told
LONGEST = 1 << 20
BUDGET = 20_000  # messages that one request looks at
READ = 64 << 20  # octets of bodies in which it looks for text
HELD_LOOKS = 10_000  # held messages that are looked at in one go
HELD_MOST = 2 * MOST  # held messages that one request can show


class PeekedInfo(Struct):
    """A message that was looked at where it is. ``age_at_least``: it was there when the broker started."""

    position: int
    state: str
    age_ms: int
    redelivered: bool
    exchange: str
    routing_key: str
    properties: Object | list[Json]
    payload_bytes: int
    payload: str
    payload_encoding: str
    age_at_least: bool | UnsetType = UNSET
    held: Object | UnsetType = UNSET


class PeekInfo(Struct):
    """A page of messages. ``first`` to ``end``: the positions of what is there now, or as asked; ``next``: where the
    next page begins. ``messages`` wait, ``messages_held`` are held; ``looked``: at so many, to find these."""

    queue: str
    messages: int
    messages_held: int
    first: int
    end: int
    next: int
    looked: int
    items: list[PeekedInfo]


async def look(call: Call) -> object:
    _, queue = readable(call)
    visible = int(queue.visible_end())
    first = number(call, "first") or 0
    asked = number(call, "end")
    end = visible if asked is None else min(asked, visible)
    if MEDIA_TYPE in call.request.headers.get("accept", ""):
        given = [name for name in NAMES if name in call.query]
        if given:
            raise bad_request(f"{given[0]}: there are no filters for {MEDIA_TYPE}")
        found = octets(call.bridge, queue, first, end)
        return StreamingResponse(paced(call.bridge.server.watchdog, "octets of a queue", found), media_type=MEDIA_TYPE)
    count = number(call, "count", 0, MOST)
    truncate = number(call, "truncate", 0, LONGEST)
    encoding = call.query.get("encoding", "auto")
    if encoding not in ("auto", "base64"):
        raise bad_request("Unsupported encoding. Please use auto or base64.")
    looking = Looking(call.bridge, queue, filter_of(call), encoding, TRUNCATE if truncate is None else truncate)
    await looking.through(first, end, COUNT if count is None else count)
    await synced(call.bridge, queue)
    messages_held = int(queue.unacked) + queue.letters_waiting()[0] + len(queue.damaged())
    page = PeekInfo(
        queue=queue.name.name,
        messages=int(queue.ready),
        messages_held=0 if queue.kind == STREAM else messages_held,
        first=looking.first,
        end=end,
        next=looking.next,
        looked=looking.looked,
        items=looking.items,
    )
    return await with_rows(page, "items")


class Looking:
    """One request's way through a queue."""

    def __init__(self, bridge: Bridge, queue: Queue, filter: Filter, encoding: str, truncate: int) -> None:
        self._bridge = bridge
        self._queue = queue
        self._now = int(bridge.broker.services.clock.now_ms())
        self._filter = filter
        self._wanted: Wanted = filter.wanted(self._now)
        self._text = filter.octets()
        self._encoding = encoding
        self._truncate = truncate
        self._pacer = Pacer()
        self._read = 0
        self.first = 0
        self.next = 0
        self.looked = 0
        self.items: list[PeekedInfo] = []

    async def through(self, first: int, end: int, count: int) -> None:
        """From ``first`` on until there are ``count`` items, or all or as much as may be was looked at."""
        queue = self._queue
        held, known_to = await self._held(first, end)
        self.first = self._lowest(held, first, end)
        self.next = first
        slices = 0
        while len(self.items) < count and self.next < known_to and self.looked < BUDGET and self._read < READ:
            most = SLICE if self._text else count - len(self.items)
            part = peek(queue, held, self._wanted, self.next, known_to, most)
            self.looked += int(part.looked)
            self.next = int(part.next)
            await self._add(part, count)
            slices += 1
        if slices > 1 and self._wanted.held:
            await self._add_what_was_delivered_meanwhile({int(place.position) for place in held}, first, count)

    def _lowest(self, held: list[Place], first: int, end: int) -> int:
        """The first position of what is there."""
        found = [int(place.position) for place in held[:1]]
        if self._wanted.waiting:
            found += [int(place.position) for place in self._queue.places(first, end, 1)]
        return min(found, default=end)

    async def _held(self, first: int, end: int) -> tuple[list[Place], int]:
        if not self._wanted.held:
            return [], end
        return await held_places(self._bridge, self._queue, first, end)

    async def _add(self, part: Slice, count: int) -> None:
        for message in part.messages:
            if len(self.items) == count:
                self.next = int(message.position)
                return
            try:
                if self._text and not await self._has_text(message):
                    continue
                self.items.append(self._info(message))
            except LogError:
                continue  # it left the queue, or its body is damaged
            await self._pacer.breathe()
        await asyncio.sleep(0)

    async def _has_text(self, message: Peeked) -> bool:
        search = TextSearch(self._text)
        for piece in range(message.parts()):
            part = message.part(piece)
            self._read += len(part)
            if search.found_in(part):
                return True
            await self._pacer.breathe()
        return False

    async def _add_what_was_delivered_meanwhile(self, known: set[int], first: int, count: int) -> None:
        """While this request gave way, what had waited before its place may have gone to a consumer. ``known``: the
        positions of what was held when it began."""
        end, seen = self.next, known | {item.position for item in self.items}
        held, known_to = await self._held(first, end)
        fresh = [place for place in held if int(place.position) not in seen]
        if not fresh:
            return
        only_held = self._filter.wanted(self._now)
        only_held.waiting = False
        at = first
        while at < known_to:
            part = peek(self._queue, fresh, only_held, at, known_to, SLICE)
            await self._add(part, len(self.items) + SLICE)
            at = int(part.next)
        self.items.sort(key=lambda item: item.position)
        if len(self.items) > count:
            end = self.items[count].position
            del self.items[count:]
        self.next = min(end, known_to)

    def _info(self, message: Peeked) -> PeekedInfo:
        payload, encoding = encode_payload(message.beginning(self._truncate), self._encoding)
        held = message.place.held
        state = ("retained" if self._queue.kind == STREAM else "waiting") if held is None else held.state
        return PeekedInfo(
            position=int(message.position),
            state=state if message.header else DAMAGED,
            age_ms=max(0, self._now - int(message.came_at)),
            age_at_least=UNSET if message.came_known else True,
            held=UNSET if held is None else held_info(held.since, held.about, self._now),
            redelivered=message.redelivered,
            exchange=printable(message.exchange),
            routing_key=printable(message.keys[0]) if message.keys else "",
            properties=shown_properties(message.header) or [],
            payload_bytes=int(message.size),
            payload=payload,
            payload_encoding=encoding,
        )


async def held_places(bridge: Bridge, queue: Queue, first: int, end: int) -> tuple[list[Place], int]:
    """What is held from ``first`` on, by position, and up to where that is all of it."""
    if queue.kind == STREAM:
        return [], end
    sources: list[Source] = [*bridge.broker.connections.deliveries_of(queue), *held_in(queue)]
    search = LowestHeld(sources, first, end, HELD_MOST)
    while not search.step(HELD_LOOKS):
        await asyncio.sleep(0)
    return search.places(), int(search.end)


def held_info(since: int, about: dict[str, object], now: int) -> dict[str, object]:
    shown = {name: printable(value) if isinstance(value, str) else value for name, value in about.items()}
    until = shown.get("until")
    if isinstance(until, int):
        shown["until"] = moment(until)
    if since:
        shown["since"] = moment(since)
        shown["held_ms"] = max(0, now - int(since))
    return shown


ENDPOINTS = [
    Endpoint(
        "GET",
        "/queues/{vhost}/{name}/peek",
        VHOST,
        look,
        "Look at what waits and what is held (?first=, ?end=, ?count=, ?truncate=, ?state=, filters)",
        answer=PeekInfo,
    ),
]
