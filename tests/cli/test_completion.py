"""Shell completion: commands, options and names that are in the broker at this moment."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from warrenmq.testing import Broker

SOURCE = Path(__file__).parents[2] / "src"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as one:
        yield one


@pytest.fixture
def filled(warren: Run, broker: Broker) -> str:
    for line in ("queue orders", "queue bids", "exchange events"):
        assert warren("declare", *line.split(), WARREN_URL=broker.url)[0] == 0
    assert warren("context", "save", "prod", broker.url)[0] == 0
    return broker.url


CASES = [
    (["pu"], ["publish", "purge"]),
    (["peek", ""], ["bids", "orders"]),
    (["peek", "o"], ["orders"]),
    (["move", "orders", "b"], ["bids"]),
    (["declare", ""], ["exchange", "queue"]),
    (["delete", "queue", ""], ["bids", "orders"]),
    (["delete", "exchange", "ev"], ["events"]),
    (["watch", "exchange", "e"], ["events"]),
    (["bind", "ev"], ["events"]),
    (["bind", "events", "o"], ["orders"]),
    (["publish", "k", "--exchange", "ev"], ["events"]),
    (["publish", "k", "-e", "ev"], ["events"]),
    (["ledger", "--queue", "o"], ["orders"]),
    (["queues", "-p", ""], ["/"]),
    (["queues", "--url", ""], ["prod"]),
    (["context", "use", ""], ["prod"]),
    (["peek", "--js"], ["--json"]),
    (["peek", "-p", "nowhere", "o"], []),
    (["peek", "-u", "amqp://127.0.0.1:1/", "o"], []),
    (["ctl", "list_q"], ["list_queues"]),
    (["no-such-command", ""], []),
    (["declare", "no-such-thing", ""], []),
    (["serve", ""], []),
]


@pytest.mark.parametrize(("words", "expected"), CASES, ids=[" ".join(words) for words, _ in CASES])
def test_what_may_come_next_is_known(
    words: list[str], expected: list[str], warren: Run, filled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warrenmq.cli._complete.SECONDS", 60.0)  # no matter how busy this machine is
    status, out, err = warren("__complete", "fish", *words, WARREN_URL=filled)
    assert (status, out.splitlines(), err) == (0, expected, "")


def test_a_broker_that_does_not_answer_has_no_names(warren: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warrenmq.cli._complete.SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        assert warren("__complete", "zsh", "peek", "", WARREN_URL=f"amqp://127.0.0.1:{port}/") == (0, "", "")
        assert warren("__complete", "zsh", "peek", "", WARREN_URL=f"http://127.0.0.1:{port}/") == (0, "", "")


def test_bash_completes_with_it(warren: Run, filled: str, tmp_path: Path) -> None:
    command = tmp_path / "bin" / "warren"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m warrenmq "$@"\n')
    command.chmod(0o755)
    script = warren("completion", "bash")[1]
    script += 'COMP_WORDS=(warren peek o); COMP_CWORD=2; _warren; printf "%s\\n" "${COMPREPLY[@]}"\n'
    environment = {
        **os.environ,
        "PYTHONPATH": str(SOURCE),
        "PATH": f"{command.parent}:{os.environ['PATH']}",
        "WARREN_URL": filled,
        "XDG_CONFIG_HOME": str(tmp_path),
    }
    # half a second is a person's patience, and a busy machine may need more: then there is no name, and no error
    for _ in range(20):
        done = subprocess.run(["bash"], input=script, env=environment, text=True, capture_output=True, check=True)
        assert done.stderr == ""
        if done.stdout.split():
            break
    assert done.stdout.split() == ["orders"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_takes_its_script(shell: str, warren: Run) -> None:
    status, script, _ = warren("completion", shell)
    assert status == 0 and f"__complete {shell}" in script
    if shutil.which(shell) is not None:
        subprocess.run([shell, "-n"], input=script, text=True, check=True, capture_output=True)


def test_another_shell_is_refused_in_one_line(warren: Run) -> None:
    assert warren("completion", "csh") == (2, "", "warren completion: no shell 'csh' (bash, zsh, fish)\n")
