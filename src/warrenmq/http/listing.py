"""Listings: filter, sort, page and choose columns as RabbitMQ's do, in slices that never hold the loop for long.

A listing of many objects is built and encoded a few at a time; between slices the loop serves everybody else. Only the
objects of the wanted page are looked at closely, unless the order is by a column that nobody knows without their JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET
from starlette.responses import Response

from warrenmq.broker.access.patterns import InvalidPattern, NamePattern
from warrenmq.http.encoding import encode
from warrenmq.http.endpoint import Call, Json
from warrenmq.http.errors import ApiError, bad_request
from warrenmq.http.in_order import in_order
from warrenmq.http.pacer import QUICK, SLICE_ITEMS, Pacer
from warrenmq.http.pieces import Pieces

Item = TypeVar("Item")

NOTHING: Mapping[str, Callable[[Any], object]] = MappingProxyType({})
NUMBERS, TEXTS = {int, float}, {str}
DEFAULT_PAGE_SIZE = 100
LARGEST_PAGE = 500


async def listing(
    call: Call,
    items: Sequence[Item],
    name: Callable[[Item], str],
    view: Callable[[Item], msgspec.Struct],
    sorted_by: Mapping[str, Callable[[Item], object]] = NOTHING,
) -> Response:
    """Answer with these items (already ordered by vhost and name): ``view`` makes the JSON of one.

    ``sorted_by`` has columns that are known without it.
    """
    query = call.query
    page = _page(query)
    columns = _columns(query)
    pacer = Pacer()
    chosen: Sequence[Item] = items
    if page is not None and query.get("name"):
        chosen = await _named(call, items, name, query["name"], query.get("use_regex") == "true", pacer)
    span = range(len(chosen)) if page is None else page.cut(len(chosen))
    sort, reverse = query.get("sort", ""), query.get("sort_reverse") == "true"
    array = Array()
    if sort and sort not in sorted_by:
        made: list[Any] = []
        for item in chosen:
            made.append(view(item))
            await pacer.breathe()
        places = await _places(made, partial(value_at, path=sort.split(".")), reverse, span, SLICE_ITEMS)
        for place in places:
            array.add(_encoded(made[place], columns))
            await pacer.breathe()
        await let_go(made, pacer)
    else:
        if sort:
            places = await _places(chosen, sorted_by[sort], reverse, span, QUICK)
        else:
            places = [len(chosen) - 1 - place if reverse else place for place in span]
        for place in places:
            array.add(_encoded(view(chosen[place]), columns))
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


async def with_lists(call: Call, shown: msgspec.Struct, **lists: Iterable[Any]) -> Response:
    """One object, cut down to the wanted columns, and as its last members lists of very many."""
    columns = _columns(call.query)
    wanted = {name: rows for name, rows in lists.items() if not columns or [name] in columns}
    return await _followed_by(_encoded(shown, columns), wanted)


async def with_rows(shown: msgspec.Struct, name: str) -> Response:
    """An object of whose rows each may be long: they are encoded one by one."""
    members = {field.encode_name: getattr(shown, field.name) for field in msgspec.structs.fields(shown)}
    rows = members.pop(name)
    return await _followed_by(encode(members), {name: rows})


async def _followed_by(head: bytes, lists: Mapping[str, Iterable[Any]]) -> Response:
    """An encoded object with lists as more members."""
    pieces = Pieces(head[:-1])
    pacer = Pacer()
    between = b"," if len(head) > 2 else b""
    for name, rows in lists.items():
        pieces.add(between + encode(name) + b":[")
        between = b"],"
        comma = b""
        for row in rows:
            pieces.add(comma + encode(row))
            comma = b","
            await pacer.breathe()
    pieces.add(b"]}" if lists else b"}")
    return pieces.json()


async def plain_list(query: dict[str, str], rows: Iterable[Any]) -> Response:
    """A list without pages (policies, permissions, parameters): sorted and cut to the wanted columns.

    ``rows`` that are made as they are asked for are made in slices.
    """
    columns, sort, reverse = _columns(query), query.get("sort", ""), query.get("sort_reverse") == "true"
    pacer = Pacer()
    array = Array()
    if sort or reverse:
        made: list[Any] = []
        for row in rows:
            made.append(row)
            await pacer.breathe()
        look = partial(value_at, path=sort.split(".")) if sort else _nothing
        for place in await _places(made, look, reverse, range(len(made)), SLICE_ITEMS):
            array.add(_encoded(made[place], columns))
            await pacer.breathe()
        await let_go(made, pacer)
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

    def cut(self, total: int) -> range:
        """Which of so many are on it."""
        if self.number > self.count(total):
            raise ApiError(
                400,
                "page_out_of_range",
                f"Page out of range, page: {self.number} page size: {self.size}, len: {total}",
            )
        return range((self.number - 1) * self.size, min(self.number * self.size, total))


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
    for start in range(0, len(items), QUICK):
        found += [item for item in items[start : start + QUICK] if wanted in name(item).lower()]
        await pacer.pause()
    return found


async def _places(
    items: Sequence[Item], look: Callable[[Item], object], reverse: bool, span: range, at_once: int
) -> list[int]:
    """Where those stand who come at these places when all are in order. Of those alike the first comes first; reversed,
    everything is, as in RabbitMQ."""
    values: list[Any] = []
    kinds: set[type] = set()
    pacer = Pacer()
    for start in range(0, len(items), at_once):
        some = [look(item) for item in items[start : start + at_once]]
        kinds.update(map(type, some))
        values += some
        await pacer.pause()
    if not (kinds <= NUMBERS or kinds == TEXTS):
        for start in range(0, len(values), QUICK):
            values[start : start + QUICK] = map(_order, values[start : start + QUICK])
            await pacer.pause()
    count = len(values)
    if not reverse:
        return await in_order(range(count), values.__getitem__, span.start, span.stop)
    found = await in_order(range(count), values.__getitem__, count - span.stop, count - span.start)
    found.reverse()
    return found


def _nothing(item: object) -> int:
    return 0


def _order(value: object) -> tuple[int, Any]:
    """Values of different kinds compare too, in Erlang's order: numbers, atoms, what has members, texts."""
    if value is None or isinstance(value, bool):
        return 1, "null" if value is None else str(value).lower()
    if isinstance(value, (int, float)):
        return 0, value
    if isinstance(value, str):
        return 3, value
    return 2, str(value) if value else ""


def value_at(shown: Any, path: list[str]) -> object:
    """What stands at this place of an object that is not yet JSON; 0 where nothing does, as in RabbitMQ."""
    for step in path:
        if isinstance(shown, msgspec.Struct):
            shown = getattr(shown, step) if step in shown.__struct_fields__ else UNSET
        elif isinstance(shown, dict):
            shown = shown.get(step, UNSET)
        else:
            return 0
    return 0 if shown is UNSET else shown


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
