"""`warren journal export`: what became of durable messages, as Parquet.

Duty: arguments, printing. The work is `warrenmq.journal`'s, which needs pyarrow (`pip install "warrenmq[journal]"`).
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from warrenmq.cli._command import Json, stop
from warrenmq.cli._status import NO
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
        stop("journal export", 'this needs pyarrow: pip install "warrenmq[journal]"', NO)
    from warrenmq.journal.export import export as write

    try:
        for path, events in write(folder, target, header or ()):
            row = {"file": str(path), "events": events}
            typer.echo(json.dumps(row) if as_json else f"{path}: {events} events")
    except LogError as error:
        stop("journal export", str(error), NO)
    except OSError as failed:
        stop("journal export", f"{failed.filename or folder}: {failed.strerror or failed}", NO)
