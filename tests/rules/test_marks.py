"""When messages came to a queue is known from a few marks, however many came and however long ago."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warrenmq.broker.queue.marks import FINENESS, SECOND, Marks

pytestmark = pytest.mark.pure


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 20_000_000)), max_size=400))
def test_an_age_is_too_long_by_a_second_and_a_part_of_it_at_most(history: list[tuple[int, int]]) -> None:
    """(How many came in a turn, and how long after the one before.)"""
    marks = Marks()
    now = 1_000_000
    came: list[int] = []
    for count, later in history:
        now += later
        if now >= marks.due:
            marks.mark(len(came), now)
        came += [now] * count
    for position, time in enumerate(came):
        assert marks.is_known(position)
        told = marks.since(position)
        assert told <= time < told + SECOND + (now - time) // FINENESS + 1


def test_a_queue_that_is_never_empty_has_some_hundreds_of_marks_after_a_month() -> None:
    marks = Marks()
    now = 0
    for turn in range(30 * 8_640):
        now = turn * 10 * SECOND
        marks.mark(turn, now)
    assert len({marks.since(turn) for turn in range(30 * 8_640)}) < 800
    assert now - marks.since(30 * 8_640 - 6) <= 60_000


def test_what_was_there_before_the_first_mark_came_before_it() -> None:
    marks = Marks()
    marks.begin(100, 5000)
    assert not marks.is_known(99) and marks.since(99) == 5000
    marks.mark(100, 9000)  # nothing has come since
    assert marks.since(99) == 5000 and marks.since(100) == 9000 and marks.is_known(100)


def test_positions_that_were_taken_back_are_given_out_again_with_their_new_time() -> None:
    marks = Marks()
    for position in range(5):
        marks.mark(position * 10, position * SECOND)
    marks.mark(15, 60_000)
    assert [marks.since(position) for position in (5, 12, 15, 20, 40)] == [0, 1000, 60_000, 60_000, 60_000]
