"""``warren explain``: where a message would go, as a tree, with the bindings that matched or why none did.

Asks a definitions file or the management API of a broker (Warren's or RabbitMQ's); sends no message.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from warrenmq.cli import _output
from warrenmq.cli._command import Command, Json, Url, Vhost
from warrenmq.cli._explain_sources import from_api, from_file, registry, stop
from warrenmq.cli._status import NO

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree

    from warrenmq.broker.exchange.explain import Reached, Step

SHOWN = 5  # misses shown of each exchange unless --all is given


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("explain")(explain)


def explain(
    exchange: Annotated[str, typer.Argument(help='The exchange published to; "" is the default exchange.')],
    key: Annotated[str, typer.Argument(help="The routing key.")],
    header: Annotated[
        list[str] | None,
        typer.Option(
            "--header", "-H", help="A header: name=text, or name:=JSON for other types (n:=5, cc:='[\"a\"]')."
        ),
    ] = None,
    vhost: Vhost = None,
    definitions: Annotated[Path | None, typer.Option(help="A definitions file in RabbitMQ's export format.")] = None,
    url: Url = None,
    decorator: Annotated[
        list[str] | None,
        typer.Option("--decorator", help="A decorator, MODULE:OBJECT; a broker on this machine names its own."),
    ] = None,
    all: Annotated[bool, typer.Option("--all", help="Show every binding that did not match, not the nearest.")] = False,
    as_json: Json = False,
) -> None:
    """Show the way of a message through the exchanges: which bindings match, or why none does.

    Leaves with 0 when the message reaches a queue or waits in a delayed exchange, with 1 when it is unroutable, and
    with 2 when the question is wrong.
    """
    from warrenmq.broker.definitions.router import DefinitionsError, Router
    from warrenmq.broker.exchange.explain import queues_in, scheduled_in
    from warrenmq.wire.replies import AmqpError

    if definitions is not None and url is not None:
        stop("name either --definitions or --url, not both")
    headers = _headers(header or [])
    there: list[str] = []
    believed = False
    at = vhost or "/"
    if definitions is not None:
        loaded = from_file(definitions)
    else:
        command = Command("explain", url, 30)
        at = command.vhost(vhost)
        loaded, there, believed = from_api(command)
    decorators = registry(decorator or [], there, believed)
    try:
        router = Router.from_definitions(loaded, registry=decorators, vhost=at)
        step = router.explain(at, exchange, key, headers)
    except (DefinitionsError, ValueError) as error:
        stop(str(error))
    except AmqpError as error:
        stop(f"the broker would refuse this: {error.code} {error.text}")
    queues, waiting = queues_in(step), scheduled_in(step)
    if as_json:
        _output.as_json({"queues": queues, "waits_in": waiting, "way": _facts(step)})
    else:
        from rich.console import Console

        console = Console()
        console.print(_tree(step, None if all else SHOWN))
        console.print(_summary(queues, waiting, "x-random" in _types(step)), markup=False, highlight=False)
    if not queues and not waiting:
        raise typer.Exit(NO)


# --- reading


def _headers(given: list[str]) -> dict[str, object] | None:
    if not given:
        return None
    headers: dict[str, object] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name.rstrip(":"):
            stop(f"header '{each}' is neither name=text nor name:=JSON")
        if not name.endswith(":"):
            headers[name] = value
            continue
        try:
            headers[name[:-1]] = json.loads(value)
        except ValueError as error:
            stop(f"header '{name[:-1]}' is no JSON: {error}")
    return headers


# --- showing


def _facts(step: Step) -> dict[str, object]:
    """The same as data: an exchange, what it reached and by which rule, and what it did not reach and why."""
    reached: list[dict[str, object]] = []
    for way in step.reached:
        one: dict[str, object] = {"how": way.how, "to": way.destination.kind, "name": way.destination.name}
        if way.how == "binding":
            one |= {"key": way.key, "arguments": way.arguments}
        if way.step is not None:
            one["way"] = _facts(way.step)
        reached.append(one)
    missed = [
        {"to": miss.destination.kind, "name": miss.destination.name, "key": miss.key, "reason": miss.reason}
        for miss in step.missed
    ]
    return {"exchange": step.exchange.name, "type": step.type, "reached": reached, "missed": missed}


def _tree(step: Step, shown: int | None) -> Tree:
    from rich.tree import Tree

    tree = Tree(_exchange(step))
    _grow(tree, step, shown)
    return tree


def _grow(tree: Tree, step: Step, shown: int | None) -> None:
    from rich.text import Text

    if step.scheduled:
        tree.add(Text("waits here until it is due", "yellow"))
        return
    for way in step.reached:
        branch = tree.add(_way(way))
        if way.step is not None:
            _grow(branch, way.step, shown)
    if step.note:
        tree.add(Text(step.note, "dim"))
    if step.missing_alternate:
        tree.add(Text(f"alternate exchange '{step.missing_alternate}' does not exist", "red"))
    if any(way.how == "binding" for way in step.reached) and shown is not None:
        return  # why others did not match is only of interest when none did, or when asked for
    missed = step.missed if shown is None else step.missed[:shown]
    for miss in missed:
        line = Text("✗ ", "red")
        line.append(_rule(miss.key, miss.arguments), "dim")
        line.append(f" → {miss.destination.kind} '{miss.destination.name}': ", "dim")
        line.append(miss.reason)
        tree.add(line)
    if len(step.missed) > len(missed):
        tree.add(Text(f"… and {len(step.missed) - len(missed)} more bindings that do not match (--all)", "dim"))


def _exchange(step: Step) -> Text:
    from rich.text import Text

    line = Text(f"exchange '{step.exchange.name}'", "bold cyan")
    line.append(f" {step.type}", "dim")
    if step.exchange.name:
        line.append(f", {step.bindings} binding{'' if step.bindings == 1 else 's'}", "dim")
    return line


def _way(way: Reached) -> Text:
    from rich.text import Text

    line = Text("✓ ", "green")
    if way.how == "binding":
        line.append(_rule(way.key, way.arguments))
    elif way.how == "default":
        line.append("queue named by the key")
    elif way.how == "decorator":
        line.append(f"decorator {way.note}")
    else:
        line.append(f"alternate exchange {way.note}, because no binding matched")
    line.append(" → ", "dim")
    if way.step is not None:
        line.append_text(_exchange(way.step))
    else:
        line.append(f"{way.destination.kind} '{way.destination.name}'", "bold green")
    if way.repeated:
        line.append(" (already reached: once is enough)", "dim")
    return line


def _rule(key: str, arguments: dict[str, object]) -> str:
    text = f"key '{key}'"
    if arguments:
        text += " " + json.dumps(arguments, ensure_ascii=False, default=str)
    return text


def _types(step: Step) -> set[str]:
    found = {step.type}
    for way in step.reached:
        if way.step is not None:
            found |= _types(way.step)
    return found


def _summary(queues: list[str], waiting: list[str], by_chance: bool) -> str:
    said = []
    if queues:
        count = f"{len(queues)} queue{'' if len(queues) == 1 else 's'}"
        said.append(f"reaches {'at most ' if by_chance else ''}{count}: {', '.join(queues)}")
    if waiting:
        said.append(f"waits in {', '.join(waiting)}")
    return "; ".join(said) or "unroutable: dropped, or returned with 312 NO_ROUTE if mandatory"
