"""``warren explain --live``: the next real message that matches, and each hop of it.

Duty: waiting for it at the firehose, which tells of every message at once, on either broker, what nothing else does:
receipts are for publishers who ask, and the journal is written seconds later, of durable messages, by Warren only. The
bindings behind the way come from the definitions, read again when the message is there; what the broker says it did
counts. Not here: the firehose (``cli/live/firehose.py``), the tree (``tree.py``).

A message has no number that clients see. It is known again by its message-id or, without one, by body and properties.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import typer

from warrenmq.cli import _output
from warrenmq.cli._command import Command
from warrenmq.cli._status import DONE, INTERRUPTED, NO_BROKER
from warrenmq.cli.explain.tree import Show, queues_and_waits, summary
from warrenmq.cli.live.firehose import HEARTBEAT, Firehose, Row, firehose
from warrenmq.client import ChannelClosed, ClientError, Connection, Properties
from warrenmq.wire.fields import from_python

if TYPE_CHECKING:
    from warrenmq.broker.exchange.explain import Step

ADDED = ("x-death", "x-first-death-exchange", "x-first-death-queue", "x-first-death-reason", "CC", "x-delivery-count")
"""Headers that come and go on the way of a message."""


class Wanted(NamedTuple):
    """The message that is waited for: the exchange and the routing key as in a shell, headers as they are."""

    exchange: str
    key: str
    headers: dict[str, object]

    def is_met_by(self, row: Row) -> bool:
        there = _headers(row)
        return (
            row["what"] == "published"
            and fnmatchcase(row["exchange"], self.exchange)
            and any(fnmatchcase(key, self.key) for key in row["routing_keys"])
            and all(there.get(name) == value for name, value in self.headers.items())
        )


class Live:
    """One following: what is waited for, how its way is looked up and shown, and how long each takes at most."""

    def __init__(
        self,
        command: Command,
        wanted: Wanted,
        look: Callable[[str, str, dict[str, object] | None], Step],
        show: Show,
        timeout: float,
        follow: float,
    ) -> None:
        self._command = command
        self._wanted = wanted
        self._look = look
        self._show = show
        self._timeout = timeout
        self._follow = follow

    def run(self, address: str, vhost: str, body: str | None) -> bool:
        """Did the message reach a queue, or does it wait? ``body``: of one that is sent for it."""
        queues: list[str] | None = None
        try:
            with Connection(address, connection_name="warren explain", heartbeat=HEARTBEAT) as connection:
                with firehose(self._command, connection, vhost) as tap:
                    first = self._first(tap, connection, body)
                    if first is None:
                        return False
                    queues, waiting = self._published(first)
                    if queues:
                        self._deliveries(tap, first, queues)
                    return bool(queues or waiting)
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED if queues is None else DONE) from None
        except ClientError as error:
            self._command.stop(str(error), NO_BROKER)

    def _first(self, tap: Firehose, connection: Connection, body: str | None) -> Row | None:
        wanted = self._wanted
        if body is not None:
            id = send(self._command, connection, wanted, body)
            return awaited(tap, lambda row: row["properties"].get("message_id") == id, self._timeout)
        like = f"to exchange '{wanted.exchange}' with a key like '{wanted.key}'" + (
            " and these headers" * bool(wanted.headers)
        )
        say(f"waiting for what is published {like}; Ctrl-C ends it")
        first = awaited(tap, wanted.is_met_by, self._timeout)
        if first is None:
            say(f"warren explain: nothing was published {like} within {self._timeout:g} s (--send sends one)")
        return first

    def _published(self, row: Row) -> tuple[list[str], list[str]]:
        """The queues that took it, and the delayed exchanges that it waits in."""
        from warrenmq.broker.exchange.explain import facts

        step = self._look(*as_published(row))
        queues, waiting = queues_and_waits(step)
        if row["exchange"]:  # the firehose names the keys of the default exchange, whether they are queues or not
            unknown = sorted(set(row["queues"]) - set(queues))
            queues = sorted(row["queues"])
        else:
            unknown = []
        more = {"queues": queues, "waits_in": waiting, "way": facts(step)}
        self._print(as_facts(row) | more, in_words(row))
        if not self._show.as_json:
            self._show.tree(step)
            if unknown:
                print(_output.clean(f"in no definitions (exclusive, or changed meanwhile): {', '.join(unknown)}"))
            print(_output.clean(summary(queues, waiting)), flush=True)
        return queues, waiting

    def _deliveries(self, tap: Firehose, first: Row, queues: list[str]) -> None:
        left = list(queues)
        while (row := awaited(tap, lambda one: is_same(first, one), self._follow)) is not None:
            self._print(as_facts(row), in_words(row))
            left = [name for name in left if name not in row["queues"]]
        if left:
            words = f"delivered to nobody within {self._follow:g} s: waits in {', '.join(left)}"
            self._print({"hop": "waits", "queues": left}, _output.clean(words))

    def _print(self, found: dict[str, Any], words: str) -> None:
        print(json.dumps(found, default=str) if self._show.as_json else words, flush=True)


def awaited(tap: Firehose, wanted: Callable[[Row], bool], seconds: float) -> Row | None:
    """The first such row; none after so many seconds, 0 being as long as it takes."""
    end = time.monotonic() + seconds
    while not seconds or end > time.monotonic():
        row = tap.next(max(end - time.monotonic(), 0.001) if seconds else None)
        if row is None or wanted(row):
            return row
    return None


def is_same(published: Row, row: Row) -> bool:
    """Is this the message, delivered? One that died has other headers and another exchange."""
    if row["what"] != "delivered" or row["body"] != published["body"]:
        return False
    one, other = dict(published["properties"]), dict(row["properties"])
    if one.get("message_id") or other.get("message_id"):
        return bool(one.get("message_id") == other.get("message_id"))
    for each in (one, other):
        each["headers"] = {name: value for name, value in (each.get("headers") or {}).items() if name not in ADDED}
        each.pop("expiration", None)  # taken away from what expired
    return one == other


def as_published(row: Row) -> tuple[str, str, dict[str, object] | None]:
    """Exchange, routing key and headers, as they were published: BCC is in no header any more, but in the keys."""
    headers = dict(_headers(row))
    key, *more = row["routing_keys"] or [""]
    copies = headers.get("CC")
    hidden = [one for one in more if not isinstance(copies, list) or one not in copies]
    return row["exchange"], key, headers | ({"BCC": hidden} if hidden else {}) or None


def in_words(row: Row) -> str:
    """A hop as a line."""
    who = f"user '{row['user']}', {row['connection']}"
    if row["what"] == "published":
        keys = ", ".join(f"'{key}'" for key in row["routing_keys"])
        said = f"published to '{row['exchange']}' with {keys}, {len(row['body'])} octets, by {who}"
    else:
        again = " again" if row["redelivered"] else ""
        said = f"delivered{again} from queue '{row['queues'][0]}' to {who}{_died(row)}"
    return _output.clean(f"{time.strftime('%H:%M:%S')} {said}")


def as_facts(row: Row) -> dict[str, Any]:
    """A hop as data."""
    return {
        "hop": row["what"],
        "exchange": row["exchange"],
        "routing_keys": row["routing_keys"],
        "queues": row["queues"],
        "redelivered": row["redelivered"],
        "deaths": _headers(row).get("x-death") or [],
        "user": row["user"],
        "connection": row["connection"],
        "properties": row["properties"],
        "bytes": len(row["body"]),
    }


def send(command: Command, connection: Connection, wanted: Wanted, body: str) -> str:
    """A message of our own; its id, by which it is known."""
    id = f"warren-explain-{uuid4()}"
    properties = Properties(message_id=id, app_id="warren explain")
    if wanted.headers:
        properties.headers = from_python(wanted.headers)
    try:
        channel = connection.channel()
        channel.basic_publish(wanted.exchange, wanted.key, body.encode("utf-8", "surrogateescape"), properties)
        channel.basic_qos(0)  # answered after the publish, which may have closed the channel
    except ChannelClosed as error:
        command.stop(f"the broker refused the message: {error}")
    return id


def say(text: str) -> None:
    """Beside the output, which is for hops alone."""
    typer.echo(text, err=True)


def _headers(row: Row) -> dict[str, object]:
    found = row["properties"].get("headers")
    return found if isinstance(found, dict) else {}


def _died(row: Row) -> str:
    deaths = _headers(row).get("x-death")
    if not isinstance(deaths, list) or not deaths or not isinstance(deaths[0], dict):
        return ""
    last = deaths[0]
    return f", dead-lettered by queue '{last.get('queue')}' to '{row['exchange']}': {last.get('reason')}"
