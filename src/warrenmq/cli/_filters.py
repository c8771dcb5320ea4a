"""The options that choose messages of a queue, shared by `warren peek`, `redrive`, `move` and `copy`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, NoReturn

import typer

from warrenmq.cli._api import Answer, Api, Failure
from warrenmq.cli._units import milliseconds, octets

DEFAULT_URL = "http://guest:guest@127.0.0.1:15672"

Url = Annotated[str, typer.Option("--url", "-u", envvar="WARREN_HTTP_URL", help="Address of the management API.")]
Vhost = Annotated[str, typer.Option("--vhost", "-p", help="Virtual host.")]
Json = Annotated[bool, typer.Option("--json", help="The API's JSON as it is.")]
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


class Command:
    """What a command says when it goes wrong, and whom it asks."""

    def __init__(self, name: str, url: str) -> None:
        self.name = name
        try:
            self._api = Api(url, 60.0)
        except Failure as failure:
            self.stop(failure.text)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        try:
            answer: Answer = self._api.ask(method, path, body)
        except Failure as failure:
            self.stop(failure.text)
        if answer.status >= 400:
            self.stop(answer.reason if isinstance(answer.body, dict) else f"the broker answered {answer.status}")
        return answer.body

    def stop(self, reason: str) -> NoReturn:
        typer.echo(f"warren {self.name}: {reason}", err=True)
        raise typer.Exit(1)

    def filters(
        self,
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
            chosen["header"] = [self._header(one) for one in header]
        for name, value, read in (
            ("older", older, milliseconds),
            ("younger", younger, milliseconds),
            ("larger", larger, octets),
            ("smaller", smaller, octets),
        ):
            if value is not None:
                chosen[name] = self._read(name, value, read)
        if key is not None:
            chosen["key"] = key
        if text is not None:
            chosen["text"] = text
        return chosen

    def _header(self, pair: str) -> str:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            self.stop(f"--header {pair!r}: a header is name=value")
        return f"{name}:{value}"

    def _read(self, name: str, value: str, read: Callable[[str], int]) -> int:
        try:
            return read(value)
        except ValueError as error:
            self.stop(f"--{name}: {error}")


def sending(limit: int | None, rate: float | None, dry_run: bool) -> dict[str, Any]:
    """The options of what sends messages, as the API takes them."""
    given = {"limit": limit, "rate": rate, "dry_run": dry_run or None}
    return {name: value for name, value in given.items() if value is not None}


def table(rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(value.ljust(width) for value, width in zip(row, widths, strict=True)).rstrip())
