"""The firehose of a virtual host as rows: what is published and delivered there, as it happens.

Duty: turning it on for the time being, reading it, and saying in one line what is missing where that may not be. What
the firehose is, is in docs/extending.md. Not here: which rows are of interest, and how they are printed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from warrenmq.cli._api import segment
from warrenmq.cli._command import Command
from warrenmq.client import ChannelClosed, Connection

EXCHANGE = "amq.rabbitmq.trace"
HEARTBEAT = 60  # seconds: whoever waits for long has one, so that `warren doctor` has nothing to say of it
Row = dict[str, Any]


class Firehose:
    """A queue of one's own that gets all of it."""

    def __init__(self, connection: Connection) -> None:
        self._channel = connection.channel()
        self._queue = self._channel.queue_declare("", exclusive=True).str("queue")
        self._channel.queue_bind(self._queue, EXCHANGE, "#")
        self._channel.basic_consume(self._queue, no_ack=True)

    def next(self, seconds: float | None) -> Row | None:
        """The next row; none after so many seconds. What this queue itself is given is none of it."""
        while (message := self._channel.next_message(seconds)) is not None:
            row = told(message.routing_key, message.headers, message.body)
            if self._queue not in row["queues"]:
                return row
        return None


@contextmanager
def firehose(command: Command, connection: Connection, vhost: str) -> Iterator[Firehose]:
    """It is on for as long as this lasts, and then as it was before."""
    path = f"/vhosts/{segment(vhost)}"
    try:
        tap = Firehose(connection)
    except ChannelClosed as error:
        if error.code != 403:
            raise
        command.stop(
            f"user '{command.api.address.username}' may not read the firehose: in vhost '{vhost}' configure and write "
            f"for ^amq[.]gen and read for ^amq[.](gen|rabbitmq[.]trace) are needed (warren permission set)"
        )
    # a vhost by its name is for administrators only
    on = any(one["name"] == vhost and one["tracing"] for one in command.ask("GET", "/vhosts"))
    if not on:
        answer = command.answer("PUT", path, {"tracing": True})
        if answer.status >= 400:
            command.stop(
                f"the firehose of vhost '{vhost}' is off, and user '{command.api.address.username}' may not turn it "
                f"on: an administrator does, with `warren ctl trace_on -p {vhost}`"
            )
    try:
        yield tap
    finally:
        if not on:
            command.ask("PUT", path, {"tracing": False})


def told(routing_key: str, headers: dict[str, Any], body: bytes) -> Row:
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
