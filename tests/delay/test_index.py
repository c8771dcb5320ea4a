"""The index alone: against a sorted list, and what it may cost."""

from __future__ import annotations

import random
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warrenmq.broker.delay.index import BLOCK, DueIndex

pytestmark = pytest.mark.pure
pairs = st.tuples(st.integers(0, 30), st.integers(0, 30))


def everything(index: DueIndex, chunk: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    more = index.after(-1, 0, chunk)
    while more:
        found += more
        more = index.after(*more[-1], chunk)
    return found


@settings(max_examples=2 * settings().max_examples)
@given(st.lists(st.tuples(st.sampled_from(["add", "add", "remove", "take", "after"]), pairs), max_size=120))
def test_it_is_a_sorted_list(history: list[tuple[str, tuple[int, int]]]) -> None:
    index, model = DueIndex(), list[tuple[int, int]]()
    for what, pair in history:
        if what == "add":
            if pair not in model:
                index.add(*pair)
                model = sorted([*model, pair])
        elif what == "remove":
            assert index.remove(*pair) == (pair in model)
            model = [one for one in model if one != pair]
        elif what == "take":
            due = [one for one in model if one[0] <= pair[0]][: pair[1]]
            assert index.take(*pair) == due
            model = model[len(due) :]
        else:
            assert index.after(*pair, 7) == [one for one in model if one > pair][:7]
            assert index.contains(*pair) == (pair in model)
        assert len(index) == len(model)
        assert index.first_due() == (model[0][0] if model else -1)
    assert everything(index, 5) == model


@pytest.mark.parametrize("order", ["ascending", "descending", "shuffled", "equal"])
def test_many_blocks_keep_the_order(order: str) -> None:
    count = BLOCK * 7 + 3
    wanted = [(0 if order == "equal" else number // 3, number) for number in range(count)]
    added = list(wanted)
    if order == "descending":
        added.reverse()
    elif order == "shuffled":
        random.Random(1).shuffle(added)
    index = DueIndex()
    for pair in added:
        index.add(*pair)
    assert everything(index, 1000) == wanted
    for pair in wanted[1::2]:
        assert index.remove(*pair)
    assert index.take(1 << 60, count) == wanted[::2]
    assert len(index) == 0 and index.first_due() == -1


@pytest.mark.parametrize("order", ["ascending", "shuffled"])
def test_a_waiting_message_costs_less_than_twenty_five_bytes(order: str) -> None:
    """With the seven bytes of the log's own table that leaves it well under forty."""
    count = 50_000
    dues = list(range(count))
    if order == "shuffled":
        random.Random(1).shuffle(dues)
    tracemalloc.start()
    index = DueIndex()
    for key, due in enumerate(dues):
        index.add(due, key)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used / count < 25
