"""`warren delayed`: what waits in delayed exchanges, from the command line, over the management API."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any, NoReturn
from urllib.parse import urlencode

import typer

from warrenmq.cli._api import Answer, Api, Failure, segment
from warrenmq.cli._units import milliseconds

DEFAULT_URL = "http://guest:guest@127.0.0.1:15672"

Url = Annotated[str, typer.Option("--url", "-u", envvar="WARREN_HTTP_URL", help="Address of the management API.")]
Vhost = Annotated[str, typer.Option("--vhost", "-p", help="Virtual host.")]
Exchange = Annotated[str | None, typer.Option("--exchange", "-e", help="Only messages that wait at this exchange.")]
Json = Annotated[bool, typer.Option("--json", help="The API's JSON as it is.")]
Id = Annotated[str, typer.Argument(help="The id that `warren delayed list` shows, or the publisher's x-delay-id.")]

group = typer.Typer(help="Delayed messages: list, show, cancel, reschedule, deliver now.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.add_typer(group, name="delayed")


@group.command("list")
def list_messages(
    url: Url = DEFAULT_URL,
    vhost: Vhost = "/",
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
    api = _api(url)
    items: list[Any] = []
    token: str | None = ""
    total = 0
    while token is not None and len(items) < limit:
        more = [*query, ("limit", str(min(1000, limit - len(items))))]
        if token:
            more.append(("token", token))
        page = _ask(api, "GET", f"/delayed/{segment(vhost)}?{urlencode(more)}")
        items += page["items"]
        token = page["next"]
        total = page["messages_delayed"]
    if as_json:
        print(json.dumps(items, indent=2, ensure_ascii=False))
        return
    _table(items)
    if token is not None:
        print(f"{len(items)} shown; there may be more ({total} wait in all): raise --limit", file=sys.stderr)


@group.command("show")
def show(id: Id, url: Url = DEFAULT_URL, vhost: Vhost = "/", exchange: Exchange = None, as_json: Json = False) -> None:
    """Everything about one message; `show next` is the one that is due next."""
    api = _api(url)
    if id == "next":
        query = urlencode([("limit", "1"), *([("exchange", exchange)] if exchange else [])])
        items = _ask(api, "GET", f"/delayed/{segment(vhost)}?{query}")["items"]
        if not items:
            _stop("nothing waits")
        id, exchange = items[0]["id"], items[0]["exchange"]
    found = _ask(api, "GET", _path(vhost, id, "", exchange))
    if as_json:
        print(json.dumps(found, indent=2, ensure_ascii=False))
        return
    width = max(len(name) for name in found)
    for name, value in found.items():
        print(f"{name:<{width}}  {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}")


@group.command("cancel")
def cancel(
    id: Annotated[str | None, typer.Argument(help="One message; without it, everything at --exchange.")] = None,
    url: Url = DEFAULT_URL,
    vhost: Vhost = "/",
    exchange: Exchange = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say how many it would be.")] = False,
) -> None:
    """Take a message out of the schedule for good, or all that wait at an exchange."""
    api = _api(url)
    if id is not None:
        if dry_run:
            found = _ask(api, "GET", _path(vhost, id, "", exchange))
            print(f"would cancel {found['id']}, due {found['due']}")
            return
        _ask(api, "DELETE", _path(vhost, id, "", exchange))
        print(f"cancelled {id}")
        return
    if exchange is None:
        _stop("name a message or an --exchange")
    query = urlencode([("exchange", exchange), ("dry_run", "true" if dry_run else "false")])
    done = _ask(api, "DELETE", f"/delayed/{segment(vhost)}?{query}")
    print(f"would cancel {done['matched']} messages" if dry_run else f"cancelled {done['cancelled']} messages")


@group.command("reschedule")
def reschedule(
    id: Id,
    delay: Annotated[str | None, typer.Option("--in", help="From now: milliseconds, or 90s, 5m, 2h, 1d.")] = None,
    at: Annotated[str | None, typer.Option("--at", help="ISO 8601, or milliseconds since 1970.")] = None,
    url: Url = DEFAULT_URL,
    vhost: Vhost = "/",
    exchange: Exchange = None,
) -> None:
    """Give a message another due time; it keeps its id."""
    if (delay is None) == (at is None):
        _stop("give either --in or --at")
    body = {"deliver_at": at} if delay is None else {"delay_ms": _milliseconds(delay)}
    found = _ask(_api(url), "POST", _path(vhost, id, "/reschedule", exchange), body)
    print(f"{found['id']} is due {found['due']}")


@group.command("deliver-now")
def deliver_now(id: Id, url: Url = DEFAULT_URL, vhost: Vhost = "/", exchange: Exchange = None) -> None:
    """Deliver a message as if it were due."""
    done = _ask(_api(url), "POST", _path(vhost, id, "/deliver-now", exchange), {})
    if not done["routed"]:
        _stop(f"{id} left the schedule, but no queue took it")
    print(f"delivered {id}")


# --- asking


def _api(url: str) -> Api:
    try:
        return Api(url, 60.0)
    except Failure as failure:
        _stop(failure.text)


def _ask(api: Api, method: str, path: str, body: Any = None) -> Any:
    try:
        answer: Answer = api.ask(method, path, body)
    except Failure as failure:
        _stop(failure.text)
    if answer.status >= 400:
        _stop(answer.reason if isinstance(answer.body, dict) else f"the broker answered {answer.status}")
    return answer.body


def _path(vhost: str, id: str, action: str, exchange: str | None) -> str:
    query = "" if exchange is None else "?" + urlencode([("exchange", exchange)])
    return f"/delayed/{segment(vhost)}/{segment(id)}{action}{query}"


def _milliseconds(text: str) -> int:
    try:
        return milliseconds(text)
    except ValueError as error:
        _stop(str(error))


def _stop(reason: str) -> NoReturn:
    typer.echo(f"warren delayed: {reason}", err=True)
    raise typer.Exit(1)


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
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(value.ljust(width) for value, width in zip(row, widths, strict=True)).rstrip())
