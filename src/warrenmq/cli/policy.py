"""`warren policy`: policies of a virtual host, over the management API. What they do is in docs/policies.md."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from warrenmq.cli import _output
from warrenmq.cli._api import segment
from warrenmq.cli._arguments import Argument, Arguments, arguments
from warrenmq.cli._command import Command, Json, Url, Vhost

Name = Annotated[str, typer.Argument(help="The policy.")]

group = typer.Typer(help="Policies: set, clear, list.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.add_typer(group, name="policy")


@group.command("set")
def set_policy(
    name: Name,
    pattern: Annotated[str, typer.Argument(help="Which names it is for: a regular expression.")],
    argument: Argument = None,
    all_arguments: Arguments = "",
    apply_to: Annotated[str, typer.Option("--apply-to", help="queues, exchanges or all.")] = "all",
    priority: Annotated[int, typer.Option("--priority", help="Of two that fit, the higher one counts.")] = 0,
    vhost: Vhost = None,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Set a policy: `warren policy set short '^tmp[.]' -a message-ttl=60000 -a max-length=1000`."""
    command = Command("policy set", url)
    at = command.vhost(vhost)
    definition = arguments(command, argument, all_arguments)
    if not definition:
        command.stop("a policy without a key does nothing: -a message-ttl=60000, or --arguments JSON")
    body = {"pattern": pattern, "definition": definition, "apply-to": apply_to, "priority": priority}
    command.ask_about(at, "PUT", f"/policies/{segment(at)}/{segment(name)}", body)
    _output.said(f"set policy {name}", {"name": name, "vhost": at, **body}, as_json)


@group.command("clear")
def clear_policy(name: Name, vhost: Vhost = None, as_json: Json = False, url: Url = None) -> None:
    """Take a policy away."""
    command = Command("policy clear", url)
    at = command.vhost(vhost)
    command.ask_about(at, "DELETE", f"/policies/{segment(at)}/{segment(name)}", policy=name)
    _output.said(f"cleared policy {name}", {"name": name, "vhost": at}, as_json)


@group.command("list")
def list_policies(vhost: Vhost = None, as_json: Json = False, url: Url = None) -> None:
    """The policies of a virtual host."""
    command = Command("policy list", url)
    at = command.vhost(vhost)
    found = command.ask_about(at, "GET", f"/policies/{segment(at)}").body
    if as_json:
        _output.as_json(found)
        return
    rows = [
        [one["name"], one["pattern"], one["apply-to"], one["priority"], json.dumps(one["definition"])] for one in found
    ]
    _output.table([["NAME", "PATTERN", "APPLY TO", "PRIORITY", "DEFINITION"], *rows])
