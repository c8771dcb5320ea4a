"""How commands print: tables that are aligned on a terminal and tab-separated in a pipe, JSON, and colour.

Colour is for a terminal whose user has not set ``NO_COLOR``. Names come from anybody, so control characters in them are
printed as escapes. Not here: ``ctl``, which prints as rabbitmqctl does (``ctl/output.py``).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import Any

BOLD = "1"


def coloured() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def painted(text: str, colour: str) -> str:
    return f"\x1b[{colour}m{text}\x1b[0m" if coloured() else text


def clean(text: str) -> str:
    """Nothing in it rules a terminal, ends a line or begins a column."""
    return text if text.isprintable() else "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def cell(value: Any) -> str:
    """A value of the API as a cell: nothing is empty, what has parts is JSON."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.1f}"
    if isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")) if value else ""
    return clean(str(value))


def table(rows: Sequence[Sequence[Any]]) -> None:
    """The first row has the names of the columns."""
    cells = [[cell(value) for value in row] for row in rows]
    if not sys.stdout.isatty():
        for row in cells:
            print("\t".join(row))
        return
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    for number, row in enumerate(cells):
        line = "  ".join(value.ljust(width) for value, width in zip(row, widths, strict=True)).rstrip()
        print(painted(line, BOLD) if number == 0 else line)


def facts(found: dict[str, Any]) -> None:
    """Names and values, a line each."""
    terminal = sys.stdout.isatty()
    width = max((len(name) for name in found), default=0) if terminal else 0
    for name, value in found.items():
        print(f"{name:<{width}}  {cell(value)}" if terminal else f"{name}\t{cell(value)}")


def as_json(value: Any) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))


def said(text: str, found: Any, json_wanted: bool) -> None:
    """What was done: a line, or the same as JSON."""
    if json_wanted:
        as_json(found)
    else:
        print(text)


def stream(row: Sequence[Any], heads: Sequence[str] | None = None) -> None:
    """A row of a table that goes on, ``heads`` before the first: columns as wide as ten characters on a terminal."""
    for cells in ([list(heads)] if heads else []) + [[cell(value) for value in row]]:
        line = "".join(f"{one:<12}" for one in cells).rstrip() if sys.stdout.isatty() else "\t".join(cells)
        print(painted(line, BOLD) if cells == heads else line, flush=True)
