"""/queues/{vhost}/{name}/leases: messages held under an id, read with x-lease and settled here. See docs/leases.md.

Who may is decided as for ``basic.consume``: read on the queue, and a queue that is exclusive to a connection is out of
everybody else's reach. Every change is answered when the log has it.
"""

from __future__ import annotations

from msgspec import Struct

from warrenmq.broker.queue.lease import DEFAULT_TTL, Lease, LeaseError, Leases
from warrenmq.http.endpoint import VHOST, Call, Endpoint, Json
from warrenmq.http.errors import ApiError, bad_request
from warrenmq.http.names import check_name
from warrenmq.http.queues import readable

LONGEST_TTL = 365 * 86_400_000
MOST_MESSAGES = 1_000_000


class LeaseRequest(Struct):
    """``count`` messages, or bodies of ``bytes`` in all; both may be given."""

    count: int | None = None
    bytes: int | None = None
    ttl_ms: int = DEFAULT_TTL
    owner: str = ""
    key: str = ""


class SlotRange(Struct):
    """Slots of the lease, from 0, both ends included; everything when nothing is given."""

    first: int = 0
    last: int | None = None
    requeue: bool = True


class RenewRequest(Struct):
    ttl_ms: int = DEFAULT_TTL


class LeaseInfo(Struct):
    id: str
    queue: str
    vhost: str
    owner: str
    key: str
    count: int
    left: int
    bytes: int
    ttl_ms: int
    expires_at: int


class Settled(Struct):
    settled: int
    left: int


def _leases(call: Call) -> Leases:
    return readable(call)[1].leases


def _lease(call: Call) -> tuple[Leases, Lease]:
    leases = _leases(call)
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
    leases = _leases(call)
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
    call.bridge.begin()
    try:
        lease = leases.create(
            MOST_MESSAGES if wanted.count is None else wanted.count,
            -1 if wanted.bytes is None else wanted.bytes,
            ttl,
            wanted.owner,
            wanted.key,
        )
    except LeaseError as error:
        raise _problem(error) from None
    shown = lease.describe()
    await call.bridge.committed()
    return Json(shown, status_code=201)


async def list_leases(call: Call) -> list[dict[str, object]]:
    return [lease.describe() for lease in _leases(call).all(call.query.get("owner", ""))]


async def get_lease(call: Call) -> dict[str, object]:
    return _lease(call)[1].describe()


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
    await call.bridge.committed()
    return Settled(int(settled), int(lease.left))


async def nack(call: Call) -> Settled:
    wanted = await call.body(SlotRange)
    leases, lease = _lease(call)
    first, last = _slots(lease, wanted)
    call.bridge.begin()
    settled = leases.nack(lease, first, last, wanted.requeue)
    await call.bridge.committed()
    return Settled(int(settled), int(lease.left))


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
    call.bridge.begin()
    count = leases.release(lease)
    await call.bridge.committed()
    return Settled(int(count), int(lease.left))


_PATH = "/queues/{vhost}/{name}/leases"
ENDPOINTS = [
    Endpoint("POST", _PATH, VHOST, create, "Lease messages", body=LeaseRequest, answer=LeaseInfo, status=201),
    Endpoint("GET", _PATH, VHOST, list_leases, "Leases of a queue (?owner=)", answer=list[LeaseInfo]),
    Endpoint("GET", _PATH + "/{id}", VHOST, get_lease, "One lease", answer=LeaseInfo),
    Endpoint("DELETE", _PATH + "/{id}", VHOST, release, "Give its messages back", answer=Settled),
    Endpoint("POST", _PATH + "/{id}/ack", VHOST, ack, "Settle slots for good", body=SlotRange, answer=Settled),
    Endpoint("POST", _PATH + "/{id}/nack", VHOST, nack, "Give slots back or discard", body=SlotRange, answer=Settled),
    Endpoint("POST", _PATH + "/{id}/renew", VHOST, renew, "Prolong it", body=RenewRequest, answer=LeaseInfo),
]
