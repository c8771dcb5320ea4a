"""Whoever looks is shown how far a backup or an import is; whoever does not finds one line less to throw away."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from contextlib import redirect_stderr
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.support.brokers import RunningBroker, start_warren
from warrenmq.cli import _progress
from warrenmq.cli._progress import copied, shown


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setattr(_progress, "EVERY", 0.0005)
    return Terminal()


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with start_warren() as running:
        yield running


@pytest.mark.pure
def test_a_line_is_written_over_and_taken_away_at_the_end(terminal: Terminal) -> None:
    asked = threading.Event()
    told = iter(["", "half", "all"])

    def tell() -> str:
        found = next(told, "all")
        if found == "all":
            asked.set()
        return found

    with redirect_stderr(terminal), shown(tell):
        assert asked.wait(60)
    said = terminal.getvalue().split("\r\x1b[K")
    assert said[:2] == ["", "half"] and set(said[2:-1]) <= {"all"} and said[-1] == ""


@pytest.mark.pure
def test_nobody_is_told_where_nobody_looks() -> None:
    with redirect_stderr(io.StringIO()) as pipe, shown(lambda: pytest.fail("asked")):
        pass
    assert pipe.getvalue() == ""


@pytest.mark.pure
def test_what_is_copied_so_far_is_counted(tmp_path: Path) -> None:
    assert copied(tmp_path / "none") == ""
    (tmp_path / "a").write_bytes(b"x" * 1000)
    assert copied(tmp_path) == "copied 1.0 kB"
    (tmp_path / "b").write_bytes(b"x" * 999)
    assert copied(tmp_path) == "copied 2.0 kB"


def test_a_backup_and_an_import_show_how_far_they_are(
    terminal: Terminal, broker: RunningBroker, warren: Run, tmp_path: Path
) -> None:
    queues = [{"name": f"q{number}", "vhost": "/", "durable": True} for number in range(3000)]
    (tmp_path / "definitions.json").write_text(json.dumps({"queues": queues}))
    with redirect_stderr(terminal):
        assert warren("ctl", "import_definitions", str(tmp_path / "definitions.json"), WARREN_URL=broker.url)[0] == 0
        assert " queues and " in terminal.getvalue()
        assert warren("backup", str(tmp_path / "copy"), WARREN_URL=broker.url)[0] == 0
        for command in ("log backup", "log verify"):
            more = [str(tmp_path / "again")] if command == "log backup" else []
            assert warren(*command.split(), str(tmp_path / "copy"), *more)[0] == 0
        assert "reading " in terminal.getvalue()
