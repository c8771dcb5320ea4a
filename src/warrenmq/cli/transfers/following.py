"""A transfer as the command line follows it: started, watched to its end, told in words."""

from __future__ import annotations

import time
from typing import Any

import typer

from warrenmq.cli import _output
from warrenmq.cli._api import segment
from warrenmq.cli._command import Command
from warrenmq.cli._status import NO

AGAIN = 0.2  # seconds between looks
WORDS = {"move": "moved", "copy": "copied", "redrive": "sent back"}


def send(command: Command, vhost: str, queue: str, body: dict[str, Any], detach: bool, as_json: bool) -> None:
    """Start it; watch it to its end, unless it is left alone."""
    path = f"/queues/{segment(vhost)}/{segment(queue)}/{command.name}"
    one = command.ask_about(vhost, "POST", path, body, queue=queue).body
    if not detach:
        one = follow(command, vhost, one, "state")
    show(one, as_json)
    if one["state"] == "failed":
        raise typer.Exit(NO)


def follow(command: Command, vhost: str, one: Any, what: str) -> Any:
    """Ctrl-C leaves it running and says so."""
    try:
        while (one["undo"] if what == "undo" else one)["state"] == "running":
            time.sleep(AGAIN)
            one = command.ask("GET", f"/transfers/{segment(vhost)}/{one['id']}")
    except KeyboardInterrupt:
        typer.echo(f"transfer {one['id']} goes on: warren transfers show {one['id']}", err=True)
    return one


def show(one: Any, as_json: bool = False) -> None:
    if as_json:
        _output.as_json(one)
        return
    done = f"would be {WORDS[one['kind']]}" if one["dry_run"] else WORDS[one["kind"]]
    print(
        f"transfer {one['id']}: {one['state']}: {one['sent']} of {one['matched']} messages {done}, {one['bytes']} bytes"
    )
    if one["problem"]:
        print(f"  {one['problem']}")
    for name, count in sorted(one["targets"].items()):
        print(f"  {count} to {name!r}")
    for reason, count in sorted(one["stayed"].items()):
        print(f"  {count} stayed: {reason}")
    undo = one.get("undo")
    if undo is None:
        if not one["dry_run"] and one["sent"]:
            print(f"  take back what nobody has touched: warren transfers undo {one['id']} --vhost {one['vhost']}")
        return
    print(f"  undo: {undo['state']}: {undo['undone']} taken back, {undo['left']} not: somebody has had them")
    for gone in undo["listed"]:
        places = ", ".join(f"{place['queue']!r} at {place['position']}" for place in gone["sent_to"])
        print(f"    position {gone['position']}, sent to {places}")
