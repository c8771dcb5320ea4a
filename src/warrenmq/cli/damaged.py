"""`warren damaged list | drop`: messages that do not check on disk, over the management API of a running broker."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from warrenmq.cli._api import Api, Failure, segment

Url = Annotated[str, typer.Option("--url", "-u", envvar="WARREN_HTTP_URL", help="Address of the management API.")]
DEFAULT_URL = "http://guest:guest@127.0.0.1:15672"

group = typer.Typer(help="Messages that are damaged on disk: list and drop them.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.add_typer(group, name="damaged")


def _ask(url: str, method: str, path: str) -> Any:
    try:
        return Api(url, 60).checked(method, path)
    except Failure as failure:
        typer.echo(f"warren damaged: {failure.text}", err=True)
        raise typer.Exit(1) from None


@group.command("list")
def list_damaged(url: Url = DEFAULT_URL) -> None:
    """What is damaged, where it stands and whose it is."""
    found = _ask(url, "GET", "/damaged")
    for one in found:
        owner = f"{one['kind']} {one['owner']!r} in vhost {one['vhost']!r}" if one["vhost"] else one["owner"]
        size = "" if one["bytes"] is None else f", {one['bytes']} bytes"
        typer.echo(f"{one['id']}: {owner}: {one['place']}{size}: {one['reason']}")
    typer.echo(f"{len(found)} damaged messages")


@group.command("drop")
def drop_damaged(
    ids: Annotated[list[str] | None, typer.Argument(help="Ids that `warren damaged list` shows.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    url: Url = DEFAULT_URL,
) -> None:
    """Give them up for good: their queues forget them."""
    if bool(ids) == everything:
        typer.echo("warren damaged: give ids, or --all", err=True)
        raise typer.Exit(2)
    wanted = [one["id"] for one in _ask(url, "GET", "/damaged")] if everything else ids or []
    for id in wanted:
        _ask(url, "DELETE", f"/damaged/{segment(id)}")
        typer.echo(f"{id}: dropped")
