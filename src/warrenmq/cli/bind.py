"""`warren bind` and `warren unbind`: bindings from an exchange to a queue or another exchange, over the API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from warrenmq.cli import _output
from warrenmq.cli._api import segment
from warrenmq.cli._arguments import Argument, Arguments, arguments
from warrenmq.cli._command import Command, Json, Url, Vhost
from warrenmq.cli._groups import Group, spread


@dataclass
class Binding(Group):
    """A binding as the command line names it: source, destination, key and arguments."""

    source: Annotated[str, typer.Argument(help="The exchange that messages come from.")]
    destination: Annotated[str, typer.Argument(help="The queue they go to; with --to-exchange, the exchange.")]
    routing_key: Annotated[str, typer.Argument(help="The routing key or pattern.")] = ""
    to_exchange: Annotated[bool, typer.Option("--to-exchange", help="The destination is an exchange.")] = False
    argument: Argument = None
    all_arguments: Arguments = ""

    def given(self, command: Command) -> dict[str, Any]:
        return arguments(command, self.argument, self.all_arguments)

    def path(self, vhost: str) -> str:
        to = "e" if self.to_exchange else "q"
        return f"/bindings/{segment(vhost)}/e/{segment(self.source)}/{to}/{segment(self.destination)}"

    def ends(self) -> dict[str, str]:
        """Which kinds of names a refusal may be about; of two exchanges the first is asked for by itself."""
        first = {"exchange": self.source}
        return first if self.to_exchange else {**first, "queue": self.destination}

    def say(self, done: str, vhost: str, given: dict[str, Any], as_json: bool) -> None:
        """``done``: what was done, in words that end before the key."""
        ends = {"vhost": vhost, "source": self.source, "destination": self.destination}
        facts = {**ends, "routing_key": self.routing_key, "arguments": given}
        _output.said(done + (f" by '{self.routing_key}'" if self.routing_key else ""), facts, as_json)


def register(app: typer.Typer) -> None:
    app.command("bind")(spread(bind))
    app.command("unbind")(spread(unbind))


def bind(*, binding: Binding, vhost: Vhost = None, as_json: Json = False, url: Url = None) -> None:
    """Bind a queue or an exchange to an exchange. A binding that is there already is left alone."""
    command = Command("bind", url)
    at = command.vhost(vhost)
    given = binding.given(command)
    body = {"routing_key": binding.routing_key, "arguments": given}
    command.ask_about(at, "POST", binding.path(at), body, **binding.ends())
    binding.say(f"bound {binding.destination} to {binding.source}", at, given, as_json)


def unbind(*, binding: Binding, vhost: Vhost = None, as_json: Json = False, url: Url = None) -> None:
    """Take a binding away: the one with this key and exactly these arguments."""
    command = Command("unbind", url)
    at = command.vhost(vhost)
    given = binding.given(command)
    there = command.ask_about(at, "GET", binding.path(at), **binding.ends()).body
    for one in there:
        if one["routing_key"] == binding.routing_key and one["arguments"] == given:
            command.ask("DELETE", f"{binding.path(at)}/{segment(one['properties_key'])}")
            break
    else:
        _none(command, binding, there)
    binding.say(f"unbound {binding.destination} from {binding.source}", at, given, as_json)


def _none(command: Command, binding: Binding, there: list[dict[str, Any]]) -> None:
    keys = ", ".join(f"'{one['routing_key']}' {_output.cell(one['arguments'])}".rstrip() for one in there[:5])
    known = f"bound by {keys}" if there else "nothing binds the two"
    ends = f"{binding.destination} to {binding.source}"
    command.stop(f"no such binding of {ends} by '{binding.routing_key}' ({known})")
