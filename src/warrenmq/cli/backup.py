"""`warren backup DIR`: a consistent copy of a running broker's data folder, on the broker's machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from warrenmq.cli import _output
from warrenmq.cli._command import Command, Json, Url
from warrenmq.cli._progress import copied, shown


def register(app: typer.Typer) -> None:
    app.command("backup")(backup)


def backup(
    folder: Annotated[Path, typer.Argument(help="A new folder on the broker's machine.")],
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Copy the data folder while the broker runs: everything confirmed so far, as of one moment."""
    command = Command("backup", url, 3600)
    with shown(lambda: copied(folder)):
        made = command.ask("POST", "/backup", {"folder": str(folder.absolute())})
    if made["damaged"]:
        typer.echo(f"{made['damaged']} messages in it are damaged on disk: `warren damaged list` names them", err=True)
    start = f"start a broker on it with --data-dir {made['folder']}"
    _output.said(f"{made['folder']}: {made['bytes']} bytes; {start}", made, as_json)
