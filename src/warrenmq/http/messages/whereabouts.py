"""Where in the broker a message is at this moment, of which the journal tells where it was.

Duty: one record in one queue (or delayed exchange): does it wait there and how many before it, who holds it and for how
long, until when is it delayed; or it has left. Nothing is changed, and long ways are gone in slices. Not here: what
happened (the journal), who may know (``messages.py``).
"""

from __future__ import annotations

import asyncio
from typing import Any

from warrenmq.broker.delay.schedule import Schedule
from warrenmq.broker.queue.arguments import STREAM
from warrenmq.broker.queue.damaged import Damaged
from warrenmq.broker.queue.held import LowestHeld, Source
from warrenmq.broker.queue.peek import held_in
from warrenmq.broker.queue.place import Place
from warrenmq.broker.queue.queue import Queue
from warrenmq.broker.records import AS_QUEUE
from warrenmq.http.bridge import Bridge
from warrenmq.http.messages.peek import HELD_LOOKS, held_info
from warrenmq.http.views import moment
from warrenmq.log.format import LogError
from warrenmq.log.layout import WITHOUT_RECORD

COUNTED = 4096  # messages in one go
READ = 64  # of those that have to be read to be known
MOST = 200_000  # that are counted; then it is said that there are at least so many
ONE_OF_A_PLACE = 16  # what one position may be held by, with room to spare

Now = dict[str, Any]

LEFT: Now = {"state": "left", "says": "it left after the last that the journal tells"}
NO_QUEUE: Now = {"state": "left", "says": "the queue is gone"}
NO_EXCHANGE: Now = {"state": "left", "says": "the delayed exchange is gone, or was declared anew"}


def _schedule_of(bridge: Bridge, vhost: str, exchange: str) -> Schedule | None:
    found = bridge.broker.vhosts.get(vhost)
    known = None if found is None else found.exchanges.get(exchange)
    return None if known is None else bridge.broker.delay.schedule_of(known)


async def now(bridge: Bridge, vhost: str, name: str, position: int | None, record: int) -> Now:
    """What is true now of a record that was last seen there."""
    if name.startswith(AS_QUEUE):
        schedule = _schedule_of(bridge, vhost, name.removeprefix(AS_QUEUE))
        return NO_EXCHANGE if schedule is None else await _delayed(schedule, record)
    found = bridge.broker.vhosts.get(vhost)
    queue = None if found is None else found.queues.get(name)
    if queue is None:
        return NO_QUEUE
    if position is None:
        return LEFT
    for one in queue.damaged():
        if one.position == position and (one.address == record or one.address < 0):
            return _damaged(one, int(queue.id))
    for place in queue.places(position, position + 1, 1):
        if _is(place, record):
            return await _waiting(bridge, queue, position)
    if queue.kind != STREAM:
        held = await _held(bridge, queue, position, record)
        if held is not None:
            return held
    return LEFT


def _is(place: Place, record: int) -> bool:
    """Positions are given out anew in a queue that was deleted and declared again; records are not."""
    address = int(place.address if place.message is None else place.message.address)
    if record < WITHOUT_RECORD:
        return address == record
    return address <= 0 if place.message is None else int(place.message.id) == record - WITHOUT_RECORD


async def _waiting(bridge: Bridge, queue: Queue, position: int) -> Now:
    age = max(0, int(bridge.broker.services.clock.now_ms()) - int(queue.came_at(position)))
    if queue.kind == STREAM:
        return {"state": "retained", "age_ms": age, "offset": position}
    shown: Now = {"state": "waiting", "age_ms": age}
    if not queue.knows_when(position):
        shown["age_at_least"] = True
    first = ahead = 0
    while ahead < MOST:
        places = queue.places(first, position, COUNTED)
        ahead += len(places)
        if len(places) < COUNTED:
            break
        first = int(places[-1].position) + 1
        await asyncio.sleep(0)
    shown |= {"ahead": ahead, "messages": int(queue.ready)}
    if ahead >= MOST:
        shown["ahead_at_least"] = True
    return shown


async def _held(bridge: Bridge, queue: Queue, position: int, record: int) -> Now | None:
    sources: list[Source] = [*bridge.broker.connections.deliveries_of(queue), *held_in(queue)]
    search = LowestHeld(sources, position, position + 1, ONE_OF_A_PLACE)
    while not search.step(HELD_LOOKS):
        await asyncio.sleep(0)
    for place in search.places():
        if place.held is not None and _is(place, record):
            clock = int(bridge.broker.services.clock.now_ms())
            return {"state": place.held.state, **held_info(int(place.held.since), place.held.about, clock)}
    return None


def _is_delayed(schedule: Schedule, key: int, record: int) -> bool:
    if schedule.durable:
        return key == record
    try:
        return int(schedule.peek(key, 0).message_id) == record - WITHOUT_RECORD
    except LogError:
        return False


def _damaged(one: Damaged, owner: int) -> Now:
    """Found by a consumer, under a lease or by the scrub: nobody gets it until somebody decides."""
    return {"state": "damaged", "problem": one.problem, "damaged_id": f"{owner}-{int(one.position)}"}


async def _delayed(schedule: Schedule, record: int) -> Now:
    for one in schedule.damage.kept.values() if schedule.damage is not None else ():
        if one.address == record:
            return _damaged(one, int(schedule.id)) | {"exchange": schedule.exchange.name.name}
    due = key = -1
    looked = 0
    most = COUNTED if schedule.durable else READ
    while looked < MOST:
        pairs = schedule.after(due, key, most)
        for due, key in pairs:
            if _is_delayed(schedule, key, record):
                return {"state": "delayed", "exchange": schedule.exchange.name.name, "until": moment(due)}
        looked += len(pairs)
        if len(pairs) < most:
            return LEFT
        await asyncio.sleep(0)
    return {"state": "delayed or left", "exchange": schedule.exchange.name.name}
