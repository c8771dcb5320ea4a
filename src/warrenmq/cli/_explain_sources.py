"""What ``warren explain`` explains: definitions from a file or a management API, and the decorators loaded there.

Duty: reading, with one clear line when it cannot. Not here: the explanation (``explain.py``).

A broker's settings name its decorators as Python objects. One on this machine is believed, and they are loaded here;
what a broker elsewhere names is loaded only when it is named on the command line as well.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import quote

import typer

from warrenmq.client.http_api import MANAGEMENT_PORT, HttpAnswer, HttpClient, parse_http_url

if TYPE_CHECKING:
    from warrenmq.broker.extensions.decorator import DecoratorRegistry

DEFAULT_URL = "http://guest:guest@localhost:15672"
THIS_MACHINE = ("localhost", "127.0.0.1", "::1")

Get = Callable[[str], Any]


def stop(reason: str) -> NoReturn:
    typer.echo(f"warren explain: {reason}", err=True)
    raise typer.Exit(2)


def from_file(path: Path) -> dict[str, Any]:
    try:
        return _definitions(_parsed(path.read_text(encoding="utf-8"), str(path)), str(path))
    except (OSError, UnicodeDecodeError) as error:
        stop(f"the definitions cannot be read: {error}")


def from_api(url: str) -> tuple[dict[str, Any], list[str], bool]:
    """Definitions, the names of the decorators loaded there, and whether that is this machine."""
    try:
        address = parse_http_url(url, MANAGEMENT_PORT)
    except ValueError:
        stop(f"'{url}' is no address like http://user:password@host:15672")
    client = HttpClient(address, 30)

    def get(path: str) -> Any:
        answer = client.ask("GET", f"/api{path}")
        if answer.status >= 400:
            raise _Refused(answer)
        return _parsed(answer.body.decode("utf-8"), address.place)

    try:
        definitions = _definitions(get("/definitions"), address.place)
        return definitions, _decorators(get), address.host in THIS_MACHINE
    except _Refused as refused:
        cure = " (is the user an administrator?)" if refused.status in (401, 403) else ""
        stop(f"{address.place} answers {refused}{cure}")
    except (OSError, UnicodeDecodeError) as error:
        stop(f"no answer from {address.place} ({error}): start a broker there, or name a file with --definitions")


class _Refused(Exception):
    """An answer that is a refusal: its status and its words."""

    def __init__(self, answer: HttpAnswer) -> None:
        super().__init__(f"{answer.status} {answer.reason}")
        self.status = answer.status


def _decorators(get: Get) -> list[str]:
    """As the broker's settings name them; RabbitMQ has no such settings, and no such decorators."""
    try:
        nodes = get("/nodes")
        if not isinstance(nodes, list) or not nodes:
            return []
        settings = get(f"/nodes/{quote(str(nodes[0]['name']), safe='')}/environment")
    except _Refused:
        return []
    found = settings.get("decorators") if isinstance(settings, dict) else None
    return [str(name) for name in found] if isinstance(found, list) else []


def registry(named: list[str], there: list[str], believed: bool) -> DecoratorRegistry:
    """The decorators to explain with; says on standard error which ones of the broker are missing, and why."""
    from warrenmq.broker.extensions.decorator import DecoratorRegistry
    from warrenmq.broker.extensions.extensions import ExtensionError

    found = DecoratorRegistry()
    for name in named:
        try:
            found.load(name)
        except ExtensionError as error:
            stop(str(error))
    for name in there:
        if name in named:
            continue
        if not believed:
            typer.echo(f"without the decorator '{name}', which is loaded there: add --decorator {name}", err=True)
            continue
        try:
            found.load(name)
        except ExtensionError as error:
            typer.echo(f"without the decorator '{name}', which is loaded there: {error}", err=True)
    return found


def _parsed(text: str, origin: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        stop(f"{origin} holds no JSON: {error}")


def _definitions(loaded: Any, origin: str) -> dict[str, Any]:
    if not isinstance(loaded, dict):
        stop(f"{origin} holds no definitions")
    return loaded
