"""`warren move`: messages of a queue to another queue, over the management API."""

from __future__ import annotations

from typing import Annotated

import typer

from warrenmq.cli._filters import (
    DEFAULT_URL,
    Command,
    Detach,
    DryRun,
    Header,
    Json,
    Key,
    Larger,
    Limit,
    Older,
    Rate,
    Smaller,
    Text,
    Url,
    Vhost,
    Younger,
    sending,
)
from warrenmq.cli._transfers import send


def register(app: typer.Typer) -> None:
    app.command("move")(move)


def move(
    queue: Annotated[str, typer.Argument(help="Where they are.")],
    target: Annotated[str, typer.Argument(help="The queue that gets them.")],
    vhost: Vhost = "/",
    header: Header = None,
    key: Key = None,
    older: Older = None,
    younger: Younger = None,
    larger: Larger = None,
    smaller: Smaller = None,
    text: Text = None,
    limit: Limit = None,
    rate: Rate = None,
    dry_run: DryRun = False,
    detach: Detach = False,
    as_json: Json = False,
    url: Url = DEFAULT_URL,
) -> None:
    """Move waiting messages to another queue: each is in one of the two at any moment, also over a crash."""
    command = Command("move", url)
    body = command.filters(header, key, older, younger, larger, smaller, text)
    send(command, vhost, queue, {**body, **sending(limit, rate, dry_run), "target": target}, detach, as_json)
