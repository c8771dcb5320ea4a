"""docs/moving-from-rabbitmq.md: every link leads somewhere, every named test exists where it is said to be, and every
deliberate difference that the tests know of is told."""

from __future__ import annotations

import re
from pathlib import Path

from tests.differential.differences import KNOWN
from warren.server.config import TABLE

DOCS = Path(__file__).parents[2] / "docs"
GUIDE = (DOCS / "moving-from-rabbitmq.md").read_text()


def test_every_link_leads_somewhere_and_every_named_test_is_there() -> None:
    links = re.findall(r"\[([^\]]+)\]\(([^)]+)\)", GUIDE)
    assert len(links) > 30
    for text, target in links:
        path = DOCS / target
        assert path.exists(), target
        if text.startswith("`test_"):
            assert f"def {text.strip('`')}(" in path.read_text(), f"{text} is not in {target}"


def test_the_settings_it_names_exist() -> None:
    (table,) = re.findall(r"\| `rabbitmq.conf` \| Warren \|\n\|---\|---\|\n((?:\|.*\n)+)", GUIDE)
    named = [name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[2])]
    assert len(named) > 12 and set(named) <= set(TABLE)


def test_every_difference_the_differential_tests_allow_is_told() -> None:
    told = {"a method nobody knows is answered": "a method or class nobody knows",
            "a refused commit applies nothing": "`partial tx completion`) applies nothing"}  # fmt: skip
    assert {one.name for one in KNOWN} == set(told), "a new difference: tell it in the guide"
    assert all(words in GUIDE for words in told.values())
