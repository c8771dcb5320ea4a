"""The protocol in its model: no seed of many violates what must hold, and every planted fault is found.

Under ``soak``: ten million seeds (WARREN_TEST_CLUSTER_SEEDS; WARREN_TEST_CLUSTER_FIRST takes a run up
again where it ended).
"""

from __future__ import annotations

import os

import pytest

from warrenmq.cluster.model.faults import FAULTS, HARMLESS
from warrenmq.cluster.model.walk import first_failure, shrunk, told
from warrenmq.cluster.rules import Rules

PIECE = 10_000

#: planted fault -> among how many seeds, from 0 on, it must be found; the first that found it, when this was written
FOUND = {
    "unclean-election": 1000,  # 0
    "same-epoch": 1000,  # 0
    "keep-number": 1000,  # 1
    "own-unsynced": 1000,  # 0
    "early-ack": 1000,  # 1
    "trust-cache": 1000,  # 0
    "by-position": 1000,  # 3
    "watermark": 1000,  # 1
    "forget-epoch": 1000,  # 2
    "ignore-floor": 1000,  # 4
    "early-checkpoint": 1000,  # 18
    "shrink-early": 1000,  # 19
    "grow-late": 2000,  # 5
    "emptied": 2000,  # 21
    "late-sync": 2000,  # 52
    "lost-change-is-done": 2000,  # 86
    "promise-in-doubt": 5000,  # 117
    "two-faced": 5000,  # 120
    "grow-at-commit": 5000,  # 137
    "lost-change-is-refused": 5000,  # 387
    "old-read-refuses-change": 10_000,  # 441
    "stale-epoch": 10_000,  # 795
    "lost-campaign-is-won": 1000,
    "restored-copy": 5000,
    "falling-floor": 60_000,  # 9,740
    "floor-at-campaign": 100_000,  # 18,754
}
EARLY = [name for name, seeds in FOUND.items() if seeds <= 1000]
LATE = [name for name in FOUND if name not in EARLY]


def rules_of(name: str) -> Rules:
    rules = FAULTS[name]
    rules.min_in_sync = 2
    return rules


def none_fails(first: int, end: int, least: int = 1) -> None:
    """In pieces, each of which says where a run may be taken up; a seed that fails is shrunk and told."""
    rules = Rules()
    rules.min_in_sync = least
    for piece in range(first, end, PIECE):
        seed = first_failure(rules, piece, min(piece + PIECE, end))
        if seed >= 0:
            pytest.fail("\n".join([f"seed {seed} fails:", *told(rules, seed, shrunk(rules, seed))]))


@pytest.mark.pure
def test_every_planted_fault_has_its_number_of_seeds() -> None:
    assert set(FOUND) == set(FAULTS)


@pytest.mark.pure
@pytest.mark.parametrize("least", [1, 2])
def test_nothing_committed_is_lost_and_service_comes_back(least: int) -> None:
    none_fails(0, 1000, least)


@pytest.mark.parametrize("least", [1, 2])
def test_nothing_committed_is_lost_in_fifty_thousand_walks(least: int) -> None:
    none_fails(0, 50_000, least)


@pytest.mark.pure
@pytest.mark.parametrize("name", EARLY)
def test_a_planted_fault_is_found_early(name: str) -> None:
    assert first_failure(rules_of(name), 0, FOUND[name]) >= 0


@pytest.mark.parametrize("name", LATE)
def test_a_planted_fault_is_found(name: str) -> None:
    assert first_failure(rules_of(name), 0, FOUND[name]) >= 0


@pytest.mark.parametrize("name", HARMLESS)
def test_a_rule_that_others_make_unnecessary_is_missed_by_nobody(name: str) -> None:
    assert first_failure(HARMLESS[name], 0, 5000) == -1


@pytest.mark.pure
def test_a_failing_seed_is_shrunk_to_what_matters_and_told() -> None:
    rules = rules_of("early-ack")
    seed = first_failure(rules, 0, 1000)
    steps = shrunk(rules, seed)
    lines = told(rules, seed, steps)
    assert len(steps) < 30
    assert len(lines) == len(steps) + 1
    assert "is in sync" in lines[-1] or "lacks" in lines[-1]


@pytest.mark.soak
def test_nothing_committed_is_lost_in_ten_million_walks() -> None:
    first = int(os.environ.get("WARREN_TEST_CLUSTER_FIRST", "100000"))
    for piece in range(first, first + int(os.environ.get("WARREN_TEST_CLUSTER_SEEDS", "10000000")), 10 * PIECE):
        none_fails(piece, piece + 10 * PIECE, 1 + piece // (10 * PIECE) % 2)
        print(f"\nno violation before seed {piece + 10 * PIECE}", end="", flush=True)
