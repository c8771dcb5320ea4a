"""`warren delayed`: what waits in delayed exchanges, from the command line, over the management API."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any
from urllib.parse import urlencode

import typer

from warrenmq.cli import _output
from warrenmq.cli._api import segment
from warrenmq.cli._command import Command, Json, Url, Vhost
from warrenmq.cli._status import NO
from warrenmq.cli._units import milliseconds

Exchange = Annotated[str | None, typer.Option("--exchange", "-e", help="Only messages that wait at this exchange.")]
Id = Annotated[str, typer.Argument(help="The id that `warren delayed list` shows, or the publisher's x-delay-id.")]

group = typer.Typer(help="Delayed messages: list, show, cancel, reschedule, deliver now.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.add_typer(group, name="delayed")


@group.command("list")
def list_messages(
    url: Url = None,
    vhost: Vhost = None,
    exchange: Exchange = None,
    routing_key: Annotated[str | None, typer.Option(help="One of its routing keys.")] = None,
    header: Annotated[list[str] | None, typer.Option(help="name:value; may be repeated.")] = None,
    message_id: Annotated[str | None, typer.Option(help="Its property message_id.")] = None,
    since: Annotated[str | None, typer.Option("--from", help="Due then or later: ISO 8601 or milliseconds.")] = None,
    until: Annotated[str | None, typer.Option("--to", help="Due then or earlier.")] = None,
    limit: Annotated[int, typer.Option(help="Show at most so many.")] = 100,
    as_json: Json = False,
) -> None:
    """What waits, the earliest first."""
    query: list[tuple[str, str]] = [("header", one) for one in header or []]
    for name, value in (
        ("exchange", exchange),
        ("routing_key", routing_key),
        ("message_id", message_id),
        ("from", since),
        ("to", until),
    ):
        if value is not None:
            query.append((name, value))
    command = Command("delayed list", url)
    at = command.vhost(vhost)
    items: list[Any] = []
    token: str | None = ""
    total = 0
    while token is not None and len(items) < limit:
        more = [*query, ("limit", str(min(1000, limit - len(items))))]
        if token:
            more.append(("token", token))
        page = command.ask_about(at, "GET", f"/delayed/{segment(at)}?{urlencode(more)}").body
        items += page["items"]
        token = page["next"]
        total = page["messages_delayed"]
    if as_json:
        _output.as_json(items)
        return
    _table(items)
    if token is not None:
        print(f"{len(items)} shown; there may be more ({total} wait in all): raise --limit", file=sys.stderr)


@group.command("show")
def show(id: Id, url: Url = None, vhost: Vhost = None, exchange: Exchange = None, as_json: Json = False) -> None:
    """Everything about one message; `show next` is the one that is due next."""
    command = Command("delayed show", url)
    at = command.vhost(vhost)
    if id == "next":
        query = urlencode([("limit", "1"), *([("exchange", exchange)] if exchange else [])])
        items = command.ask_about(at, "GET", f"/delayed/{segment(at)}?{query}").body["items"]
        if not items:
            command.stop("nothing waits", NO)
        id, exchange = items[0]["id"], items[0]["exchange"]
    found = command.ask_about(at, "GET", _path(at, id, "", exchange)).body
    if as_json:
        _output.as_json(found)
        return
    width = max(len(name) for name in found)
    for name, value in found.items():
        print(f"{name:<{width}}  {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}")


@group.command("cancel")
def cancel(
    id: Annotated[str | None, typer.Argument(help="One message; without it, everything at --exchange.")] = None,
    url: Url = None,
    vhost: Vhost = None,
    exchange: Exchange = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say how many it would be.")] = False,
    as_json: Json = False,
) -> None:
    """Take a message out of the schedule for good, or all that wait at an exchange."""
    command = Command("delayed cancel", url)
    at = command.vhost(vhost)
    if id is not None:
        if dry_run:
            found = command.ask_about(at, "GET", _path(at, id, "", exchange)).body
            _output.said(f"would cancel {found['id']}, due {found['due']}", {"matched": 1, "cancelled": 0}, as_json)
            return
        command.ask_about(at, "DELETE", _path(at, id, "", exchange))
        _output.said(f"cancelled {id}", {"matched": 1, "cancelled": 1}, as_json)
        return
    if exchange is None:
        command.stop("name a message or an --exchange")
    query = urlencode([("exchange", exchange), ("dry_run", "true" if dry_run else "false")])
    done = command.ask_about(at, "DELETE", f"/delayed/{segment(at)}?{query}").body
    text = f"would cancel {done['matched']} messages" if dry_run else f"cancelled {done['cancelled']} messages"
    _output.said(text, done, as_json)


@group.command("reschedule")
def reschedule(
    id: Id,
    delay: Annotated[str | None, typer.Option("--in", help="From now: milliseconds, or 90s, 5m, 2h, 1d.")] = None,
    at: Annotated[str | None, typer.Option("--at", help="ISO 8601, or milliseconds since 1970.")] = None,
    url: Url = None,
    vhost: Vhost = None,
    exchange: Exchange = None,
    as_json: Json = False,
) -> None:
    """Give a message another due time; it keeps its id."""
    command = Command("delayed reschedule", url)
    if (delay is None) == (at is None):
        command.stop("give either --in or --at")
    try:
        body = {"deliver_at": at} if delay is None else {"delay_ms": milliseconds(delay)}
    except ValueError as error:
        command.stop(f"--in: {error}")
    place = command.vhost(vhost)
    found = command.ask_about(place, "POST", _path(place, id, "/reschedule", exchange), body).body
    _output.said(f"{found['id']} is due {found['due']}", found, as_json)


@group.command("deliver-now")
def deliver_now(id: Id, url: Url = None, vhost: Vhost = None, exchange: Exchange = None, as_json: Json = False) -> None:
    """Deliver a message as if it were due."""
    command = Command("delayed deliver-now", url)
    at = command.vhost(vhost)
    done = command.ask_about(at, "POST", _path(at, id, "/deliver-now", exchange), {}).body
    if not done["routed"]:
        command.stop(f"{id} left the schedule, but no queue took it", NO)
    _output.said(f"delivered {id}", done, as_json)


# --- asking


def _path(vhost: str, id: str, action: str, exchange: str | None) -> str:
    query = "" if exchange is None else "?" + urlencode([("exchange", exchange)])
    return f"/delayed/{segment(vhost)}/{segment(id)}{action}{query}"


# --- showing


def _table(items: list[Any]) -> None:
    rows = [("DUE", "ID", "EXCHANGE", "ROUTING KEYS", "BYTES", "BODY")]
    for one in items:
        body = one["payload"] if one["payload_encoding"] == "string" else f"base64:{one['payload']}"
        body = " ".join(body.split())
        rows.append(
            (
                one["due"],
                one["id"],
                f"retry in {one['queue']}" if "queue" in one else one["exchange"],
                ",".join(one["routing_keys"]),
                str(one["payload_bytes"]),
                body if len(body) <= 40 else body[:37] + "...",
            )
        )
    _output.table(rows)
