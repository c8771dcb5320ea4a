"""The command `warren` as a function, with settings of its own and nothing of the user's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from warrenmq.cli.main import run

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def warren(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run a command, with variables by keyword: exit status, output, complaints."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("WARREN_URL", "WARREN_HTTP_URL", "WARREN_CTL_URL"):
        monkeypatch.delenv(name, raising=False)

    def call(*arguments: str, **environment: str) -> tuple[int, str, str]:
        with monkeypatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            capfd.readouterr()
            status = run(list(arguments))
        said = capfd.readouterr()
        return status, said.out, said.err

    return call
