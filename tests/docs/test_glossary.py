"""The glossary: in order, one row a word, and every module it names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import warrenmq

pytestmark = pytest.mark.pure

PAGE = Path(__file__).parents[2] / "docs" / "glossary.md"
SOURCE = Path(warrenmq.__file__).parent


def rows() -> list[tuple[str, str, str]]:
    return re.findall(r"^\| \*\*(.+?)\*\* \| (.+?) \| (.+?) \|$", PAGE.read_text(), re.MULTILINE)


def test_the_words_are_in_order_and_each_has_one_row() -> None:
    words = [word for word, _, _ in rows()]
    assert len(words) > 40
    assert words == sorted(set(words))


@pytest.mark.parametrize(("word", "places"), [(word, places) for word, _, places in rows()])
def test_a_word_says_where_it_lives_and_that_is_there(word: str, places: str) -> None:
    modules = re.findall(r"`([\w/]+\.py)`", places)
    assert modules and not [module for module in modules if not (SOURCE / module).is_file()]


@pytest.mark.parametrize(("word", "places"), [(word, places) for word, _, places in rows()])
def test_a_word_is_used_where_it_is_said_to_live(word: str, places: str) -> None:
    stem = word.split()[0].removesuffix("e").removesuffix("ing").removesuffix("ion")
    texts = [module + (SOURCE / module).read_text().lower() for module in re.findall(r"`([\w/]+\.py)`", places)]
    assert any(stem in text for text in texts)


def test_every_module_that_the_text_names_exists() -> None:
    assert not [name for name in re.findall(r"`([\w/]+\.py)`", PAGE.read_text()) if not (SOURCE / name).is_file()]
