"""What ``warren explain`` explains: definitions from a file or a management API, and the decorators loaded there.

Duty: reading, with one clear line when it cannot. Not here: the explanation (``explain.py``).

A broker's settings name its decorators as Python objects. One on this machine is believed, and they are loaded here;
what a broker elsewhere names is loaded only when it is named on the command line as well.
"""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import quote, unquote, urlsplit, urlunsplit

import typer

if TYPE_CHECKING:
    from warrenmq.broker.decorator import DecoratorRegistry

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
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        stop(f"'{url}' is no address like http://user:password@host:15672")
    login = f"{unquote(parts.username or 'guest')}:{unquote(parts.password or 'guest')}"
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    place = f"{host}:{parts.port or 15672}"
    root = urlunsplit((parts.scheme, place, parts.path.rstrip("/").removesuffix("/api") + "/api", "", ""))
    headers = {"Authorization": "Basic " + base64.b64encode(login.encode()).decode()}

    def get(path: str) -> Any:
        with urllib.request.urlopen(urllib.request.Request(root + path, headers=headers), timeout=30) as answer:
            return _parsed(answer.read().decode("utf-8"), place)

    try:
        definitions = _definitions(get("/definitions"), place)
        return definitions, _decorators(get), parts.hostname in THIS_MACHINE
    except urllib.error.HTTPError as error:
        cure = " (is the user an administrator?)" if error.code in (401, 403) else ""
        stop(f"{place} answers {error.code} {error.reason}{cure}")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "reason", None) or error
        stop(f"no answer from {place} ({reason}): start a broker there, or name a file with --definitions")


def _decorators(get: Get) -> list[str]:
    """As the broker's settings name them; RabbitMQ has no such settings, and no such decorators."""
    try:
        nodes = get("/nodes")
        if not isinstance(nodes, list) or not nodes:
            return []
        settings = get(f"/nodes/{quote(str(nodes[0]['name']), safe='')}/environment")
    except urllib.error.HTTPError:
        return []
    found = settings.get("decorators") if isinstance(settings, dict) else None
    return [str(name) for name in found] if isinstance(found, list) else []


def registry(named: list[str], there: list[str], believed: bool) -> DecoratorRegistry:
    """The decorators to explain with; says on standard error which ones of the broker are missing, and why."""
    from warrenmq.broker.decorator import DecoratorRegistry
    from warrenmq.broker.extensions import ExtensionError

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
