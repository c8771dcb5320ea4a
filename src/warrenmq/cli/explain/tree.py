"""The way of a message as ``warren explain`` shows it: a tree for people, facts for programs, and a line."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from warrenmq.cli import _output
from warrenmq.cli._output import clean

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree

    from warrenmq.broker.exchange.explain import Reached, Step

NO_WIDTH = 100_000  # characters
SHOWN = 5  # misses shown of each exchange unless --all is given


class Show:
    """The form in which the way of a message is printed: as a tree with so many misses of each exchange, or as JSON."""

    def __init__(self, misses: int | None, as_json: bool) -> None:
        self._misses = misses
        self.as_json = as_json

    def way(self, step: Step) -> bool:
        """Does it reach a queue, or wait?"""
        queues, waiting = queues_and_waits(step)
        if self.as_json:
            from warrenmq.broker.exchange.explain import facts

            _output.as_json({"queues": queues, "waits_in": waiting, "way": facts(step)})
        else:
            self.tree(step)
            print(clean(summary(queues, waiting, "x-random" in types(step))))
        return bool(queues or waiting)

    def tree(self, step: Step) -> None:
        from rich.console import Console

        terminal = sys.stdout.isatty()
        console = Console() if terminal else Console(width=NO_WIDTH)  # lines in a pipe are not broken
        console.print(tree(step, self._misses))


def queues_and_waits(step: Step) -> tuple[list[str], list[str]]:
    """The queues that the message reaches, and the delayed exchanges that it waits in."""
    from warrenmq.broker.exchange.explain import queues_in, scheduled_in

    return queues_in(step), scheduled_in(step)


def tree(step: Step, shown: int | None) -> Tree:
    from rich.tree import Tree

    drawn = Tree(_exchange(step))
    _grow(drawn, step, shown)
    return drawn


def _grow(grown: Tree, step: Step, shown: int | None) -> None:
    from rich.text import Text

    if step.scheduled:
        grown.add(Text("waits here until it is due", "yellow"))
        return
    for way in step.reached:
        branch = grown.add(_way(way))
        if way.step is not None:
            _grow(branch, way.step, shown)
    if step.note:
        grown.add(Text(step.note, "dim"))
    if step.missing_alternate:
        grown.add(Text(clean(f"alternate exchange '{step.missing_alternate}' does not exist"), "red"))
    if any(way.how == "binding" for way in step.reached) and shown is not None:
        return  # why others did not match is only of interest when none did, or when asked for
    missed = step.missed if shown is None else step.missed[:shown]
    for miss in missed:
        line = Text("✗ ", "red")
        line.append(_rule(miss.key, miss.arguments), "dim")
        line.append(clean(f" → {miss.destination.kind} '{miss.destination.name}': "), "dim")
        line.append(clean(miss.reason))
        grown.add(line)
    if len(step.missed) > len(missed):
        grown.add(Text(f"… and {len(step.missed) - len(missed)} more bindings that do not match (--all)", "dim"))


def _exchange(step: Step) -> Text:
    from rich.text import Text

    line = Text(clean(f"exchange '{step.exchange.name}'"), "bold cyan")
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
        line.append(clean(f"decorator {way.note}"))
    else:
        line.append(clean(f"alternate exchange {way.note}, because no binding matched"))
    line.append(" → ", "dim")
    if way.step is not None:
        line.append_text(_exchange(way.step))
    else:
        line.append(clean(f"{way.destination.kind} '{way.destination.name}'"), "bold green")
    if way.repeated:
        line.append(" (already reached: once is enough)", "dim")
    return line


def _rule(key: str, arguments: dict[str, object]) -> str:
    text = f"key '{key}'"
    if arguments:
        text += " " + json.dumps(arguments, ensure_ascii=False, default=str)
    return clean(text)


def types(step: Step) -> set[str]:
    found = {step.type}
    for way in step.reached:
        if way.step is not None:
            found |= types(way.step)
    return found


def summary(queues: list[str], waiting: list[str], by_chance: bool = False) -> str:
    said = []
    if queues:
        count = f"{len(queues)} queue{'' if len(queues) == 1 else 's'}"
        said.append(f"reaches {'at most ' if by_chance else ''}{count}: {', '.join(queues)}")
    if waiting:
        said.append(f"waits in {', '.join(waiting)}")
    return "; ".join(said) or "unroutable: dropped, or returned with 312 NO_ROUTE if mandatory"
