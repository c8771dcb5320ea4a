"""The route of a message as the journal is told it: which queues, and by which binding each was reached.

Duty: from what the walk found to a name of the log's events, which is the same for all messages that went the same
way. Not here: the walk (``exchange/walk.py``), which message took it (``delivering.py``, ``publish/outcomes.py``).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.exchange.hop import Hop
from warrenmq.broker.exchange.walk import Routed
from warrenmq.broker.queue.queue import Queue
from warrenmq.broker.records import Exchange
from warrenmq.log.events import NOBODY, Named
from warrenmq.log.log import Log

LONGEST: Final = 64 << 10  # octets of a route: the binding of queues beyond that is not told


def told_route(log: Log, routed: Routed) -> Named:
    """NOBODY when it reached no queue, or nobody asked how."""
    hops = routed.hops
    if hops is None or not routed.queues:
        return NOBODY
    told = Told()
    for destination in routed.queues:
        if isinstance(destination, Queue) and not told.add(destination, hops[destination]):
            break
    return told.named(log)


def told_by_name(log: Log, default: Exchange, queues: list[Queue]) -> Named:
    """The route from the default exchange to queues whose names were the keys."""
    hop = Hop(default, None, None)
    told = Told()
    for queue in queues:
        if not told.add(queue, hop):
            break
    return told.named(log)


@final
class Told:
    """A route being written."""

    def __init__(self) -> None:
        self._parts: Final[list[bytes]] = []
        self._size: i64 = 0

    def add(self, queue: Queue, hop: Hop) -> bool:
        """False: it is long enough."""
        way = hop.text(queue, LONGEST - self._size)
        part = b'"%d":[%s]' % (int(queue.id), way)
        if not way or self._size + len(part) > LONGEST:
            return False
        self._size += len(part)
        self._parts.append(part)
        return True

    def named(self, log: Log) -> Named:
        return log.routes.named(b"{%s}" % b",".join(self._parts)) if self._parts else NOBODY
