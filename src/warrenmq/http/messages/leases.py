"""/queues/{vhost}/{name}/leases: messages held under an id, read with x-lease and settled here. See docs/leases.md.

Who may is decided as for ``basic.consume``: read on the queue, and a queue that is exclusive to a connection is out of
everybody else's reach. Every change is answered when the log has it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

from msgspec import Struct
from starlette.responses import Response

from warrenmq.broker.queue.classic import leases_of
from warrenmq.broker.queue.lease import DEFAULT_TTL, Lease, LeaseError, no_lease
from warrenmq.broker.queue.leases import Leases
from warrenmq.http.encoding import encode
from warrenmq.http.endpoint import LONG_LIST, VHOST, Call, Endpoint, Json
from warrenmq.http.errors import ApiError, bad_request
from warrenmq.http.listing import Array
from warrenmq.http.names import check_name
from warrenmq.http.objects.queues import readable

LONGEST_TTL = 365 * 86_400_000
MOST_MESSAGES = 1_000_000
MOST_RUNS = 20_000  # of slots in one request
EXACT_DELAYS = 100  # different ones in one request
SLOTS = 4096  # of a lease that are looked at in one go
BODY_IS_READ = 0.001  # seconds between two looks whether a long body has been read


class LeaseRequest(Struct):
    """A request for a lease: ``count`` messages, or bodies of ``bytes`` in all; both may be given."""

    count: int | None = None
    bytes: int | None = None
    ttl_ms: int = DEFAULT_TTL
    owner: str = ""
    key: str = ""


class SlotRange(Struct):
    """A run of slots of the lease, from 0, both ends included; everything when nothing is given."""

    first: int = 0
    last: int | None = None
    requeue: bool = True


class DelaySlots(Struct):
    """The part of a lease that is to come back after a delay."""

    delay_ms: int
    slots: list[tuple[int, int]]


class SettleRequest(Struct):
    """The slots to settle and how, as runs [first, last]; no slot may be named twice."""

    ack: list[tuple[int, int]] = []
    requeue: list[tuple[int, int]] = []
    reject: list[tuple[int, int]] = []
    delay: list[DelaySlots] = []


class RenewRequest(Struct):
    """The new time to live of a lease, counted from now."""

    ttl_ms: int = DEFAULT_TTL


class LeaseInfo(Struct):
    """A lease as it stands: whose it is, how much is left of it, until when."""

    id: str
    queue: str
    vhost: str
    owner: str
    key: str
    count: int
    left: int
    settled: int
    bytes: int
    delayed: bool
    ttl_ms: int
    expires_at: int


class LeaseDetail(LeaseInfo):
    """A lease, with ``open``: the slots that are left, as runs [first, last]."""

    open: list[list[int]]


class Settled(Struct):
    """The answer to an acknowledgement within a lease."""

    settled: int
    left: int


def _lease(call: Call) -> tuple[Leases, Lease]:
    queue = readable(call)[1]
    leases = leases_of(queue)
    if leases is None:
        raise _problem(no_lease(queue, call.path["id"]))
    try:
        return leases, leases.get(call.path["id"])
    except LeaseError as error:
        raise _problem(error) from None


def _problem(error: LeaseError) -> ApiError:
    names = {400: "bad_request", 404: "not_found", 410: "gone"}
    return ApiError(error.status, names[error.status], error.reason)


def _checked_ttl(ttl: int) -> int:
    if not 1 <= ttl <= LONGEST_TTL:
        raise bad_request(f"ttl_ms: {ttl} is not between 1 and {LONGEST_TTL}")
    return ttl


async def create(call: Call) -> object:
    queue = readable(call)[1]
    wanted = await call.body(LeaseRequest)
    if wanted.count is None and wanted.bytes is None:
        raise bad_request("give count, bytes or both")
    if wanted.count is not None and not 1 <= wanted.count <= MOST_MESSAGES:
        raise bad_request(f"count: {wanted.count} is not between 1 and {MOST_MESSAGES}")
    if wanted.bytes is not None and wanted.bytes < 1:
        raise bad_request(f"bytes: {wanted.bytes} is not 1 or more")
    check_name("owner", wanted.owner)
    check_name("key", wanted.key)
    ttl = _checked_ttl(wanted.ttl_ms)
    leases = leases_of(queue)
    if leases is None:
        raise bad_request(f"{queue.name} is a stream: read it by offset")
    call.bridge.begin()
    lease = leases.create(
        MOST_MESSAGES if wanted.count is None else wanted.count,
        -1 if wanted.bytes is None else wanted.bytes,
        ttl,
        wanted.owner,
        wanted.key,
    )
    while lease.filling:  # a large one takes several turns; whoever asks again with its key helps
        await asyncio.sleep(0)
        call.bridge.begin()
        leases.fill(lease)
    shown = lease.describe()
    await call.bridge.committed()
    return Json(shown, status_code=201)


async def list_leases(call: Call) -> Iterator[dict[str, object]]:
    leases = leases_of(readable(call)[1])
    found = [] if leases is None else leases.all(call.query.get("owner", ""))
    return (lease.describe() for lease in found)


async def get_lease(call: Call) -> Response:
    """The runs of a large one are looked for some slots at a time: what is settled meanwhile may be among them."""
    lease = _lease(call)[1]
    array = Array(encode(lease.describe())[:-1] + b',"open":[')
    before: list[int] = []  # the run that may go on in the next slots
    for start in range(0, int(lease.count()), SLOTS):
        for run in lease.open_runs(start, start + SLOTS):
            if before and before[1] + 1 == run[0]:
                before[1] = run[1]
                continue
            if before:
                array.add(encode(before))
            before = run
        await asyncio.sleep(0)
    if before:
        array.add(encode(before))
    return array.pieces(b"]}").json()


def _slots(lease: Lease, wanted: SlotRange) -> tuple[int, int]:
    end = int(lease.count()) - 1
    last = end if wanted.last is None else wanted.last
    if wanted.first < 0 or last > end or wanted.first > last + 1:
        raise bad_request(f"slots {wanted.first} to {last}: this lease has slots 0 to {end}")
    return wanted.first, last


async def ack(call: Call) -> Settled:
    wanted = await call.body(SlotRange)
    leases, lease = _lease(call)
    first, last = _slots(lease, wanted)
    call.bridge.begin()
    settled = leases.ack(lease, first, last)
    leases.acted(lease)
    await call.bridge.committed()
    return Settled(int(settled), int(lease.left))


async def nack(call: Call) -> Settled:
    wanted = await call.body(SlotRange)
    leases, lease = _lease(call)
    first, last = _slots(lease, wanted)
    slots = lease.open_slots(first, last)
    before = int(lease.settled)
    call.bridge.begin()
    async for part in _slices(call, leases, lease, slots):
        if wanted.requeue:
            leases.requeue(lease, part)
        else:
            leases.reject(lease, part)
        leases.acted(lease)
    if lease.left == 0:
        leases.acted(lease)  # also when there was nothing more to do
    await call.bridge.committed()
    return Settled(int(lease.settled) - before, int(lease.left))


async def settle(call: Call) -> Settled:
    """All of it in one turn, so in one batch of the log; unless there is more to be read than a turn may take."""
    wanted = await call.body(SettleRequest, LONG_LIST)
    leases, lease = _lease(call)
    _check_runs(lease, wanted)
    before = int(lease.settled)
    call.bridge.begin()
    for first, last in wanted.ack:
        leases.ack(lease, first, last)
    for delay_ms, slots in _delays(lease, wanted.delay):
        leases.delay(lease, slots, delay_ms)
    leases.acted(lease, False)
    async for part in _slices(call, leases, lease, _open(lease, wanted.reject)):
        leases.reject(lease, part)
        leases.acted(lease, False)
    async for part in _slices(call, leases, lease, _open(lease, wanted.requeue)):
        leases.requeue(lease, part)
        leases.acted(lease, False)
    await call.bridge.committed()
    return Settled(int(lease.settled) - before, int(lease.left))


def _check_runs(lease: Lease, wanted: SettleRequest) -> None:
    named = [("ack", wanted.ack), ("requeue", wanted.requeue), ("reject", wanted.reject)]
    for delay in wanted.delay:
        if not 1 <= delay.delay_ms <= LONGEST_TTL:
            raise bad_request(f"delay_ms: {delay.delay_ms} is not between 1 and {LONGEST_TTL}")
        named.append(("delay", delay.slots))
    runs = sorted((run, action) for action, runs in named for run in runs)
    if len(runs) > MOST_RUNS:
        raise bad_request(f"{len(runs)} runs of slots: at most {MOST_RUNS} in one request")
    end = int(lease.count()) - 1
    before = -1
    for (first, last), action in runs:
        if first < 0 or last > end or first > last:
            raise bad_request(f"{action} [{first}, {last}]: this lease has slots 0 to {end}")
        if first <= before:
            raise bad_request(f"{action} [{first}, {last}]: slot {first} is named twice")
        before = last


def _open(lease: Lease, runs: list[tuple[int, int]]) -> list[int]:
    return [slot for first, last in runs for slot in lease.open_slots(first, last)]


def _delays(lease: Lease, wanted: list[DelaySlots]) -> list[tuple[int, list[int]]]:
    """Slots by their delay. Very many different ones are rounded up by less than a hundredth: each is a lease."""
    rounded = len({delay.delay_ms for delay in wanted}) > EXACT_DELAYS
    found: dict[int, list[int]] = {}
    for delay in wanted:
        step = 1 << max(0, delay.delay_ms.bit_length() - 8) if rounded else 1
        found.setdefault(-(-delay.delay_ms // step) * step, []).extend(_open(lease, delay.slots))
    return [(delay_ms, sorted(slots)) for delay_ms, slots in found.items() if slots]


async def _slices(call: Call, leases: Leases, lease: Lease, slots: list[int]) -> AsyncIterator[list[int]]:
    """So many slots as may be read within a turn; others are served between two. The first belongs to this turn."""
    slots.sort()
    done = 0
    pause = -1.0
    while done < len(slots):
        if pause >= 0:
            await asyncio.sleep(pause)
            call.bridge.begin()
            if _lease(call)[1] is not lease:
                raise _problem(LeaseError(410, f"lease {lease.id} of {lease.queue.name} is gone"))
        part = leases.slice_of(lease, slots, done)
        pause = 0 if part else BODY_IS_READ
        done += len(part)
        part = [slot for slot in part if lease.addresses[slot]]  # somebody else may have settled it meanwhile
        if part:
            yield part


async def renew(call: Call) -> dict[str, object]:
    wanted = await call.body(RenewRequest)
    leases, lease = _lease(call)
    ttl = _checked_ttl(wanted.ttl_ms)
    call.bridge.begin()
    leases.renew(lease, ttl)
    await call.bridge.committed()
    return lease.describe()


async def release(call: Call) -> Settled:
    leases, lease = _lease(call)
    count = int(lease.left)
    call.bridge.begin()
    leases.release(lease)
    left = count
    while lease.left > 0:
        await asyncio.sleep(0 if lease.left < left else BODY_IS_READ)
        left = int(lease.left)
        call.bridge.begin()
        leases.release(lease)
    await call.bridge.committed()
    return Settled(count, int(lease.left))


_PATH = "/queues/{vhost}/{name}/leases"
ENDPOINTS = [
    Endpoint("POST", _PATH, VHOST, create, "Lease messages", body=LeaseRequest, answer=LeaseInfo, status=201),
    Endpoint("GET", _PATH, VHOST, list_leases, "Leases of a queue (?owner=)", answer=list[LeaseInfo]),
    Endpoint("GET", _PATH + "/{id}", VHOST, get_lease, "One lease", answer=LeaseDetail),
    Endpoint("DELETE", _PATH + "/{id}", VHOST, release, "Give its messages back", answer=Settled),
    Endpoint("POST", _PATH + "/{id}/ack", VHOST, ack, "Settle slots for good", body=SlotRange, answer=Settled),
    Endpoint("POST", _PATH + "/{id}/nack", VHOST, nack, "Give slots back or discard", body=SlotRange, answer=Settled),
    Endpoint("POST", _PATH + "/{id}/settle", VHOST, settle, "Act on slots", body=SettleRequest, answer=Settled),
    Endpoint("POST", _PATH + "/{id}/renew", VHOST, renew, "Prolong it", body=RenewRequest, answer=LeaseInfo),
]
