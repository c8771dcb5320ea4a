"""How ``warren ctl`` prints: tab-separated tables like rabbitmqctl's, or JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from warren.cli._api import USAGE, Failure


@dataclass
class Table:
    """Rows with the columns to show. ``empty`` is what rabbitmqctl prints when there are none."""

    columns: list[str]
    rows: list[dict[str, Any]]
    title: str = ""
    empty: str | None = None
    json_columns: set[str] = field(default_factory=set)


def erlang(value: Any, top: bool = True) -> str:
    """A value as rabbitmqctl prints it in a cell: text bare at the top, tables as property lists."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value if top else json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return "[" + ",".join(erlang(one, False) for one in value) + "]"
    if isinstance(value, dict):
        return "[" + ",".join(f"{{{json.dumps(key)},{erlang(one, False)}}}" for key, one in value.items()) + "]"
    return str(value)


def cell(table: Table, column: str, value: Any) -> str:
    if column in table.json_columns:
        return json.dumps(value, separators=(",", ":"))
    if column == "tags":
        return "[" + ", ".join(value or []) + "]"
    return erlang(value).replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def show(table: Table, formatter: str, headers: bool, quiet: bool) -> str:
    if formatter == "json":
        return json.dumps([{column: row.get(column) for column in table.columns} for row in table.rows])
    if formatter not in ("table", "pretty_table", "csv"):
        raise Failure(f"unknown formatter {formatter}: table, csv or json", USAGE)
    separator = "," if formatter == "csv" else "\t"
    lines = [] if quiet or not table.title else [table.title]
    if not table.rows:
        if table.empty is not None:
            lines.append(table.empty)
        return "\n".join(lines)
    if headers:
        lines.append(separator.join(table.columns))
    for row in table.rows:
        lines.append(separator.join(cell(table, column, row.get(column)) for column in table.columns))
    return "\n".join(lines)
