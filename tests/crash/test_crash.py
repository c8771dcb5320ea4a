"""A broker killed with SIGKILL at random moments keeps every promise it gave (docs/guarantees.md)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.crash.campaign import Campaign
from tests.crash.faults import FAULTS, Fault

SEED = int(os.environ.get("WARREN_TEST_SEED", "20260"))


def judged(campaign: Campaign) -> None:
    print("\n" + campaign.summary())
    assert not campaign.ledger.broken, "\n".join([campaign.summary(), *campaign.ledger.broken[:10]])


@pytest.mark.slow
@pytest.mark.timeout(280)
def test_a_broker_that_is_killed_again_and_again_keeps_its_promises(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, SEED)
    campaign.run(kills=8, seconds=45)
    judged(campaign)
    assert campaign.kills >= 3 and campaign.ledger.counts["confirmed"] > 1000, campaign.summary()


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_hundreds_of_kills(tmp_path: Path) -> None:
    seconds = float(os.environ.get("WARREN_SOAK_SECONDS", "3600"))
    campaign = Campaign(tmp_path, SEED + 1)
    campaign.run(kills=1 << 30, seconds=seconds)
    judged(campaign)


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.replace(" ", "-"))
def test_a_planted_fault_is_noticed(tmp_path: Path, fault: Fault) -> None:
    campaign = Campaign(tmp_path, SEED, fault)
    campaign.run(kills=10, seconds=60, check_every=1)
    assert any(fault.complaint in sentence for sentence in campaign.ledger.broken), campaign.summary()
