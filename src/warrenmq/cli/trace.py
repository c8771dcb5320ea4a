"""`warren trace`: the firehose as lines: what is published and delivered in a virtual host, as it happens.

Duty: turning the firehose on for the time being, choosing, printing. What the firehose is, is in docs/extending.md.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Annotated, Any

import typer

from warrenmq.cli import _output
from warrenmq.cli._api import segment
from warrenmq.cli._command import Command, Json, Url, Vhost, speaking_amqp, stop
from warrenmq.cli._status import DONE, NO_BROKER

SHOWN = 60  # characters of a body
COLUMNS = ("TIME", "WHAT", "EXCHANGE", "ROUTING KEYS", "QUEUES", "BYTES", "BODY")


def register(app: typer.Typer) -> None:
    app.command("trace")(trace)


def trace(
    exchange: Annotated[str | None, typer.Option("--exchange", "-e", help="Only what came to such a one.")] = None,
    queue: Annotated[str | None, typer.Option("--queue", "-q", help="Only what such a queue took or gave.")] = None,
    key: Annotated[
        str | None, typer.Option("--key", help="Only with such a routing key; * and ? as in a shell.")
    ] = None,
    count: Annotated[int, typer.Option("--count", "-n", min=0, help="So many lines; 0: until Ctrl-C.")] = 0,
    timeout: Annotated[float, typer.Option("--timeout", min=0, help="Stop when none came for SECONDS; 0: never.")] = 0,
    vhost: Vhost = None,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Print what is published and delivered, as it happens. The firehose is turned on for it, and off again."""
    from warrenmq.client import ClientError, Connection

    command = Command("trace", url)
    at = command.vhost(vhost)
    try:
        with Connection(speaking_amqp("trace", url, at), connection_name="warren trace") as connection:
            channel = connection.channel()
            own = channel.queue_declare("", exclusive=True).str("queue")
            channel.queue_bind(own, "amq.rabbitmq.trace", "#")
            channel.basic_consume(own, no_ack=True)
            with _firehose(command, at):
                lines = 0
                for message in channel.messages(timeout or None):
                    row = told(message.routing_key, message.headers, message.body)
                    if own in row["queues"] or not _wanted(row, exchange, queue, key):
                        continue
                    _show(row, as_json, lines == 0)
                    lines += 1
                    if lines == count:
                        break
    except KeyboardInterrupt:
        raise typer.Exit(DONE) from None
    except ClientError as error:
        stop("trace", str(error), NO_BROKER)


@contextmanager
def _firehose(command: Command, vhost: str) -> Iterator[None]:
    path = f"/vhosts/{segment(vhost)}"
    on = command.ask("GET", path)["tracing"]
    if not on:
        command.ask("PUT", path, {"tracing": True})
    try:
        yield
    finally:
        if not on:
            command.ask("PUT", path, {"tracing": False})


def told(routing_key: str, headers: dict[str, Any], body: bytes) -> dict[str, Any]:
    """What a message of the firehose says."""
    what, _, name = routing_key.partition(".")
    published = what == "publish"
    return {
        "what": "published" if published else "delivered",
        "exchange": str(headers.get("exchange_name", "")),
        "routing_keys": [str(one) for one in headers.get("routing_keys") or []],
        "queues": [str(one) for one in headers.get("routed_queues") or []] if published else [name],
        "redelivered": bool(headers.get("redelivered")),
        "user": headers.get("user"),
        "connection": headers.get("connection"),
        "properties": headers.get("properties") or {},
        "body": body,
    }


def _wanted(row: dict[str, Any], exchange: str | None, queue: str | None, key: str | None) -> bool:
    return (
        (exchange is None or fnmatchcase(row["exchange"], exchange))
        and (queue is None or any(fnmatchcase(one, queue) for one in row["queues"]))
        and (key is None or any(fnmatchcase(one, key) for one in row["routing_keys"]))
    )


def _show(row: dict[str, Any], as_json: bool, first: bool) -> None:
    body: bytes = row["body"]
    try:
        text, encoding = body.decode("utf-8"), "string"
    except UnicodeDecodeError:
        text, encoding = base64.b64encode(body).decode("ascii"), "base64"
    if as_json:
        print(json.dumps({**row, "body": text, "payload_encoding": encoding}, default=str), flush=True)
        return
    shown = _output.clean(text if len(text) <= SHOWN else text[: SHOWN - 3] + "...")
    keys, queues = ",".join(row["routing_keys"]), ",".join(row["queues"])
    values = (time.strftime("%H:%M:%S"), row["what"], row["exchange"], keys, queues, len(body), shown)
    _output.stream(values, COLUMNS if first else None)
