"""`warren copy`: messages of a queue to another queue, where they stay too, over the management API."""

from __future__ import annotations

import typer

from warrenmq.cli.transfers.to_queue import to_queue

HELP = "Copy waiting messages to another queue; where they are they stay, and nobody notices there."


def register(app: typer.Typer) -> None:
    app.command("copy", help=HELP)(to_queue("copy"))
