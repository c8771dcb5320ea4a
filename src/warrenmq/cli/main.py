"""The command `warren`: finds the module that owns a command and hands over.

Every module of `warrenmq.cli` but this one and `serve` has `register(app)`, which adds its commands to the typer app.
`serve` is special: it starts without typer and rich (start-up time and 15 MB of memory that a broker has no use for),
so its options come straight from the table of settings. Nothing here imports Spark, Arrow or the broker.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

import warrenmq

if TYPE_CHECKING:
    import typer

PACKAGE = "warrenmq.cli"
NOT_MOUNTED = frozenset({"main", "serve"})


def main() -> None:
    arguments = sys.argv[1:]
    if arguments[:1] == ["serve"]:
        from warrenmq.cli.serve import main as serve

        sys.exit(serve(arguments[1:]))
    if arguments in (["--version"], ["version"]):
        print(f"warren {warrenmq.__version__}, {warrenmq.build_info()}")
        return
    if arguments[:1] in (["where"], ["journal"]):
        from warrenmq.journal.without_pandas import leave_pandas_out

        leave_pandas_out()
    build_app(arguments[0] if arguments else "")(prog_name="warren")


def build_app(wanted: str = "") -> typer.Typer:
    """The typer app; with `wanted`, only the module of that name if there is one, so that it starts quickly."""
    import typer

    app = typer.Typer(
        help="Warren: an AMQP 0-9-1 broker that RabbitMQ's clients cannot tell from RabbitMQ.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback()
    def top() -> None:
        """Keeps `warren COMMAND` a group even when a single command is mounted."""

    @app.command("serve", add_help_option=False)
    def serve_is_elsewhere() -> None:
        """Run the broker (`warren serve --help` lists the settings)."""

    @app.command("version")
    def version_is_elsewhere() -> None:
        """Say which version runs, compiled or not, and from where."""

    for name in modules(wanted):
        module = importlib.import_module(f"{PACKAGE}.{name}")
        # A module may import typer for its types only; typer then evaluates the annotations where they stand.
        vars(module).setdefault("typer", typer)
        module.register(app)
    return app


def modules(wanted: str = "") -> list[str]:
    alone = wanted.replace("-", "_")
    if alone.isidentifier() and alone not in NOT_MOUNTED and find_spec(f"{PACKAGE}.{alone}") is not None:
        return [alone]
    folder = importlib.import_module(PACKAGE).__path__
    found = [one.name for one in pkgutil.iter_modules(folder) if one.name not in NOT_MOUNTED]
    return [name for name in found if not name.startswith("_")]
