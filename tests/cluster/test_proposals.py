"""Writes to etcd in doubt: what ends a doubt, and what does not."""

from __future__ import annotations

import pytest

from warrenmq.cluster.config import first
from warrenmq.cluster.effects import Effect
from warrenmq.cluster.proposals import Proposals

pytestmark = pytest.mark.pure

BASE = first(1, 1).led_by(1, 1)
WITH_TWO = BASE.joined_by(2, 0, 2)
WITH_THREE = BASE.joined_by(3, 0, 3)
TAKEN = BASE.led_by(9, 99)


@pytest.fixture
def proposals() -> Proposals:
    made = Proposals(BASE)
    effects: list[Effect] = []
    made.send(WITH_TWO, effects)
    made.send(WITH_THREE, effects)
    return made


def test_reading_the_value_from_before_proves_nothing(proposals: Proposals) -> None:
    proposals.learned(BASE)
    assert proposals.doubts == [WITH_TWO, WITH_THREE]


def test_silence_proves_nothing(proposals: Proposals) -> None:
    proposals.unanswered()
    assert proposals.doubts == [WITH_TWO, WITH_THREE]


def test_a_write_that_is_read_ends_all_doubts(proposals: Proposals) -> None:
    proposals.learned(WITH_THREE)
    assert (proposals.base, proposals.ours, proposals.doubts) == (WITH_THREE, True, [])


def test_a_refusal_says_who_was_first(proposals: Proposals) -> None:
    proposals.answered(WITH_TWO, False, TAKEN)
    assert (proposals.base, proposals.ours, proposals.doubts) == (TAKEN, False, [])


def test_a_refusal_by_an_etcd_that_is_not_believed_ends_one_doubt(proposals: Proposals) -> None:
    proposals.answered(WITH_TWO, False, None)
    assert (proposals.base, proposals.doubts) == (BASE, [WITH_THREE])


def test_of_two_copies_one_refusal_leaves_the_other_in_doubt(proposals: Proposals) -> None:
    proposals.send_again([])
    proposals.answered(WITH_THREE, False, None)
    assert WITH_THREE in proposals.doubts
    proposals.answered(WITH_THREE, False, None)
    assert WITH_THREE not in proposals.doubts


def test_an_answer_that_comes_after_the_value_has_moved_on_says_nothing(proposals: Proposals) -> None:
    proposals.learned(TAKEN)
    proposals.answered(WITH_TWO, True, WITH_TWO)
    assert proposals.base is TAKEN
