"""`warren transfers`: moves, copies and redrives that were started, watched, cancelled and taken back."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from warrenmq.cli._api import segment
from warrenmq.cli._filters import DEFAULT_URL, Command, Json, Url, Vhost
from warrenmq.cli._transfers import follow, show

Id = Annotated[str, typer.Argument(help="As `warren move`, `copy` and `redrive` print it.")]

group = typer.Typer(help="Moves, copies and redrives: list, show, cancel, undo.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.add_typer(group, name="transfers")


@group.command("list")
def list_transfers(vhost: Vhost = "/", as_json: Json = False, url: Url = DEFAULT_URL) -> None:
    """Those of this user, or all for an administrator; since the broker's start."""
    found = Command("transfers", url).ask("GET", f"/transfers/{segment(vhost)}")
    if as_json:
        print(json.dumps(found, indent=2, ensure_ascii=False))
        return
    for one in found:
        print(f"{one['id']}: {one['kind']} of {one['queue']!r} by {one['user']!r}: {one['state']}, {one['sent']} sent")


@group.command("show")
def show_transfer(id: Id, vhost: Vhost = "/", as_json: Json = False, url: Url = DEFAULT_URL) -> None:
    """How far one is."""
    show(Command("transfers", url).ask("GET", f"/transfers/{segment(vhost)}/{segment(id)}"), as_json)


@group.command("cancel")
def cancel(id: Id, vhost: Vhost = "/", as_json: Json = False, url: Url = DEFAULT_URL) -> None:
    """Send no more; what was sent stays sent."""
    show(Command("transfers", url).ask("DELETE", f"/transfers/{segment(vhost)}/{segment(id)}"), as_json)


@group.command("undo")
def undo(id: Id, vhost: Vhost = "/", as_json: Json = False, url: Url = DEFAULT_URL) -> None:
    """Take back what nobody has touched; the rest is listed."""
    command = Command("transfers", url)
    one = command.ask("POST", f"/transfers/{segment(vhost)}/{segment(id)}/undo", {})
    show(follow(command, vhost, one, "undo"), as_json)
