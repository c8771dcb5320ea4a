"""The options that choose messages of a queue, shared by `warren peek`, `redrive`, `move` and `copy`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from warrenmq.cli._command import Command
from warrenmq.cli._groups import Group
from warrenmq.cli._units import milliseconds, octets


@dataclass
class Filters(Group):
    """The messages of a queue that are meant."""

    header: Annotated[list[str] | None, typer.Option("--header", "-H", help="Only with this header: name=value.")] = (
        None
    )
    key: Annotated[str | None, typer.Option("--key", help="Only with such a routing key; * and ? as in a shell.")] = (
        None
    )
    older: Annotated[
        str | None, typer.Option("--older", help="Only what came so long ago or earlier: 90s, 5m, 2h, 1d.")
    ] = None
    younger: Annotated[str | None, typer.Option("--younger", help="Only what came so long ago or later.")] = None
    larger: Annotated[str | None, typer.Option("--larger", help="Only bodies of at least so much: 512, 10k, 4MiB.")] = (
        None
    )
    smaller: Annotated[str | None, typer.Option("--smaller", help="Only bodies of at most so much.")] = None
    text: Annotated[str | None, typer.Option("--text", help="Only bodies in which this text is.")] = None

    def asked(self, command: Command) -> dict[str, Any]:
        """As the API takes them."""
        chosen: dict[str, Any] = {}
        if self.header:
            chosen["header"] = [_header(command, one) for one in self.header]
        for name, value, read in (
            ("older", self.older, milliseconds),
            ("younger", self.younger, milliseconds),
            ("larger", self.larger, octets),
            ("smaller", self.smaller, octets),
        ):
            if value is not None:
                chosen[name] = _read(command, name, value, read)
        if self.key is not None:
            chosen["key"] = self.key
        if self.text is not None:
            chosen["text"] = self.text
        return chosen


@dataclass
class Sending(Group):
    """The way in which the messages that are meant are sent elsewhere."""

    limit: Annotated[int | None, typer.Option("--limit", "-n", min=1, help="At most so many.")] = None
    rate: Annotated[float | None, typer.Option("--rate", help="At most so many a second.")] = None
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False
    detach: Annotated[
        bool, typer.Option("--detach", help="Do not wait for the end: `warren transfers` tells of it.")
    ] = False

    def asked(self) -> dict[str, Any]:
        """As the API takes it."""
        given = {"limit": self.limit, "rate": self.rate, "dry_run": self.dry_run or None}
        return {name: value for name, value in given.items() if value is not None}


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
