"""`warren migrate SOURCE TARGET`: everything of a broker, RabbitMQ's or ours, to another: definitions, then messages.

Can be stopped and run again: what is there already is left alone, and what was moved is gone from the source. The
messages' way is in ``messages.py``.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from warrenmq.cli import _output
from warrenmq.cli._command import Command, Json, speaking_amqp
from warrenmq.cli._status import NO, NO_BROKER
from warrenmq.cli.migrate.definitions import Comparison, compare

Row = dict[str, Any]


def register(app: typer.Typer) -> None:
    app.command("migrate")(migrate)


def migrate(
    source: Annotated[str, typer.Argument(help="The old broker: an AMQP address, or a saved context's name.")],
    target: Annotated[str, typer.Argument(help="The new one.")],
    source_http: Annotated[str | None, typer.Option("--source-http", help="The old one's HTTP address.")] = None,
    target_http: Annotated[str | None, typer.Option("--target-http", help="The new one's.")] = None,
    vhost: Annotated[list[str] | None, typer.Option("--vhost", "-p", help="Only this one. Repeatable.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done, and what differs.")] = False,
    no_messages: Annotated[bool, typer.Option("--no-messages", help="Only the definitions.")] = False,
    batch: Annotated[int, typer.Option("--batch", min=1, max=65535, help="Messages confirmed at a time.")] = 500,
    idle: Annotated[float, typer.Option("--idle", min=0.01, help="A queue that gives none so long is looked at.")] = 1,
    as_json: Json = False,
) -> None:
    """Move everything from one broker to another: vhosts, users, permissions, policies, exchanges, queues, bindings;
    then the messages of queues, confirmed there before they are acknowledged here, in their order.

    What the target has already is left alone, and named where it differs. Ctrl-C ends it after a batch; run it again
    to go on. Status 1 when something differs, could not be moved, or does not add up.
    """
    old = Command("migrate", source_http or source)
    new = Command("migrate", target_http or target)
    wanted = set(vhost) if vhost else None
    definitions = old.ask("GET", "/definitions")
    comparison = compare(definitions, new.ask("GET", "/definitions"), wanted)
    if wanted:
        known = {one["name"] for one in definitions["vhosts"]}
        for name in sorted(wanted - known):
            old.stop(f"no vhost '{name}' at the source (it has {', '.join(sorted(known))})")
    queues = [one for one in old.ask("GET", "/queues") if wanted is None or one["vhost"] in wanted]
    carried, stay = _chosen(queues)
    report: Row = {
        "new": {kind: len(found) for kind, found in comparison.new.items()},
        "same": comparison.same,
        "different": comparison.different,
        "stay": stay,
    }
    if not dry_run and any(comparison.new.values()):
        new.ask("POST", "/definitions", comparison.new)
        again = compare(definitions, new.ask("GET", "/definitions"), wanted)
        report["different"] = again.different + [f"{kind}: not taken" for kind, left in again.new.items() if left]
    if not as_json:
        _tell_definitions(report, comparison, dry_run)
    report["queues"] = []
    if not dry_run and not no_messages:
        _move_all(report["queues"], carried, source, target, batch, idle, as_json)
    if as_json:
        _output.as_json(report)
    if report["different"] or any(one["problem"] for one in report["queues"]):
        raise typer.Exit(NO)


def _chosen(queues: list[Row]) -> tuple[list[tuple[str, str]], list[str]]:
    """Queues whose messages are moved, and what is said of the others."""
    carried, stay = [], []
    for one in sorted(queues, key=lambda one: (one["vhost"], one["name"])):
        name = f"queue {one['name']} in vhost '{one['vhost']}'"
        if one.get("exclusive"):
            stay.append(f"{name} is exclusive: its connection declares it anew")
        elif one.get("auto_delete"):
            stay.append(f"{name} is auto-delete: it would go with this tool, so its messages stay for its consumers")
        elif one.get("type") == "stream":
            stay.append(f"{name} is a stream: its messages stay where they are, the queue is declared")
        else:
            carried.append((one["vhost"], one["name"]))
    return carried, stay


def _tell_definitions(report: Row, comparison: Comparison, dry_run: bool) -> None:
    word = "would be copied" if dry_run else "copied"
    for kind, found in comparison.new.items():
        print(f"{kind}: {len(found)} {word}, {comparison.same.get(kind, 0)} there already")
    for one in report["different"]:
        print(f"differs, left alone: {one}")
    for one in report["stay"]:
        print(f"stays: {one}")


def _move_all(
    told: list[Row], queues: list[tuple[str, str]], source: str, target: str, batch: int, idle: float, quiet: bool
) -> None:
    """Queue by queue; again from the beginning as long as that moves anything, for what dead-letters meanwhile."""
    from warrenmq.client import ClientError

    found: dict[tuple[str, str], Row] = {}
    with _Stopping() as stopping:
        try:
            while not stopping():
                before = sum(one["moved"] for one in found.values())
                for place in queues:
                    if stopping():
                        break
                    _move(found, place, source, target, batch, idle, stopping)
                if sum(one["moved"] for one in found.values()) == before:
                    break
        except ClientError as error:
            typer.echo(f"warren migrate: {error}; run it again to go on", err=True)
            raise typer.Exit(NO_BROKER) from None
        stopped = stopping()
    told += found.values()
    if not quiet:
        heads = ("vhost", "queue", "moved", "again", "left", "there", "checked", "problem")
        _output.table([[name.upper() for name in heads], *([one[name] for name in heads] for one in told)])
    if stopped:
        typer.echo("warren migrate: stopped; run it again to go on", err=True)
        raise typer.Exit(NO)


def _move(
    found: dict[tuple[str, str], Row],
    place: tuple[str, str],
    source: str,
    target: str,
    batch: int,
    idle: float,
    stopping: Callable[[], bool],
) -> None:
    from warrenmq.cli.migrate.messages import Moved, Mover
    from warrenmq.client import Connection

    vhost, queue = place
    moved = Moved(vhost, queue)
    with (
        Connection(speaking_amqp("migrate", source, vhost), connection_name="warren migrate") as old,
        Connection(speaking_amqp("migrate", target, vhost), connection_name="warren migrate") as new,
    ):
        Mover(old, new, moved, batch, idle, stopping, _nothing).run()
    known = found.setdefault(place, {**vars(moved), "moved": 0, "again": 0})
    sums = {name: known[name] + getattr(moved, name) for name in ("moved", "again")}
    known.update({**vars(moved), **sums})


def _nothing(step: str) -> None:
    """Nobody watches the steps but tests."""


class _Stopping:
    """Ctrl-C and SIGTERM end the work after the batch at hand."""

    def __init__(self) -> None:
        self._stopped = False

    def __call__(self) -> bool:
        return self._stopped

    def __enter__(self) -> _Stopping:
        self._before = {one: signal.signal(one, self._stop) for one in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for one, before in self._before.items():
            signal.signal(one, before)

    def _stop(self, *_: object) -> None:
        self._stopped = True
        print("warren migrate: stopping after this batch", file=sys.stderr)
