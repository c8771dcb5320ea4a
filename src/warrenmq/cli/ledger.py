"""`warren ledger`: do the sums come out even? Over the management API of a running broker; see docs/ledger.md."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from warrenmq.cli._api import Api, Failure, segment

Url = Annotated[str, typer.Option("--url", "-u", envvar="WARREN_HTTP_URL", help="Address of the management API.")]
DEFAULT_URL = "http://guest:guest@127.0.0.1:15672"
OFF, UNASKED = 1, 2  # exit status
SIDES = {"came": "", "left": "left", "here": "here"}


def register(app: typer.Typer) -> None:
    app.command("ledger")(show)


def show(
    queue: Annotated[str | None, typer.Option("--queue", "-q", help="One queue alone.")] = None,
    vhost: Annotated[str | None, typer.Option("--vhost", "-p", help="The queue's vhost, or one vhost alone.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As the management API answers.")] = False,
    url: Url = DEFAULT_URL,
) -> None:
    """Everything that came is somewhere, or left for a reason: the sums. Exits with 1 when one does not come out."""
    path = "/ledger"
    if queue is not None:
        path = f"/queues/{segment('/' if vhost is None else vhost)}/{segment(queue)}/ledger"
    elif vhost is not None:
        path = f"/ledger/{segment(vhost)}"
    try:
        found = Api(url, 600).get(path)
    except Failure as failure:
        typer.echo(f"warren ledger: {failure.text}", err=True)
        raise typer.Exit(UNASKED) from None
    typer.echo(json.dumps(found, indent=2) if as_json else "\n".join(tables(found)))
    if not found["even"]:
        raise typer.Exit(OFF)


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
