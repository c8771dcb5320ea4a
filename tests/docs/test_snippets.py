"""Every piece of code on a page is what it says: Python that compiles, settings and commands that exist."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from warrenmq.cli._catalog import COMMANDS
from warrenmq.cli.main import build_app
from warrenmq.server.config import TABLE

pytestmark = pytest.mark.pure

REPOSITORY = Path(__file__).parents[2]
PAGES = sorted([*(REPOSITORY / "docs").rglob("*.md"), REPOSITORY / "README.md"])
BLOCK = re.compile(r"^( *)```([\w-]*)[^\n]*\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)


def blocks(*languages: str) -> Iterator[tuple[str, str]]:
    """Place and text of every block in one of these languages; those that include a file are looked at there."""
    for page in PAGES:
        text = page.read_text()
        for found in BLOCK.finditer(text):
            if found[2] in languages and "--8<--" not in found[3]:
                line = text[: found.start()].count("\n") + 1
                code = "".join(part.removeprefix(found[1]) for part in found[3].splitlines(keepends=True))
                yield f"{page.relative_to(REPOSITORY)}:{line}", code


def test_python_compiles() -> None:
    found = list(blocks("python", "py"))
    assert len(found) > 20
    for place, code in found:
        compile(code, place, "exec")


def test_settings_are_settings() -> None:
    found = [(place, tomllib.loads(code)) for place, code in blocks("toml")]
    assert len(found) > 2
    assert [(place, key) for place, settings in found for key in settings if key not in TABLE] == []


def test_what_is_written_as_json_or_yaml_is() -> None:
    for _, code in blocks("json"):
        json.loads(code)
    for _, code in blocks("yaml"):
        list(yaml.safe_load_all(code))


def test_what_a_page_includes_is_there_and_is_written_as_the_site_reads_it() -> None:
    """A formatter once put spaces into such a line, and the site showed the line instead of the program."""
    found = [
        (str(page.relative_to(REPOSITORY)), line.strip())
        for page in PAGES
        for line in page.read_text().splitlines()
        if re.search(r"-- *8 *< *-", line)
    ]
    assert len(found) > 30
    wrong = []
    for page, line in found:
        included = re.fullmatch(r'--8<-- "([^"]+)"', line)
        if included is None or not (REPOSITORY / included[1]).is_file():
            wrong.append((page, line))
    assert wrong == []


def commands() -> Iterator[tuple[str, list[str]]]:
    """Place and words of every call of `warren` in a block for a shell."""
    for place, code in blocks("", "sh", "bash", "shell"):
        for line in code.replace("\\\n", " ").splitlines():
            call = re.match(r"\s*(?:\$ )?(?:\w+=\S+ )*warren ([a-z].*)$", line)
            if call:
                words = re.split(r" (?:\||\|\||&&|;|#|>) ", call[1])[0]
                try:
                    yield place, shlex.split(words.replace("...", "").replace("…", ""))
                except ValueError:
                    continue  # a text that goes over several lines


def test_commands_exist_with_the_options_they_are_given() -> None:
    top: Any = typer.main.get_command(build_app())
    found = [(place, words) for place, words in commands() if words]
    assert len(found) > 50
    wrong = []
    for place, (name, *words) in found:
        if name not in COMMANDS:
            wrong.append((place, name))
            continue
        command = top.commands.get(name)
        if command is None or name == "ctl":  # `serve` and `version` are read by themselves, ctl as rabbitmqctl reads
            known = {one.flag for one in TABLE.values()} | {"--config", "--json", "--help"}
            flags = [word for word in words if name == "serve" and word.startswith("--")]
            wrong += [(place, flag) for flag in flags if flag not in known]
            continue
        while words and getattr(command, "commands", {}).get(words[0]):
            command = command.commands[words.pop(0)]
        known = {option for one in command.params for option in [*one.opts, *one.secondary_opts]} | {"--help"}
        given = {word.partition("=")[0] for word in words if word.startswith("--") and word != "--"}
        wrong += [(place, f"{name} {option}") for option in sorted(given - known)]
    assert wrong == []
