"""`warren top`: queues, connections or channels on the whole screen, live. What is shown is in ``top_table.py``."""

from __future__ import annotations

import curses
import sys
import time
from typing import Annotated, Any

import typer

from warrenmq.cli import _output
from warrenmq.cli._api import segment
from warrenmq.cli._command import Command, Json, Url, Vhost
from warrenmq.cli._units import milliseconds
from warrenmq.cli.live.top_table import COLUMNS, KINDS, View, chosen, lines

PATHS = {"queues": "/queues/{0}", "connections": "/vhosts/{0}/connections", "channels": "/vhosts/{0}/channels"}
KEYS = "tab: queues, connections, channels  < >: sort  r: reverse  /: filter  up down: scroll  q: quit"
REDRAW = 12  # control L, as everywhere: something else has written on the screen
LOOK = 100  # milliseconds between two looks at the keyboard


def register(app: typer.Typer) -> None:
    app.command("top")(top)


def top(
    kind: Annotated[str, typer.Argument(help=f"{', '.join(KINDS)}.")] = "queues",
    interval: Annotated[str, typer.Option("--interval", help="Time between two looks: 500ms, 2s, 1m.")] = "2s",
    sort: Annotated[str, typer.Option("--sort", help="The column to sort by, as its heading.")] = "NAME",
    pattern: Annotated[str, typer.Option("--filter", help="Only names with this in them, or like it (* and ?).")] = "",
    vhost: Vhost = None,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Queues, connections or channels on the whole screen, live, with rates and ages. `--json` prints one look."""
    command = Command("top", url)
    if kind not in KINDS:
        command.stop(f"no table '{kind}' ({', '.join(KINDS)})")
    heads = [column.head for column in COLUMNS[kind]]
    if sort.upper() not in heads:
        command.stop(f"--sort: no column '{sort}' ({', '.join(heads)})")
    try:
        pause = max(0.1, milliseconds(interval) / 1000)
    except ValueError as error:
        command.stop(f"--interval: {error}")
    view = View(kind, pattern=pattern)
    view.sort_by(heads.index(sort.upper()))
    at = command.vhost(vhost)
    rows = _rows(command, view, at)
    if as_json:
        _output.as_json(rows)
        return
    if not sys.stdout.isatty() or not sys.stdin.isatty():
        command.stop(f"this needs a terminal: `warren {kind}` prints a table, `warren top --json` one look")
    try:
        curses.wrapper(lambda screen: _run(screen, command, view, at, rows, pause))
    except KeyboardInterrupt:
        raise typer.Exit(0) from None
    except curses.error as undrawable:
        command.stop(f"this terminal cannot be drawn on: {undrawable}")


def _rows(command: Command, view: View, vhost: str) -> list[dict[str, Any]]:
    return chosen(view, command.ask_about(vhost, "GET", PATHS[view.kind].format(segment(vhost))).body)


def _run(screen: Any, command: Command, view: View, vhost: str, rows: list[dict[str, Any]], pause: float) -> None:
    screen.timeout(LOOK)
    due = time.monotonic() + pause
    typing: str | None = None  # what is being typed behind /
    while True:
        _draw(screen, view, rows, typing)
        pressed = screen.getch()
        if pressed == REDRAW:
            screen.clearok(True)
            continue
        if typing is not None and pressed != curses.ERR:
            typing = _typed(view, typing, pressed)
        elif pressed == ord("/"):
            typing = view.pattern
        elif pressed == ord("q"):
            return
        elif not _steer(view, pressed) and time.monotonic() < due:
            continue
        rows = _rows(command, view, vhost)
        due = time.monotonic() + pause


def _steer(view: View, pressed: int) -> bool:
    """Was this a key that changes what is shown?"""
    if pressed == ord("\t"):
        view.show(KINDS[(KINDS.index(view.kind) + 1) % len(KINDS)])
    elif pressed in (ord("<"), curses.KEY_LEFT):
        view.sort_by(view.sort - 1)
    elif pressed in (ord(">"), curses.KEY_RIGHT):
        view.sort_by(view.sort + 1)
    elif pressed == ord("r"):
        view.descending = not view.descending
    elif pressed == curses.KEY_DOWN:
        view.first += 1
    elif pressed == curses.KEY_UP:
        view.first -= 1
    else:
        return False
    return True


def _typed(view: View, typing: str, pressed: int) -> str | None:
    """The filter counts while it is typed; Enter or Escape ends that."""
    if pressed in (curses.KEY_ENTER, 10, 13, 27):
        return None
    if pressed in (curses.KEY_BACKSPACE, 8, 127):
        typing = typing[:-1]
    elif 32 <= pressed < 127:
        typing += chr(pressed)
    view.pattern = typing
    return typing


def _draw(screen: Any, view: View, rows: list[dict[str, Any]], typing: str | None) -> None:
    height, width = screen.getmaxyx()
    screen.erase()
    said = f"/{typing}" if typing is not None else f"filter {view.pattern}" if view.pattern else KEYS
    title = f"warren top: {len(rows)} {view.kind}  {time.strftime('%H:%M:%S')}  {said}"
    drawn = [title, *lines(view, rows, width - 1, height - 2)]
    for number, line in enumerate(drawn[: height - 1]):
        screen.addnstr(number, 0, line, width - 1, curses.A_BOLD if number == 1 else curses.A_NORMAL)
    screen.refresh()
