"""`warren context`: addresses of brokers saved under names, and the one that commands use."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from warrenmq.cli import _output
from warrenmq.cli._address import AddressError, check, shown
from warrenmq.cli._command import Json, stop
from warrenmq.cli._contexts import Context, ContextError, Contexts, load, path_of, store

Name = Annotated[str, typer.Argument(help="The name it is saved under.")]

group = typer.Typer(help="Addresses of brokers, saved under names: save, list, use, forget.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.add_typer(group, name="context")


@group.command("save")
def save(
    name: Name,
    url: Annotated[str, typer.Argument(help="amqp://USER:PASSWORD@HOST:PORT/VHOST, or its http:// address.")],
    http_url: Annotated[
        str, typer.Option("--http-url", help="Its management API, where the broker cannot be asked for it.")
    ] = "",
    use: Annotated[bool, typer.Option("--use", help="Use it from now on.")] = False,
    as_json: Json = False,
) -> None:
    """Save an address under a name, for `--url NAME` and `warren context use NAME`. The file is yours alone (0600)."""
    if not name or "://" in name or not name.isprintable():
        stop("context save", f"'{name}' is no name: letters, digits and the like, without ://")
    try:
        check(url)
        if http_url:
            check(http_url, ("http", "https"))
    except AddressError as error:
        stop("context save", str(error))
    contexts = _load("save")
    contexts.saved[name] = Context(url, http_url)
    if use:
        contexts.in_use = name
    _store("save", contexts)
    in_use = contexts.in_use == name
    _output.said(f"saved {name}: {shown(url)}{', in use' if in_use else ''}", _facts(name, contexts), as_json)


@group.command("list")
def list_contexts(as_json: Json = False) -> None:
    """What is saved, without the passwords; the one in use is marked."""
    contexts = _load("list")
    found = [_facts(name, contexts) for name in sorted(contexts.saved)]
    if as_json:
        _output.as_json(found)
        return
    rows = [[one["name"], one["url"], one["http_url"], "*" if one["in_use"] else ""] for one in found]
    _output.table([["NAME", "ADDRESS", "HTTP ADDRESS", "IN USE"], *rows])


@group.command("use")
def use_context(name: Name, as_json: Json = False) -> None:
    """Let commands without --url and WARREN_URL talk to this one."""
    contexts = _load("use")
    try:
        one = contexts.named(name)
    except ContextError as error:
        stop("context use", str(error))
    contexts.in_use = name
    _store("use", contexts)
    _output.said(f"using {name}: {shown(one.url)}", _facts(name, contexts), as_json)


@group.command("forget")
def forget(name: Name, as_json: Json = False) -> None:
    """Delete a saved address."""
    contexts = _load("forget")
    try:
        contexts.named(name)
    except ContextError as error:
        stop("context forget", str(error))
    del contexts.saved[name]
    if contexts.in_use == name:
        contexts.in_use = ""
    _store("forget", contexts)
    _output.said(f"forgot {name}", {"name": name}, as_json)


def _facts(name: str, contexts: Contexts) -> dict[str, Any]:
    one = contexts.saved[name]
    return {"name": name, "url": shown(one.url), "http_url": shown(one.http_url), "in_use": name == contexts.in_use}


def _load(verb: str) -> Contexts:
    try:
        return load(path_of())
    except ContextError as error:
        stop(f"context {verb}", str(error))


def _store(verb: str, contexts: Contexts) -> None:
    try:
        store(path_of(), contexts)
    except ContextError as error:
        stop(f"context {verb}", str(error))
