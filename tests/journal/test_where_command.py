"""`warren where` on a folder of files: a timeline with causes, or one line that says why there is none."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

pytest.importorskip("pyarrow")

from tests.journal.tables import at_queue, published, write_file
from warrenmq.cli.main import build_app
from warrenmq.log.layout import WITHOUT_RECORD

SECOND = 1_000_000
BASE = 1 << 32


def run(*arguments: str) -> Result:
    return CliRunner().invoke(build_app("where"), ["where", *arguments])


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    rows = [
        published(1 * SECOND, BASE, 41, "order-1", headers={"tenant": "acme"}),
        at_queue(1 * SECOND, "enqueued", BASE, position=7),
        at_queue(3 * SECOND, "expired_gone", BASE),
        published(4 * SECOND, BASE + 1, 42, "order-2", correlation_id="41"),
        at_queue(4 * SECOND, "enqueued", BASE + 1, position=8),
        {"time": 5 * SECOND, "event": "gap", "until": 6 * SECOND, "number": 3},
    ]
    write_file(tmp_path, 1, rows, [])
    return tmp_path


def test_a_timeline_with_causes_and_what_is_true_at_its_end(journal: Path) -> None:
    shown = run("order-1", "--journal", str(journal))
    assert shown.exit_code == 0
    assert shown.stdout.splitlines() == [
        "message 41, message_id order-1",
        "  1970-01-01 00:00:01.000000  published by guest to the default exchange with key 'q', 4 octets, "
        "over 127.0.0.1:1 -> 127.0.0.1:2 (1)",
        "  1970-01-01 00:00:01.000000  entered queue 'q' at position 7",
        "  1970-01-01 00:00:03.000000  in queue 'q': expired; the queue has no dead-letter exchange: it is gone",
        "  now: gone: in queue 'q': expired; the queue has no dead-letter exchange: it is gone",
    ]
    assert shown.stderr == "The journal tells what happened until 1970-01-01 00:00:05.000000.\n"


def test_what_was_not_recorded_is_said(journal: Path) -> None:
    lines = run("42", "--journal", str(journal)).stdout.splitlines()
    assert lines[-2:] == [
        "  not known: 3 events from 1970-01-01 00:00:05.000000 to 1970-01-01 00:00:06.000000 were not recorded",
        "  now: waiting in queue 'q' since 1970-01-01 00:00:04.000000",
    ]


@pytest.mark.parametrize(
    ("arguments", "ids"),
    [
        (["41"], [42, 41]),  # of one it is the correlation_id
        (["--message-id", "41"], []),
        (["--correlation-id", "41"], [42]),
        (["--header", "tenant=acme"], [41]),
        (["--queue", "q"], [42, 41]),
        (["--queue", "q", "--limit", "1"], [42]),
        (["--queue", "q", "--state", "waiting"], [42]),
        (["--queue", "q", "--until", "1970-01-01T00:00:02+00:00"], [41]),
        (["--queue", "q", "--since", "1h"], []),
    ],
)
def test_messages_are_chosen_by_what_names_them(journal: Path, arguments: list[str], ids: list[int]) -> None:
    shown = run(*arguments, "--json", "--journal", str(journal))
    assert [json.loads(line)["id"] for line in shown.stdout.splitlines()] == ids
    assert shown.exit_code == (0 if ids else 1)
    if not ids:
        assert shown.stderr.startswith("No such message in the journal, which tells what happened from 1970-01-01 ")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "one of id, message_id, correlation_id, any, header or queue says which messages"),
        (["x", "--message-id", "y"], "message_id and any: one of them"),
        (["--header", "tenant"], "--header 'tenant': a header is name=value"),
        (
            ["x", "--since", "soon"],
            "--since: 'soon' is neither a time such as 2026-05-01T12:00 nor a time span such as",
        ),
        (["x", "--state", "odd"], "state: 'odd' is none of waiting, held, unknown, gone"),
    ],
)
def test_what_cannot_be_asked_is_one_clear_line(journal: Path, arguments: list[str], reason: str) -> None:
    shown = run(*arguments, "--journal", str(journal))
    assert (shown.exit_code, shown.stdout) == (2, "")
    assert shown.stderr.startswith(f"warren where: {reason}") and len(shown.stderr.splitlines()) == 1


def test_a_folder_that_is_not_there_and_an_empty_one_are_one_clear_line(tmp_path: Path) -> None:
    missing = run("x", "--journal", str(tmp_path / "missing"))
    assert (missing.exit_code, missing.stderr) == (
        2,
        f"warren where: {tmp_path / 'missing'}: No such file or directory\n",
    )
    empty = run("x", "--journal", str(tmp_path))
    assert (empty.exit_code, empty.stderr) == (1, "No such message: the journal is empty.\n")


def test_a_process_of_its_own_starts_without_pandas_which_arrow_would_import(journal: Path) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "warrenmq", "where", "order-1", "--journal", str(journal)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("message 41")
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "pyarrow.lib" in imported and not any(name.startswith("pandas.") for name in imported)


def test_a_header_is_found_whether_its_value_is_a_text_or_not(tmp_path: Path) -> None:
    values = {"text": "7a", "number": 7, "negative": -2, "truth": True, "digits": "7"}
    rows = [
        published(SECOND, BASE + at, at + 1, name, headers={"h": value})
        for at, (name, value) in enumerate(values.items())
    ]
    write_file(tmp_path, 1, rows, [])
    for wanted, names in {"7": {"number", "digits"}, "7a": {"text"}, "-2": {"negative"}, "true": {"truth"}}.items():
        lines = run("--header", f"h={wanted}", "--journal", str(tmp_path), "--json").stdout.splitlines()
        assert {json.loads(line)["message_id"] for line in lines} == names, wanted


def test_a_crash_while_the_message_was_there_is_told_with_it(tmp_path: Path) -> None:
    transient = WITHOUT_RECORD | 1
    held: dict[str, Any] = {"consumer": "c", "connection": "x", "user": "u", "channel": 1, "tag": 1}
    rows = [published(SECOND, BASE, 41, "kept"), at_queue(SECOND, "enqueued", BASE, position=1)]
    rows += [published(SECOND, transient, 1, "brief"), at_queue(SECOND, "enqueued", transient, position=2)]
    rows += [at_queue(2 * SECOND, "delivered", BASE, **held)]
    rows += [{"time": 3 * SECOND, "event": "interrupted", "until": 4 * SECOND}]
    write_file(tmp_path, 1, rows, [])
    down = (
        "  not known: what was not written yet when the broker went down without being stopped, 1970-01-01 "
        "00:00:03.000000 to 1970-01-01 00:00:04.000000"
    )
    assert run("kept", "--journal", str(tmp_path)).stdout.splitlines()[-2:] == [
        down,
        "  now: waiting in queue 'q' since 1970-01-01 00:00:04.000000",
    ]
    assert run("brief", "--journal", str(tmp_path)).stdout.splitlines()[-2:] == [
        down,
        "  now: gone: transient, and gone when the broker went down without being stopped",
    ]
