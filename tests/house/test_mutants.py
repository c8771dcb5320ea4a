"""`scripts/mutants.py`: a mutant that a test notices is killed, one that none does survives, and a reason must hold."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "mutants.py"
PART = """
def larger(one, other):
    if one > other:
        return one
    return other

def countdown(number):
    while number:
        number -= 1
    return number

def never_called():
    return 1
"""
TEST = """
import pytest
from planted_part import countdown, larger

pytestmark = pytest.mark.pure

def test_the_larger_is_found():
    assert larger(3, 2) == 3

def test_a_countdown_ends():
    assert not countdown(3)
"""
ALIKE = "planted_part larger: one > other  ->  one >= other"
OTHER_WAY = "planted_part larger: if one > other:  ->  if not one > other:"
UNCALLED = "planted_part never_called: 1  ->  2"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "planted_part.py").write_text(PART)
    (tmp_path / "test_planted_part.py").write_text(TEST)
    (tmp_path / "reasons").write_text(f"Of two that are equal either is the larger.\n    {ALIKE}\n")
    return tmp_path


def hunt(folder: Path, *more: str) -> tuple[int, list[str]]:
    """How it ends, and the lines that it says."""
    own = ["--module", "planted_part", "--tests", str(folder), "--allow", str(folder / "reasons")]
    records = ["--records", str(folder / "records")]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *own, *records, *more],
        env={"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    return done.returncode, done.stdout.splitlines()


def said(lines: list[str], words: str) -> str:
    """The one line that has these words."""
    found = [line for line in lines if words in line]
    assert len(found) == 1, "\n".join(lines)
    return found[0]


def test_who_is_killed_who_survives_and_whom_no_test_comes_to_are_told_apart(folder: Path) -> None:
    (folder / "reasons").unlink()
    code, lines = hunt(folder, "larger", "never_called")
    assert code == 1
    assert ALIKE in said(lines, "survives (1 of 1 tests)")
    assert UNCALLED in said(lines, "no test comes to")
    assert "3 of 5 mutants: 1 killed, 0 explained, 1 survive, 1 not reached" in lines


def test_a_mutant_that_never_ends_is_killed(folder: Path) -> None:
    code, lines = hunt(folder, "number -= 1  ->  pass")
    assert code == 0
    assert "1 of 5 mutants: 1 killed, 0 explained, 0 survive, 0 not reached" in lines


def test_a_survivor_with_a_reason_is_no_error(folder: Path) -> None:
    code, lines = hunt(folder, "larger")
    assert code == 0, lines
    assert "2 of 5 mutants: 1 killed, 1 explained, 0 survive, 0 not reached" in lines


def test_a_reason_for_a_mutant_that_is_killed_or_is_no_more_is_an_error(folder: Path) -> None:
    gone = "planted_part larger: one < other  ->  one <= other"
    with (folder / "reasons").open("a") as file:
        file.write(f"    {gone}\n    {OTHER_WAY}\n")
    code, lines = hunt(folder, "larger")
    assert code == 1
    assert gone in said(lines, "there is no such mutant")
    assert OTHER_WAY in said(lines, "is killed, but a reason")


def test_what_is_known_of_a_test_holds_until_its_file_is_another(folder: Path) -> None:
    hunt(folder, "never_called")
    assert not any("test_planted_part" in line or line.startswith(".") for line in hunt(folder, "larger")[1])
    (folder / "test_planted_part.py").write_text(TEST.replace("assert larger", "assert True or larger"))
    code, lines = hunt(folder, "if one")
    assert code == 1
    assert OTHER_WAY in said(lines, "no test comes to")
