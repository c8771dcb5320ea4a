"""Listings: filter, sort, page and choose columns as RabbitMQ's do, in slices that never hold the loop for long.

A listing of many objects is built and encoded a few at a time; between slices the loop serves everybody else. Without
sorting by something other than the name, only the objects of the wanted page are looked at closely.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import msgspec

from warrenmq.broker.access.patterns import InvalidPattern, NamePattern
from warrenmq.http.encoding import encode
from warrenmq.http.endpoint import Call, Json
from warrenmq.http.errors import ApiError, bad_request
from warrenmq.http.pacer import Pacer

Item = TypeVar("Item")

DEFAULT_PAGE_SIZE = 100
LARGEST_PAGE = 500


async def listing(
    call: Call, items: Sequence[Item], name: Callable[[Item], str], view: Callable[[Item], msgspec.Struct]
) -> Json:
    """Answer with these items (already ordered by name): ``view`` makes the JSON of one."""
    query = call.query
    page = _page(query)
    sort = query.get("sort", "")
    columns = _columns(query)
    pacer = Pacer()
    chosen: Sequence[Item] = items
    if page is not None and query.get("name"):
        chosen = await _named(call, items, name, query["name"], query.get("use_regex") == "true", pacer)
    encoded: list[bytes]
    if sort and sort != "name":
        rows = await _sorted(chosen, view, sort, query.get("sort_reverse") == "true", pacer)
        encoded = []
        for row in page.cut(rows) if page is not None else rows:
            encoded.append(encode(choose(row, columns) if columns else row))
            await pacer.breathe()
    else:
        if query.get("sort_reverse") == "true" and sort:
            chosen = list(reversed(chosen))
        encoded = []
        for item in page.cut(chosen) if page is not None else chosen:
            shown = view(item)
            if columns:
                encoded.append(encode(choose(msgspec.to_builtins(shown), columns)))
            else:
                encoded.append(encode(shown))
            await pacer.breathe()
    array = b"[" + b",".join(encoded) + b"]"
    if page is None:
        return Json(array)
    return Json(
        msgspec.json.encode(
            {
                "total_count": len(items),
                "item_count": len(encoded),
                "filtered_count": len(chosen),
                "page": page.number,
                "page_size": page.size,
                "page_count": page.count(len(chosen)),
                "items": msgspec.Raw(array),
            }
        )
    )


def with_columns(call: Call, shown: msgspec.Struct) -> Any:
    """One object, cut down to the wanted columns."""
    columns = _columns(call.query)
    return choose(msgspec.to_builtins(shown), columns) if columns else shown


async def plain_list(query: dict[str, str], rows: Iterable[Any]) -> Json:
    """A list without pages (policies, permissions, parameters): sorted and cut to the wanted columns.

    ``rows`` that are made as they are asked for are made in slices.
    """
    columns, sort = _columns(query), query.get("sort", "")
    pacer = Pacer()
    if sort:
        path = sort.split(".")
        shown: list[Any] = []
        for row in rows:
            shown.append(msgspec.to_builtins(row))
            await pacer.breathe()
        shown.sort(key=lambda row: _order(_at(row, path)), reverse=query.get("sort_reverse") == "true")
        rows = shown
    encoded: list[bytes] = []
    for row in rows:
        encoded.append(encode(choose(msgspec.to_builtins(row), columns) if columns else row))
        await pacer.breathe()
    return Json(b"[" + b",".join(encoded) + b"]")


class PageWanted:
    """The page that a request asks for: its number and size."""

    def __init__(self, number: int, size: int) -> None:
        self.number = number
        self.size = size

    def count(self, total: int) -> int:
        return max(1, -(-total // self.size))

    def cut(self, rows: Sequence[Item]) -> Sequence[Item]:
        if self.number > self.count(len(rows)):
            raise ApiError(
                400,
                "page_out_of_range",
                f"Page out of range, page: {self.number} page size: {self.size}, len: {len(rows)}",
            )
        return rows[(self.number - 1) * self.size : self.number * self.size]


def _page(query: dict[str, str]) -> PageWanted | None:
    if "page" not in query:
        return None
    number, size = query["page"], query.get("page_size", str(DEFAULT_PAGE_SIZE))
    try:
        wanted = PageWanted(int(number), int(size))
    except ValueError:
        raise bad_request("Pagination parameters are invalid") from None
    if wanted.number < 1 or not 1 <= wanted.size <= LARGEST_PAGE:
        shown = query.get("page_size", "undefined")
        raise ApiError(
            400,
            "invalid_pagination_parameters",
            f"Invalid pagination parameters: page number {wanted.number}, page size {shown}",
        )
    return wanted


async def _named(
    call: Call, items: Sequence[Item], name: Callable[[Item], str], wanted: str, use_regex: bool, pacer: Pacer
) -> list[Item]:
    found: list[Item] = []
    if use_regex:
        try:
            pattern = NamePattern(wanted, call.bridge.patience)
        except InvalidPattern:
            raise bad_request("Pagination parameters are invalid") from None
        for item in items:
            if pattern.matches(name(item)):
                found.append(item)
            await pacer.breathe()
        return found
    wanted = wanted.lower()
    for item in items:
        if wanted in name(item).lower():
            found.append(item)
        await pacer.breathe()
    return found


async def _sorted(
    items: Sequence[Item], view: Callable[[Item], msgspec.Struct], key: str, reverse: bool, pacer: Pacer
) -> list[Any]:
    rows: list[tuple[tuple[int, Any], Any]] = []
    path = key.split(".")
    for item in items:
        row = msgspec.to_builtins(view(item))
        rows.append((_order(_at(row, path)), row))
        await pacer.breathe()
    rows.sort(key=_first, reverse=reverse)
    return [row for _, row in rows]


def _first(pair: tuple[tuple[int, Any], Any]) -> tuple[int, Any]:
    return pair[0]


def _order(value: Any) -> tuple[int, Any]:
    """Values of different kinds compare too: nothing, numbers, texts, the rest as text."""
    if value is None:
        return (0, 0)
    if isinstance(value, (int, float)):
        return (1, value)
    return (2, value if isinstance(value, str) else str(value))


def _at(row: Any, path: list[str]) -> Any:
    for step in path:
        if not isinstance(row, dict):
            return None
        row = row.get(step)
    return row


def _columns(query: dict[str, str]) -> list[list[str]]:
    columns = query.get("columns", "")
    return [column.split(".") for column in columns.split(",") if column]


def choose(row: Any, columns: list[list[str]]) -> dict[str, Any]:
    """The wanted columns of a row; ``a.b`` is b within a."""
    chosen: dict[str, Any] = {}
    for path in columns:
        value: Any = row
        for step in path:
            if not isinstance(value, dict) or step not in value:
                break
            value = value[step]
        else:
            target = chosen
            for step in path[:-1]:
                target = target.setdefault(step, {})
            target[path[-1]] = value
    return chosen
