"""The list of epochs, and the last point that two logs have in common."""

from __future__ import annotations

import pytest

from warrenmq.cluster.epochs import common_point
from warrenmq.log.epochs import Epochs

pytestmark = pytest.mark.pure


def log(*epochs: int) -> tuple[Epochs, int]:
    """A log with a batch of each of these epochs, and its end."""
    found = Epochs()
    for position, epoch in enumerate(epochs):
        found.wrote(epoch, position)
    return found, len(epochs)


@pytest.mark.parametrize(
    ("left", "right", "common"),
    [
        ((), (1, 1), 0),
        ((1, 1), (1, 1), 2),
        ((1, 1, 1), (1,), 1),
        ((1, 1, 2), (1, 1, 1), 2),
        ((1, 2, 2), (1, 1, 1, 2), 1),
        ((1, 3), (1, 2), 1),
        ((2, 2), (1, 1), 0),
        ((1, 1, 2, 3), (1, 1, 2, 2), 3),
    ],
)
def test_two_logs_agree_as_far_as_their_epochs_do(left: tuple[int, ...], right: tuple[int, ...], common: int) -> None:
    assert common_point(*log(*left), *log(*right)) == common
    assert common_point(*log(*right), *log(*left)) == common


def test_a_cut_forgets_the_epochs_that_began_behind_it() -> None:
    epochs, _ = log(1, 1, 2, 3)
    epochs.cut(3)
    assert (epochs.last(), epochs.numbers, epochs.firsts) == (2, [1, 2], [0, 2])
    epochs.cut(0)
    assert epochs.last() == 0


def test_a_list_as_far_as_a_position_leaves_the_list_alone() -> None:
    epochs, _ = log(1, 2, 3)
    assert epochs.until(2).numbers == [1, 2]
    assert epochs.numbers == [1, 2, 3]
