"""The page about the protocol names every message and every planted fault there is, and no other; and for each failure
of the design what tries it: tests, planted faults and faults of campaigns that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cluster.campaign import faults as campaign
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


def test_every_failure_has_its_row_and_what_tries_it_is_there() -> None:
    table = PAGE.partition("| failure | tried by |")[2].partition("\n\n")[0]
    rows = [line.split("|") for line in table.splitlines()[2:] if line.startswith("|")]
    numbers = [
        int(number) for row in rows for number in re.findall(r"\d+", row[1].split(" ")[1] + row[1].split(" ")[2])
    ]
    assert numbers == list(range(1, 32))
    tests = "".join(path.read_text() for path in (Path(__file__).resolve().parents[1]).rglob("test_*.py"))
    known = {fault.__name__ for fault in campaign.FAULTS} | set(FAULTS) | {"min_in_sync", "make bench ARGS=cluster"}
    named = {name for row in rows for name in re.findall(r"`([^`]+)`", row[2])}
    assert {name for name in named if name not in known and f"def {name}(" not in tests} == set()


def test_every_fault_of_a_campaign_is_in_the_table_of_failures() -> None:
    table = PAGE.partition("| failure | tried by |")[2].partition("\n\n")[0]
    besides = {"etcd_and_leader_die"}  # two of them at once
    assert {fault.__name__ for fault in campaign.FAULTS} - besides <= set(re.findall(r"`([^`]+)`", table))
