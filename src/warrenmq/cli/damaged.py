"""`warren damaged list | drop`: messages that do not check on disk, over the management API of a running broker."""

from __future__ import annotations

from typing import Annotated

import typer

from warrenmq.cli import _output
from warrenmq.cli._api import segment
from warrenmq.cli._command import Command, Json, Url, stop

group = typer.Typer(help="Messages that are damaged on disk: list and drop them.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.add_typer(group, name="damaged")


@group.command("list")
def list_damaged(as_json: Json = False, url: Url = None) -> None:
    """What is damaged, where it stands and whose it is."""
    found = Command("damaged list", url).ask("GET", "/damaged")
    if as_json:
        _output.as_json(found)
        return
    for one in found:
        owner = f"{one['kind']} {one['owner']!r} in vhost {one['vhost']!r}" if one["vhost"] else one["owner"]
        size = "" if one["bytes"] is None else f", {one['bytes']} bytes"
        typer.echo(f"{one['id']}: {owner}: {one['place']}{size}: {one['reason']}")
    typer.echo(f"{len(found)} damaged messages")


@group.command("drop")
def drop_damaged(
    ids: Annotated[list[str] | None, typer.Argument(help="Ids that `warren damaged list` shows.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Give them up for good: their queues forget them."""
    if bool(ids) == everything:
        stop("damaged drop", "give ids, or --all")
    command = Command("damaged drop", url)
    wanted = [one["id"] for one in command.ask("GET", "/damaged")] if everything else ids or []
    for id in wanted:
        command.ask("DELETE", f"/damaged/{segment(id)}")
        if not as_json:
            typer.echo(f"{id}: dropped")
    if as_json:
        _output.as_json({"dropped": wanted})
