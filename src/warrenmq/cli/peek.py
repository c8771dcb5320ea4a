"""`warren peek`: what is in a queue, waiting or held, over the management API. Nothing is taken or changed."""

from __future__ import annotations

import sys
from typing import Annotated, Any
from urllib.parse import urlencode

import typer

from warrenmq.cli import _output
from warrenmq.cli._api import segment
from warrenmq.cli._command import Command, Json, Url, Vhost
from warrenmq.cli._filters import Filters
from warrenmq.cli._groups import spread
from warrenmq.cli._holder import holder
from warrenmq.cli._units import in_words

PAGE = 1000
BODY = 1 << 20  # octets shown of one


def register(app: typer.Typer) -> None:
    app.command("peek")(spread(peek))


def peek(
    *,
    queue: Annotated[str, typer.Argument(help="The queue, or a stream.")],
    vhost: Vhost = None,
    held: Annotated[bool, typer.Option("--held", help="Only what is held: unacked, leased ...")] = False,
    waiting: Annotated[bool, typer.Option("--waiting", help="Only what waits.")] = False,
    filters: Filters,
    first: Annotated[int, typer.Option("--from", min=0, help="Begin at this position or offset.")] = 0,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Show at most so many.")] = 100,
    as_json: Json = False,
    body: Annotated[bool, typer.Option("--body", help="Show bodies, up to a mebibyte each.")] = False,
    url: Url = None,
) -> None:
    """Look at the messages of a queue, the oldest first. Nobody notices: nothing is taken, held or marked."""
    command = Command("peek", url)
    if held and waiting:
        command.stop("--held and --waiting: choose one, or neither for both")
    query: dict[str, Any] = filters.asked(command)
    query["state"] = "held" if held else "waiting" if waiting else "all"
    query["truncate"] = BODY if body else 0
    items: list[Any] = []
    end: int | None = None
    at = first
    named = command.vhost(vhost)
    path = f"/queues/{segment(named)}/{segment(queue)}/peek"
    while len(items) < limit and (end is None or at < end):
        asked = {**query, "first": at, "count": min(PAGE, limit - len(items))}
        if end is not None:
            asked["end"] = end
        page = command.ask_about(named, "GET", f"{path}?{urlencode(asked, doseq=True)}", queue=queue).body
        items += page["items"]
        end, at = page["end"], page["next"]
    if as_json:
        _output.as_json(items)
        return
    _show(items, body)
    if end is not None and at < end:
        print(f"{len(items)} shown; more from position {at} on: --from {at}", file=sys.stderr)


def _show(items: list[Any], body: bool) -> None:
    rows = [("POSITION", "STATE", "AGE", "HELD", "EXCHANGE", "ROUTING KEY", "BYTES", "BY")]
    for one in items:
        held = one.get("held", {})
        rows.append(
            (
                str(one["position"]),
                one["state"] + (", redelivered" if one["redelivered"] and not held else ""),
                (">" if one.get("age_at_least") else "") + in_words(one["age_ms"]),
                in_words(held["held_ms"]) if "held_ms" in held else "",
                one["exchange"],
                one["routing_key"],
                str(one["payload_bytes"]),
                holder(held),
            )
        )
    if not body:
        _output.table(rows)
        return
    for row, one in zip(rows[1:], items, strict=True):
        print("  ".join(value for value in row if value))
        print(one["payload"] if one["payload_encoding"] == "string" else f"base64:{one['payload']}")
