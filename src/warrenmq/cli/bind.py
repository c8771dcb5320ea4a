"""`warren bind` and `warren unbind`: bindings from an exchange to a queue or another exchange, over the API."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from warrenmq.cli import _output
from warrenmq.cli._api import segment
from warrenmq.cli._arguments import Argument, Arguments, arguments
from warrenmq.cli._command import Command, Json, Url, Vhost

Source = Annotated[str, typer.Argument(help="The exchange that messages come from.")]
Destination = Annotated[str, typer.Argument(help="The queue they go to; with --to-exchange, the exchange.")]
Key = Annotated[str, typer.Argument(help="The routing key or pattern.")]
ToExchange = Annotated[bool, typer.Option("--to-exchange", help="The destination is an exchange.")]


def register(app: typer.Typer) -> None:
    app.command("bind")(bind)
    app.command("unbind")(unbind)


def bind(
    source: Source,
    destination: Destination,
    routing_key: Key = "",
    to_exchange: ToExchange = False,
    argument: Argument = None,
    all_arguments: Arguments = "",
    vhost: Vhost = None,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Bind a queue or an exchange to an exchange. A binding that is there already is left alone."""
    command = Command("bind", url)
    at = command.vhost(vhost)
    given = arguments(command, argument, all_arguments)
    body = {"routing_key": routing_key, "arguments": given}
    ends = _ends(source, destination, to_exchange)
    command.ask_about(at, "POST", _path(at, source, destination, to_exchange), body, **ends)
    _output.said(
        f"bound {destination} to {source}" + (f" by '{routing_key}'" if routing_key else ""),
        _facts(at, source, destination, routing_key, given),
        as_json,
    )


def unbind(
    source: Source,
    destination: Destination,
    routing_key: Key = "",
    to_exchange: ToExchange = False,
    argument: Argument = None,
    all_arguments: Arguments = "",
    vhost: Vhost = None,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Take a binding away: the one with this key and exactly these arguments."""
    command = Command("unbind", url)
    at = command.vhost(vhost)
    given = arguments(command, argument, all_arguments)
    path = _path(at, source, destination, to_exchange)
    there = command.ask_about(at, "GET", path, **_ends(source, destination, to_exchange)).body
    for one in there:
        if one["routing_key"] == routing_key and one["arguments"] == given:
            command.ask("DELETE", f"{path}/{segment(one['properties_key'])}")
            break
    else:
        _none(command, source, destination, routing_key, there)
    _output.said(
        f"unbound {destination} from {source}" + (f" by '{routing_key}'" if routing_key else ""),
        _facts(at, source, destination, routing_key, given),
        as_json,
    )


def _none(command: Command, source: str, destination: str, routing_key: str, there: list[dict[str, Any]]) -> None:
    keys = ", ".join(f"'{one['routing_key']}' {_output.cell(one['arguments'])}".rstrip() for one in there[:5])
    known = f"bound by {keys}" if there else "nothing binds the two"
    command.stop(f"no such binding of {destination} to {source} by '{routing_key}' ({known})")


def _path(vhost: str, source: str, destination: str, to_exchange: bool) -> str:
    to = "e" if to_exchange else "q"
    return f"/bindings/{segment(vhost)}/e/{segment(source)}/{to}/{segment(destination)}"


def _ends(source: str, destination: str, to_exchange: bool) -> dict[str, str]:
    """Which kinds of names a refusal may be about; of two exchanges the first is asked for by itself."""
    return {"exchange": source} if to_exchange else {"exchange": source, "queue": destination}


def _facts(vhost: str, source: str, destination: str, key: str, given: dict[str, Any]) -> dict[str, Any]:
    ends = {"vhost": vhost, "source": source, "destination": destination}
    return {**ends, "routing_key": key, "arguments": given}
