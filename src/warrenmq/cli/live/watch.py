"""`warren watch`: the figures of one queue or exchange, a line every interval, over the management API."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any

import typer

from warrenmq.cli import _output
from warrenmq.cli._api import segment
from warrenmq.cli._command import Command, Json, Url, Vhost
from warrenmq.cli._units import milliseconds

#: kind -> column -> the field of the API that it shows
NOW: dict[str, dict[str, str]] = {
    "queue": {"READY": "messages_ready", "UNACKED": "messages_unacknowledged", "CONSUMERS": "consumers"},
    "exchange": {},
}
#: kind -> column -> the count in message_stats that it shows the growth of, a second
GROWTH = {
    "queue": {"IN/S": "publish", "OUT/S": "deliver_get", "ACK/S": "ack", "AGAIN/S": "redeliver"},
    "exchange": {"IN/S": "publish_in", "OUT/S": "publish_out"},
}

group = typer.Typer(help="The figures of one queue or exchange, a line every interval.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="Its name.")]
Interval = Annotated[str, typer.Option("--interval", help="Time between two lines: 500ms, 2s, 1m.")]
Count = Annotated[int, typer.Option("--count", "-n", min=0, help="So many lines; 0: until Ctrl-C.")]


def register(app: typer.Typer) -> None:
    app.add_typer(group, name="watch")


def _watcher(kind: str) -> Callable[..., None]:
    def run(
        name: Name,
        interval: Interval = "2s",
        count: Count = 0,
        vhost: Vhost = None,
        as_json: Json = False,
        url: Url = None,
    ) -> None:
        command = Command(f"watch {kind}", url)
        try:
            pause = milliseconds(interval) / 1000
        except ValueError as error:
            command.stop(f"--interval: {error}")
        _watch(command, kind, name, command.vhost(vhost), max(pause, 0.01), count, as_json)

    return run


for _kind in NOW:
    group.command(_kind, help=f"Watch {'a queue' if _kind == 'queue' else 'an exchange'}. Ctrl-C ends it.")(
        _watcher(_kind)
    )


def _watch(command: Command, kind: str, name: str, vhost: str, pause: float, count: int, as_json: bool) -> None:
    path = f"/{kind}s/{segment(vhost)}/{segment(name)}"
    columns = ["TIME", *NOW[kind], *GROWTH[kind]]
    before: dict[str, int] | None = None
    seen = 0.0
    lines = 0
    try:
        while not count or lines < count:
            if lines:
                time.sleep(pause)
            answer = command.ask_about(vhost, "GET", path, **{kind: name})
            now = time.monotonic()
            stats = answer.body.get("message_stats") or {}
            counts = {column: int(stats.get(field, 0)) for column, field in GROWTH[kind].items()}
            row: dict[str, Any] = {"TIME": time.strftime("%H:%M:%S")}
            row |= {column: answer.body.get(field, 0) for column, field in NOW[kind].items()}
            passed = max(now - seen, 0.001)
            row |= {one: (counts[one] - before[one]) / passed if before else None for one in counts}
            if as_json:
                row["TIME"] = datetime.now().astimezone().isoformat(timespec="milliseconds")
                print(json.dumps({column.lower(): value for column, value in row.items()}), flush=True)
            else:
                _output.stream([row[column] for column in columns], columns if not lines else None)
            before, seen = counts, now
            lines += 1
    except KeyboardInterrupt:
        raise typer.Exit(0) from None
