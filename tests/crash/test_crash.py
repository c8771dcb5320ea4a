"""A broker killed with SIGKILL at random moments keeps every promise it gave (docs/guarantees.md)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.crash.campaign import Campaign
from tests.crash.process import planted

SEED = int(os.environ.get("WARREN_SEED", "20260"))


def judged(campaign: Campaign) -> None:
    print("\n" + campaign.summary())
    assert not campaign.ledger.broken, "\n".join([campaign.summary(), *campaign.ledger.broken[:10]])


@pytest.mark.slow
@pytest.mark.timeout(280)
def test_a_broker_that_is_killed_again_and_again_keeps_its_promises(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, SEED)
    campaign.run(kills=15, seconds=45)
    judged(campaign)
    assert campaign.kills >= 3 and campaign.ledger.counts["confirmed"] > 1000, campaign.summary()


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_hundreds_of_kills(tmp_path: Path) -> None:
    seconds = float(os.environ.get("WARREN_SOAK_SECONDS", "3600"))
    campaign = Campaign(tmp_path, SEED + 1)
    campaign.run(kills=1 << 30, seconds=seconds)
    judged(campaign)


#: (what is wrong, file, right line, wrong line, a word of the sentence that must be among the complaints)
WRONG = [
    (
        "publishes are confirmed before they are on disk",
        "broker/publish/outcomes.py",
        "    if outcome == WAITING or outcome == SCHEDULED or outcome == KEPT:\n",
        "    if False:\n",
        "",
    ),
    (
        "acknowledgements are not logged",
        "broker/queue/queue.py",
        "            self.broker.log.settle(self.id, entry.message.address)\n",
        "            pass\n",
        "although its acknowledgement was on disk",
    ),
    (
        "nothing comes back flagged",
        "broker/store.py",
        "or (not clean and position <= delivered_up_to)",
        "",
        "without the redelivered flag",
    ),
    (
        "half of a fanout is not logged",
        "broker/delivering.py",
        "        if queue.logs(message):\n            ids.append(queue.id)\n",
        "        if queue.logs(message) and not ids:\n            ids.append(queue.id)\n",
        "lost",
    ),
    (
        "what is recovered comes back in the wrong order",
        "broker/store.py",
        "            position, index.addresses[i], size,",
        "            position, index.addresses[i ^ 1 if i ^ 1 < len(index) else i], size,",
        "of the same publisher",
    ),
    (
        "a dead letter also stays where it was",
        "broker/queue/queue.py",
        "            self.broker.dead_letters.add(self, entry, reason, True)\n",
        "            self.broker.dead_letters.add(self, entry, reason, True)\n            return\n",
        "dead-letter queue",
    ),
    (
        "a transaction is committed without its acknowledgements",
        "broker/committing.py",
        "                channel.settle(entries)\n",
        "                pass\n",
        "not what it acknowledged",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize("wrong", WRONG, ids=[wrong[0].replace(" ", "-") for wrong in WRONG])
def test_a_planted_fault_is_noticed(tmp_path: Path, wrong: tuple[str, str, str, str, str]) -> None:
    _, file, old, new, complaint = wrong
    campaign = Campaign(tmp_path, SEED, planted(tmp_path, file, old, new))
    campaign.run(kills=10, seconds=60, check_every=1)
    assert any(complaint in sentence for sentence in campaign.ledger.broken), campaign.summary()
