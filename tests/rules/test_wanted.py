"""Filters of messages: patterns of routing keys, and texts in bodies that come in pieces."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warrenmq.broker.queue.wanted import TextSearch, matches

pytestmark = pytest.mark.pure


@given(st.lists(st.binary(max_size=6).map(lambda piece: bytes(octet & 1 for octet in piece))), st.binary(max_size=7))
def test_a_text_is_found_wherever_a_body_is_cut(pieces: list[bytes], text: bytes) -> None:
    text = bytes(octet & 1 for octet in text) or b"\0"
    search = TextSearch(text)
    found = any(search.found_in(piece) for piece in pieces)
    assert found == (text in b"".join(pieces))


@given(st.text("ab*?", max_size=8), st.text("ab", max_size=10))
def test_a_pattern_matches_what_the_same_expression_does(pattern: str, text: str) -> None:
    same = "".join({"*": ".*", "?": "."}.get(letter, letter) for letter in pattern)
    assert matches(pattern, text) == (re.fullmatch(same, text, re.DOTALL) is not None)


def test_a_pattern_of_many_stars_does_not_take_long() -> None:
    assert not matches("*a" * 500 + "*b", "a" * 255)
