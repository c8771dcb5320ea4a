"""`warren transfers`: moves, copies and redrives that were started, watched, cancelled and taken back."""

from __future__ import annotations

from typing import Annotated

import typer

from warrenmq.cli import _output
from warrenmq.cli._api import segment
from warrenmq.cli._command import Command, Json, Url, Vhost
from warrenmq.cli.transfers.following import follow, show

Id = Annotated[str, typer.Argument(help="As `warren move`, `copy` and `redrive` print it.")]

group = typer.Typer(help="Moves, copies and redrives: list, show, cancel, undo.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.add_typer(group, name="transfers")


@group.command("list")
def list_transfers(vhost: Vhost = None, as_json: Json = False, url: Url = None) -> None:
    """Those of this user, or all for an administrator; since the broker's start."""
    command = Command("transfers list", url)
    at = command.vhost(vhost)
    found = command.ask_about(at, "GET", f"/transfers/{segment(at)}").body
    if as_json:
        _output.as_json(found)
        return
    columns = ("id", "kind", "queue", "user", "state", "sent")
    _output.table([[name.upper() for name in columns], *([one[name] for name in columns] for one in found)])


@group.command("show")
def show_transfer(id: Id, vhost: Vhost = None, as_json: Json = False, url: Url = None) -> None:
    """How far one is."""
    command = Command("transfers show", url)
    at = command.vhost(vhost)
    show(command.ask_about(at, "GET", f"/transfers/{segment(at)}/{segment(id)}").body, as_json)


@group.command("cancel")
def cancel(id: Id, vhost: Vhost = None, as_json: Json = False, url: Url = None) -> None:
    """Send no more; what was sent stays sent."""
    command = Command("transfers cancel", url)
    at = command.vhost(vhost)
    show(command.ask_about(at, "DELETE", f"/transfers/{segment(at)}/{segment(id)}").body, as_json)


@group.command("undo")
def undo(id: Id, vhost: Vhost = None, as_json: Json = False, url: Url = None) -> None:
    """Take back what nobody has touched; the rest is listed."""
    command = Command("transfers undo", url)
    at = command.vhost(vhost)
    one = command.ask_about(at, "POST", f"/transfers/{segment(at)}/{segment(id)}/undo", {}).body
    show(follow(command, at, one, "undo"), as_json)
