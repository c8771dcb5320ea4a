"""docs/guarantees.md names a test for every promise, and the tests exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "guarantees.md").read_text()
LINK = re.compile(r"\[`(test_\w+)`\]\(\.\./(tests/[\w/]+\.py)\)")


def test_every_test_that_a_promise_names_exists() -> None:
    links = LINK.findall(TEXT)
    assert len(links) > 40
    missing = [(file, name) for name, file in links if f"\ndef {name}(" not in (ROOT / file).read_text()]
    assert not missing


def test_every_promise_names_a_test() -> None:
    promised, _, _ = TEXT.partition("## What is not promised")
    lines = [line for line in promised.splitlines() if line.startswith("- ")]
    assert len(lines) > 20
    assert [line for line in lines if not LINK.search(line)] == []
