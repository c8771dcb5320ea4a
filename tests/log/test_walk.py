"""Real logs under the real rules, with crashes, power cuts and failing disks: nothing committed is lost, logs agree.

Under ``soak``: very many seeds. A planted fault is found within the seeds that are named.
"""

from __future__ import annotations

import pytest

from tests.log.crash_points import Violation
from tests.log.walk import Walk

pytestmark = pytest.mark.slices

STEPS = 800


def walked(seed: int, fault: str = "") -> dict[str, int]:
    try:
        walk = Walk(seed, fault)
        walk.run(STEPS)
    except Violation as error:
        raise Violation(f"seed {seed}: {error}") from error
    except Exception as error:
        raise AssertionError(f"seed {seed}: {error!r}") from error
    return walk.counts


def total(seeds: range) -> dict[str, int]:
    counts: dict[str, int] = {}
    for seed in seeds:
        for what, count in walked(seed).items():
            counts[what] = counts.get(what, 0) + count
    print(counts)
    return counts


def test_what_was_committed_is_in_every_later_leaders_log_as_it_was_written() -> None:
    counts = total(range(60))
    assert counts["commits"] > 800
    assert counts["takeovers"] > 150
    assert counts["judged"] > 200
    assert counts["power"] > 200
    assert counts["snapshots"] > 50
    assert counts["cuts"] > 1
    assert counts["checkpoints"] > 5
    assert counts["compactions"] + counts["removals"] > 5
    assert counts["scanned"] == 0


def test_a_snapshot_may_lack_the_batch_that_settled_what_a_rewritten_segment_lacks() -> None:
    assert walked(3233)["snapshots"] > 1


def test_what_a_follower_has_still_to_cut_does_not_count_as_being_on_its_disk() -> None:
    """A disk that fails between a cut and what comes instead: a checkpoint would have had what was not synced."""
    assert walked(745)["takeovers"] > 1


@pytest.mark.soak
def test_what_was_committed_is_in_every_later_leaders_log_for_many_seeds() -> None:
    counts = total(range(1000, 31_000))
    assert counts["cuts"] > 1000


@pytest.mark.parametrize(("fault", "seeds"), [("early", 50), ("emptied", 200)])
def test_a_planted_fault_is_found(fault: str, seeds: int) -> None:
    with pytest.raises(Violation):
        for seed in range(seeds):
            walked(seed, fault)
