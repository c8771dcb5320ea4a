"""Large bodies on their way in: logged piece by piece as they arrive, so that they are never copied as a whole.

Duty: which messages, and the handle of the log that their pieces go to. A message that turns out not to need the log
(unroutable, refused) leaves its pieces behind as garbage. The pieces stay in memory once, for consumers that wait.
Not here: assembling content (``assembly.py``), deciding who must not lose it (``outcomes.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from warrenmq.broker import publish
from warrenmq.wire.glance import quick_properties
from warrenmq.wire.replies import AmqpError

if TYPE_CHECKING:
    from warrenmq.broker.broker import Broker
    from warrenmq.broker.channel import Channel

LARGE: Final = 256 << 10  # longer bodies are logged in pieces of about this size


def begin(channel: Channel, header: bytes, size: i64) -> None:
    """A content header came: will the body go to the log? Then its pieces may go there at once."""
    broker = channel.broker
    if size <= LARGE or channel.tx is not None or broker.interceptors.of_messages:
        return
    try:
        if quick_properties(header).delivery_mode != 2:
            return
        route = publish.known_route(channel, channel.content_arguments, size)
    except AmqpError:
        return  # told when the content is complete
    for queue in route.queues:
        if queue.durable:
            channel.content_handle = broker.log.begin_body()
            channel.content_logged = 0
            channel.content_logged_bytes = 0
            return


def collected(channel: Channel, last: bool) -> None:
    """A piece of the body came: log what there is, if it is enough or the last of it."""
    chunks = channel.content_chunks
    first = channel.content_logged
    size: i64 = channel.content_size - channel.content_left - channel.content_logged_bytes
    if size == 0 or (size < LARGE and not last):
        return
    piece = chunks[first] if len(chunks) == first + 1 else b"".join(chunks[first:])
    del chunks[first:]
    chunks.append(piece)
    channel.content_logged = len(chunks)
    channel.content_logged_bytes += size
    channel.content_small = 0
    channel.broker.log.body_chunk(channel.content_handle, piece)
    channel.connection.charge(channel.broker.log.batch, size)


def abandon(channel: Channel) -> None:
    """The rest will not come, or nobody needs it in the log."""
    if channel.content_handle:
        channel.broker.log.abandon_body(channel.content_handle)
        channel.content_handle = 0


def handle_of(broker: Broker, chunks: list[bytes]) -> i64:
    """A handle of the log that has got these pieces: the one they arrived with, or one that gets them now."""
    channel = broker.arriving
    if channel is not None and channel.content_handle and channel.content_chunks is chunks:
        handle = channel.content_handle
        channel.content_handle = 0
        return handle
    log = broker.log
    handle = log.begin_body()
    held: list[bytes] = []
    size: i64 = 0
    for chunk in chunks:
        held.append(chunk)
        size += len(chunk)
        if size >= LARGE:
            _log(broker, handle, held)
            held = []
            size = 0
    if held:
        _log(broker, handle, held)
    return handle


def _log(broker: Broker, handle: i64, pieces: list[bytes]) -> None:
    data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
    start: i64 = 0
    while start < len(data):
        broker.log.body_chunk(handle, data if len(data) <= 2 * LARGE else data[start : start + LARGE])
        start += LARGE if len(data) > 2 * LARGE else len(data)
