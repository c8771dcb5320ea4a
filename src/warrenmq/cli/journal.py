"""`warren journal export`: what became of durable messages, as Parquet.

Duty: arguments, printing. The work is `warrenmq.journal`'s, which needs pyarrow (`pip install "warrenmq[journal]"`).
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from warrenmq.cli._command import Json
from warrenmq.log.format import LogError


def register(app: typer.Typer) -> None:
    journal = typer.Typer(no_args_is_help=True, help="What became of durable messages, as tables.")
    journal.callback()(group)
    journal.command("export")(export)
    app.add_typer(journal, name="journal")


def group() -> None:
    """Keeps `warren journal export` a command of a group."""


def export(
    folder: Annotated[Path, typer.Argument(help="The data folder; a broker may be running on it.")],
    target: Annotated[Path, typer.Argument(help="Where the Parquet files go.")],
    header: Annotated[
        list[str] | None, typer.Option("--index-header", help="Messages are found by this header too (repeatable).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write the log's events as Parquet, a file for each segment. What is there already is not written again."""
    if find_spec("pyarrow") is None:
        typer.echo('this needs pyarrow: pip install "warrenmq[journal]"', err=True)
        raise typer.Exit(1)
    from warrenmq.journal.export import export as write

    try:
        for path, events in write(folder, target, header or ()):
            row = {"file": str(path), "events": events}
            typer.echo(json.dumps(row) if as_json else f"{path}: {events} events")
    except LogError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    except OSError as failed:
        typer.echo(f"{failed.filename or folder}: {failed.strerror or failed}", err=True)
        raise typer.Exit(1) from None
