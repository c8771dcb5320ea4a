"""A node that is late again and again."""

from __future__ import annotations

import pytest

from warrenmq.cluster.glue.lapses import Lapses

pytestmark = pytest.mark.pure


def test_a_node_that_was_late_three_times_within_the_time_stays_out_for_as_long() -> None:
    lapses = Lapses(600)
    assert not lapses.late(7, 0) and not lapses.late(7, 100)
    assert lapses.left(7, 150) == 0
    assert lapses.late(7, 599)
    assert lapses.left(7, 700) == 499 and lapses.left(8, 700) == 0
    assert lapses.left(7, 1199) == 0


def test_three_times_in_a_longer_time_are_nothing() -> None:
    lapses = Lapses(600)
    assert not any(lapses.late(7, now) for now in range(0, 6000, 300))


def test_whoever_was_out_begins_anew() -> None:
    lapses = Lapses(600)
    assert [lapses.late(7, now) for now in (0, 1, 2, 3, 4, 5)] == [False, False, True, False, False, True]
    lapses.forgive(7)
    assert lapses.left(7, 6) == 0


def test_nobody_stays_out_when_it_is_switched_off() -> None:
    lapses = Lapses(0)
    assert not any(lapses.late(7, 0) for _ in range(10)) and lapses.left(7, 0) == 0
