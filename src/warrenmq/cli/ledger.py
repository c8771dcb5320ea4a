"""`warren ledger`: do the sums come out even? Over the management API of a running broker; see docs/ledger.md."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from warrenmq.cli import _output
from warrenmq.cli._api import segment
from warrenmq.cli._command import Command, Json, Url
from warrenmq.cli._status import NO

SIDES = {"came": "", "left": "left", "here": "here"}


def register(app: typer.Typer) -> None:
    app.command("ledger")(show)


def show(
    queue: Annotated[str | None, typer.Option("--queue", "-q", help="One queue alone.")] = None,
    vhost: Annotated[str | None, typer.Option("--vhost", "-p", help="The queue's vhost, or one vhost alone.")] = None,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Everything that came is somewhere, or left for a reason: the sums. Exits with 1 when one does not come out."""
    command = Command("ledger", url, 600)
    at = command.vhost(vhost)
    if queue is not None:
        found = command.ask_about(at, "GET", f"/queues/{segment(at)}/{segment(queue)}/ledger", queue=queue).body
    elif vhost is not None:
        found = command.ask_about(at, "GET", f"/ledger/{segment(at)}").body
    else:
        found = command.ask("GET", "/ledger")
    _output.said("\n".join(tables(found)), found, as_json)
    if not found["even"]:
        raise typer.Exit(NO)


def tables(found: dict[str, Any]) -> list[str]:
    """A table for each sum; lines that are nothing are left out."""
    out: list[str] = []
    for sum in found["sums"]:
        rows = [
            (f"{SIDES[side]} {part}".strip().replace("_", " "), count)
            for side in SIDES
            for part, count in sum[side].items()
            if count
        ]
        rows.append(("difference", sum["difference"]))
        width = max(len(name) for name, _ in rows)
        out += [sum["sum"], *[f"  {name:{width}}  {count:>12}" for name, count in rows], ""]
    for one in found["queues"]:
        out.append(f"queue {one['queue']!r} in vhost {one['vhost']!r}: {one['sum']} off by {one['difference']}")
    out.append("everything adds up" if found["even"] else "SOMETHING DOES NOT ADD UP")
    return out
