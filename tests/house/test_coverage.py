"""`make coverage`: below a floor it fails and names the package; a floor only rises."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PART = """
def sign(number):
    if number > 0:
        return "plus"
    return "minus"
"""
PACKAGE = "warrenmq.part"
TEST = f"""
import pytest
from {PACKAGE}.signs import sign

@pytest.mark.pure
def test_plus():
    assert sign(1) == "plus"
"""
# Three lines of four and one branch of two; the package beside it has nothing that could be reached.
REACHED = 100 * 4 / 6
SLACK = 0.3


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A token package that its one test goes through in part."""
    for name in ("pyproject.toml", "scripts/covered.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(REPOSITORY / name, tmp_path / name)
    package = tmp_path / "src" / "warrenmq"
    for folder in (package, package / "part", package / "testing"):
        folder.mkdir(parents=True)
        (folder / "__init__.py").touch()
    (package / "testing" / "plugin.py").touch()  # pytest loads it: Warren is installed
    (package / "part" / "signs.py").write_text(PART)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_signs.py").write_text(TEST)
    return tmp_path


def covered(tree: Path, floor: float, *arguments: str) -> tuple[int, str, float]:
    """How it ended with such a floor, what it said, and the floor after it."""
    floors = tree / "tests" / "coverage.json"
    floors.write_text(json.dumps({"part": floor}))
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("COV", "PYTEST"))}
    done = subprocess.run(
        [sys.executable, str(tree / "scripts" / "covered.py"), "0", *arguments],
        cwd=tree,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    return done.returncode, done.stdout, json.loads(floors.read_text())["part"]


def test_a_package_below_its_floor_fails_and_is_named_and_a_floor_only_rises(tree: Path) -> None:
    status, said, floor = covered(tree, 70.0, "--raise")
    assert status == 1 and "below the floor: part" in said and "66.7 %   floor  70.0 %" in said, said
    assert floor == 70.0
    status, said, floor = covered(tree, 50.0, "--raise")
    assert status == 0 and floor == round(REACHED - SLACK, 1), said


def test_a_test_that_fails_is_no_measurement(tree: Path) -> None:
    (tree / "tests" / "test_signs.py").write_text(TEST.replace('"plus"', '"minus"'))
    status, said, floor = covered(tree, 50.0, "--raise")
    assert status == 1 and "floor  50.0 %" not in said and floor == 50.0, said
