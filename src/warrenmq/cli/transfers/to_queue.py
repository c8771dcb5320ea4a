"""What `warren move` and `warren copy` have in common: all but the word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from warrenmq.cli._command import Command, Json, Url, Vhost
from warrenmq.cli._filters import (
    Detach,
    DryRun,
    Header,
    Key,
    Larger,
    Limit,
    Older,
    Rate,
    Smaller,
    Text,
    Younger,
    filters,
    sending,
)
from warrenmq.cli.transfers.following import send


def to_queue(word: str) -> Callable[..., None]:
    """The command that sends messages of a queue to another in this way."""

    def run(
        queue: Annotated[str, typer.Argument(help="Where they are.")],
        target: Annotated[str, typer.Argument(help="The queue that gets them.")],
        vhost: Vhost = None,
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
        url: Url = None,
    ) -> None:
        command = Command(word, url)
        chosen = filters(command, header, key, older, younger, larger, smaller, text)
        body = {**chosen, **sending(limit, rate, dry_run), "target": target}
        send(command, command.vhost(vhost), queue, body, detach, as_json)

    return run
