"""Three nodes with real brokers on real logs, on the virtual clock: no client of them has anything to complain about.

A thousand seeds, in pieces; under ``soak`` a hundred thousand (WARREN_TEST_CLUSTER_WALKS).
"""

from __future__ import annotations

import os

import pytest

from tests.cluster.broker_walk import BrokerWalk
from tests.log.crash_points import Violation

pytestmark = pytest.mark.slices

STEPS = 600


def walked(seeds: range, fault: str = "") -> dict[str, int]:
    counts: dict[str, int] = {}
    for seed in seeds:
        try:
            walk = BrokerWalk(seed, fault)
            walk.run(STEPS)
        except Violation as error:
            raise Violation(f"seed {seed}: {error}") from error
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error!r}") from error
        for what, count in walk.counts.items():
            counts[what] = counts.get(what, 0) + count
    print(counts)
    return counts


@pytest.mark.parametrize("first", range(0, 1000, 250))
def test_clients_of_real_brokers_have_nothing_to_complain_about(first: int) -> None:
    counts = walked(range(first, first + 250))
    assert counts["takeovers"] > 400
    assert counts["confirms"] > 2000
    assert counts["settled"] > 1500
    assert counts["power"] > 500


def test_a_leader_that_confirms_what_only_its_own_disk_has_is_found() -> None:
    """At seed 11, when this was written."""
    with pytest.raises(Violation):
        walked(range(50), "early")


@pytest.mark.soak
def test_clients_of_real_brokers_have_nothing_to_complain_about_for_many_seeds() -> None:
    for first in range(1000, 1000 + int(os.environ.get("WARREN_TEST_CLUSTER_WALKS", "100000")), 1000):
        walked(range(first, first + 1000))
