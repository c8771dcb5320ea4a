"""Of files that tell of the same in part those are read that tell each event once."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warrenmq.journal.files import current, file_name, files_of, told_once

pytestmark = pytest.mark.pure

Span = tuple[int, int]


@pytest.mark.parametrize(
    ("spans", "counted"),
    [
        ([], []),
        ([(0, 10), (10, 20), (30, 40)], [(0, 10), (10, 20), (30, 40)]),
        ([(0, 10), (10, 20), (0, 20)], [(0, 20)]),  # just made of the two
        ([(10, 20), (0, 20)], [(0, 20)]),
        ([(0, 10), (10, 25), (25, 40), (0, 30), (30, 60)], [(0, 30), (30, 60)]),  # two leaders
        ([(0, 35), (35, 40), (0, 30), (30, 60)], [(0, 30), (30, 60)]),  # the longest first would meet another's middle
        ([(0, 10), (10, 40), (0, 30), (30, 35)], [(0, 10), (10, 40)]),  # the second is not as far yet
        ([(0, 10), (0, 20), (10, 30)], [(0, 10), (10, 30)]),
        ([(0, 0)], [(0, 0)]),  # a segment in which nothing happened
        ([(0, 0), (0, 10)], [(0, 10)]),
        ([(0, 20), (10, 30), (10, 15)], [(0, 20), (10, 30)]),  # somebody took files away: rather twice than not at all
        ([(0, 20), (10, 30), (30, 40), (40, 50), (30, 50)], [(0, 20), (10, 30), (30, 50)]),
    ],
)
def test_the_fewest_files_that_tell_all_of_it_without_an_overlap_count(spans: list[Span], counted: list[Span]) -> None:
    assert sorted(told_once(spans)) == counted


def told(spans: list[Span]) -> list[int]:
    return sorted(position for begin, end in spans for position in range(begin, end))


@given(st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=6), min_size=1, max_size=4), st.integers(0, 20))
def test_however_many_leaders_wrote_everything_is_told_once(leaders: list[list[int]], begin: int) -> None:
    spans: list[Span] = []
    for lengths in leaders:
        at = begin
        for length in lengths:
            spans.append((at, at + length))
            at += length
    counted = list(told_once(spans))
    assert set(counted) <= set(spans)
    assert told(counted) == sorted(set(told(spans)))


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 9)), max_size=12))
def test_whatever_files_there_are_nothing_is_left_out(found: list[Span]) -> None:
    spans = [(begin, begin + length) for begin, length in found]
    assert set(told(list(told_once(spans)))) == set(told(spans))


def test_files_of_other_segments_do_not_tell_of_this_one(tmp_path: Path) -> None:
    for segment, begin, end in ((1, 0, 20), (2, 0, 30), (1, 10, 30), (1, 0, 10)):
        (tmp_path / file_name(7, segment, begin, end)).touch()
    found = [(one.segment, one.begin, one.end) for one in current(files_of(tmp_path, 7))]
    assert found == [(1, 0, 10), (1, 10, 30), (2, 0, 30)]
