"""`python -m tests.cluster.campaign --seconds 3600 --seed 1`: break a cluster for so long, and judge what clients saw.

`--only kill_leader,kill_all` draws from these faults alone, `--rounds 20` ends after so many, `--keep` leaves the
folder. Exit status 1, and what was wrong, when a promise was broken or the cluster did not come back by itself.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.cluster.campaign.campaign import Campaign
from tests.cluster.campaign.faults import FAULTS
from tests.cluster.campaign.machines import lacking


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.campaign", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--rounds", type=int, default=1 << 30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="comma separated: " + ", ".join(one.__name__ for one in FAULTS))
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    reason = lacking()
    if reason:
        print(f"no campaign: {reason}")
        return 2
    folder = options.folder or Path(tempfile.mkdtemp(prefix="warren-campaign-"))
    only = [name for name in options.only.split(",") if name]
    campaign = Campaign(folder, options.seed, only)
    found = campaign.run(options.rounds, options.seconds)
    print(campaign.summary())
    for line in found[:40]:
        print(f"BROKEN: {line}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
