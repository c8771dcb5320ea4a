"""What is unconfirmed, against a model that is too simple to be wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warrenmq.client.confirms import Unconfirmed

pytestmark = pytest.mark.pure


@given(st.integers(0, 12), st.lists(st.tuples(st.integers(0, 14), st.booleans(), st.booleans()), max_size=12))
def test_the_low_mark_and_the_set_above_it_say_what_a_plain_set_says(
    published: int, settled: list[tuple[int, bool, bool]]
) -> None:
    unconfirmed = Unconfirmed()
    unconfirmed.published = published
    model = set(range(1, published + 1))
    nacked: list[int] = []
    for tag, multiple, acked in settled:
        if not multiple and tag == 0:
            continue
        hit = {number for number in model if (number <= tag or tag == 0 if multiple else number == tag)}
        model -= hit
        if not acked:
            nacked += sorted(hit)
        unconfirmed.settle(tag, multiple, acked)
        assert unconfirmed.count == len(model)
        assert unconfirmed.nacked == nacked


def test_confirms_out_of_order_close_the_gap_when_it_fills() -> None:
    unconfirmed = Unconfirmed()
    unconfirmed.published = 5
    for tag in (3, 2, 5):
        unconfirmed.settle(tag, False, True)
    assert (unconfirmed.low, unconfirmed.count) == (0, 2)
    unconfirmed.settle(1, False, True)
    assert (unconfirmed.low, unconfirmed.count) == (3, 1)
    assert unconfirmed.above == {5}
