"""How old what is in queues is: fields of a queue in the API, and metrics. See docs/peek.md."""

from __future__ import annotations

import asyncio

from warrenmq.broker.connection.held_since import HeldSince
from warrenmq.broker.queue.queue import Queue
from warrenmq.broker.queue.waits import BOUNDS, Waits
from warrenmq.http.bridge import Bridge
from warrenmq.http.models import QueueAges, TimeInQueue

LOOKS = 5000  # deliveries looked at before everybody else is served


async def held_since(bridge: Bridge) -> dict[Queue, int]:
    """Of every queue with deliveries outstanding, since when the oldest of them is."""
    search = HeldSince(bridge.broker.connections)
    while not search.step(LOOKS):
        await asyncio.sleep(0)
    return search.found


def ages(bridge: Bridge, queue: Queue, held: dict[Queue, int], whole: bool) -> QueueAges:
    """``whole``: with the histogram."""
    now = int(bridge.broker.services.clock.now_ms())
    oldest = queue.places(0, queue.visible_end(), 1)
    shown = QueueAges(None, None)
    if oldest:
        position = oldest[0].position
        shown.oldest_waiting_ms = max(0, now - int(queue.came_at(position)))
        if not queue.knows_when(position):
            shown.oldest_waiting_at_least = True
    since = [time for time in (held.get(queue, 0), int(queue.held_since())) if time]
    if since:
        shown.oldest_held_ms = max(0, now - min(since))
    if whole:
        shown.time_in_queue = TimeInQueue(handed_out(queue.waits), int(queue.waits.total_ms), cumulative(queue.waits))
    return shown


def handed_out(waits: Waits) -> int:
    return sum(int(some) for some in waits.counts)


def cumulative(waits: Waits) -> dict[str, int]:
    """By upper bound, as Prometheus has it but for the last, which is the count."""
    found: dict[str, int] = {}
    total = 0
    for bound, some in zip(BOUNDS, waits.counts, strict=False):
        total += int(some)
        found[str(bound)] = total
    return found
