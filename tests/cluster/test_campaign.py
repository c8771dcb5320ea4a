"""Real nodes, each on a machine of its own as far as one machine can have several, with one thing after the other
breaking: clients see nothing that was promised not to happen, and everything comes back by itself.

Under ``soak``: for an hour, or WARREN_SOAK_CLUSTER_SECONDS, from WARREN_SOAK_CLUSTER_SEED on.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cluster.campaign.campaign import Campaign
from tests.cluster.campaign.faults import FAULTS, kill_leader, mute_leader, stalled_disk_of_follower
from tests.cluster.campaign.machines import lacking


def campaign(folder: Path, seed: int, only: list[str]) -> Campaign:
    reason = lacking()
    if reason:
        pytest.skip(f"no campaign: {reason}")
    return Campaign(folder, seed, only)


def test_a_short_campaign_breaks_no_promise(tmp_path: Path) -> None:
    """A kill, a cut one way and a stalled disk."""
    short = campaign(tmp_path, 3, [])
    short.in_turn = [kill_leader, mute_leader, stalled_disk_of_follower]
    found = short.run(3, 600)
    print(short.summary())
    assert found == []
    assert short.kills == 1 and short.epoch > 1


@pytest.mark.soak
def test_a_long_campaign_breaks_no_promise(tmp_path: Path) -> None:
    seed = int(os.environ.get("WARREN_SOAK_CLUSTER_SEED", "1"))
    long = campaign(tmp_path, seed, [])
    found = long.run(1 << 30, float(os.environ.get("WARREN_SOAK_CLUSTER_SECONDS", "3600")))
    print(long.summary())
    assert found == []


@pytest.mark.soak
@pytest.mark.parametrize("fault", [fault.__name__ for fault in FAULTS])
def test_a_cluster_comes_back_from_each_fault(tmp_path: Path, fault: str) -> None:
    one = campaign(tmp_path, 1, [fault])
    found = one.run(3, 600)
    print(one.summary())
    assert found == []
