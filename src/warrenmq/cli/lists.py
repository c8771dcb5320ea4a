"""`warren queues`, `exchanges`, `bindings`, `connections`, `channels` and `consumers`: what is there, as tables."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Annotated, Any

import typer

from warrenmq.cli import _output
from warrenmq.cli._api import segment
from warrenmq.cli._command import Command, Json, Url, Vhost

Row = dict[str, Any]

#: list -> heading of a column -> where it is in what the API answers
COLUMNS: dict[str, dict[str, str]] = {
    "queues": {
        "NAME": "name",
        "TYPE": "type",
        "DURABLE": "durable",
        "READY": "messages_ready",
        "UNACKED": "messages_unacknowledged",
        "CONSUMERS": "consumers",
        "POLICY": "policy",
        "ARGUMENTS": "arguments",
    },
    "exchanges": {
        "NAME": "name",
        "TYPE": "type",
        "DURABLE": "durable",
        "AUTO DELETE": "auto_delete",
        "INTERNAL": "internal",
        "POLICY": "policy",
        "ARGUMENTS": "arguments",
    },
    "bindings": {
        "SOURCE": "source",
        "TO": "destination_type",
        "DESTINATION": "destination",
        "ROUTING KEY": "routing_key",
        "ARGUMENTS": "arguments",
    },
    "connections": {
        "NAME": "name",
        "USER": "user",
        "STATE": "state",
        "CHANNELS": "channels",
        "HEARTBEAT": "timeout",
        "CLIENT": "client_properties.connection_name",
    },
    "channels": {
        "NAME": "name",
        "USER": "user",
        "CONSUMERS": "consumer_count",
        "PREFETCH": "prefetch_count",
        "UNACKED": "messages_unacknowledged",
        "UNCONFIRMED": "messages_unconfirmed",
        "CONFIRMS": "confirm",
    },
    "consumers": {
        "QUEUE": "queue.name",
        "TAG": "consumer_tag",
        "CHANNEL": "channel_details.name",
        "ACKS": "ack_required",
        "PREFETCH": "prefetch_count",
        "ACTIVE": "active",
    },
}
OF_A_VHOST = {"connections": "/vhosts/{0}/connections", "channels": "/vhosts/{0}/channels"}
Pattern = Annotated[str, typer.Argument(help="Only names like this one; * and ? as in a shell.")]


def register(app: typer.Typer) -> None:
    for what in COLUMNS:
        app.command(what, help=f"List the {what} of a virtual host.")(_lister(what))


def _lister(what: str) -> Callable[..., None]:
    def run(pattern: Pattern = "*", vhost: Vhost = None, as_json: Json = False, url: Url = None) -> None:
        command = Command(what, url)
        at = command.vhost(vhost)
        rows = command.ask_about(at, "GET", OF_A_VHOST.get(what, f"/{what}/{{0}}").format(segment(at))).body
        columns = list(COLUMNS[what].values())
        found = [row for row in rows if fnmatchcase(str(field(row, columns[0])), pattern)]
        found.sort(key=lambda row: [str(field(row, column)) for column in columns[:4]])
        if as_json:
            _output.as_json(found)
            return
        _output.table([list(COLUMNS[what]), *([field(row, column) for column in columns] for row in found)])

    return run


def field(row: Row, path: str) -> Any:
    """A field of a field, by names with dots between; None where there is none."""
    value: Any = row
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value
