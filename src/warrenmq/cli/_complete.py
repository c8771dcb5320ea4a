"""What may come next on a command line, for the shells: commands, options, and names of what is in the broker now.

Duty: from the words typed to candidates. Whatever goes wrong on the way, a broker that is not there or slow, is no
candidate and no complaint: somebody waits with a finger on the tab key. Not here: the shells (``completion.py``).
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from warrenmq.cli._catalog import COMMANDS

if TYPE_CHECKING:
    import typer

    Build = Callable[[str], typer.Typer]

SECONDS = 0.5  # for all questions to a broker

#: argument or option -> what it names
NAMES = {
    "queue": "queues",
    "target": "queues",
    "destination": "queues",
    "--queue": "queues",
    "exchange": "exchanges",
    "source": "exchanges",
    "--exchange": "exchanges",
    "--vhost": "vhosts",
    "--url": "contexts",
    "--to": "exchanges",
}
#: the same where the command says what its argument is
OF_COMMANDS = {
    ("delete queue", "name"): "queues",
    ("watch queue", "name"): "queues",
    ("delete exchange", "name"): "exchanges",
    ("watch exchange", "name"): "exchanges",
    ("publish", "routing_key"): "queues",
    ("explain", "key"): "queues",
    ("context use", "name"): "contexts",
    ("context forget", "name"): "contexts",
    ("migrate", "source"): "contexts",
    ("migrate", "target"): "contexts",
}


def main(arguments: list[str], build: Build) -> int:
    """``warren __complete SHELL WORD ... INCOMPLETE``: a candidate a line. ``build`` makes the app of a command."""
    shell, *words = arguments or [""]
    for one in candidates(words, build):
        if one.isprintable():
            print(shlex.quote(one) if shell == "bash" else one)
    return 0


def candidates(words: list[str], build: Build) -> list[str]:
    *before, incomplete = words or [""]
    return sorted(one for one in _all(before, incomplete, build) if one.startswith(incomplete))


def _all(before: list[str], incomplete: str, build: Build) -> list[str]:
    if not before:
        return list(COMMANDS)
    entry = COMMANDS.get(before[0])
    if entry is None:
        return []
    if entry.name == "ctl":
        from warrenmq.cli.ctl.verbs import VERBS

        return list(VERBS) if len(before) == 1 else []
    if not entry.module:
        return []
    from typer.main import get_command

    command: Any = get_command(build(entry.name))
    path: list[str] = []
    rest = list(before)
    while hasattr(command, "commands"):
        if not rest:
            return list(command.commands)
        path.append(rest.pop(0))
        command = command.commands.get(path[-1])
    return _of_command(command, " ".join(path), rest, incomplete) if command is not None else []


def _of_command(command: Any, path: str, rest: list[str], incomplete: str) -> list[str]:
    options = {name: one for one in command.params for name in one.opts if name.startswith("-")}
    given: dict[str, str] = {}
    words = 0
    position = 0
    while position < len(rest):
        word = rest[position]
        option = options.get(word)
        position += 1
        if option is None:
            words += not word.startswith("-")
        elif not getattr(option, "is_flag", False):
            if position == len(rest):  # its value is what is being typed
                return _live(NAMES.get(option.opts[0], ""), given)
            given[option.opts[0]] = rest[position]
            position += 1
    if incomplete.startswith("-"):
        return [name for name in options if name.startswith("--")]
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    if not arguments:
        return []
    name = arguments[min(words, len(arguments) - 1)].name
    return _live(OF_COMMANDS.get((path, name)) or NAMES.get(name, ""), given)


def _live(what: str, given: dict[str, str]) -> list[str]:
    """Names in the broker at this moment, or saved contexts."""
    from warrenmq.cli._address import AddressError, http_url, target
    from warrenmq.cli._api import Api, Failure, segment
    from warrenmq.cli._contexts import ContextError, load, path_of

    if not what:
        return []
    try:
        if what == "contexts":
            return list(load(path_of()).saved)
        url = given.get("--url")
        api = Api(http_url(url, SECONDS), SECONDS)
        vhost = given.get("--vhost", target(url).vhost)
        path = "/vhosts" if what == "vhosts" else f"/{what}/{segment(vhost)}"
        return [str(one["name"]) for one in api.get(f"{path}?columns=name")]
    except (AddressError, ContextError, Failure, KeyError, TypeError):
        return []
