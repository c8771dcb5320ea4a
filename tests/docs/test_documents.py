"""README.md beside this names a test for every statement of behaviour; each of them must exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = Path(__file__).with_name("README.md")
DOCUMENTS = (
    "Confirms notes",
    "Mandatory guide",
    "Publishing guide",
    "Delayed exchange notes",
    "Acknowledgements guide",
)


def rows() -> list[list[str]]:
    """Table rows as cells: number, statement, what Warren does, tests."""
    found = []
    for line in PAGE.read_text().splitlines():
        if re.match(r"\| *\d+\.\d+ *\|", line):
            found.append([cell.strip() for cell in line.strip().strip("|").split("|")])
    return found


def named_tests() -> set[str]:
    return {name for row in rows() for name in re.findall(r"`(tests/[^`]+)`", row[3])}


def test_every_row_says_what_warren_does_and_which_test_proves_it() -> None:
    assert len(rows()) >= 50
    for row in rows():
        assert len(row) == 4, row
        number, statement, answer, proof = row
        assert statement and answer.startswith(("The same", "Differently")), number
        assert re.search(r"`tests/\S+::\S+`", proof), number


def test_every_document_has_its_table() -> None:
    page = PAGE.read_text()
    for chapter, title in enumerate(DOCUMENTS, 1):
        assert f"## {chapter}. {title}" in page
        assert any(row[0].startswith(f"{chapter}.") for row in rows())


def test_every_named_test_exists() -> None:
    named = named_tests()
    files = sorted({name.split("::")[0] for name in named})
    listing = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *files],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    ).stdout
    collected = set(listing.splitlines())
    without_parameters = {name.split("[")[0] for name in collected}
    missing = {name for name in named if name not in collected and name not in without_parameters}
    assert not missing, sorted(missing)
