"""/delayed/{vhost}: the messages that wait in delayed exchanges. See docs/delayed.md.

Permissions, on the exchange: read to see, configure to change. Every change is answered when the log has it. Filters
that need the content of messages are worked off a step at a time and up to a budget; then the answer carries a
``next`` token to go on with.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

from msgspec import UNSET, Struct, UnsetType
from starlette.responses import Response

from warrenmq.broker.delay import browse
from warrenmq.broker.delay.note import CONFIRM, MANDATORY, PERSISTENT, REPEATS, note_of
from warrenmq.broker.delay.retrying import PREFIX, Retrying
from warrenmq.broker.delay.schedule import Schedule
from warrenmq.broker.delay.source import Source
from warrenmq.broker.exchange.delayed import LONGEST
from warrenmq.broker.message import bcc_of, packed_keys_of, unpack_keys
from warrenmq.broker.queue.classic import ClassicQueue
from warrenmq.broker.records import Content
from warrenmq.http.endpoint import VHOST, Call, Endpoint, NoContent
from warrenmq.http.errors import ApiError, bad_request, not_authorised
from warrenmq.http.listing import with_rows
from warrenmq.http.pacer import Pacer
from warrenmq.log.damage import RecordDamaged
from warrenmq.log.format import LogError
from warrenmq.wire.content import Properties, body_size
from warrenmq.wire.fields import Table, to_python, type_name
from warrenmq.wire.properties import PROPERTIES

DEFAULT_LIMIT = 100
LARGEST_LIMIT = 1000
BUDGET = 20_000  # messages one request looks into
STEP = 64  # of them at a time, between which others get their turn
SHOWN_BYTES = 1024  # of a body, in listings
MOST_BYTES = 4 << 20  # of the body of a single message
SHOWN_PROPERTIES = [row.name for row in PROPERTIES if row.name != "headers"]


class Repetition(Struct):
    """The rhythm of a message that is delivered more than once."""

    deliveries: int
    every_ms: int | UnsetType = UNSET
    cron: str | UnsetType = UNSET
    timezone: str | UnsetType = UNSET
    count: int | UnsetType = UNSET


class DelayedMessage(Struct):
    """A waiting message with the exchange it waits at; or, without one, with the ``queue`` that tries it again then."""

    id: str
    vhost: str
    exchange: str
    exchange_type: str
    exchange_durable: bool
    exchange_auto_delete: bool
    exchange_internal: bool
    exchange_arguments: dict[str, Any]
    exchange_argument_types: dict[str, str]
    exchange_scratches: dict[str, Any]
    exchange_policy: str | None
    exchange_operator_policy: str | None
    exchange_decorators: list[str]
    exchange_user: str
    published_to: str
    routing_keys: list[str]
    due: str
    due_ms: int
    scheduled: str
    properties: dict[str, Any]
    headers: dict[str, Any]
    header_types: dict[str, str]
    payload: str
    payload_encoding: str
    payload_bytes: int
    persistent: bool
    mandatory: bool
    confirm: bool
    sequence_number: int
    publisher: str
    sender: str
    message_id: str
    payload_truncated: bool | UnsetType = UNSET
    repeats: Repetition | UnsetType = UNSET
    queue: str | UnsetType = UNSET
    retry: int | UnsetType = UNSET


class DelayedPage(Struct):
    """A page of what waits, in order of due time. ``next``: ask again with ``?token=`` for more."""

    items: list[DelayedMessage]
    next: str | None
    messages_delayed: int


class NewTime(Struct):
    """A new time for a message, in one of two ways. ``deliver_at``: milliseconds since 1970, or a time like
    2030-01-31T12:00:00Z."""

    delay_ms: int | None = None
    deliver_at: int | str | None = None


class Delivered(Struct):
    """The answer to "deliver it now"."""

    routed: bool


class Cancelled(Struct):
    """The answer to a cancellation: how many matched, how many went, where to go on."""

    matched: int
    cancelled: int
    dry_run: bool
    next: str | None


# -- looking


async def list_delayed(call: Call) -> Response:
    sources = _sources(call)
    limit = _number(call.query, "limit", DEFAULT_LIMIT, 1, LARGEST_LIMIT)
    wanted = _filter(call)
    place = _place(call)
    pacer = Pacer()
    items: list[DelayedMessage] = []
    following: browse.Place | None = place
    looked = 0
    while following is not None and len(items) < limit and looked < BUDGET:
        step = browse.step(sources, wanted, following, limit - len(items), STEP)
        for waiting in step.found:
            shown = describe(waiting, SHOWN_BYTES)
            if shown is not None:
                items.append(shown)
            await pacer.breathe()
        looked += int(step.looked)
        following = step.place
        await pacer.breathe()
    total = sum(int(source.waiting()) for source in sources)
    page = DelayedPage(items, None if following is None else following.token(), total)
    return await with_rows(page, "items")


async def get_delayed(call: Call) -> DelayedMessage:
    retrying = _retrying(call, "read")
    if retrying is not None:
        shown = describe(retrying, MOST_BYTES)
    else:
        schedule, due, key = _found(call, "read")
        shown = describe(browse.Waiting(schedule, due, key, None), MOST_BYTES)
    if shown is None:
        raise _unreadable()
    return shown


def _unreadable() -> ApiError:
    return ApiError(500, "unreadable", "this message is damaged on disk; GET /api/damaged lists such messages")


def describe(waiting: browse.Waiting, most_bytes: int) -> DelayedMessage | None:
    """The JSON of one message; None when the log cannot read it."""
    try:
        stored = waiting.stored(most_bytes)
    except LogError:
        return None
    note = note_of(stored)
    source = waiting.source
    content = Content(stored.header, b"")
    keys = unpack_keys(packed_keys_of(stored))
    size = int(body_size(stored.header))
    truncated = size > most_bytes
    payload, encoding = _payload(stored.body[:most_bytes] if truncated else stored.body)
    shown = DelayedMessage(
        id=waiting.id(),
        vhost="",
        exchange="",
        exchange_type="",
        exchange_durable=False,
        exchange_auto_delete=False,
        exchange_internal=False,
        exchange_arguments={},
        exchange_argument_types={},
        exchange_scratches={},
        exchange_policy=None,
        exchange_operator_policy=None,
        exchange_decorators=[],
        exchange_user="",
        published_to=stored.exchange,
        routing_keys=keys[: len(keys) - bcc_of(stored)],
        due=_moment(waiting.due),
        due_ms=int(waiting.due),
        scheduled=_moment(note.scheduled_at),
        properties=_properties(content.properties),
        headers=to_python(content.headers),
        header_types=_types(content.headers),
        payload=payload,
        payload_encoding=encoding,
        payload_bytes=size,
        persistent=note.has(PERSISTENT),
        mandatory=note.has(MANDATORY),
        confirm=note.has(CONFIRM),
        sequence_number=int(note.sequence_number),
        publisher=note.publisher,
        sender=note.sender,
        message_id=f"{stored.message_id:016x}",
        payload_truncated=True if truncated else UNSET,
        repeats=_repetition(to_python(content.headers), int(note.deliveries)) if note.has(REPEATS) else UNSET,
    )
    if isinstance(source, Schedule):
        _show_exchange(shown, source)
    else:
        assert isinstance(source, Retrying)
        shown.vhost = source.queue.vhost.name
        shown.queue = source.queue.name.name
        shown.retry = int(source.queue.tries_of(waiting.key))
        shown.persistent = content.properties.delivery_mode == 2
        shown.scheduled = ""
    return shown


def _show_exchange(shown: DelayedMessage, schedule: Schedule) -> None:
    exchange = schedule.exchange
    shown.vhost = schedule.vhost.name
    shown.exchange = exchange.name.name
    shown.exchange_type = exchange.type
    shown.exchange_durable = exchange.durable
    shown.exchange_auto_delete = exchange.auto_delete
    shown.exchange_internal = exchange.internal
    shown.exchange_arguments = to_python(exchange.arguments)
    shown.exchange_argument_types = _types(exchange.arguments)
    shown.exchange_scratches = exchange.scratches
    shown.exchange_policy = exchange.policy.name
    shown.exchange_operator_policy = exchange.policy.operator
    shown.exchange_decorators = [decorator.name for decorator in exchange.decorators]  # type: ignore[attr-defined]
    shown.exchange_user = exchange.user


def _types(table: Table) -> dict[str, str]:
    """RabbitMQ's words for the types of the values, which JSON does not tell apart."""
    return {name: type_name(field) for name, field in table.items()}


def _properties(properties: Properties) -> dict[str, Any]:
    shown = {name: getattr(properties, name) for name in SHOWN_PROPERTIES}
    return {name: value for name, value in shown.items() if value is not None}


def _repetition(headers: dict[str, Any], deliveries: int) -> Repetition:
    cron = headers.get("x-delay-cron")
    return Repetition(
        deliveries,
        every_ms=int(headers["x-delay-every"]) if "x-delay-every" in headers else UNSET,
        cron=UNSET if cron is None else cron,
        timezone=UNSET if cron is None else headers.get("x-delay-timezone", "UTC"),
        count=int(headers["x-delay-count"]) if "x-delay-count" in headers else UNSET,
    )


def _payload(body: bytes) -> tuple[str, str]:
    try:
        return body.decode("utf-8"), "string"
    except UnicodeDecodeError:
        return base64.b64encode(body).decode("ascii"), "base64"


def _moment(milliseconds: int) -> str:
    try:
        return datetime.fromtimestamp(int(milliseconds) / 1000, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError):
        return "after the year 9999"


# -- changing


async def cancel(call: Call) -> NoContent:
    _refuse_retries(call, "cancelled")
    schedule, due, key = _found(call, "configure")
    call.bridge.begin()
    call.bridge.broker.delay.cancel(schedule, due, key)
    await call.bridge.committed()
    return NoContent()


async def reschedule(call: Call) -> DelayedMessage:
    _refuse_retries(call, "rescheduled")
    _found(call, "configure")
    wanted = await call.body(NewTime)
    schedule, due, key = _found(call, "configure")
    call.bridge.begin()
    new_due = _new_due(wanted, int(call.bridge.broker.services.turn.now))
    id = schedule.id_of(due, key)
    try:
        call.bridge.broker.delay.reschedule(schedule, due, key, new_due)
    except RecordDamaged:
        raise _unreadable() from None
    found = schedule.find(id)
    shown = None if found is None else describe(browse.Waiting(schedule, found[0], found[1], None), SHOWN_BYTES)
    await call.bridge.committed()
    if shown is None:
        raise _unreadable()
    return shown


def _new_due(wanted: NewTime, now: int) -> int:
    if (wanted.delay_ms is None) == (wanted.deliver_at is None):
        raise bad_request("give either delay_ms or deliver_at")
    if wanted.delay_ms is not None:
        if not 0 <= wanted.delay_ms <= LONGEST:
            raise bad_request(f"delay_ms: {wanted.delay_ms} is not between 0 and {LONGEST}")
        return now + wanted.delay_ms
    return _time("deliver_at", wanted.deliver_at)


async def deliver_now(call: Call) -> Delivered:
    retrying = _retrying(call, "read")
    if retrying is not None:
        source = retrying.source
        assert isinstance(source, Retrying)
        call.bridge.begin()
        source.deliver_now(retrying.key)
        await call.bridge.committed()
        return Delivered(True)
    delay = call.bridge.broker.delay
    schedule, due, key = _found(call, "configure")
    try:
        while not delay.is_ready(schedule, due, key):
            await call.bridge.steps("deliver now", delay.read_first(schedule, due, key))
            schedule, due, key = _found(call, "configure")
        call.bridge.begin()
        routed = delay.deliver_now(schedule, due, key)
    except RecordDamaged:
        raise _unreadable() from None
    await call.bridge.committed()
    return Delivered(routed)


async def cancel_many(call: Call) -> Cancelled:
    """What a listing with the same filters shows; with ``dry_run=true`` it is only counted."""
    wanted = _filter(call)
    if "exchange" not in call.query and not wanted.reads() and "from" not in call.query and "to" not in call.query:
        raise bad_request("name an exchange or another filter: a whole vhost is not emptied by accident")
    schedules: list[Source] = [*_schedules(call, "configure")]
    dry_run = call.flag("dry_run")
    place: browse.Place | None = _place(call)
    delay = call.bridge.broker.delay
    pacer = Pacer()
    matched = cancelled = looked = 0
    while place is not None and (looked < BUDGET or not wanted.reads()):
        step = browse.step(schedules, wanted, place, STEP, STEP)
        matched += len(step.found)
        if step.found and not dry_run:
            call.bridge.begin()
            for waiting in step.found:
                assert isinstance(waiting.source, Schedule)
                cancelled += delay.cancel(waiting.source, waiting.due, waiting.key)
        looked += int(step.looked)
        place = step.place
        await pacer.breathe()
    if cancelled:
        await call.bridge.committed()
    return Cancelled(matched, cancelled, dry_run, None if place is None else place.token())


# -- the question


def _allowed(call: Call, permission: str, schedule: Schedule) -> bool:
    name = schedule.exchange.name
    return call.bridge.access.allowed(call.user.name, name.virtual_host, permission, name.name)


def _refused(call: Call, what: str) -> ApiError:
    return not_authorised(f"access to {what} refused for user '{call.user.name}'")


def _schedules(call: Call, permission: str) -> list[Schedule]:
    """Those of the exchange asked for, or all that this user may see or change."""
    vhost = call.bridge.vhost(call.path["vhost"])
    delay = call.bridge.broker.delay
    name = call.query.get("exchange")
    if name is None:
        return [one for one in delay.schedules(vhost.name) if _allowed(call, permission, one)]
    exchange = vhost.exchanges.get(name)
    if exchange is None:
        raise ApiError(404, "not_found", f"no {vhost.exchange_name(name)}")
    if not call.bridge.access.allowed(call.user.name, vhost.name, permission, name):
        raise _refused(call, str(exchange.name))
    schedule = delay.schedule_of(exchange)
    return [] if schedule is None else [schedule]


def _sources(call: Call) -> list[Source]:
    """The schedules, and what waits in queues for its retry; or only those of the exchange or queue asked for."""
    name = call.query.get("queue")
    sources: list[Source] = [] if name is not None else [*_schedules(call, "read")]
    if "exchange" not in call.query:
        sources.extend([one for one in _retries(call) if name is None or one.queue.name.name == name])
    return sources


def _retries(call: Call) -> list[Retrying]:
    """Of the queues that this user may read."""
    vhost = call.bridge.vhost(call.path["vhost"])
    access = call.bridge.access
    found = [queue for queue in vhost.queues.values() if isinstance(queue, ClassicQueue) and queue.leases.retrying()]
    return [Retrying(one) for one in found if access.allowed(call.user.name, vhost.name, "read", one.name.name)]


def _retrying(call: Call, permission: str) -> browse.Waiting | None:
    """The message of an id that only one that waits for its retry has."""
    id = call.path["id"]
    if id.startswith(PREFIX + "-"):
        vhost = call.bridge.vhost(call.path["vhost"])
        for queue in vhost.queues.values():
            if not isinstance(queue, ClassicQueue) or not id.startswith(f"{PREFIX}-{queue.id:x}-"):
                continue
            found = Retrying(queue).find(id)
            if found is not None:
                if not call.bridge.access.allowed(call.user.name, vhost.name, permission, queue.name.name):
                    raise _refused(call, str(queue.name))
                return browse.Waiting(Retrying(queue), found[0], found[1], None)
    return None


def _refuse_retries(call: Call, what: str) -> None:
    retrying = _retrying(call, "read")
    if retrying is not None:
        source = retrying.source
        assert isinstance(source, Retrying)
        where = source.queue.name
        raise bad_request(f"it waits in {where} for its retry and cannot be {what}; deliver-now is possible")


def _found(call: Call, permission: str) -> tuple[Schedule, int, int]:
    """The message of an id; own ids may occur at several exchanges, then ``?exchange=`` says which."""
    id = call.path["id"]
    vhost = call.bridge.vhost(call.path["vhost"])
    wanted = call.query.get("exchange")
    found: list[tuple[Schedule, int, int]] = []
    for schedule in call.bridge.broker.delay.schedules(vhost.name):
        if wanted is not None and schedule.exchange.name.name != wanted:
            continue
        pair = schedule.find(id)
        if pair is not None:
            found.append((schedule, pair[0], pair[1]))
    if not found:
        raise ApiError(404, "not_found", f"no delayed message '{id}' in vhost '{vhost.name}'")
    if len(found) > 1:
        names = ", ".join(f"'{one[0].exchange.name.name}'" for one in found)
        raise bad_request(f"'{id}' waits at several exchanges ({names}): name one with ?exchange=")
    if not _allowed(call, permission, found[0][0]):
        raise _refused(call, str(found[0][0].exchange.name))
    return found[0]


def _filter(call: Call) -> browse.Filter:
    wanted = browse.Filter()
    query = call.query
    wanted.routing_key = query.get("routing_key")
    wanted.message_id = query.get("message_id")
    if "from" in query:
        wanted.since = _time("from", query["from"])
    if "to" in query:
        wanted.until = _time("to", query["to"])
    headers: dict[str, str] = {}
    for pair in call.request.query_params.getlist("header"):
        name, colon, value = pair.partition(":")
        if not colon or not name:
            raise bad_request(f"header: '{pair}' is not name:value")
        headers[name] = value
    wanted.headers = headers
    return wanted


def _place(call: Call) -> browse.Place:
    token = call.query.get("token")
    if token is None:
        return browse.start()
    place = browse.place_of(token)
    if place is None:
        raise bad_request(f"token: '{token}' is none of ours")
    return place


def _number(query: dict[str, str], name: str, default: int, low: int, high: int) -> int:
    text = query.get(name, str(default))
    if not text.isascii() or not text.isdigit() or not low <= int(text[:9]) <= high:
        raise bad_request(f"{name}: '{text}' is not between {low} and {high}")
    return int(text)


def _time(name: str, value: int | str | None) -> int:
    """Milliseconds since 1970, as a number or as a text of digits, or a time in ISO 8601 with its offset."""
    if isinstance(value, str):
        if value.isascii() and value.isdigit():
            value = int(value[:20])
        else:
            try:
                moment = datetime.fromisoformat(value)
            except ValueError:
                raise bad_request(f"{name}: '{value}' is neither milliseconds since 1970 nor a time") from None
            if moment.tzinfo is None:
                raise bad_request(f"{name}: '{value}' has no offset; for UTC append Z")
            value = int(moment.timestamp() * 1000)
    if value is None or not 0 <= value <= 2 * LONGEST:
        raise bad_request(f"{name}: '{value}' is out of range")
    return value


ENDPOINTS = [
    Endpoint(
        "GET",
        "/delayed/{vhost}",
        VHOST,
        list_delayed,
        "Delayed messages by due time "
        "(?exchange or queue, from, to, routing_key, header=name:value, message_id, limit, token)",
        answer=DelayedPage,
    ),
    Endpoint(
        "DELETE",
        "/delayed/{vhost}",
        VHOST,
        cancel_many,
        "Cancel what the same filters select (?dry_run=true only counts)",
        answer=Cancelled,
    ),
    Endpoint("GET", "/delayed/{vhost}/{id}", VHOST, get_delayed, "One delayed message", answer=DelayedMessage),
    Endpoint("DELETE", "/delayed/{vhost}/{id}", VHOST, cancel, "Cancel it", status=204),
    Endpoint(
        "POST",
        "/delayed/{vhost}/{id}/reschedule",
        VHOST,
        reschedule,
        "Give it another due time",
        body=NewTime,
        answer=DelayedMessage,
    ),
    Endpoint(
        "POST",
        "/delayed/{vhost}/{id}/deliver-now",
        VHOST,
        deliver_now,
        "Deliver it as if it were due",
        answer=Delivered,
    ),
]
