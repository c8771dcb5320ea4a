"""/queues/{vhost}/{name}/move, copy, redrive and deaths, and /transfers: messages sent elsewhere. See docs/redrive.md.

Permissions: read on the queue they come from, write on the queue or exchange they go to; a redrive asks for the latter
message by message. A transfer is seen, cancelled and taken back by whoever started it, and by administrators.
"""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from warrenmq.broker.queue.arguments import STREAM
from warrenmq.broker.queue.queue import Queue
from warrenmq.broker.transfer.edit import LONGEST, Edit
from warrenmq.broker.transfer.transfer import COPY, MOVE, REDRIVE, Transfer
from warrenmq.broker.transfer.ways import BackToExchange, ToQueue, Ways
from warrenmq.broker.vhost.vhost import VHost
from warrenmq.http.bridge import ADMINISTRATOR
from warrenmq.http.endpoint import VHOST, Call, Endpoint, Json
from warrenmq.http.errors import ApiError, bad_request, not_authorised
from warrenmq.http.fields import arguments_table, octets_of
from warrenmq.http.messages.looking_for import LARGEST, Filter
from warrenmq.http.messages.transfer_jobs import Running
from warrenmq.http.models import Json as JsonValue
from warrenmq.http.models import Object
from warrenmq.http.names import check_length
from warrenmq.http.objects.queues import readable
from warrenmq.http.views import moment

FASTEST = 1_000_000
REDRIVES = 3  # times that a message is redriven, unless told


class SendRequest(Filter, kw_only=True):
    """The messages of a queue to be sent: filters of peek (what waits only), at most ``limit``, ``rate`` a second."""

    state: str = "waiting"
    first: int = 0
    limit: int | None = None
    rate: float | None = None
    dry_run: bool = False


class MoveRequest(SendRequest, kw_only=True):
    """The messages to be moved. ``target``: the queue that gets them."""

    target: str


class EditRequest(Struct):
    """The changes of the one message at ``position``: its body, its content type, headers (null takes one away).
    What is not given stays."""

    position: int
    payload: str | None = None
    payload_encoding: str = "string"
    content_type: str | None = None
    headers: dict[str, JsonValue] = {}


class RedriveRequest(SendRequest, kw_only=True):
    """The messages to be redriven. ``exchange`` and ``routing_key`` replace those of the first death; a message that
    was redriven ``max_redrives`` times stays. With ``edit`` only that message is sent, as it says."""

    exchange: str | None = None
    routing_key: str | None = None
    max_redrives: int = REDRIVES
    edit: EditRequest | None = None


class UndoInfo(Struct):
    """The progress of taking a transfer back. ``listed``: the first of those that somebody has had meanwhile."""

    state: str
    undone: int
    left: int
    listed: list[Object]


class TransferInfo(Struct):
    """A transfer and its counts. Of ``matched`` messages ``sent`` were sent, the others ``stayed``, by reason."""

    id: str
    kind: str
    vhost: str
    queue: str
    target: str
    user: str
    dry_run: bool
    state: str
    problem: str
    started: str
    ended: str | None
    looked: int
    matched: int
    sent: int
    bytes: int
    targets: dict[str, int]
    stayed: dict[str, int]
    next: int
    end: int
    undo: UndoInfo | UnsetType = UNSET


async def move(call: Call) -> Json:
    return await _to_queue(call, MOVE)


async def copy(call: Call) -> Json:
    return await _to_queue(call, COPY)


async def _to_queue(call: Call, kind: str) -> Json:
    wanted = await call.body(MoveRequest)
    vhost, source = readable(call)
    if kind == MOVE:
        _check_takeable(source)
    access, user = call.bridge.access, call.user.name
    if not access.allowed(user, vhost.name, "write", wanted.target):
        raise not_authorised(f"access to {vhost.queue_name(wanted.target)} refused for user '{user}'")
    target = vhost.queues.get(wanted.target)
    if target is None:
        raise ApiError(404, "not_found", f"no {vhost.queue_name(wanted.target)}")
    vhost.check_exclusive(target, None, False)
    if target is source:
        raise bad_request(f"{source.name}: source and target are the same queue")
    return _start(call, kind, vhost, source, wanted, ToQueue(target), wanted.target)


async def redrive(call: Call) -> Json:
    wanted = await call.body(RedriveRequest)
    vhost, source = readable(call)
    _check_takeable(source)
    if not 1 <= wanted.max_redrives <= 1_000_000:
        raise bad_request(f"max_redrives: {wanted.max_redrives} is not between 1 and 1000000")
    target = "the exchange of the first death"
    if wanted.exchange is not None:
        name = vhost.exchange_name(wanted.exchange)
        if not call.bridge.access.allowed(call.user.name, vhost.name, "write", wanted.exchange):
            raise not_authorised(f"access to {name} refused for user '{call.user.name}'")
        if wanted.exchange not in vhost.exchanges:
            raise ApiError(404, "not_found", f"no {name}")
        target = str(name)
    ways = BackToExchange(
        call.bridge.broker.services,
        vhost,
        source,
        call.bridge.access,
        call.user.name,
        wanted.exchange,
        wanted.routing_key,
        wanted.max_redrives,
        None if wanted.edit is None else _edit(call.user.name, wanted.edit),
    )
    return _start(call, REDRIVE, vhost, source, wanted, ways, target)


def _edit(user: str, wanted: EditRequest) -> Edit:
    body = None if wanted.payload is None else octets_of(wanted.payload, wanted.payload_encoding)
    if body is not None and len(body) > LONGEST:
        raise bad_request(f"payload: an edited body has at most {LONGEST} octets")
    if wanted.content_type is not None:
        check_length("content_type", wanted.content_type)
    kept = {name: value for name, value in wanted.headers.items() if value is not None}
    gone = [name for name, value in wanted.headers.items() if value is None]
    return Edit(user, body, wanted.content_type, arguments_table(kept), gone)


def _check_takeable(source: Queue) -> None:
    if source.kind == STREAM:
        raise bad_request(f"{source.name} is a stream: what is in it can be copied, and is not taken out")


def _start(call: Call, kind: str, vhost: VHost, source: Queue, wanted: SendRequest, ways: Ways, target: str) -> Json:
    if wanted.state not in ("all", "waiting"):
        raise bad_request(f"state: '{wanted.state[:40]}': only what waits can be sent elsewhere")
    if wanted.limit is not None and wanted.limit < 1:
        raise bad_request(f"limit: {wanted.limit} is not 1 or more")
    if wanted.rate is not None and not 0 < wanted.rate <= FASTEST:
        raise bad_request(f"rate: {wanted.rate} is not above 0 and up to {FASTEST} messages a second")
    now = int(call.bridge.broker.services.clock.now_ms())
    chosen = wanted.wanted(now)
    chosen.held = False
    transfers = call.bridge.transfers
    transfers.check_room()
    limit = 0 if wanted.limit is None else wanted.limit
    first = max(0, wanted.first)
    end = 0
    if isinstance(wanted, RedriveRequest) and wanted.edit is not None:
        first = wanted.edit.position
        if not 0 < first < LARGEST:
            raise bad_request(f"edit: {first} is no position of a message")
        end = first + 1
    id = transfers.next_id()
    transfer = Transfer(id, kind, source, chosen, wanted.octets(), ways, first, limit, wanted.dry_run, end)
    one = Running(transfer, vhost.name, call.user.name, target, wanted.rate or 0.0, now)
    access, user = call.bridge.access, call.user.name

    def still_allowed() -> bool:
        if not access.allowed(user, vhost.name, "read", source.name.name):
            return False
        return kind == REDRIVE or access.allowed(user, vhost.name, "write", target)

    one.still_allowed = still_allowed
    transfers.start(one)
    return Json(info(one), status_code=202)


def info(one: Running) -> TransferInfo:
    transfer = one.transfer
    return TransferInfo(
        id=transfer.id,
        kind=transfer.kind,
        vhost=one.vhost,
        queue=transfer.source.name.name,
        target=one.target,
        user=one.user,
        dry_run=transfer.dry_run,
        state=transfer.state,
        problem=transfer.problem,
        started=moment(one.started),
        ended=moment(one.ended) if one.ended else None,
        looked=int(transfer.looked),
        matched=int(transfer.matched),
        sent=int(transfer.sent),
        bytes=int(transfer.bytes),
        targets=transfer.targets,
        stayed=transfer.stayed,
        next=int(transfer.next),
        end=int(transfer.end),
        undo=UNSET if one.undo is None else _undo_info(one),
    )


def _undo_info(one: Running) -> UndoInfo:
    undo = one.undo
    assert undo is not None
    listed: list[Object] = []
    for sent in undo.listed:
        places = [{"queue": queue.name.name, "position": position} for queue, position in sent.copies]
        listed.append({"position": int(sent.position), "sent_to": places})
    return UndoInfo(undo.state, int(undo.undone), int(undo.left), listed)


def _found(call: Call) -> Running:
    one = call.bridge.transfers.get(call.path["id"])
    mine = one is not None and (one.user == call.user.name or ADMINISTRATOR in call.user.tags)
    if one is None or not mine or one.vhost != call.path["vhost"]:
        raise ApiError(404, "not_found", f"no transfer '{call.path['id']}' in vhost '{call.path['vhost']}'")
    return one


async def list_transfers(call: Call) -> list[TransferInfo]:
    everything = ADMINISTRATOR in call.user.tags
    vhost = call.bridge.vhost(call.path["vhost"])
    found = [one for one in call.bridge.transfers.all() if one.vhost == vhost.name]
    return [info(one) for one in found if everything or one.user == call.user.name]


async def get_transfer(call: Call) -> TransferInfo:
    return info(_found(call))


async def cancel(call: Call) -> TransferInfo:
    """What it has sent is sent."""
    one = _found(call)
    call.bridge.begin()
    one.transfer.cancel()
    await call.bridge.committed()
    return info(one)


async def undo(call: Call) -> Json:
    one = _found(call)
    if call.bridge.transfers.is_busy(one):
        raise bad_request(f"transfer {one.transfer.id} is running: cancel it first, or wait")
    if one.transfer.dry_run or one.undo is not None:
        raise bad_request(f"transfer {one.transfer.id}: there is nothing to take back")
    if one.transfer.source.gone and one.transfer.kind != COPY:
        raise bad_request(f"{one.transfer.source.name} was deleted: there is nowhere to take it back to")
    if not one.still_allowed():
        raise not_authorised(f"user '{one.user}' may not send from {one.transfer.source.name} any more")
    call.bridge.transfers.take_back(one)
    return Json(info(one), status_code=202)


QUEUE = "/queues/{vhost}/{name}"
ENDPOINTS = [
    Endpoint("POST", QUEUE + "/move", VHOST, move, "Move messages to another queue", MoveRequest, TransferInfo, 202),
    Endpoint("POST", QUEUE + "/copy", VHOST, copy, "Copy messages to another queue", MoveRequest, TransferInfo, 202),
    Endpoint(
        "POST",
        QUEUE + "/redrive",
        VHOST,
        redrive,
        "Send dead letters back to where they were published",
        RedriveRequest,
        TransferInfo,
        202,
    ),
    Endpoint("GET", "/transfers/{vhost}", VHOST, list_transfers, "One's own transfers", answer=list[TransferInfo]),
    Endpoint("GET", "/transfers/{vhost}/{id}", VHOST, get_transfer, "One transfer", answer=TransferInfo),
    Endpoint(
        "DELETE", "/transfers/{vhost}/{id}", VHOST, cancel, "Send no more; what is sent is sent", answer=TransferInfo
    ),
    Endpoint(
        "POST",
        "/transfers/{vhost}/{id}/undo",
        VHOST,
        undo,
        "Take back what nobody has touched",
        answer=TransferInfo,
        status=202,
    ),
]
