"""The page of all commands, made from the commands themselves: what each takes, as its ``--help`` says it."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import typer

from warrenmq.cli._catalog import TASKS
from warrenmq.cli.main import _speak_plainly, build_app
from warrenmq.cli.serve import main as serve

HEAD = """# All commands

Every command with its arguments and options, as `warren COMMAND --help` prints them. The page is made from the commands
when the site is built. [The command line](command-line.md) tells what they have in common: the address, the letters,
the output, the exit status.

"""


def page() -> str:
    command: Any = typer.main.get_command(build_app())
    _speak_plainly(command)
    top = typer.Context(command, info_name="warren", max_content_width=100, terminal_width=100)
    parts = [HEAD]
    for task, entries in TASKS.items():
        parts.append(f"## {task}\n\n")
        for entry in entries:
            parts.append(f"### {entry.name}\n\n")
            if entry.name == "serve":
                shown = io.StringIO()
                with contextlib.redirect_stdout(shown):
                    serve(["--help"])
                parts.append(_block(shown.getvalue()))
            elif entry.module:
                parts.append(_help(command.commands[entry.name], top, entry.name))
            else:
                parts.append(f"{entry.line.capitalize()}. `--json` prints JSON.\n\n")
    return "".join(parts)


def _help(command: Any, above: Any, name: str) -> str:
    context = typer.Context(command, info_name=name, parent=above, max_content_width=100, terminal_width=100)
    shown = _block(command.get_help(context))
    for inner, subcommand in getattr(command, "commands", {}).items():
        if not subcommand.hidden:
            shown += f"#### {name} {inner}\n\n" + _help(subcommand, context, inner)
    return shown


def _block(text: str) -> str:
    return f"```text\n{text.strip()}\n```\n\n"
