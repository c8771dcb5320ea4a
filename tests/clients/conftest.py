"""Node, where it is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
MODULES = HERE / "node_modules"


@pytest.fixture(scope="session")
def run_node() -> Callable[..., str]:
    """Runs a Node program and gives its output; skips where node or amqplib is missing."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node installed: amqplib not tested")
    if not (MODULES / "amqplib").is_dir():
        pytest.skip("amqplib is missing (cd tests/clients && npm install): not tested")

    def run(program: Path, *arguments: str, timeout: float = 60) -> str:
        done = subprocess.run(
            [node, str(program), *arguments],
            capture_output=True,
            text=True,
            timeout=timeout,
            env={**os.environ, "NODE_PATH": str(MODULES)},
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run
