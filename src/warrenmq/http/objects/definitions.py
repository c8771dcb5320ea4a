"""/definitions: export and import of everything durable but messages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from starlette.responses import Response

from warrenmq.broker.definitions import importing
from warrenmq.broker.definitions.definitions import SECTIONS, InvalidDefinitions, Reader
from warrenmq.broker.definitions.exporting import Export, export_definitions, export_vhost
from warrenmq.broker.definitions.plan import Plan
from warrenmq.http.encoding import encode
from warrenmq.http.endpoint import (
    ADMINISTRATOR,
    MOST_VALUES,
    SHORT,
    Call,
    Endpoint,
    NoContent,
    has_more_values,
)
from warrenmq.http.errors import bad_request
from warrenmq.http.in_order import in_order
from warrenmq.http.models import Definitions
from warrenmq.http.pacer import Pacer
from warrenmq.http.pieces import Pieces
from warrenmq.http.protocol.multipart import file_of

LARGEST = 32 << 20
DEEPEST = 100
MOST_PARTS = 1 << 20  # objects in a list, those in them included
LET_GO = 20  # parts that are freed in a step
CUT = 64 << 10  # octets of a long list that are taken apart in a step, beside those of the object that ends there
TOKENS = 200  # brackets and quotes looked at in a step


async def export(call: Call) -> Response:
    return (await written_out(export_definitions(call.bridge.broker))).json()


async def export_one(call: Call) -> Response:
    vhost = call.bridge.broker.vhosts.get(call.path["vhost"])
    if vhost is None:
        raise bad_request("vhost_not_found")
    return (await written_out(export_vhost(call.bridge.broker, vhost))).json()


async def written_out(document: Export) -> Pieces:
    """Part by part, giving way between them."""
    pacer = Pacer()
    pieces = Pieces(encode(document.entries)[:-1])
    for name, section in document.sections.items():
        pieces.add(b"," + encode(name) + b":[")
        between = b""
        for one in await in_order(section.objects, section.order):
            part = section.shown(one)
            if part is not None:
                pieces.add(between)
                pieces.add(encode(part))
                between = b","
            await pacer.breathe()
        pieces.add(b"]")
    pieces.add(b"}")
    return pieces


async def document(call: Call) -> dict[str, Any]:
    """The document of a POST: JSON, or a form with a file as RabbitMQ's page sends it."""
    data = await call.raw_body(LARGEST)
    kind = call.request.headers.get("content-type", "")
    if kind.startswith("multipart/form-data"):
        data = file_of(kind, data)
    value: dict[str, Any] = {}
    if not data:
        return value  # nothing to import, as RabbitMQ sees it
    await call.bridge.steps("definitions", read_document(data, value))
    return value


class _Object(msgspec.Struct):
    """Anything in braces."""


_Document: Any = msgspec.defstruct("_Document", [(one.name, msgspec.Raw, msgspec.Raw(b"")) for one in SECTIONS])


def read_document(data: bytes, document: dict[str, Any]) -> Iterator[None]:
    """The parts of its lists one by one: only the ends of the lists are looked for at once, and what is no list of
    definitions is not read at all, however many values it has."""
    try:
        members = msgspec.json.decode(data, type=_Document)
        for section in SECTIONS:
            raw = bytes(getattr(members, section.name))
            if raw[:1] == b"[":
                parts = document[section.name] = []
                yield from _read_parts(section.name, raw, parts)
            elif raw:
                document[section.name] = _shallow(_read(section.name, raw))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise bad_request("failed_to_parse_json") from None


def _read_parts(name: str, raw: bytes, parts: list[Any]) -> Iterator[None]:
    if len(raw) > SHORT:
        if raw.count(b"{") > MOST_PARTS:
            raise bad_request(f"{name}: more than {MOST_PARTS} objects: import them in several parts")
        yield
    for some in cut(raw, CUT):
        if some:
            for part in _taken_apart(name, some):
                parts.append(_shallow(_read(name, bytes(part))))
                yield
        yield


def _taken_apart(name: str, some: bytes) -> list[msgspec.Raw]:
    if len(some) > SHORT:
        try:
            msgspec.json.decode(some, type=list[_Object])
        except msgspec.ValidationError:
            raise bad_request(f"{name}: not everything in this list is an object") from None
    return msgspec.json.decode(some, type=list[msgspec.Raw])


_TOKEN = re.compile(rb'\\.|["{}\[\]]', re.DOTALL)


def cut(raw: bytes, size: int) -> Iterator[bytes]:
    """A JSON list in several, each with hardly more octets than that, and empty ones while the end of one is looked
    for: to take one of a million objects apart takes long. It is known to be JSON."""
    if len(raw) <= size:
        yield raw
        return
    start, depth, in_text, looked = 1, 0, False, 0
    for token in _TOKEN.finditer(raw, 1):
        looked += 1
        if looked % TOKENS == 0:
            yield b""
        what = token.group()
        if what == b'"':
            in_text = not in_text
        elif in_text:
            continue
        elif what in b"{[":
            depth += 1
        else:
            depth -= 1
            if depth == 0 and token.end() - start >= size:
                yield b"[" + raw[start : token.end()] + b"]"
                comma = raw.find(b",", token.end())
                if comma < 0:
                    return  # that was the last one
                start = comma + 1
    yield b"[" + raw[start:]


def _read(name: str, raw: bytes) -> Any:
    if has_more_values(raw, MOST_VALUES):
        raise bad_request(f"{name}: one has more than {MOST_VALUES} values")
    return msgspec.json.decode(raw)


def _shallow(value: Any) -> Any:
    if too_deep(value, DEEPEST):
        raise bad_request(f"nested deeper than {DEEPEST} levels")
    return value


def too_deep(value: Any, levels: int) -> bool:
    if levels == 0:
        return True
    if isinstance(value, dict):
        return any(too_deep(one, levels - 1) for one in value.values() if isinstance(one, (dict, list)))
    if isinstance(value, list):
        return any(too_deep(one, levels - 1) for one in value if isinstance(one, (dict, list)))
    return False


async def import_all(call: Call) -> NoContent:
    await _import(call, None)
    return NoContent()


async def import_one(call: Call) -> NoContent:
    vhost = call.bridge.vhost_for_change(call.path["vhost"])
    await _import(call, vhost.name)
    return NoContent()


async def _import(call: Call, vhost: str | None) -> None:
    """Read and checked completely, then applied; each in steps, and in steps what was read is let go."""
    wanted = await document(call)
    bridge = call.bridge
    broker = bridge.broker
    reader = Reader(vhost, importing.existing(broker), broker.services.randomness)

    def carry_out(plan: Plan) -> Iterator[None]:
        problem = None
        try:
            yield from importing.apply(broker, plan, call.user.name)
        except InvalidDefinitions as error:
            problem = error
        yield from let_go(reader.kept())
        if problem is not None:
            raise problem

    try:
        await bridge.steps("definitions", reader.read(wanted))
        await bridge.steps("definitions", let_go(list(wanted.values())))
        plan = reader.finished()
        await bridge.change_in_steps("definitions", lambda: carry_out(plan))
    except InvalidDefinitions as error:
        await bridge.steps("definitions", let_go(reader.kept()))
        raise bad_request("\n".join(error.problems)) from None


def let_go(collections: list[Any]) -> Iterator[None]:
    """Empty them, some a step: nobody needs their content any more."""
    for one in collections:
        while isinstance(one, (list, set, dict)) and one:
            for _ in range(min(len(one), LET_GO)):
                if isinstance(one, dict):
                    one.popitem()
                else:
                    one.pop()
            yield


ENDPOINTS = [
    Endpoint("GET", "/definitions", ADMINISTRATOR, export, "Everything durable but messages", answer=Definitions),
    Endpoint(
        "POST",
        "/definitions",
        ADMINISTRATOR,
        import_all,
        "Import: checked completely first, then merged part by part; nothing is deleted",
        body=Definitions,
        status=204,
        upload=True,
    ),
    Endpoint(
        "GET",
        "/definitions/{vhost}",
        ADMINISTRATOR,
        export_one,
        "Export the definitions of one vhost",
        answer=Definitions,
    ),
    Endpoint(
        "POST",
        "/definitions/{vhost}",
        ADMINISTRATOR,
        import_one,
        "Import into one vhost",
        body=Definitions,
        status=204,
        upload=True,
    ),
]
