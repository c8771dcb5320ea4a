"""/whatif: what would have become of the newest messages under other definitions. See docs/whatif.md.

The journal's process finds it out, without Spark; here the definitions that hold are put beside what is asked, in a
file, as they are too long for a pipe, and the answer is waited for. What its user may not see that process leaves out.
"""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
import time
from contextlib import aclosing
from typing import Any

import msgspec
from msgspec import Struct

from warrenmq.broker.access.access import User
from warrenmq.broker.definitions.exporting import export_definitions
from warrenmq.http import endpoint
from warrenmq.http.bridge import ADMINISTRATOR
from warrenmq.http.encoding import encode
from warrenmq.http.endpoint import Call, Endpoint
from warrenmq.http.errors import bad_request
from warrenmq.http.messages.messages import moment_in, unavailable
from warrenmq.http.models import Object, Problem
from warrenmq.http.objects.definitions import LARGEST, written_out

HOUR = 3600 * 1_000_000  # µs
LIMIT, MOST = 100, 1000
CHANGE = ("definitions", "put", "delete")
BOUNDS = ("since", "until", "limit")
LONGEST_BOUND = 1000  # octets
UNKNOWN = re.compile("Object contains unknown field `(.*)`$", re.DOTALL)  # msgspec's words

_Question: Any = msgspec.defstruct(
    "_Question", [(name, msgspec.Raw, msgspec.Raw(b"")) for name in (*CHANGE, *BOUNDS)], forbid_unknown_fields=True
)


class Whatif(Struct, kw_only=True):
    """Other definitions: all of them (``definitions``), or what is ``put`` in and what is ``delete``d, by section. Of
    messages published from ``since`` to ``until``, the last hour unless given; so many rows (``limit``)."""

    definitions: Object | None = None
    put: Object | None = None
    delete: Object | None = None
    since: str | None = None
    until: str | None = None
    limit: int = LIMIT


class Supposed(Struct):
    """The supposed fates of so many ``messages``: how many would fare otherwise (``changed``) or worse, by
    exchange, key and queue; ``queue`` is null where it is what the publisher is told. ``whole``: or were there too
    many, and these are the newest? ``more``: rows that are left out."""

    messages: int
    changed: int
    worse: int
    items: list[Object]
    more: int
    since: str | None
    until: str | None
    whole: bool
    not_looked_into: list[Object]
    unreadable: list[str]


async def ask(call: Call) -> object:
    asked, change = await _asked(call)
    line = {"user": call.user.name, "administrator": ADMINISTRATOR in call.user.tags, **_bounds(asked)}
    holds = export_definitions(call.bridge.broker)
    holds.sections["users"].shown = _without_password  # nobody logs in there
    before = (await written_out(holds)).taken()
    question = [b'{"before":', *before, b',"asked":{', *change, b"},", encode(line)[1:]]
    name = await asyncio.to_thread(_write, question)
    try:
        return await _answer(call, name)
    except LookupError as error:
        raise unavailable(error) from None
    finally:
        await asyncio.to_thread(os.unlink, name)


def _without_password(user: User) -> dict[str, object]:
    return {**user.to_dict(), "password_hash": ""}


async def _asked(call: Call) -> tuple[dict[str, Any], list[bytes]]:
    """What is said of the messages; and the change as octets, which are not looked into here: they may be many. Nor is
    what may not be said, however much of it there is."""
    data = await call.raw_body(LARGEST) or b"{}"
    try:
        members = msgspec.json.decode(data, type=_Question)
        asked: dict[str, Any] = {}
        for name in BOUNDS:
            raw = bytes(getattr(members, name))
            if len(raw) > LONGEST_BOUND:
                raise bad_request(f"{name}: at most {LONGEST_BOUND} octets")
            if raw:
                asked[name] = msgspec.json.decode(raw)
    except msgspec.ValidationError as error:
        raise bad_request(_misunderstood(str(error))) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise bad_request("not_json") from None
    parts: list[bytes] = []
    for name in CHANGE:
        raw = bytes(getattr(members, name))
        if raw:
            parts += [b"," if parts else b"", encode(name), b":", raw]
    return asked, parts


def _misunderstood(said: str) -> str:
    unknown = UNKNOWN.match(said)
    if unknown is None:
        return "not_json"
    return f"'{unknown[1][:40]}': what may be said is {', '.join((*CHANGE, *BOUNDS))}"


def _bounds(asked: dict[str, Any]) -> dict[str, int]:
    now = time.time_ns() // 1000
    limit = asked.get("limit", LIMIT)
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= MOST:
        raise bad_request(f"limit: expected a whole number from 1 to {MOST}")
    until = moment_in(asked, "until")
    since = moment_in(asked, "since")
    until = now if until is None else until
    return {"since": until - HOUR if since is None else since, "until": until, "limit": limit}


def _write(question: list[bytes]) -> str:
    descriptor, name = tempfile.mkstemp(prefix="warren-whatif-", suffix=".json")  # for its owner alone
    with os.fdopen(descriptor, "wb") as file:
        file.writelines(question)
    return name


async def _answer(call: Call, name: str) -> object:
    answer: dict[str, Any] = {}
    async with aclosing(call.bridge.server.journal.ask({"whatif": name})) as parts:
        async for part in parts:  # to its end: then the next may be asked
            answer |= part
    if "refused" in answer:
        raise bad_request(answer["refused"])
    return answer["supposed"]


ENDPOINTS = [
    Endpoint(
        "POST",
        "/whatif",
        endpoint.MANAGEMENT,
        ask,
        "What would have become of the newest messages under other definitions",
        body=Whatif,
        answer=Supposed,
        unwell=Problem,
    )
]
