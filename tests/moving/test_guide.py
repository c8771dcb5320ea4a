"""docs/moving-from-rabbitmq.md: every link leads somewhere, every named test exists where it is said to be, and every
deliberate difference that the tests know of is told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.differential.differences import KNOWN
from tests.moving import ctl_differences
from tests.moving.ctl_cases import CASES
from warrenmq.cli.ctl.absent import ABSENT
from warrenmq.cli.ctl.verbs import VERBS
from warrenmq.server.config import TABLE

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "moving-from-rabbitmq.md"
GUIDE = PAGE.read_text()


def slugs(page: Path) -> set[str]:
    """What a page's titles are called behind a #."""
    titles = re.findall("^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_link_leads_somewhere_and_every_named_test_is_there() -> None:
    links = re.findall(r"\[([^\]]+)\]\(([^)]+)\)", GUIDE)
    assert len(links) > 30
    for text, target in links:
        path = DOCS / target.partition("#")[0]
        assert path.exists(), target
        assert "#" not in target or target.partition("#")[2] in slugs(path if path.is_file() else PAGE), target
        if text.startswith("`test_"):
            assert f"def {text.strip('`')}(" in path.read_text(), f"{text} is not in {target}"


def test_every_difference_names_the_test_that_keeps_it() -> None:
    part = GUIDE.split("\n## What differs on purpose\n")[1].split("\n## ")[0]
    rows = [row for row in part.splitlines() if row.startswith("|") and not row.startswith(("| situation |", "|---"))]
    assert len(rows) > 40
    assert [row for row in rows if "[`test_" not in row.strip("| ").split(" | ")[-1]] == []


@pytest.mark.parametrize("page", ["http-api.md", "streams.md"])
def test_every_difference_of_another_page_names_the_test_that_keeps_it(page: str) -> None:
    text = (DOCS / page).read_text()
    part = text.split("\n## Where it differs from RabbitMQ 3.10\n")[1].split("\n## ")[0]
    differences = [each for each in re.split(r"\n(?=- )", part.strip()) if each.startswith("- ")]
    assert len(differences) >= 3
    for difference in differences:
        named = re.findall(r"\[`(test_\w+)`\]\(\.\./([^)]+)\)", difference)
        assert named, difference
        for name, file in named:
            assert f"def {name}(" in (DOCS.parent / file).read_text(), name


def test_the_settings_it_names_exist() -> None:
    (table,) = re.findall(r"\| key \| here \|\n\|---\|---\|\n((?:\|.*\n)+)", GUIDE)
    cells = [row.split("|")[2].strip() for row in table.splitlines()]
    named = [name for cell in cells if re.fullmatch(r"`\w+`(, `\w+`)*", cell) for name in re.findall(r"`(\w+)`", cell)]
    assert len(named) > 12 and set(named) <= set(TABLE)


def test_every_difference_the_differential_tests_allow_is_told() -> None:
    told = {
        "a method nobody knows is answered": "a method or class nobody knows",
        "a refused commit applies nothing": "`partial tx completion`) applies nothing",
    }
    assert {one.name for one in KNOWN} == set(told), "a new difference: tell it in the guide"
    assert all(words in GUIDE for words in told.values())


def verbs_in(heading: str) -> set[str]:
    """The words in code type of the first table behind a heading row."""
    (table,) = re.findall(rf"\| {heading} \|.*\n\|[-|]+\n((?:\|.*\n)+)", GUIDE)
    return {word for code in re.findall(r"`([^`]+)`", table) for word in code.split()}


def test_every_verb_is_told_to_be_there_to_differ_or_not_to_be_there() -> None:
    there, differs, absent = (verbs_in(one) for one in ("there, as in RabbitMQ", "there, but differs", "not there"))
    assert set(VERBS) - there - differs == set()
    assert set(ABSENT) - absent == set()
    assert not set(ABSENT) & (there | differs)


def test_every_verb_that_answers_differently_is_told_to_differ() -> None:
    cases = (
        *ctl_differences.OWN_WORDS,
        *ctl_differences.OWN_STATUS,
        *ctl_differences.OWN_COLUMNS,
        *ctl_differences.OWN_KEYS,
    )
    differing = {case.split()[0] for case in cases} & set(VERBS)
    assert differing - verbs_in("there, but differs") == set()


def test_every_verb_that_is_told_to_be_as_in_rabbitmq_is_compared_with_it() -> None:
    compared = {case.split()[0] for case in CASES}
    later = {"hash_password", "update_vhost_metadata"}  # which 3.10 has not
    assert verbs_in("there, as in RabbitMQ") & set(VERBS) - compared == later
