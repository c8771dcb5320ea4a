"""Arguments of queues, exchanges, bindings and policies as they are written on the command line."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from warrenmq.cli._command import Command

Argument = Annotated[
    list[str] | None,
    typer.Option("--argument", "-a", help="name=value (numbers, true and false are such), or name:=JSON. Repeatable."),
]
Arguments = Annotated[str, typer.Option("--arguments", help="All of them as one JSON object.")]


def arguments(command: Command, pairs: list[str] | None, text: str) -> dict[str, Any]:
    """Both ways of giving them, put together."""
    found: dict[str, Any] = json_object(command, "--arguments", text) if text else {}
    for pair in pairs or []:
        name, value = _pair(command, pair)
        found[name] = value
    return found


def json_object(command: Command, option: str, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        command.stop(f"{option} {text!r} is no JSON: {error}")
    if not isinstance(found, dict):
        command.stop(f"{option} {text!r}: a JSON object is wanted, such as '{{\"x-max-length\": 1000}}'")
    return found


def _pair(command: Command, pair: str) -> tuple[str, Any]:
    name, equals, value = pair.partition("=")
    if not equals or not name.rstrip(":"):
        command.stop(f"--argument {pair!r}: an argument is name=value or name:=JSON")
    if not name.endswith(":"):
        return name, _plain(value)
    try:
        return name[:-1], json.loads(value)
    except ValueError:
        command.stop(f"--argument {pair!r}: {value!r} is no JSON")


def _plain(value: str) -> Any:
    if value in ("true", "false"):
        return value == "true"
    digits = value.removeprefix("-")
    return int(value) if digits.isascii() and digits.isdigit() and len(digits) < 20 else value
