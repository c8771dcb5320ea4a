"""`warren backup DIR`: a consistent copy of a running broker's data folder, on the broker's machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from warrenmq.cli._api import Api, Failure


def register(app: typer.Typer) -> None:
    app.command("backup")(backup)


def backup(
    folder: Annotated[Path, typer.Argument(help="A new folder on the broker's machine.")],
    url: Annotated[
        str, typer.Option("--url", "-u", envvar="WARREN_HTTP_URL", help="Address of the management API.")
    ] = "http://guest:guest@127.0.0.1:15672",
) -> None:
    """Copy the data folder while the broker runs: everything confirmed so far, as of one moment."""
    try:
        made = Api(url, 3600).checked("POST", "/backup", {"folder": str(folder.absolute())})
    except Failure as failure:
        typer.echo(f"warren backup: {failure.text}", err=True)
        raise typer.Exit(1) from None
    if made["damaged"]:
        typer.echo(f"{made['damaged']} messages in it are damaged on disk: `warren damaged list` names them", err=True)
    typer.echo(f"{made['folder']}: {made['bytes']} bytes; start a broker on it with --data-dir {made['folder']}")
