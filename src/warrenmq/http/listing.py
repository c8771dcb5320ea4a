"""Listings: filter, sort, page and choose columns as RabbitMQ's do, in slices that never hold the loop for long.

A listing of many objects is built and encoded a few at a time; between slices the loop serves everybody else. Without
sorting by something other than the name, only the objects of the wanted page are looked at closely.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec
from starlette.responses import Response

from warrenmq.broker.access.patterns import InvalidPattern, NamePattern
from warrenmq.http.encoding import encode
from warrenmq.http.endpoint import Call, Json
from warrenmq.http.errors import ApiError, bad_request
from warrenmq.http.in_order import in_order
from warrenmq.http.pacer import Pacer
from warrenmq.http.pieces import Pieces

Item = TypeVar("Item")

DEFAULT_PAGE_SIZE = 100
LARGEST_PAGE = 500


async def listing(
    call: Call, items: Sequence[Item], name: Callable[[Item], str], view: Callable[[Item], msgspec.Struct]
) -> Response:
    """Answer with these items (already ordered by name): ``view`` makes the JSON of one."""
    query = call.query
    page = _page(query)
    sort = query.get("sort", "")
    columns = _columns(query)
    pacer = Pacer()
    chosen: Sequence[Item] = items
    if page is not None and query.get("name"):
        chosen = await _named(call, items, name, query["name"], query.get("use_regex") == "true", pacer)
    reverse = query.get("sort_reverse") == "true"
    array = Array()
    if sort and sort != "name":
        rows = await _sorted(chosen, view, sort, reverse, columns, pacer)
        for row in page.cut(rows) if page is not None else rows:
            array.add(row.encoded)
            await pacer.breathe()
        await let_go(rows, pacer)
    else:
        if reverse and sort:
            chosen = list(reversed(chosen))
        for item in page.cut(chosen) if page is not None else chosen:
            array.add(_encoded(view(item), columns))
            await pacer.breathe()
    if page is None:
        return array.pieces().json()
    return Json(
        msgspec.json.encode(
            {
                "total_count": len(items),
                "item_count": array.count,
                "filtered_count": len(chosen),
                "page": page.number,
                "page_size": page.size,
                "page_count": page.count(len(chosen)),
                "items": msgspec.Raw(b"".join(array.pieces().taken())),
            }
        )
    )


class Array:
    """A JSON array that is being made of encoded parts; ``first`` is what it begins with."""

    def __init__(self, first: bytes = b"[") -> None:
        self.count = 0
        self._pieces = Pieces(first)

    def add(self, part: bytes) -> None:
        if self.count:
            self._pieces.add(b",")
        self.count += 1
        self._pieces.add(part)

    def pieces(self, last: bytes = b"]") -> Pieces:
        """All of it; nothing is added any more."""
        self._pieces.add(last)
        return self._pieces


def _encoded(shown: Any, columns: list[list[str]]) -> bytes:
    return encode(choose(msgspec.to_builtins(shown), columns) if columns else shown)


def with_columns(call: Call, shown: msgspec.Struct) -> Any:
    """One object, cut down to the wanted columns."""
    columns = _columns(call.query)
    return choose(msgspec.to_builtins(shown), columns) if columns else shown


async def with_list(call: Call, shown: msgspec.Struct, name: str, rows: Iterable[Any]) -> Response:
    """One object, cut down to the wanted columns, and as its last member a list of very many."""
    columns = _columns(call.query)
    head = _encoded(shown, columns)
    if columns and [name] not in columns:
        return Json(head)
    return await _followed_by(head, name, rows)


async def with_rows(shown: msgspec.Struct, name: str) -> Response:
    """An object of whose rows each may be long: they are encoded one by one."""
    members = {field.encode_name: getattr(shown, field.name) for field in msgspec.structs.fields(shown)}
    rows = members.pop(name)
    return await _followed_by(encode(members), name, rows)


async def _followed_by(head: bytes, name: str, rows: Iterable[Any]) -> Response:
    """An encoded object with a list as one more member."""
    array = Array(head[:-1] + (b"," if len(head) > 2 else b"") + encode(name) + b":[")
    pacer = Pacer()
    for row in rows:
        array.add(encode(row))
        await pacer.breathe()
    return array.pieces(b"]}").json()


async def plain_list(query: dict[str, str], rows: Iterable[Any]) -> Response:
    """A list without pages (policies, permissions, parameters): sorted and cut to the wanted columns.

    ``rows`` that are made as they are asked for are made in slices.
    """
    columns, sort = _columns(query), query.get("sort", "")
    pacer = Pacer()
    array = Array()
    if sort:
        ordered = await _sorted(rows, _itself, sort, query.get("sort_reverse") == "true", columns, pacer)
        for one in ordered:
            array.add(one.encoded)
            await pacer.breathe()
        await let_go(ordered, pacer)
    else:
        for row in rows:
            array.add(_encoded(row, columns))
            await pacer.breathe()
    return array.pieces().json()


async def let_go(rows: list[Any], pacer: Pacer) -> None:
    """Nobody needs them any more: very many are freed some at a time."""
    while rows:
        rows.pop()
        await pacer.breathe()


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


class Row(NamedTuple):
    """An object of a sorted listing: what it is sorted by, and as it is sent."""

    order: tuple[int, Any]
    encoded: bytes


async def _sorted(
    items: Iterable[Item],
    view: Callable[[Item], Any],
    key: str,
    reverse: bool,
    columns: list[list[str]],
    pacer: Pacer,
) -> list[Row]:
    rows: list[Row] = []
    path = key.split(".")
    for item in items:
        row = msgspec.to_builtins(view(item))
        rows.append(Row(_order(_at(row, path)), encode(choose(row, columns) if columns else row)))
        await pacer.breathe()
    ordered = await in_order(rows, _by_order, reverse)
    await let_go(rows, pacer)
    return ordered


def _by_order(row: Row) -> tuple[int, Any]:
    return row.order


def _itself(row: Any) -> Any:
    return row


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
