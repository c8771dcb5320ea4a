"""`warren move`: messages of a queue to another queue, over the management API."""

from __future__ import annotations

import typer

from warrenmq.cli.transfers.to_queue import to_queue

HELP = "Move waiting messages to another queue: each is in one of the two at any moment, also over a crash."


def register(app: typer.Typer) -> None:
    app.command("move", help=HELP)(to_queue("move"))
