"""``warren ctl``: rabbitmqctl's verbs, arguments, columns and exit statuses, over the management API.

Options may stand anywhere, as rabbitmqctl has them. The broker is found by ``--url`` or ``WARREN_CTL_URL``, else as all
commands find it (``cli/_address.py``). Not here: what the verbs do (``verbs.py``).
"""

from __future__ import annotations

import difflib
import os
import sys
from typing import TYPE_CHECKING

from warrenmq.cli._address import AddressError, http_url
from warrenmq.cli._api import UNAVAILABLE, USAGE, Api, Failure
from warrenmq.cli._status import NO_BROKER
from warrenmq.cli.ctl.absent import ABSENT, refuse
from warrenmq.cli.ctl.banners import banner
from warrenmq.cli.ctl.call import Call, Misuse, Unsaid
from warrenmq.cli.ctl.output import FORMATTERS, MACHINE, show
from warrenmq.cli.ctl.verbs import VERBS, Verb
from warrenmq.cli.ctl.words import near, told

if TYPE_CHECKING:
    import typer

#: Options that every verb takes; others are named in the usage of the verbs they belong to.
GENERAL = {"vhost", "quiet", "silent", "node", "longnames", "timeout", "formatter", "no-table-headers", "url"}
FLAGS = {
    "quiet",
    "silent",
    "longnames",
    "no-table-headers",
    "if-empty",
    "if-unused",
    "global",
    "online",
    "offline",
    "local",
    "skip-if-unchanged",
    "all",
    "details",
}
VALUED = {
    "vhost",
    "node",
    "timeout",
    "formatter",
    "url",
    "priority",
    "apply-to",
    "limit",
    "per-connection-delay",
    "format",
    "queue-timeout",
    "user",
    "description",
    "tags",
    "default-queue-type",
    "nack-unroutable",
    "journal",
    "journal-sample",
    "unit",
    "within",
    "pid",
    "number",
    "duration",
    "address-family",
}
SHORT = {
    "-p": "vhost",
    "-q": "quiet",
    "-s": "silent",
    "-n": "node",
    "-l": "longnames",
    "-t": "timeout",
    "-e": "if-empty",
    "-u": "if-unused",
    "-P": "pid",
    "-N": "number",
    "-d": "duration",
}


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
    if not words and "help" not in options:
        raise Failure(overview(), USAGE, plain=True)
    if words[:1] in ([], ["help"]):
        return help_of(words[1]) if len(words) > 1 else overview()
    if words[0] in ABSENT:
        raise refuse(words[0])
    verb = VERBS.get(words[0])
    if verb is None:
        raise Failure(unknown(words[0]), USAGE, plain=True)
    if "help" in options:
        return help_of(verb.name)
    try:
        return answer(verb, words, options)
    except Misuse as misuse:
        given = " ".join(_without_url(arguments))
        raise Failure(
            f"{misuse.text}\nArguments given:\n\t{given}\n\nUsage\n\nwarren ctl {verb.help}", misuse.status, plain=True
        ) from None


def answer(verb: Verb, words: list[str], options: dict[str, str]) -> str:
    """Ask the broker; the line that says what is being done comes before its answer, good or bad."""
    if len(words) - 1 < verb.least:
        raise Misuse("not enough arguments.")
    if verb.most is not None and len(words) - 1 > verb.most:
        raise Misuse("too many arguments.")
    strange = options.keys() - GENERAL - verb.options
    if strange:
        option = options.get("unknown", "--" + min(strange))
        known = [f"--{name}" for name in GENERAL | verb.options]
        raise Misuse(f"Invalid options for this command:\n{option} : {near(option, known).lstrip()}")
    formatter = options.get("formatter", "table")
    if formatter not in FORMATTERS:
        raise Misuse(f"unknown formatter {formatter}: {', '.join(FORMATTERS)}")
    api = Api(_url(options), _seconds(options))
    call = Call(api, words[1:], options.get("vhost", "/"), options)
    said = not call.quiet and formatter not in MACHINE
    try:
        result = verb.run(call)
    except Failure as failure:
        if said and not isinstance(failure, Unsaid):
            sys.stdout.write(banner(verb.name, call))
        failure.text = told(api, call.at, call.arguments, failure.text)
        raise
    text = show(result, formatter, "no-table-headers" not in options and "silent" not in options)
    return (banner(verb.name, call) + text).removesuffix("\n") if said else text


def unknown(word: str) -> str:
    near = difflib.get_close_matches(word, VERBS, 1, 0.8)
    return f"\nCommand '{word}' not found. \n" + (f"Did you mean '{near[0]}'? \n" if near else "\n" + overview())


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
        if word in ("-h", "--help"):
            options["help"] = ""
            continue
        given, equals, value = word.partition("=")
        name = SHORT.get(word) or (given[2:] if given.startswith("--") else "")
        if name in FLAGS:
            options[name] = ""
        elif name in VALUED:
            if not equals:
                if not rest:
                    raise Failure(f"option {word} needs a value", USAGE)
                value = rest.pop(0)
            options[name] = value
        elif word.startswith("--") or (len(word) == 2 and word[0] == "-" and word[1].isalpha()):
            options["unknown"] = word  # told with the verb's usage
        else:
            words.append(word)
    return words, options


def _without_url(arguments: list[str]) -> list[str]:
    """The arguments as they would be given to rabbitmqctl; the address has a password in it."""
    kept = [word for word in arguments if not word.startswith("--url=")]
    if "--url" in kept:
        del kept[kept.index("--url") : kept.index("--url") + 2]
    return kept


def _url(options: dict[str, str]) -> str:
    try:
        return http_url(options.get("url") or os.environ.get("WARREN_CTL_URL"))
    except AddressError as error:
        raise Failure(str(error), UNAVAILABLE if error.status == NO_BROKER else USAGE) from None


def _seconds(options: dict[str, str]) -> float:
    text = options.get("timeout", "60")
    if text == "infinity":
        return 3600.0
    try:
        return max(0.1, float(text))
    except ValueError:
        raise Failure(f"timeout should be a number of seconds, not {text}", USAGE) from None


def help_of(word: str) -> str:
    if word in ABSENT:
        raise refuse(word)
    return f"warren ctl {VERBS[word].help}" if word in VERBS else unknown(word)


def overview() -> str:
    lines = ["warren ctl [--url http://USER:PASSWORD@HOST:PORT] [-q] VERB ...", "", "Verbs:", ""]
    return "\n".join(lines + [f"   {verb.help}" for verb in VERBS.values()])
