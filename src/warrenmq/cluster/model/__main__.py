"""``python -m warrenmq.cluster.model``: seeds in a row, with the rules as they are or with a planted fault.

It says every so often how far it is, so that a run can be taken up again there with ``--first``; a seed that fails is
shrunk and told step by step.
"""

from __future__ import annotations

import argparse
import sys

from warrenmq.cluster.model.explore import Scope, explore
from warrenmq.cluster.model.faults import FAULTS, HARMLESS
from warrenmq.cluster.model.walk import STEPS, first_failure, shrunk, told
from warrenmq.cluster.rules import Rules

PIECE = 100_000


def main(arguments: list[str]) -> int:
    planted = {**FAULTS, **HARMLESS}
    parser = argparse.ArgumentParser(prog="python -m warrenmq.cluster.model", description=__doc__)
    parser.add_argument("--seeds", type=int, default=PIECE, help="how many seeds")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--steps", type=int, default=STEPS, help="steps of a walk")
    parser.add_argument("--fault", choices=sorted(planted), help="a planted fault")
    parser.add_argument("--least", type=int, default=1, help="min_in_sync")
    parser.add_argument("--scope", help="explore instead: nodes,batches,crashes,campaigns,changes")
    parser.add_argument("--limit", type=int, default=1_000_000, help="states to explore at most")
    options = parser.parse_args(arguments)
    rules = planted[options.fault] if options.fault else Rules()
    rules.min_in_sync = options.least
    if options.scope:
        size, batches, crashes, campaigns, changes = (int(part) for part in options.scope.split(","))
        found = explore(
            rules, Scope(size, batches, crashes, campaigns, changes), options.limit, options.fault is not None
        )
        print(f"{found.states} states{', all there are' if found.whole else ''}")
        print("\n".join([*found.way, found.violation]), end="\n" if found.violation else "")
        return 1 if found.violation else 0
    end = options.first + options.seeds
    for first in range(options.first, end, PIECE):
        seed = first_failure(rules, first, min(first + PIECE, end), options.steps)
        if seed >= 0:
            print(f"seed {seed} fails:", *told(rules, seed, shrunk(rules, seed, options.steps)), sep="\n")
            return 1
        print(f"no violation before seed {min(first + PIECE, end)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
