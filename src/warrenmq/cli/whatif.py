"""`warren whatif`: what would have become of the newest messages under other definitions, asked of a running broker.

Duty: a file in, the call, a few lines and a status for whoever deploys. The journal's process finds it out
(`/api/whatif`). Not here: the same over all of a journal (`warren pipeline whatif`).
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from warrenmq.cli._command import Command, Url
from warrenmq.cli.where import microseconds

SECTIONS = ("exchanges", "queues", "bindings")
SECONDS = 90.0  # the journal's process takes 30 at most


def register(app: typer.Typer) -> None:
    app.command("whatif")(whatif)


def whatif(
    change: Annotated[
        str, typer.Argument(help='A file, or - : definitions, or {"put": {...}, "delete": {...}} by section.')
    ],
    since: Annotated[str | None, typer.Option("--since", help="Published since: 2026-05-01T12:00, or 2h ago.")] = None,
    until: Annotated[str | None, typer.Option("--until", help="Published until then.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, help="At most so many rows.")] = 20,
    any: Annotated[bool, typer.Option("--any", help="Status 1 also when nothing is worse, only otherwise.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The broker's whole answer.")] = False,
    url: Url = None,
) -> None:
    """What other definitions would have done to the last hour's messages. The exit status is 1 when any is worse."""
    command = Command("whatif", url, SECONDS)
    asked = _read(command, change)
    for name, text in (("since", since), ("until", until)):
        if text is not None:
            asked[name] = datetime.fromtimestamp(microseconds(name, text) / 1_000_000, UTC).isoformat()
    found = command.ask("POST", "/whatif", asked | {"limit": limit})
    print(json.dumps(found) if as_json else "\n".join(_lines(found)))
    if found["worse"] or (any and found["changed"]):
        raise typer.Exit(1)


def _read(command: Command, file: str) -> dict[str, Any]:
    try:
        value = json.loads(sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        command.stop(f"{file} cannot be read: {error.strerror}")
    except ValueError as malformed:
        command.stop(f"{file} is not JSON: {malformed}")
    if not isinstance(value, dict):
        command.stop(f"{file} holds no JSON object")
    return {"definitions": value} if any_of(value, SECTIONS) else value


def any_of(value: dict[str, Any], names: tuple[str, ...]) -> bool:
    return not {*names}.isdisjoint(value)


def _lines(found: dict[str, Any]) -> list[str]:
    extent = f", published from {found['since']} to {found['until']}" if found["since"] else ""
    counts = f"{found['changed']:,} would fare otherwise, {found['worse']:,} of them worse"
    lines = [f"{found['messages']:,} messages{extent}: {counts}"]
    for row in found["items"]:
        exchange = f"exchange '{row['exchange']}'" if row["exchange"] else "the default exchange"
        vhost = "" if row["vhost"] == "/" else f", vhost '{row['vhost']}'"
        where = f"in queue '{row['queue']}'" if row["queue"] is not None else "to the publisher"
        example = row["example"].get("message_id") or row["example"].get("id")
        such = f", such as {example}" if example else ""
        lines.append(
            f"  {row['messages']:>12,} to {exchange} with key '{row['routing_key']}'{vhost}: {where} {row['before']} → "
            f"{row['after']}{such}"
        )
    if found["more"]:
        lines.append(f"  … and {found['more']:,} more: --limit")
    for one in found["not_looked_into"]:
        lines.append(f"not looked into: queue '{one['queue']}' in vhost '{one['vhost']}' is a stream")
    if not found["whole"]:
        lines.append("there were more messages than are looked at: these are the newest")
    lines += [f"{name} of the journal cannot be read" for name in found["unreadable"]]
    return lines
