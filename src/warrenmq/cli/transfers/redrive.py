"""`warren redrive`: dead letters back to where they were published, over the management API."""

from __future__ import annotations

import json
from typing import Annotated, Any
from urllib.parse import urlencode

import typer

from warrenmq.cli import _output
from warrenmq.cli._api import segment
from warrenmq.cli._command import Command, Json, Url, Vhost
from warrenmq.cli._filters import Filters, Sending
from warrenmq.cli._groups import spread
from warrenmq.cli.transfers.following import send


def register(app: typer.Typer) -> None:
    app.command("redrive")(spread(redrive))


def redrive(
    *,
    queue: Annotated[str, typer.Argument(help="The queue that dead letters are in.")],
    vhost: Vhost = None,
    groups: Annotated[
        bool, typer.Option("--groups", help="Send nothing: show what died, how and where first.")
    ] = False,
    by: Annotated[
        list[str] | None, typer.Option("--by", help="Group by reason, queue, exchange, key, header:NAME. Repeatable.")
    ] = None,
    reason: Annotated[str | None, typer.Option("--reason", help="Only what died first for this reason.")] = None,
    first_queue: Annotated[
        str | None, typer.Option("--first-queue", help="Only what died first in this queue.")
    ] = None,
    exchange: Annotated[str | None, typer.Option("--to", help="To this exchange, not that of the first death.")] = None,
    routing_key: Annotated[str | None, typer.Option("--to-key", help="With this key, not those of the death.")] = None,
    max_redrives: Annotated[int, typer.Option("--max-redrives", min=1, help="What was sent so often stays.")] = 3,
    filters: Filters,
    sending: Sending,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Send dead letters back to the exchange, and with the keys, of their first death."""
    command = Command("redrive", url)
    at = command.vhost(vhost)
    chosen = filters.asked(command)
    deaths = [("x-first-death-reason", reason), ("x-first-death-queue", first_queue)]
    more = [f"{name}:{value}" for name, value in deaths if value is not None]
    if more:
        chosen["header"] = [*chosen.get("header", []), *more]
    if groups or by:
        _show(_groups(command, at, queue, {**chosen, "by": by or ["reason", "queue"]}), as_json)
        return
    body = {**chosen, **sending.asked(), "max_redrives": max_redrives}
    if exchange is not None:
        body["exchange"] = exchange
    if routing_key is not None:
        body["routing_key"] = routing_key
    send(command, at, queue, body, sending.detach, as_json)


def _groups(command: Command, vhost: str, queue: str, query: dict[str, Any]) -> list[Any]:
    """Those of all pages, put together."""
    found: dict[str, Any] = {}
    at, end = 0, None
    while end is None or at < end:
        asked = {**query, "first": at} if end is None else {**query, "first": at, "end": end}
        path = f"/queues/{segment(vhost)}/{segment(queue)}/deaths?{urlencode(asked, doseq=True)}"
        page = command.ask_about(vhost, "GET", path, queue=queue).body
        for one in page["groups"]:
            known = found.setdefault(json.dumps(one["by"]), one)
            if known is not one:
                for name in ("messages", "bytes", "redriven"):
                    known[name] += one[name]
                known["last"] = one["last"]
        at, end = page["next"], page["end"]
    return sorted(found.values(), key=lambda one: -one["messages"])


def _show(groups: list[Any], as_json: bool) -> None:
    if as_json:
        _output.as_json(groups)
        return
    names = list(groups[0]["by"]) if groups else []
    rows: list[tuple[str, ...]] = [("MESSAGES", "BYTES", "REDRIVEN", "POSITIONS", *(name.upper() for name in names))]
    for one in groups:
        span = f"{one['first']}-{one['last']}"
        shown = (one["by"][name] or "-" for name in names)
        rows.append((str(one["messages"]), str(one["bytes"]), str(one["redriven"]), span, *shown))
    _output.table(rows)
