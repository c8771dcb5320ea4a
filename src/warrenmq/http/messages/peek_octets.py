"""What waits in a queue as octets, for programs: a range of positions, whole, one message behind the other.

    answer   = *message end
    message  = position flags exchange routing-key header body
    position = int64               flags = octet, bit 0: redelivered
    exchange = octet *octet        a short string; so is routing-key
    header   = uint32 *octet       the payload of the content header frame
    body     = uint64 *octet
    end      = int64 -1            without it the answer was cut off

What is held or damaged is left out.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from warrenmq.broker.queue.peek import SLICE, Peeked, peek
from warrenmq.broker.queue.queue import Queue
from warrenmq.broker.queue.wanted import Wanted
from warrenmq.http.bridge import Bridge
from warrenmq.log.format import LogError

MEDIA_TYPE = "application/octet-stream"
END = (-1).to_bytes(8, "big", signed=True)


async def octets(bridge: Bridge, queue: Queue, first: int, end: int) -> AsyncIterator[bytes]:
    """A slice at a time; the parts of a long body one by one, cut off where one left the queue meanwhile."""
    wanted = Wanted()
    wanted.held = False
    while first < end and not queue.gone:
        part = peek(queue, [], wanted, first, end, SLICE)
        await synced(bridge, queue)
        short: list[bytes] = []
        try:
            for message in part.messages:
                if not message.header:
                    continue
                short.append(_head(message))
                if message.parts() < 2:
                    short.append(message.beginning(message.size))
                    continue
                yield b"".join(short)
                short = []
                for number in range(message.parts()):
                    yield message.part(number)
        except LogError:
            return
        yield b"".join(short)
        first = int(part.next)
    if not queue.gone:
        yield END


async def synced(bridge: Bridge, queue: Queue) -> None:
    """Nobody sees a message before the log has it, as with basic.get."""
    if queue.promise_pending():
        await bridge.committed()


def _head(message: Peeked) -> bytes:
    exchange = message.exchange.encode("utf-8", "surrogateescape")
    key = message.keys[0].encode("utf-8", "surrogateescape")
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
            int(message.size).to_bytes(8, "big"),
        )
    )
