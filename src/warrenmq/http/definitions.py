"""/definitions: export and import of everything durable but messages."""

from __future__ import annotations

from typing import Any

import msgspec

from warrenmq.broker.definitions import InvalidDefinitions
from warrenmq.broker.exporting import export_definitions, export_vhost
from warrenmq.broker.importing import import_definitions
from warrenmq.http.endpoint import ADMINISTRATOR, Call, Endpoint, NoContent
from warrenmq.http.errors import bad_request
from warrenmq.http.models import Definitions
from warrenmq.http.multipart import file_of

LARGEST = 32 << 20
DEEPEST = 100


async def export(call: Call) -> dict[str, object]:
    return export_definitions(call.bridge.broker)


async def export_one(call: Call) -> dict[str, object]:
    return export_vhost(call.bridge.broker, call.bridge.vhost(call.path["vhost"]))


async def document(call: Call) -> dict[str, Any]:
    """The document of a POST: JSON, or a form with a file as RabbitMQ's page sends it."""
    data = await call.raw_body(LARGEST)
    kind = call.request.headers.get("content-type", "")
    if kind.startswith("multipart/form-data"):
        data = file_of(kind, data)
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise bad_request("failed_to_parse_json") from None
    if not isinstance(value, dict):
        raise bad_request("failed_to_parse_json")
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
    wanted = await document(call)
    broker = call.bridge.broker
    try:
        await call.bridge.change(lambda: import_definitions(broker, wanted, vhost, call.user.name))
    except InvalidDefinitions as error:
        raise bad_request("\n".join(error.problems)) from None


ENDPOINTS = [
    Endpoint("GET", "/definitions", ADMINISTRATOR, export, "Everything durable but messages", answer=Definitions),
    Endpoint(
        "POST", "/definitions", ADMINISTRATOR, import_all,
        "Import: checked completely first, then merged in one step; nothing is deleted", body=Definitions, status=204,
        upload=True,
    ),
    Endpoint("GET", "/definitions/{vhost}", ADMINISTRATOR, export_one, "The same for one vhost", answer=Definitions),
    Endpoint(
        "POST", "/definitions/{vhost}", ADMINISTRATOR, import_one, "Import into one vhost", body=Definitions,
        status=204, upload=True,
    ),
]  # fmt: skip
