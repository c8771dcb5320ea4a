"""``warren explain``: where a message would go, as a tree, with the bindings that matched or why none did.

Asks a definitions file or the management API of a broker (Warren's or RabbitMQ's); sends no message unless told to.
With ``--live`` it is where one goes (``live.py``).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from warrenmq.cli._command import Command, Json, Url, Vhost, speaking_amqp
from warrenmq.cli._status import NO
from warrenmq.cli.explain.sources import from_api, from_file, registry, stop, way
from warrenmq.cli.explain.tree import SHOWN, Show

if TYPE_CHECKING:
    from warrenmq.broker.exchange.explain import Step


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("explain")(explain)


def explain(
    exchange: Annotated[
        str, typer.Argument(help='The exchange published to; "" is the default exchange. With --live, * and ? count.')
    ],
    key: Annotated[str, typer.Argument(help="The routing key. With --live, * and ? as in a shell.")],
    header: Annotated[
        list[str] | None,
        typer.Option(
            "--header", "-H", help="A header: name=text, or name:=JSON for other types (n:=5, cc:='[\"a\"]')."
        ),
    ] = None,
    vhost: Vhost = None,
    definitions: Annotated[Path | None, typer.Option(help="A definitions file in RabbitMQ's export format.")] = None,
    url: Url = None,
    decorator: Annotated[
        list[str] | None,
        typer.Option("--decorator", help="A decorator, MODULE:OBJECT; a broker on this machine names its own."),
    ] = None,
    all: Annotated[bool, typer.Option("--all", help="Show every binding that did not match, not the nearest.")] = False,
    live: Annotated[
        bool, typer.Option("--live", help="Follow the next real message of this kind, every hop of it.")
    ] = False,
    send: Annotated[bool, typer.Option("--send", help="With --live: send one, known by an id of its own.")] = False,
    body: Annotated[str, typer.Option("--body", help="What the one that is sent says.")] = "sent by warren explain",
    timeout: Annotated[
        float, typer.Option("--timeout", min=0, help="Wait SECONDS for it; 0: as long as it takes.")
    ] = 0,
    follow: Annotated[
        float, typer.Option("--follow", min=0.1, help="It has arrived when SECONDS brought no delivery of it.")
    ] = 3,
    as_json: Json = False,
) -> None:
    """Show the way of a message through the exchanges: which bindings match, or why none does.

    With --live it is that of the next message published, with every delivery of it; the firehose is turned on for it,
    and off again. Leaves with 0 when the message reaches a queue or waits in a delayed exchange, with 1 when it is
    unroutable or none came, and with 2 when the question is wrong.
    """
    if definitions is not None and (url is not None or live):
        stop(f"name either --definitions or {'--live' if live else '--url'}, not both")
    if send and not live:
        stop("--send goes with --live: without it no message is sent")
    headers = _headers(header or [])
    show = Show(None if all else SHOWN, as_json)
    if definitions is not None:
        loaded, decorators, at = from_file(definitions), registry(decorator or [], [], False), vhost or "/"
    else:
        command = Command("explain", url, 30)
        at = command.vhost(vhost)
        loaded, there, believed = from_api(command)
        decorators = registry(decorator or [], there, believed)
    if live:
        from warrenmq.cli.explain.live import Live, Wanted

        def look(row_exchange: str, row_key: str, row_headers: dict[str, object] | None) -> Step:
            """With the definitions of the moment."""
            return way(from_api(command)[0], decorators, at, row_exchange, row_key, row_headers)

        wanted = Wanted(exchange, key, headers or {})
        reached = Live(command, wanted, look, show, timeout, follow).run(
            speaking_amqp("explain", url, at), at, body if send else None
        )
    else:
        reached = show.way(way(loaded, decorators, at, exchange, key, headers))
    if not reached:
        raise typer.Exit(NO)


def _headers(given: list[str]) -> dict[str, object] | None:
    if not given:
        return None
    headers: dict[str, object] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name.rstrip(":"):
            stop(f"header '{each}' is neither name=text nor name:=JSON")
        if not name.endswith(":"):
            headers[name] = value
            continue
        try:
            headers[name[:-1]] = json.loads(value)
        except ValueError as error:
            stop(f"header '{name[:-1]}' is no JSON: {error}")
    return headers
