"""`warren declare`, `delete`, `purge`, `pause` and `resume`: queues and exchanges, over the management API."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlencode

import typer

from warrenmq.cli import _output
from warrenmq.cli._api import segment
from warrenmq.cli._arguments import Argument, Arguments, arguments
from warrenmq.cli._command import Command, Json, Url, Vhost

Name = Annotated[str, typer.Argument(help="Its name.")]
Transient = Annotated[bool, typer.Option("--transient", help="It does not outlive a restart of the broker.")]
AutoDelete = Annotated[bool, typer.Option("--auto-delete", help="It goes with the last one that uses it.")]
IfUnused = Annotated[bool, typer.Option("--if-unused", help="Only when nobody uses it.")]

Queue = Annotated[str, typer.Argument(help="The queue.")]

CREATED = 201

declaring = typer.Typer(help="Make a queue or an exchange, or check that it is as said.", no_args_is_help=True)
deleting = typer.Typer(help="Delete a queue or an exchange.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.add_typer(declaring, name="declare")
    app.add_typer(deleting, name="delete")
    app.command("purge")(purge)
    app.command("pause")(pause)
    app.command("resume")(resume)


@declaring.command("queue")
def declare_queue(
    name: Name,
    kind: Annotated[str, typer.Option("--type", "-t", help="classic, quorum or stream [the vhost's default].")] = "",
    transient: Transient = False,
    auto_delete: AutoDelete = False,
    argument: Argument = None,
    all_arguments: Arguments = "",
    vhost: Vhost = None,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Make a queue. One that is there already must be as said."""
    command = Command("declare queue", url)
    given = arguments(command, argument, all_arguments)
    if kind:
        given["x-queue-type"] = kind
    body = {"durable": not transient, "auto_delete": auto_delete, "arguments": given}
    _put(command, "queue", name, vhost, body, as_json)


@declaring.command("exchange")
def declare_exchange(
    name: Name,
    kind: Annotated[
        str, typer.Option("--type", "-t", help="direct, fanout, topic, headers, x-delayed-message ...")
    ] = "direct",
    transient: Transient = False,
    auto_delete: AutoDelete = False,
    internal: Annotated[bool, typer.Option("--internal", help="Only other exchanges publish to it.")] = False,
    argument: Argument = None,
    all_arguments: Arguments = "",
    vhost: Vhost = None,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Make an exchange. One that is there already must be as said."""
    command = Command("declare exchange", url)
    given = arguments(command, argument, all_arguments)
    flags = {"durable": not transient, "auto_delete": auto_delete, "internal": internal}
    _put(command, "exchange", name, vhost, {"type": kind, **flags, "arguments": given}, as_json)


def _put(command: Command, kind: str, name: str, vhost: str | None, body: dict[str, Any], as_json: bool) -> None:
    at = command.vhost(vhost)
    made = command.ask_about(at, "PUT", f"/{kind}s/{segment(at)}/{segment(name)}", body).status == CREATED
    text = f"declared {kind} {name}" if made else f"{kind} {name} is there already, as said"
    _output.said(text, {"name": name, "vhost": at, "created": made, **body}, as_json)


@deleting.command("queue")
def delete_queue(
    name: Name,
    if_unused: IfUnused = False,
    if_empty: Annotated[bool, typer.Option("--if-empty", help="Only when no message is in it.")] = False,
    vhost: Vhost = None,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Delete a queue with all that is in it."""
    _delete(Command("delete queue", url), "queue", name, vhost, {"if-unused": if_unused, "if-empty": if_empty}, as_json)


@deleting.command("exchange")
def delete_exchange(
    name: Name, if_unused: IfUnused = False, vhost: Vhost = None, as_json: Json = False, url: Url = None
) -> None:
    """Delete an exchange with its bindings."""
    _delete(Command("delete exchange", url), "exchange", name, vhost, {"if-unused": if_unused}, as_json)


def _delete(
    command: Command, kind: str, name: str, vhost: str | None, conditions: dict[str, bool], as_json: bool
) -> None:
    at = command.vhost(vhost)
    query = urlencode({condition: "true" for condition, wanted in conditions.items() if wanted})
    path = f"/{kind}s/{segment(at)}/{segment(name)}" + (query and f"?{query}")
    command.ask_about(at, "DELETE", path, **{kind: name})
    _output.said(f"deleted {kind} {name}", {"name": name, "vhost": at}, as_json)


def purge(
    queue: Queue,
    vhost: Vhost = None,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Throw away the messages that wait in a queue. What consumers hold stays theirs."""
    command = Command("purge", url)
    at = command.vhost(vhost)
    command.ask_about(at, "DELETE", f"/queues/{segment(at)}/{segment(queue)}/contents", queue=queue)
    _output.said(f"purged queue {queue}", {"name": queue, "vhost": at}, as_json)


def pause(queue: Queue, vhost: Vhost = None, as_json: Json = False, url: Url = None) -> None:
    """Hand nothing out of a queue until it is resumed. It goes on taking messages; what consumers hold stays theirs."""
    _set_paused("pause", queue, vhost, as_json, url)


def resume(queue: Queue, vhost: Vhost = None, as_json: Json = False, url: Url = None) -> None:
    """Hand the messages of a queue out again."""
    _set_paused("resume", queue, vhost, as_json, url)


def _set_paused(verb: str, queue: str, vhost: str | None, as_json: bool, url: str | None) -> None:
    command = Command(verb, url)
    at = command.vhost(vhost)
    command.ask_about(at, "PUT", f"/queues/{segment(at)}/{segment(queue)}/{verb}", queue=queue)
    _output.said(f"{verb}d queue {queue}", {"name": queue, "vhost": at, "paused": verb == "pause"}, as_json)
