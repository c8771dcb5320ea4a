"""The command `warren`: finds the module that owns a command and hands over.

The table of commands (``_catalog.py``) answers `warren --help` and names the one module to import, which has
`register(app)`, adding its commands to the typer app. `serve` is special: it starts without typer (start-up time and
memory that a broker has no use for), so its options come straight from the table of settings. Nothing here imports
Spark, Arrow or the broker.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

import warrenmq
from warrenmq.cli._catalog import COMMANDS, overview, unknown
from warrenmq.cli._status import DONE, INTERRUPTED, WRONG

if TYPE_CHECKING:
    import typer

PACKAGE = "warrenmq.cli"
HELP = ("-h", "--help", "help")


def main() -> None:
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """One command; its exit status."""
    name = arguments[0] if arguments else "--help"
    if name in HELP:
        if name == "help" and len(arguments) > 1:
            return run([arguments[1], "--help"])
        print(overview())
        return DONE if arguments else WRONG
    if name == "serve":
        from warrenmq.cli.serve import main as serve

        return serve(arguments[1:])
    if name == "__complete":
        from warrenmq.cli._complete import main as complete

        return complete(arguments[1:], build_app)
    if name in ("--version", "version"):
        return version(arguments[1:])
    if name not in COMMANDS:
        print(f"warren: {unknown(name)}", file=sys.stderr)
        return WRONG
    if name in ("where", "journal"):
        from warrenmq.journal.without_pandas import leave_pandas_out

        leave_pandas_out()
    return _run(build_app(name), arguments)


def version(arguments: list[str]) -> int:
    build = warrenmq.build_info()
    if arguments == ["--json"]:
        import json

        known = {"version": warrenmq.__version__, "compiled": build.compiled, "folder": build.folder}
        print(json.dumps({**known, "reason": build.reason}))
    elif arguments:
        print(f"warren version: takes --json alone, not {arguments[0]}", file=sys.stderr)
        return WRONG
    else:
        print(f"warren {warrenmq.__version__}, {build}")
    return DONE


def build_app(wanted: str = "") -> typer.Typer:
    """The typer app with all commands, or with those of the module that has the command ``wanted``."""
    import typer

    app = typer.Typer(
        help="Warren: an AMQP 0-9-1 broker that RabbitMQ's clients cannot tell from RabbitMQ.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # plain help, and no half second for importing rich
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback()
    def top() -> None:
        """Keeps `warren COMMAND` a group even when a single command is mounted."""

    names = {COMMANDS[wanted].module} if wanted else {entry.module for entry in COMMANDS.values() if entry.module}
    for name in sorted(names):
        module = importlib.import_module(f"{PACKAGE}.{name}")
        # A module may import typer for its types only; typer then evaluates the annotations where they stand.
        vars(module).setdefault("typer", typer)
        module.register(app)
    return app


def _run(app: typer.Typer, arguments: list[str]) -> int:
    """Misuse is one line, as every other failure is."""
    import typer

    command = typer.main.get_command(app)
    _speak_plainly(command)
    try:
        status = command.main(arguments, prog_name="warren", standalone_mode=False)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        # typer has carried click's exceptions under two names; what makes one is that it can say itself
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        print(_misuse(error, str(message())), file=sys.stderr)
        return WRONG
    return status if isinstance(status, int) else DONE


def _misuse(error: Exception, message: str) -> str:
    context: Any = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "warren"
    command = context.command if context is not None else None
    if message.startswith("Usage:"):  # a group without a command is answered with its help
        return message
    wrong = getattr(error, "option_name", None)
    if wrong and command is not None:
        from difflib import get_close_matches

        known = [name[2:] for parameter in command.params for name in parameter.opts if name.startswith("--")]
        near = get_close_matches(wrong.lstrip("-"), known, 1, 0.7)
        message = f"no option {wrong} ({f'did you mean --{near[0]}?' if near else f'`{path} --help` lists them'})"
    elif message.endswith(".") and "`" not in message:
        message = f"{message[:-1]} (`{path} --help` tells more)"
    return f"{path}: {' '.join(message.split())}"


def _speak_plainly(command: Any) -> None:
    """Values are called by their options' names in the help, not by Python's types."""
    for inner in getattr(command, "commands", {}).values():
        _speak_plainly(inner)
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            # newer typers print the type behind the name
            setattr(parameter, "display_type_rich", lambda **_: None)  # noqa: B010 (not all versions have it)
        if parameter.metavar is None and not getattr(parameter, "is_flag", False):
            long = [name for name in parameter.opts if name.startswith("--")]
            parameter.metavar = (long[0][2:] if long else parameter.name or "").replace("-", "_").upper()
