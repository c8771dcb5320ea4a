"""/queues/{vhost}/{name}/body: the whole body of one message that is looked at, as octets to keep as a file.

Permission as for peek: read on the queue. A browser is told to save it and never to open it, whatever is in it. It is
sent part by part; an answer that is shorter than its content-length is of a message that left the queue meanwhile, or
is damaged there: its connection is closed behind what there was.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from warrenmq.broker.queue.peek import Peeked, peek
from warrenmq.broker.queue.wanted import Wanted
from warrenmq.http.endpoint import VHOST, Call, Endpoint
from warrenmq.http.errors import ApiError, bad_request
from warrenmq.http.messages.looking_for import number
from warrenmq.http.messages.peek import held_places
from warrenmq.http.messages.peek_octets import MEDIA_TYPE, synced
from warrenmq.http.objects.queues import readable
from warrenmq.http.pieces import Ended, MayEndEarly, paced
from warrenmq.log.format import LogError


async def body(call: Call) -> MayEndEarly:
    _, queue = readable(call)
    position = number(call, "position")
    if position is None:
        raise bad_request("position: that of the message, as peek tells it")
    held, _ = await held_places(call.bridge, queue, position, position + 1)
    found = peek(queue, held, Wanted(), position, position + 1, 1).messages
    if not found or not found[0].header:
        raise ApiError(404, "not_found", f"no message at position {position} of {queue.name}")
    await synced(call.bridge, queue)
    headers = {
        "content-length": str(int(found[0].size)),
        "content-disposition": f'attachment; filename="message-{position}"',
    }
    parts = paced(call.bridge.server.watchdog, "the body of a message", _parts(found[0]))
    return MayEndEarly(parts, media_type=MEDIA_TYPE, headers=headers)


async def _parts(message: Peeked) -> AsyncIterator[bytes]:
    try:
        for part in range(message.parts()):
            yield message.part(part)
    except LogError:
        raise Ended from None


ENDPOINTS = [
    Endpoint(
        "GET",
        "/queues/{vhost}/{name}/body",
        VHOST,
        body,
        "The body of one message as a file, nothing taken (?position=)",
    ),
]
