"""/queues/{vhost}/{name}/peek: looking at what waits in a queue. Nothing is taken, marked or held; see docs/peek.md.

Permission as for basic.get: read on the queue. People get JSON, a page at a time with bodies cut short. Programs ask
for ``application/octet-stream`` and get a whole range of positions, as it is, one message behind the other:

    answer   = *message end
    message  = position flags exchange routing-key header body
    position = int64               flags = octet, bit 0: redelivered
    exchange = octet *octet        a short string; so is routing-key
    header   = uint32 *octet       the payload of the content header frame
    body     = uint64 *octet
    end      = int64 -1            without it the answer was cut off
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from msgspec import Struct
from starlette.responses import StreamingResponse

from warrenmq.broker.queue.classic import ClassicQueue
from warrenmq.broker.queue.peek import SLICE, Peeked, peek
from warrenmq.http.bridge import Bridge
from warrenmq.http.endpoint import VHOST, Call, Endpoint
from warrenmq.http.errors import bad_request
from warrenmq.http.listing import Pacer
from warrenmq.http.models import Json, Object
from warrenmq.http.queues import encode_payload, readable
from warrenmq.wire.content import decode_properties
from warrenmq.wire.fields import to_python
from warrenmq.wire.replies import AmqpError

OCTETS = "application/octet-stream"
COUNT = 100
MOST = 1000
TRUNCATE = 50_000  # octets of a body, unless told
LONGEST = 1 << 20
END = (-1).to_bytes(8, "big", signed=True)


class PeekedInfo(Struct):
    """A message that was looked at where it waits, with its position."""

    position: int
    redelivered: bool
    exchange: str
    routing_key: str
    properties: Object | list[Json]
    payload_bytes: int
    payload: str
    payload_encoding: str


class PeekInfo(Struct):
    """``first`` to ``end``: the positions of what waits now, or as asked; ``next``: where the next page begins."""

    queue: str
    messages: int
    first: int
    end: int
    next: int
    items: list[PeekedInfo]


async def look(call: Call) -> object:
    _, queue = readable(call)
    if not isinstance(queue, ClassicQueue):
        raise bad_request(f"{queue.name} is a stream: read it by offset")
    first = _number(call, "first", 0, 0, 1 << 62)
    end = min(_number(call, "end", int(queue.next_position), 0, 1 << 62), int(queue.next_position))
    if OCTETS in call.request.headers.get("accept", ""):
        return StreamingResponse(_octets(call.bridge, queue, first, end), media_type=OCTETS)
    count = _number(call, "count", COUNT, 0, MOST)
    truncate = _number(call, "truncate", TRUNCATE, 0, LONGEST)
    if call.query.get("encoding", "auto") not in ("auto", "base64"):
        raise bad_request("Unsupported encoding. Please use auto or base64.")
    head = queue.places(first, end, 1)
    shown = PeekInfo(queue.name.name, int(queue.ready), int(head[0].position) if head else end, end, first, [])
    pacer = Pacer()
    while len(shown.items) < count and shown.next < end:
        part = peek(queue, shown.next, end, count - len(shown.items))
        for message in part.messages:
            shown.items.append(_info(message, call.query.get("encoding", "auto"), truncate))
            await pacer.breathe()
        shown.next = int(part.next)
    await _synced(call.bridge, queue)
    return shown


async def _synced(bridge: Bridge, queue: ClassicQueue) -> None:
    """Nobody sees a message before the log has it, as with basic.get."""
    if queue.promise_pending():
        await bridge.committed()


async def _octets(bridge: Bridge, queue: ClassicQueue, first: int, end: int) -> AsyncIterator[bytes]:
    while first < end and not queue.gone:
        part = peek(queue, first, end, SLICE)
        await _synced(bridge, queue)
        yield b"".join([_framed(message) for message in part.messages])
        first = int(part.next)
    if not queue.gone:
        yield END


def _framed(message: Peeked) -> bytes:
    exchange = message.exchange.encode("utf-8", "surrogateescape")
    key = message.routing_key.encode("utf-8", "surrogateescape")
    return b"".join(
        (
            int(message.position).to_bytes(8, "big"),
            b"\1" if message.redelivered else b"\0",
            bytes((len(exchange),)),
            exchange,
            bytes((len(key),)),
            key,
            len(message.header).to_bytes(4, "big"),
            message.header,
            len(message.body).to_bytes(8, "big"),
            message.body,
        )
    )


def _info(message: Peeked, encoding: str, truncate: int) -> PeekedInfo:
    payload, encoding = encode_payload(message.body[:truncate], encoding)
    return PeekedInfo(
        position=int(message.position),
        redelivered=message.redelivered,
        exchange=_text(message.exchange),
        routing_key=_text(message.routing_key),
        properties=_properties(message.header) or [],
        payload_bytes=len(message.body),
        payload=payload,
        payload_encoding=encoding,
    )


def _properties(header: bytes) -> dict[str, Any]:
    try:
        properties = decode_properties(header)
    except AmqpError:
        return {}
    shown = {name: _text(value) if isinstance(value, str) else value for name, value in properties.present().items()}
    if properties.headers is not None:
        shown["headers"] = to_python(properties.headers)
    return shown


def _text(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _number(call: Call, name: str, default: int, least: int, most: int) -> int:
    text = call.query.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > 19 or not least <= int(text) <= most:
        raise bad_request(f"{name}: '{text[:40]}' is not a whole number between {least} and {most}")
    return int(text)


ENDPOINTS = [
    Endpoint(
        "GET",
        "/queues/{vhost}/{name}/peek",
        VHOST,
        look,
        "Look at what waits (?first=, ?end=, ?count=, ?truncate=)",
        answer=PeekInfo,
    ),
]
