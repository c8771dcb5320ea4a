"""`warren trace`: the firehose as lines: what is published and delivered in a virtual host, as it happens.

Duty: choosing and printing. ``firehose.py`` reads it.
"""

from __future__ import annotations

import base64
import json
import time
from fnmatch import fnmatchcase
from typing import Annotated, Any

import typer

from warrenmq.cli import _output
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
    from warrenmq.cli.live.firehose import HEARTBEAT, firehose
    from warrenmq.client import ClientError, Connection

    command = Command("trace", url)
    at = command.vhost(vhost)
    address = speaking_amqp("trace", url, at)
    try:
        with Connection(address, connection_name="warren trace", heartbeat=HEARTBEAT) as connection:
            with firehose(command, connection, at) as tap:
                lines = 0
                while (row := tap.next(timeout or None)) is not None:
                    if not _wanted(row, exchange, queue, key):
                        continue
                    _show(row, as_json, lines == 0)
                    lines += 1
                    if lines == count:
                        break
    except KeyboardInterrupt:
        raise typer.Exit(DONE) from None
    except ClientError as error:
        stop("trace", str(error), NO_BROKER)


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
