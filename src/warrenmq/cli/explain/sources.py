"""What ``warren explain`` explains with: definitions from a file or a management API, and the decorators loaded there.

Duty: reading, with one clear line when it cannot. Not here: the explanation (``explain.py``).

A broker's settings name its decorators as Python objects. One on this machine is believed, and they are loaded here;
what a broker elsewhere names is loaded only when it is named on the command line as well.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from warrenmq.cli._api import segment
from warrenmq.cli._command import Command
from warrenmq.cli._command import stop as stop_command

if TYPE_CHECKING:
    from warrenmq.broker.exchange.explain import Step
    from warrenmq.broker.extensions.decorator import DecoratorRegistry

THIS_MACHINE = ("localhost", "127.0.0.1", "::1")


def stop(reason: str) -> NoReturn:
    stop_command("explain", reason)


def way(
    definitions: dict[str, Any],
    decorators: DecoratorRegistry,
    vhost: str,
    exchange: str,
    key: str,
    headers: dict[str, object] | None,
) -> Step:
    """The way of a message by these definitions."""
    from warrenmq.broker.definitions.router import DefinitionsError, Router
    from warrenmq.wire.replies import AmqpError

    try:
        router = Router.from_definitions(definitions, registry=decorators, vhost=vhost)
        return router.explain(vhost, exchange, key, headers)
    except (DefinitionsError, ValueError) as error:
        stop(str(error))
    except AmqpError as refusal:
        stop(f"the broker would refuse this: {refusal.code} {refusal.text}")


def from_file(path: Path) -> dict[str, Any]:
    try:
        return _definitions(_parsed(path.read_text(encoding="utf-8"), str(path)), str(path))
    except (OSError, UnicodeDecodeError) as error:
        stop(f"the definitions cannot be read: {error}")


def from_api(command: Command) -> tuple[dict[str, Any], list[str], bool]:
    """Definitions, the names of the decorators loaded there, and whether that is this machine."""
    address = command.api.address
    answer = command.answer("GET", "/definitions")
    if answer.status in (401, 403):
        stop(
            f"user '{address.username}' may not read the definitions at {address.place}: an administrator may "
            f"(warren user tags {address.username} --tag administrator)"
        )
    if answer.status >= 400:
        stop(f"{address.place} answers {answer.status} {answer.reason}")
    return _definitions(answer.body, address.place), _decorators(command), address.host in THIS_MACHINE


def _decorators(command: Command) -> list[str]:
    """As the broker's settings name them; RabbitMQ has no such settings, and no such decorators."""
    nodes = command.answer("GET", "/nodes")
    if nodes.status >= 400 or not isinstance(nodes.body, list) or not nodes.body:
        return []
    answer = command.answer("GET", f"/nodes/{segment(str(nodes.body[0]['name']))}/environment")
    found = answer.body.get("decorators") if answer.status < 400 and isinstance(answer.body, dict) else None
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
