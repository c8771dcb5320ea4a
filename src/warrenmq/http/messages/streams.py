"""/queues/{vhost}/{name}/stream: which stream this is, and which offsets it has.

A stream that was deleted and declared anew has another id, so that a reader who kept an offset can tell. Permission as
for consuming: read on the queue.
"""

from __future__ import annotations

from msgspec import Struct

from warrenmq.broker.queue.stream import StreamQueue
from warrenmq.http.endpoint import VHOST, Call, Endpoint
from warrenmq.http.errors import bad_request
from warrenmq.http.objects.queues import readable


class StreamInfo(Struct):
    """The offsets of a stream: ``first`` is the oldest offset there is, ``next`` the one behind the newest that may be
    read."""

    id: str
    first: int
    next: int


async def get_stream(call: Call) -> StreamInfo:
    _, queue = readable(call)
    if not isinstance(queue, StreamQueue):
        raise bad_request(f"{queue.name} is no stream")
    return StreamInfo(queue.declared.identity, int(queue.readable_start()), int(queue.readable_end()))


ENDPOINTS = [
    Endpoint(
        "GET", "/queues/{vhost}/{name}/stream", VHOST, get_stream, "Identity and offsets of a stream", answer=StreamInfo
    ),
]
