"""What `warren move` and `warren copy` have in common: all but the word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from warrenmq.cli._command import Command, Json, Url, Vhost
from warrenmq.cli._filters import Filters, Sending
from warrenmq.cli._groups import spread
from warrenmq.cli.transfers.following import send


def to_queue(word: str) -> Callable[..., None]:
    """The command that sends messages of a queue to another in this way."""

    def run(
        *,
        queue: Annotated[str, typer.Argument(help="Where they are.")],
        target: Annotated[str, typer.Argument(help="The queue that gets them.")],
        vhost: Vhost = None,
        filters: Filters,
        sending: Sending,
        as_json: Json = False,
        url: Url = None,
    ) -> None:
        command = Command(word, url)
        chosen = filters.asked(command)
        body = {**chosen, **sending.asked(), "target": target}
        send(command, command.vhost(vhost), queue, body, sending.detach, as_json)

    return spread(run)
