"""`make run` where something is missing: one line that names what and the cure."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What `make run` needs of a fresh checkout; the package in it is a token one."""
    for name in ("Makefile", "scripts", "setup.py", "pyproject.toml", "README.md", "LICENSE"):
        source = REPOSITORY / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    for package in ("warrenmq", "pyspark_amqp"):
        (tmp_path / "src" / package).mkdir(parents=True)
        (tmp_path / "src" / package / "__init__.py").write_text('__version__ = "0"\n')
    return tmp_path


def python_that(folder: Path, prelude: str) -> Path:
    """A Python that is not quite what it should be."""
    command = folder / "strange-python"
    command.write_text(f'#!/bin/sh\nshift\nexec {sys.executable} -c "import sys; {prelude}; exec(sys.argv[1])" "$@"\n')
    command.chmod(0o755)
    return command


def make(checkout: Path, *arguments: str, **environment: str) -> str:
    """It must fail; all it said but make's own last line."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "PYTHON"))}
    done = subprocess.run(
        ["make", "run", *arguments],
        cwd=checkout,
        env={**kept, **environment},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=120,
    )
    assert done.returncode != 0
    lines = [line for line in done.stdout.splitlines() if not line.startswith("make")]
    return "\n".join(lines)


def test_a_python_that_is_too_old_is_named_with_the_way_to_name_another(checkout: Path) -> None:
    old = python_that(checkout, "sys.version_info = (3, 9, 7)")
    said = make(checkout, f"PYTHON={old}")
    assert len(said.splitlines()) == 1
    assert "3.11 or newer" in said and "3.9.7" in said and str(old) in said and "make run PYTHON=" in said


def test_no_python_at_all_is_said_as_well(checkout: Path) -> None:
    said = make(checkout, "PYTHON=/no/such/python")
    assert len(said.splitlines()) == 1
    assert "/no/such/python" in said and "make run PYTHON=" in said


def test_a_python_without_venv_names_the_package_to_install(checkout: Path) -> None:
    bare = python_that(checkout, "sys.modules['ensurepip'] = None")
    said = make(checkout, f"PYTHON={bare}")
    assert len(said.splitlines()) == 1
    assert "apt-get install python3-venv" in said


def test_a_registry_that_cannot_be_reached_is_said_in_one_line(checkout: Path) -> None:
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0", "PIP_CONFIG_FILE": os.devnull}
    said = make(checkout, f"PYTHON={sys.executable}", **nowhere, PIP_FIND_LINKS="", PIP_EXTRA_INDEX_URL="")
    assert "the package registry cannot be reached" in said.splitlines()[-1]


def test_help_lists_the_targets(checkout: Path) -> None:
    said = subprocess.run(["make", "help"], cwd=checkout, text=True, capture_output=True, check=True).stdout
    for target in ("run", "check", "test", "bench", "soak", "demo", "lint", "types", "clean"):
        assert f"make {target} " in said
