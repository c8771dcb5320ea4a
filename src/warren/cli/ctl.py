"""``warren ctl``: rabbitmqctl's verbs, arguments, columns and exit statuses, over the management API.

Options may stand anywhere, as rabbitmqctl has them. The broker is found by ``--url`` or ``WARREN_CTL_URL``
(``http://USER:PASSWORD@HOST:PORT``), by default ``http://guest:guest@127.0.0.1:15672``. Not here: what the verbs do
(``_ctl_verbs.py``).
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from warren.cli._api import USAGE, Api, Failure
from warren.cli._ctl_call import Call
from warren.cli._ctl_output import Table, show
from warren.cli._ctl_verbs import VERBS

if TYPE_CHECKING:
    import typer

DEFAULT_URL = "http://guest:guest@127.0.0.1:15672"

# option -> (name, takes a value)
OPTIONS = {
    "-p": ("vhost", True), "--vhost": ("vhost", True),
    "-q": ("quiet", False), "--quiet": ("quiet", False), "-s": ("quiet", False), "--silent": ("silent", False),
    "-n": ("node", True), "--node": ("node", True), "-l": ("longnames", False), "--longnames": ("longnames", False),
    "-t": ("timeout", True), "--timeout": ("timeout", True),
    "--formatter": ("formatter", True), "--no-table-headers": ("no-table-headers", False),
    "--url": ("url", True),
    "--priority": ("priority", True), "--apply-to": ("apply-to", True),
    "--if-empty": ("if-empty", False), "-e": ("if-empty", False),
    "--if-unused": ("if-unused", False), "-u": ("if-unused", False),
    "--global": ("global", False), "--limit": ("limit", True), "--per-connection-delay": ("delay", True),
    "--user": ("user", True), "--description": ("description", True), "--tags": ("tags", True),
    "--default-queue-type": ("default-queue-type", True),
    "--online": ("online", False), "--offline": ("offline", False), "--local": ("local", False),
}  # fmt: skip


def register(app: typer.Typer) -> None:
    import typer

    @app.command(
        "ctl",
        context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
        add_help_option=False,
    )
    def ctl(context: typer.Context) -> None:
        """Look after a running broker with rabbitmqctl's verbs (`warren ctl help` lists them)."""
        raise typer.Exit(main(list(context.args)))


def main(arguments: list[str]) -> int:
    """Run one verb; the exit status is rabbitmqctl's."""
    try:
        text = run(arguments)
    except Failure as failure:
        sys.stderr.write(failure.text + "\n" if failure.plain else f"Error:\n{failure.text}\n")
        return failure.status
    if text is not None and text != "":
        sys.stdout.write(text + "\n")
    return 0


def run(arguments: list[str]) -> str | None:
    words, options = parse(arguments)
    if not words or words[0] == "help" or "help" in options:
        return overview()
    verb = VERBS.get(words[0])
    if verb is None:
        raise Failure(f"Command '{words[0]}' not found.\n\n{overview()}", USAGE, plain=True)
    if len(words) - 1 < verb.least or (verb.most is not None and len(words) - 1 > verb.most):
        problem = "not enough arguments" if len(words) - 1 < verb.least else "too many arguments"
        raise Failure(
            f"Error (argument validation): {problem}.\nArguments given:\n\t{' '.join(arguments)}\n\n"
            f"Usage\n\nwarren ctl {verb.help}", USAGE, plain=True,
        )  # fmt: skip
    api = Api(options.get("url") or os.environ.get("WARREN_CTL_URL") or DEFAULT_URL, _seconds(options))
    result = verb.run(Call(api, words[1:], options.get("vhost", "/"), options, arguments))
    if isinstance(result, Table):
        quiet = "quiet" in options or "silent" in options
        headers = "no-table-headers" not in options and "silent" not in options
        return show(result, options.get("formatter", "table"), headers, quiet)
    return result


def parse(arguments: list[str]) -> tuple[list[str], dict[str, str]]:
    """Words and options; ``--`` ends the options, and a negative number is a word."""
    words: list[str] = []
    options: dict[str, str] = {}
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "--":
            words += rest
            break
        name, equals, value = word.partition("=")
        if word in ("-h", "--help"):
            options["help"] = ""
        elif name in OPTIONS and (not equals or name.startswith("--")):
            option, takes_value = OPTIONS[name]
            if takes_value and not equals:
                if not rest:
                    raise Failure(f"option {name} needs a value", USAGE)
                value = rest.pop(0)
            options[option] = value
        elif word.startswith("--"):
            raise Failure(f"Invalid options for this command: {word}", USAGE)
        else:
            words.append(word)
    return words, options


def _seconds(options: dict[str, str]) -> float:
    text = options.get("timeout", "60")
    if text == "infinity":
        return 3600.0
    try:
        return max(0.1, float(text))
    except ValueError:
        raise Failure(f"timeout should be a number of seconds, not {text}", USAGE) from None


def overview() -> str:
    lines = ["warren ctl [--url http://USER:PASSWORD@HOST:PORT] [-q] VERB ...", "", "Verbs:", ""]
    return "\n".join(lines + [f"   {verb.help}" for verb in VERBS.values()])
