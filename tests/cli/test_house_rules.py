"""What holds for every command: listed by task, one meaning a letter, --json, one line when it is wrong."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import warrenmq
from warrenmq.cli._catalog import COMMANDS, TASKS
from warrenmq.cli._status import MEANINGS
from warrenmq.cli.main import build_app, run

pytestmark = pytest.mark.pure

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"


def walk() -> Iterator[tuple[str, Any]]:
    """Every command with its path, groups left out."""
    from typer.main import get_command

    def inner(path: str, command: Any) -> Iterator[tuple[str, Any]]:
        if not hasattr(command, "commands"):
            yield path, command
            return
        for name, one in command.commands.items():
            yield from inner(f"{path} {name}".strip(), one)

    return inner("", get_command(build_app()))


ALL = dict(walk())
OWN = ("ctl",)  # reads its own arguments, as rabbitmqctl has them


def test_the_table_of_commands_is_what_the_modules_register() -> None:
    registered = {path.split()[0] for path in ALL}
    assert registered == {name for name, entry in COMMANDS.items() if entry.module}
    for name, entry in COMMANDS.items():
        if entry.module:
            from typer.main import get_command

            assert name in get_command(build_app(name)).commands  # type: ignore[attr-defined]


def test_help_lists_every_command_under_its_task_and_the_exit_statuses(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--help"], ["-h"], ["help"]):
        assert run(arguments) == 0
        said = capsys.readouterr().out
        for task, entries in TASKS.items():
            assert f"\n{task}:\n" in said
            assert all(f"\n  {entry.name} " in said for entry in entries)
        assert all(f"\n  {status}  {meaning}" in said for status, meaning in MEANINGS.items())
    assert run([]) == 2


def test_help_imports_nothing_heavy() -> None:
    """So that it answers at once: the time is another machine's, the imports are ours."""
    code = (
        "import sys; from warrenmq.cli.main import run; run(['--help'])\n"
        "print([name for name in ('typer', 'click', 'rich', 'asyncio', 'ssl', 'json', 'difflib', 'http.client',"
        " 'warrenmq.wire', 'warrenmq.client', 'warrenmq.broker', 'warrenmq.log', 'pyarrow', 'pyspark')"
        " if name in sys.modules])"
    )
    source = str(Path(warrenmq.__file__).parents[1])
    unmeasured = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_PROCESS")}
    environment = {**unmeasured, "PYTHONPATH": source, "WARREN_PURE": "1"}  # what measures it imports json
    said = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    assert said.stdout.splitlines()[-1] == "[]"


HEAVY = (
    *("asyncio", "http.client", "msgspec", "multiprocessing", "numpy", "pandas", "pyarrow", "pyspark", "rich", "ssl"),
    *("starlette", "uvicorn", "warrenmq.broker", "warrenmq.client", "warrenmq.http", "warrenmq.log", "warrenmq.server"),
)
#: they read the files of a log, and their options have its words
OF_A_LOG = {"log", "journal", "where", "whatif"}


def test_the_help_of_a_command_imports_nothing_heavy() -> None:
    """All of them one after the other, in one process: what one imports stays."""
    code = (
        "import io, sys\nfrom contextlib import redirect_stdout\nfrom warrenmq.cli.main import run\n"
        f"for path in {[path for path in ALL if path.split()[0] not in OF_A_LOG]!r}:\n"
        "    with redirect_stdout(io.StringIO()):\n        assert run([*path.split(), '--help']) == 0\n"
        f"    print(path, *sorted({set(HEAVY)!r}.intersection(sys.modules)))\n"
    )
    source = str(Path(warrenmq.__file__).parents[1])
    unmeasured = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_PROCESS")}
    environment = {**unmeasured, "PYTHONPATH": source, "WARREN_PURE": "1"}
    said = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    assert said.stdout.splitlines() == [path for path in ALL if path.split()[0] not in OF_A_LOG]


def test_no_command_imports_rich_or_spark_before_it_needs_them() -> None:
    code = (
        "import sys; from warrenmq.cli.main import build_app; build_app()\n"
        "print([name for name in ('rich', 'pyspark', 'pyarrow', 'pandas') if name in sys.modules])"
    )
    source = str(Path(warrenmq.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source, "WARREN_PURE": "1"}
    said = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    assert said.stdout.strip() == "[]"


MEANS = {
    "-u": {"--url"},
    "-p": {"--vhost"},
    "-e": {"--exchange"},
    "-q": {"--queue"},
    "-n": {"--count", "--limit", "--messages"},
    "-H": {"--header"},
    "-P": {"--property"},
    "-o": {"--option"},
    "-h": {"--help"},
}


def test_a_letter_means_the_same_everywhere() -> None:
    meanings: dict[str, set[str]] = {}
    for path, command in ALL.items():
        if path in OWN:
            continue
        for parameter in command.params:
            short = [name for name in parameter.opts if len(name) == 2 and name[0] == "-"]
            long = [name for name in parameter.opts if name.startswith("--")]
            for letter in short:
                meanings.setdefault(letter, set()).add(long[0])
    for letter, names in meanings.items():
        assert names <= MEANS.get(letter, set()) or (letter not in MEANS and len(names) == 1), (letter, names)


WITHOUT_JSON = ("ctl",)  # rabbitmqctl's --formatter json


def test_every_command_that_prints_can_print_json() -> None:
    for path, command in ALL.items():
        if path.split()[0] not in WITHOUT_JSON:
            assert any("--json" in parameter.opts for parameter in command.params), path


@pytest.mark.parametrize("path", [path for path in ALL if path not in OWN])
def test_help_speaks_of_no_python_types_and_misuse_is_one_line(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*path.split(), "--help"]) == 0
    said = capsys.readouterr().out
    for python in ("<str>", "<int", "<bool>", "<float", "<list", "<path>", "TEXT ", "INTEGER", "PATH "):
        assert python not in re.sub("--text TEXT +", "", said), (python, said)
    assert run([*path.split(), "--no-such-option"]) == 2
    wrong = capsys.readouterr()
    assert wrong.out == "" and wrong.err.startswith(f"warren {path}: no option --no-such-option")
    assert len(wrong.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["pek"], "warren: no command 'pek' (did you mean peek?)"),
        (["-u", "prod", "queues"], "warren: -u stands behind the command: warren COMMAND -u …"),
        (["xyzzy"], "warren: no command 'xyzzy' (`warren --help` lists them)"),
        (["peek"], "warren peek: Missing argument 'QUEUE' (`warren peek --help` tells more)"),
        (["peek", "q", "--vhots", "x"], "warren peek: no option --vhots (did you mean --vhost?)"),
        (["declare", "queue", "q", "--durable"], "warren declare queue: no option --durable (`warren declare"),
        (["delayed", "lst"], "warren delayed: No such command 'lst'. Did you mean 'list'?"),
        (["get", "q", "-n", "many"], "warren get: Invalid value for '--count' / '-n': "),
        (["get", "q", "r"], "warren get: Got unexpected extra argument"),
        (["version", "now"], "warren version: takes --json alone, not now"),
    ],
)
def test_a_command_that_is_wrong_is_one_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    wrong = capsys.readouterr()
    assert wrong.out == "" and wrong.err.startswith(said) and len(wrong.err.splitlines()) == 1


def test_the_page_has_the_exit_statuses_and_every_command() -> None:
    page = PAGE.read_text()
    assert all(f"| {status} | {meaning} |" in page for status, meaning in MEANINGS.items())
    assert [name for name in COMMANDS if f"`{name}`" not in page] == []
