"""/ledger: the sums that must come out even, of everything, of a vhost, or of one queue; see docs/ledger.md.

They are put together anew for every request, a slice of the queues at a time. All of it is for whoever monitors; a
vhost's queues for those who see it listed, one queue for those who may read it.
"""

from __future__ import annotations

import asyncio

from msgspec import Struct

from warrenmq.broker import ledger
from warrenmq.broker.ledger import Pass, Sum, Wrong
from warrenmq.http.endpoint import MONITORING, VHOST, VHOST_VISIBLE, Call, Endpoint
from warrenmq.http.objects.queues import readable
from warrenmq.http.pacer import SLICE_ITEMS


class SumInfo(Struct):
    """A sum of the ledger: ``came`` is to be what ``left`` and what is ``here``: ``difference`` is 0, or something is
    wrong."""

    sum: str
    difference: int
    came: dict[str, int]
    left: dict[str, int]
    here: dict[str, int]


class WrongInfo(Struct):
    """A queue whose own sum does not come out even."""

    vhost: str
    queue: str
    sum: str
    difference: int


class LedgerInfo(Struct):
    """The sums, whether they all come out even, and which queues do not; of very many the first."""

    even: bool
    sums: list[SumInfo]
    queues: list[WrongInfo]


async def everything(call: Call) -> LedgerInfo:
    return await _looked(Pass(call.bridge.broker))


async def of_vhost(call: Call) -> LedgerInfo:
    return await _looked(Pass(call.bridge.broker, [call.bridge.vhost(call.path["vhost"]).name]))


async def of_queue(call: Call) -> LedgerInfo:
    _, queue = readable(call)
    return _shown(ledger.of_queue(queue), [])


async def _looked(look: Pass) -> LedgerInfo:
    while not look.step(SLICE_ITEMS):
        await asyncio.sleep(0)
    return _shown(look.sums(), look.wrong)


def _shown(sums: list[Sum], wrong: list[Wrong]) -> LedgerInfo:
    even = not wrong and all(sum.difference() == 0 for sum in sums)
    shown = [SumInfo(sum.name, sum.difference(), sum.came, sum.left, sum.here) for sum in sums]
    return LedgerInfo(even, shown, [WrongInfo(one.vhost, one.queue, one.sum, one.difference) for one in wrong])


ENDPOINTS = [
    Endpoint("GET", "/ledger", MONITORING, everything, "Does everything add up?", answer=LedgerInfo),
    Endpoint("GET", "/ledger/{vhost}", VHOST_VISIBLE, of_vhost, "Do its queues?", answer=LedgerInfo),
    Endpoint("GET", "/queues/{vhost}/{name}/ledger", VHOST, of_queue, "Does this queue?", answer=LedgerInfo),
]
