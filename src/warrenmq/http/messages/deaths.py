"""/queues/{vhost}/{name}/deaths: the dead letters of a queue in groups, by how, where and as what they died first.

Permission: read on the queue. Worked off in slices up to a budget; then ``next`` says where to go on.
"""

from __future__ import annotations

import asyncio

from msgspec import Struct

from warrenmq.broker.delivering.deaths import first_death
from warrenmq.broker.queue.peek import SLICE, Peeked, peek
from warrenmq.broker.transfer.ways import redriven
from warrenmq.http.endpoint import VHOST, Call, Endpoint
from warrenmq.http.errors import bad_request
from warrenmq.http.messages.looking_for import filter_of, number
from warrenmq.http.messages.peek_octets import synced
from warrenmq.http.objects.queues import readable
from warrenmq.http.pacer import Pacer
from warrenmq.wire.content import decode_properties
from warrenmq.wire.fields import Table, as_text, printable
from warrenmq.wire.replies import AmqpError

BUDGET = 20_000  # messages that one request looks at
MOST_GROUPS = 1000  # what would be another one is counted together
OTHERS = "(others)"
NONE = ""  # not a dead letter, or without the header
BY = ("reason", "queue", "exchange", "key")


class DeathGroup(Struct):
    """Dead letters that are counted together. ``by``: what they have in common. ``redriven``: how many of them
    were redriven before."""

    by: dict[str, str]
    messages: int
    bytes: int
    redriven: int
    first: int
    last: int


class Deaths(Struct):
    """The largest groups first. ``next``: where the next page begins; all was looked at when it reaches ``end``."""

    queue: str
    looked: int
    end: int
    next: int
    groups: list[DeathGroup]


async def group(call: Call) -> Deaths:
    queue = readable(call)[1]
    by = call.request.query_params.getlist("by") or ["reason", "queue"]
    for name in by:
        if name not in BY and not (name.startswith("header:") and len(name) > 7):
            raise bad_request(f"by: '{name[:40]}' is none of {', '.join(BY)} and header:NAME")
    visible = int(queue.visible_end())
    end = min(number(call, "end") or visible, visible)
    filter = filter_of(call)
    if filter.text is not None:
        raise bad_request("text: groups are made without reading bodies")
    wanted = filter.wanted(int(call.bridge.broker.services.clock.now_ms()))
    wanted.held = False
    at = number(call, "first") or 0
    looked = 0
    groups: dict[tuple[str, ...], DeathGroup] = {}
    pacer = Pacer()
    while at < end and looked < BUDGET:
        part = peek(queue, [], wanted, at, end, SLICE)
        for message in part.messages:
            _add(groups, by, message)
            await pacer.breathe()
        looked += int(part.looked)
        at = int(part.next)
        await asyncio.sleep(0)
    await synced(call.bridge, queue)
    found = sorted(groups.values(), key=lambda one: -one.messages)
    return Deaths(queue.name.name, looked, end, at, found)


def _add(groups: dict[tuple[str, ...], DeathGroup], by: list[str], message: Peeked) -> None:
    try:
        headers = (decode_properties(message.header).headers or {}) if message.header else {}
    except AmqpError:
        headers = {}
    key = tuple(_shown(_value(name, headers)) for name in by)
    if key not in groups and len(groups) >= MOST_GROUPS:
        key = tuple(OTHERS for _ in by)
    position = int(message.position)
    found = groups.get(key)
    if found is None:
        found = groups[key] = DeathGroup(dict(zip(by, key, strict=True)), 0, 0, 0, position, position)
    found.messages += 1
    found.bytes += int(message.size)
    found.redriven += redriven(headers) > 0
    found.last = position


def _value(name: str, headers: Table) -> str:
    if name.startswith("header:"):
        field = headers.get(name[7:])
        return NONE if field is None else as_text(field)
    death = first_death(headers)
    if death is None:
        return NONE
    if name == "key":
        keys = death.get("routing-keys")
        if keys is None or not isinstance(keys.value, list) or not keys.value:
            return NONE
        return as_text(keys.value[0])
    field = death.get(name)
    return NONE if field is None else as_text(field)


def _shown(text: str) -> str:
    return printable(text)[:200]


ENDPOINTS = [
    Endpoint(
        "GET",
        "/queues/{vhost}/{name}/deaths",
        VHOST,
        group,
        "Dead letters in groups (?by=reason, queue, exchange, key, header:NAME; filters as for peek)",
        answer=Deaths,
    ),
]
