"""The page about the protocol names every message and every planted fault there is, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from warrenmq.cluster import messages
from warrenmq.cluster.model.faults import FAULTS, HARMLESS

pytestmark = pytest.mark.pure

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "cluster-protocol.md").read_text()


def first_column(heading: str) -> set[str]:
    """What stands in backquotes in the first column of the table under this row."""
    table = PAGE.partition(f"| {heading} |")[2].partition("\n\n")[0]
    rows = [line for line in table.splitlines()[2:] if line.startswith("|")]
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])}


def test_every_message_is_on_the_page() -> None:
    kinds = [each for each in vars(messages).values() if isinstance(each, type) and issubclass(each, messages.Message)]
    assert first_column("message") == {each.__name__ for each in kinds} - {"Message"}


def test_every_planted_fault_is_on_the_page() -> None:
    assert first_column("fault") == set(FAULTS)
    assert [name for name in HARMLESS if f"`{name}`" not in PAGE] == []
