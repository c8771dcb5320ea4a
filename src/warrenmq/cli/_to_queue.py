"""What `warren move` and `warren copy` have in common: all but the word."""

from __future__ import annotations

from collections.abc import Callable
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


def to_queue(word: str) -> Callable[..., None]:
    """The command that sends messages of a queue to another in this way."""

    def run(
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
        command = Command(word, url)
        body = command.filters(header, key, older, younger, larger, smaller, text)
        send(command, vhost, queue, {**body, **sending(limit, rate, dry_run), "target": target}, detach, as_json)

    return run
