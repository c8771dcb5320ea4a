"""How ``warren ctl`` prints: rabbitmqctl's tables, CSV, boxes and JSON. What is in them is the verbs' business."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from warrenmq.wire.erlang import cell_term

FORMATTERS = ("table", "pretty_table", "csv", "json")
MACHINE = ("csv", "json")  # formats that a program reads: nothing is printed before the answer


@dataclass
class Table:
    """Rows with the columns to show; ``json_columns`` are printed as JSON, not as Erlang terms."""

    columns: list[str]
    rows: list[dict[str, Any]]
    json_columns: set[str] = field(default_factory=set)
    headless: bool = False  # no header row, whatever is asked for (but in CSV)


@dataclass
class Facts:
    """An answer that is no table: what a person reads, and what ``--formatter json`` gives instead."""

    text: str
    data: Any


def cell(table: Table, column: str, value: Any) -> str:
    if column in table.json_columns:
        return compact(value)
    if column == "tags":
        return "[" + ", ".join(value or []) + "]"
    return cell_term(value).replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def show(answer: Table | Facts | str | None, formatter: str, headers: bool) -> str:
    """The answer in the format asked for."""
    if not isinstance(answer, Table):
        return _other(answer, formatter)
    if formatter == "json":
        # one row a line, as rabbitmqctl streams them
        return "[\n" + "\n,".join(compact(_row(answer, row)) for row in answer.rows) + "\n]"
    cells = [[cell(answer, column, row.get(column)) for column in answer.columns] for row in answer.rows]
    if not cells:
        return ""
    if formatter == "pretty_table":
        return _box(answer.columns, cells)
    headers = headers and (formatter == "csv" or not answer.headless)
    lines = [answer.columns, *cells] if headers else cells
    if formatter == "csv":
        return "\n".join(",".join('"' + one.replace('"', '""') + '"' for one in line) for line in lines)
    return "\n".join("\t".join(line) for line in lines)


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _row(table: Table, row: dict[str, Any]) -> dict[str, Any]:
    """A row for JSON: what is not known is an empty text, what is JSON already stays a text."""
    shown = {}
    for column in table.columns:
        value = row.get(column)
        shown[column] = compact(value) if column in table.json_columns else "" if value is None else value
    return shown


def _other(answer: Facts | str | None, formatter: str) -> str:
    text = answer.text if isinstance(answer, Facts) else answer or ""
    if formatter == "pretty_table" and text and "\n" not in text:
        return _box(["Output"], [[text]])
    if formatter != "json":
        return text
    if isinstance(answer, Facts):
        return compact(answer.data)
    return compact({"message": text} if text else {"result": "ok"})


def _box(columns: list[str], rows: list[list[str]]) -> str:
    widths = [max(len(line[index]) for line in (columns, *rows)) + 2 for index in range(len(columns))]

    def rule(left: str, middle: str, right: str) -> str:
        return left + middle.join("─" * width for width in widths) + right

    def line(cells: list[str]) -> str:
        return "│" + "│".join(f" {one}".ljust(width) for one, width in zip(cells, widths, strict=True)) + "│"

    between = rule("├", "┼", "┤")
    body = f"\n{between}\n".join(line(row) for row in rows)
    return "\n".join([rule("┌", "┬", "┐"), line(columns), between, body, rule("└", "┴", "┘")])
