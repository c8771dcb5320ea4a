"""/messages: what became of messages, and where they are now. See docs/where.md.

The journal's process tells what happened; here it is asked without waiting on it, what the user may not see is left
out, and what is true at this moment is added (``whereabouts.py``).

Who may see what: the events of a queue, whoever may read the queue; of a delayed exchange, who may read the exchange;
what is of no queue (published, refused, returned), whoever may read a queue that this record was in, the user who
published it, and administrators. Properties are for the first two. What a message said is for who may read a queue that
this record was in, and, of a publish that reached none, for the user who published it and administrators. Of whom
nothing is left there is nothing: the answer is the same as for a message that never was.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

from msgspec import UNSET, Struct, UnsetType
from starlette.responses import StreamingResponse

from warrenmq.broker.records import AS_QUEUE
from warrenmq.http import endpoint
from warrenmq.http.bridge import ADMINISTRATOR
from warrenmq.http.encoding import encode
from warrenmq.http.endpoint import Call, Endpoint
from warrenmq.http.errors import ApiError, bad_request
from warrenmq.http.messages import whereabouts
from warrenmq.http.messages.looking_for import LARGEST, number
from warrenmq.http.models import Object, Problem
from warrenmq.http.patience import while_there
from warrenmq.http.pieces import paced

KEYS = ("id", "message_id", "correlation_id", "any")
TEXTS = ("message_id", "correlation_id", "any", "vhost", "queue", "state", "before")
STATES = ("waiting", "held", "unknown", "gone")
LONGEST = 255  # octets of a text: AMQP's short strings, and enough of a header's value
LIMIT = 100
MOST = 1000
TOGETHER = 100  # that the journal is asked for at a time
CURSOR = re.compile(r"[0-9a-f]{16}-\d{1,19}--?[0-9a-f]{1,16}")
ABOUT = ("vhost", "exchange", "routing_keys", "size", "message_id", "correlation_id", "user")

Life = dict[str, Any]


class FoundMessages(Struct):
    """Messages, the newest first; ``next`` is the ``before`` of the page behind. The journal tells what happened from
    ``known_from`` to ``known_until``. ``searched_from``: older is not searched yet, ``next`` goes on there.
    ``error``: the answer was broken off."""

    items: list[Object]
    next: str | None
    known_from: str | UnsetType = UNSET
    known_until: str | UnsetType = UNSET
    searched_from: str | UnsetType = UNSET
    error: str | UnsetType = UNSET


async def find(call: Call) -> object:
    asked = question(call)
    limit = number(call, "limit", 1, MOST) or LIMIT
    parts = told(call, asked, limit)

    async def begin() -> dict[str, Any]:
        return await anext(parts)

    try:
        first = await while_there(call.request, begin())
    except LookupError as error:
        raise unavailable(error) from None
    answer = paced(call.bridge.server.watchdog, "messages found", streamed(first, parts))
    return StreamingResponse(answer, media_type="application/json")


async def show(call: Call) -> object:
    text = call.path["id"]
    if not text.isascii() or not text.isdigit() or len(text) > 19 or int(text) > LARGEST:
        raise bad_request(
            f"'{text[:40]}' is no id of the broker's: ask /api/messages?message_id=, ?correlation_id= or ?any="
        )
    try:
        life = await while_there(call.request, _only(call, {"id": int(text), "body": _wants_body(call)}))
    except LookupError as error:
        raise unavailable(error) from None
    if life is not None:
        return life
    raise ApiError(404, "not_found", f"no message {text} that you may see is in the journal")


async def _only(call: Call, asked: dict[str, object]) -> Life | None:
    """The one that there is, however long the search is."""
    while True:
        before = None
        async with aclosing(told(call, asked, 1)) as parts:
            async for part in parts:
                if "life" in part:
                    found: Life = part["life"]
                    return found
                before = part.get("looked", {}).get("stopped")
        if before is None:
            return None
        asked = asked | {"before": before}


def unavailable(error: LookupError) -> ApiError:
    return ApiError(503, "unavailable", str(error))


# -- the question


def question(call: Call) -> dict[str, object]:
    """As the journal is asked; what is wrong with it is said here."""
    query = call.query
    asked: dict[str, object] = {"body": _wants_body(call)}
    for name in TEXTS:
        if name in query:
            asked[name] = _short(name, query[name])
    for name, value in (
        ("id", number(call, "id")),
        ("since", moment_in(query, "since")),
        ("until", moment_in(query, "until")),
    ):
        if value is not None:
            asked[name] = value
    if "header" in query:
        header, colon, text = query["header"].partition(":")
        if not colon or not header:
            raise bad_request(f"header: '{query['header'][:100]}' is not name:value")
        asked |= {"header": _short("header", header), "value": _short("header", text)}
    given = [name for name in (*KEYS, "header") if name in asked]
    if len(given) > 1:
        raise bad_request(f"{given[0]} and {given[1]}: one of them")
    if not given and "queue" not in asked:
        raise bad_request(f"one of {', '.join(KEYS)}, header or queue says which messages")
    if asked.get("state", STATES[0]) not in STATES:
        raise bad_request(f"state: '{query['state'][:40]}' is none of {', '.join(STATES)}")
    if CURSOR.fullmatch(query.get("before", f"{0:016x}-0-0")) is None:
        raise bad_request(f"before: '{query['before'][:60]}' is not what an answer gave as next")
    if "queue" in asked:
        asked.setdefault("vhost", "/")
    return asked


def moment_in(values: Mapping[str, Any], name: str) -> int | None:
    """A time, in µs since 1970."""
    text = values.get(name)
    if text is None:
        return None
    text = str(text)
    try:
        moment = datetime.fromisoformat(text.replace(" ", "+"))  # as an unquoted plus sign arrives
        return max(0, int(moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() * 1_000_000))
    except (ValueError, OverflowError):
        raise bad_request(f"{name}: '{text[:40]}' is not a time such as 2026-05-01T12:00:00Z") from None


def _wants_body(call: Call) -> bool:
    text = call.query.get("body", "false")
    if text not in ("true", "false"):
        raise bad_request(f"body: '{text[:40]}' is neither true nor false")
    return text == "true"


def _short(name: str, text: str) -> str:
    if len(text.encode("utf-8", "surrogateescape")) > LONGEST:
        raise bad_request(f"{name}: at most {LONGEST} octets")
    return text


# -- the answer


async def told(call: Call, asked: dict[str, object], limit: int) -> AsyncGenerator[dict[str, Any], None]:
    """The parts of the journal's answer that this user may see, with what is true now; at last how far it knows.

    It is asked for some at a time: how many of them are left out is not known before.
    """
    rights = Rights(call)
    wanted = asked.get("state")
    asked = {name: value for name, value in asked.items() if name != "state"}  # it may have changed since
    if "queue" in asked and not rights.may_read(str(asked["vhost"]), str(asked["queue"])):
        asked["limit"] = 0
    shown = 0
    more = True
    while more:
        received = 0
        more = False
        async with aclosing(call.bridge.server.journal.ask({"limit": TOGETHER, **asked})) as parts:
            async for part in parts:
                if "life" not in part:
                    yield part
                    continue
                received += 1
                asked["before"] = part["life"]["cursor"]
                more = received == TOGETHER
                life = rights.seen(part["life"])
                if life is None:
                    continue
                await add_now(call, life)
                if wanted is None or life["state"] == wanted:
                    shown += 1
                    yield {"life": life, "last": shown == limit}
                    if shown == limit:
                        return


async def streamed(first: dict[str, Any], parts: AsyncIterator[dict[str, Any]]) -> AsyncIterator[bytes]:
    """FoundMessages, a message at a time as they are found, and a line end now and then meanwhile."""
    end: dict[str, Any] = {"next": None}
    yield b'{"items":['
    count = 0
    part: dict[str, Any] | None = first
    try:
        while part is not None:
            if "life" in part:
                yield (b"," if count else b"") + encode(part["life"])
                count += 1
                if part["last"]:
                    end["next"] = part["life"]["cursor"]
            elif "looked" in part:
                looked = part["looked"]
                end |= {name: looked[name] for name in ("known_from", "known_until") if name in looked}
                end["next"] = looked.get("stopped")
                if "stopped" in looked:
                    end["searched_from"] = looked["searched_from"]
            else:
                yield b"\n"
            part = await anext(parts, None)
    except LookupError as error:
        end["error"] = str(error)
    yield b"]," + encode(end)[1:]


async def add_now(call: Call, life: Life) -> None:
    """For every queue where it still was when the journal was written."""
    for place in life["places"]:
        if place["state"] in ("gone", "unknown"):
            continue
        found = await whereabouts.now(
            call.bridge, place["vhost"], place["queue"], place.get("position"), place["record"]
        )
        place["now"] = found
        if found["state"] == "left":
            place["state"] = "gone"
        elif found["state"] in ("waiting", "retained"):
            place["state"] = "waiting"
        else:
            place["state"] = "held"
    if life["places"]:
        life["state"] = _state(life["places"])


def _state(places: list[dict[str, Any]]) -> str:
    """Of all places the one where most is still to come."""
    return next(state for state in STATES if any(place["state"] == state for place in places))


class Rights:
    """The rights of one user to see messages."""

    def __init__(self, call: Call) -> None:
        self._bridge = call.bridge
        self._user = call.user.name
        self._administrator = ADMINISTRATOR in call.user.tags
        self._known: dict[tuple[str, str], bool] = {}

    def may_read(self, vhost: str, queue: str) -> bool:
        known = self._known.get((vhost, queue))
        if known is None:
            known = self._known[vhost, queue] = self._find(vhost, queue)
        return known

    def _find(self, vhost: str, queue: str) -> bool:
        allowed = self._bridge.access.allowed
        if queue.startswith("#") and not vhost:  # whose name the journal does not know
            return self._administrator
        if queue.startswith(AS_QUEUE):
            return allowed(self._user, vhost, "read", queue.removeprefix(AS_QUEUE))
        return allowed(self._user, vhost, "read", queue)

    def seen(self, life: Life) -> Life | None:
        """The life as this user may see it; None: nothing of it."""
        readable = {
            event["record"]
            for event in life["events"]
            if "queue" in event and "record" in event and self.may_read(event.get("vhost", ""), event["queue"])
        }
        events = [
            event if self._hears(event, life, readable) else _silent(event)
            for event in life["events"]
            if self._sees(event, readable)
        ]
        if not events:
            return None
        shown: Life = {"id": life["id"]}
        first = next((event for event in events if "exchange" in event), None)  # it tells what the message was
        if first is not None:
            shown |= {name: first[name] for name in ABOUT if name in first}
            record = first.get("record")
            if record == life["record"]:
                own = first["event"] != "written" and first.get("user") == self._user
                if "properties" in life and (own or record in readable or "queue" in first):
                    shown["properties"] = life["properties"]
        places = [one for one in life["places"] if self.may_read(one["vhost"], one["queue"])]
        return shown | {
            "state": _state(places) if places else "unknown" if life["places"] else life["state"],
            "events": events,
            "places": places,
            "gaps": life["gaps"],
            "cursor": life["cursor"],
        }

    def _hears(self, event: dict[str, Any], life: Life, readable: set[int]) -> bool:
        """Of an event that this user sees: also what the message said? What was in no queue, nobody has to read."""
        return "queue" in event or event.get("record") in readable or not life["places"]

    def _sees(self, event: dict[str, Any], readable: set[int]) -> bool:
        if "queue" in event:
            return self.may_read(event.get("vhost", ""), event["queue"])
        own = event["event"] != "written" and event.get("user") == self._user
        return own or self._administrator or event.get("record") in readable


def _silent(event: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in event.items() if not name.startswith("payload")}


ENDPOINTS = [
    Endpoint(
        "GET",
        "/messages",
        endpoint.MANAGEMENT,
        find,
        "What became of messages, and where they are (?id=, ?message_id=, ?correlation_id=, ?any=, ?header=, ?queue=, "
        "?body=true)",
        answer=FoundMessages,
        unwell=Problem,
    ),
    Endpoint(
        "GET",
        "/messages/{id}",
        endpoint.MANAGEMENT,
        show,
        "What became of one message, and where it is (?body=true)",
        answer=Object,
        unwell=Problem,
    ),
]
