"""The options that choose messages of a queue, shared by `warren peek`, `redrive`, `move` and `copy`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from warrenmq.cli._command import Command
from warrenmq.cli._units import milliseconds, octets

Header = Annotated[list[str] | None, typer.Option("--header", "-H", help="Only with this header: name=value.")]
Key = Annotated[str | None, typer.Option("--key", help="Only with such a routing key; * and ? as in a shell.")]
Older = Annotated[str | None, typer.Option("--older", help="Only what came so long ago or earlier: 90s, 5m, 2h, 1d.")]
Younger = Annotated[str | None, typer.Option("--younger", help="Only what came so long ago or later.")]
Larger = Annotated[str | None, typer.Option("--larger", help="Only bodies of at least so much: 512, 10k, 4MiB.")]
Smaller = Annotated[str | None, typer.Option("--smaller", help="Only bodies of at most so much.")]
Limit = Annotated[int | None, typer.Option("--limit", "-n", min=1, help="At most so many.")]
Rate = Annotated[float | None, typer.Option("--rate", help="At most so many a second.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]
Detach = Annotated[bool, typer.Option("--detach", help="Do not wait for the end: `warren transfers` tells of it.")]
Text = Annotated[str | None, typer.Option("--text", help="Only bodies in which this text is.")]


def filters(
    command: Command,
    header: list[str] | None,
    key: str | None,
    older: str | None,
    younger: str | None,
    larger: str | None,
    smaller: str | None,
    text: str | None,
) -> dict[str, Any]:
    """As the API takes them."""
    chosen: dict[str, Any] = {}
    if header:
        chosen["header"] = [_header(command, one) for one in header]
    for name, value, read in (
        ("older", older, milliseconds),
        ("younger", younger, milliseconds),
        ("larger", larger, octets),
        ("smaller", smaller, octets),
    ):
        if value is not None:
            chosen[name] = _read(command, name, value, read)
    if key is not None:
        chosen["key"] = key
    if text is not None:
        chosen["text"] = text
    return chosen


def _header(command: Command, pair: str) -> str:
    name, equals, value = pair.partition("=")
    if not equals or not name:
        command.stop(f"--header {pair!r}: a header is name=value")
    return f"{name}:{value}"


def _read(command: Command, name: str, value: str, read: Callable[[str], int]) -> int:
    try:
        return read(value)
    except ValueError as error:
        command.stop(f"--{name}: {error}")


def sending(limit: int | None, rate: float | None, dry_run: bool) -> dict[str, Any]:
    """The options of what sends messages, as the API takes them."""
    given = {"limit": limit, "rate": rate, "dry_run": dry_run or None}
    return {name: value for name, value in given.items() if value is not None}
