"""What `warren top` shows, as text: rows of the management API chosen, sorted and cut to a screen.

Duty: everything but the terminal, so that it can be looked at without one. Not here: keys and drawing (``top.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from warrenmq.cli._output import cell
from warrenmq.cli._units import in_words

KINDS = ("queues", "connections", "channels")


class Column(NamedTuple):
    """A column: its heading, where its value is in a row of the API, and whether that is an age in milliseconds."""

    head: str
    path: str
    age: bool = False


COLUMNS: dict[str, tuple[Column, ...]] = {
    "queues": (
        Column("NAME", "name"),
        Column("READY", "messages_ready"),
        Column("UNACKED", "messages_unacknowledged"),
        Column("CONSUMERS", "consumers"),
        Column("IN/S", "message_stats.publish_details.rate"),
        Column("OUT/S", "message_stats.deliver_get_details.rate"),
        Column("ACK/S", "message_stats.ack_details.rate"),
        Column("OLDEST", "ages.oldest_waiting_ms", True),
        Column("HELD", "ages.oldest_held_ms", True),
    ),
    "connections": (
        Column("NAME", "name"),
        Column("USER", "user"),
        Column("STATE", "state"),
        Column("CHANNELS", "channels"),
        Column("IN B/S", "recv_oct_details.rate"),
        Column("OUT B/S", "send_oct_details.rate"),
        Column("CLIENT", "client_properties.connection_name"),
    ),
    "channels": (
        Column("NAME", "name"),
        Column("USER", "user"),
        Column("CONSUMERS", "consumer_count"),
        Column("PREFETCH", "prefetch_count"),
        Column("UNACKED", "messages_unacknowledged"),
        Column("UNCONFIRMED", "messages_unconfirmed"),
        Column("IN/S", "message_stats.publish_details.rate"),
        Column("OUT/S", "message_stats.deliver_get_details.rate"),
    ),
}


@dataclass
class View:
    """The choices of the person at the keyboard."""

    kind: str = "queues"
    sort: int = 0
    descending: bool = False
    pattern: str = ""
    first: int = 0  # row at the top

    @property
    def columns(self) -> tuple[Column, ...]:
        return COLUMNS[self.kind]

    def show(self, kind: str) -> None:
        self.kind, self.sort, self.descending, self.first = kind, 0, False, 0

    def sort_by(self, column: int) -> None:
        """Figures begin with the largest, names with the first."""
        self.sort = column % len(self.columns)
        self.descending = self.sort > 0


def chosen(view: View, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Filtered (part of a name, or a pattern with * and ?) and sorted."""
    pattern = view.pattern if any(one in view.pattern for one in "*?[") else f"*{view.pattern}*"
    found = [row for row in rows if fnmatchcase(str(row.get("name", "")), pattern)]
    found.sort(key=lambda row: str(row.get("name", "")))
    path = view.columns[view.sort].path

    def key(row: dict[str, Any]) -> tuple[float, str]:
        value = _field(row, path)
        return (float(value), "") if isinstance(value, (int, float)) else (0.0, "" if value is None else str(value))

    return sorted(found, key=key, reverse=view.descending)


def lines(view: View, rows: list[dict[str, Any]], width: int, height: int) -> list[str]:
    """The heading and as many rows as there is room for; nothing is wider than the screen."""
    view.first = max(0, min(view.first, len(rows) - 1))
    shown = rows[view.first : view.first + max(0, height - 1)]
    table = [[_head(view, number) for number in range(len(view.columns))]]
    table += [[_shown(row, column) for column in view.columns] for row in shown]
    widths = [max(len(line[number]) for line in table) for number in range(len(view.columns))]
    others = sum(widths[1:]) + 2 * (len(widths) - 1)
    widths[0] = max(8, min(widths[0], width - others))
    return [
        "  ".join([line[0][: widths[0]].ljust(widths[0]), *_right(line[1:], widths[1:])])[:width].rstrip()
        for line in table
    ]


def _right(cells: list[str], widths: list[int]) -> list[str]:
    return [one.rjust(width) for one, width in zip(cells, widths, strict=True)]


def _head(view: View, number: int) -> str:
    mark = ("▼" if view.descending else "▲") if number == view.sort else ""
    return view.columns[number].head + mark


def _shown(row: dict[str, Any], column: Column) -> str:
    value = _field(row, column.path)
    return in_words(int(value)) if column.age and value is not None else cell(value)


def _field(row: dict[str, Any], path: str) -> Any:
    value: Any = row
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value
