"""What a watch finds, bucket by bucket: rules without Spark."""

from __future__ import annotations

import random
from typing import Any

import pytest

from warrenmq.journal.columns import CONFIRMED, DELIVERED, GAP, PUBLISHED, QUEUE_DELETED, REQUEUED
from warrenmq.spark.auditing.kinds import CODES

pytest.importorskip("pyspark", reason="PySpark is not installed")

from warrenmq.spark.watching.judging import Bucket, Found, Memory, Rules
from warrenmq.spark.watching.rows import CLOCK, COUNTED, MISSED
from warrenmq.spark.watching.state import COLUMNS

RULES = Rules(confirm=10, ack=10, never=50, taken=3, window=100, share=0.1, least=2, forget=10_000, most=400)
ACKED = CODES["acked"]


def row(kind: int, at: int, record: int = 0, queue: str = "", **more: Any) -> tuple[Any, ...]:
    """As ``rows`` makes them."""
    given = {"seq": at, "kind": kind, "at": at, "record": record, "vhost": "/", "queue": queue, "channel": 1}
    given |= {"number": -1, "taken": -1} | more
    return tuple(given.get(name, "") for name in COLUMNS)


def judged(*batches: list[tuple[Any, ...]], rules: Rules = RULES) -> list[Found]:
    """Each batch by what the last one left, through its octets."""
    octets: bytes | None = None
    found = []
    for batch in batches:
        memory = Memory.load(octets)
        found += Bucket("aa", 0, rules, memory).judge(batch)
        octets = memory.dump()
    return found


def said(found: list[Found]) -> list[tuple[Any, ...]]:
    return [(one["what"], one["state"], one["at"]) for one in found]


def test_what_is_confirmed_in_time_is_no_finding() -> None:
    assert judged([row(PUBLISHED, 100, 1), row(CONFIRMED, 110, 1)], [row(CLOCK, 500)]) == []


def test_what_is_not_confirmed_is_found_once_and_mended_once() -> None:
    waiting, late, over = [row(PUBLISHED, 100, 1, user="shop"), row(CLOCK, 111)], [row(CLOCK, 200)], [row(CLOCK, 900)]
    found = judged(waiting, late, [row(CONFIRMED, 300, 1)], over)
    assert said(found) == [("unconfirmed", "found", 110), ("unconfirmed", "mended", 300)]
    assert found[0]["finding"] == found[1]["finding"] and found[0]["user"] == "shop" and found[0]["record"] == 1


def test_a_confirm_that_came_late_is_told_though_both_came_together() -> None:
    found = judged([row(PUBLISHED, 100, 1), row(CONFIRMED, 150, 1)])
    assert said(found) == [("unconfirmed", "found", 110), ("unconfirmed", "mended", 150)]


@pytest.mark.parametrize("end", [ACKED, REQUEUED, CODES["rejected_gone"], CODES["purged"]])
def test_what_is_delivered_and_not_settled_is_found_until_it_is_over(end: int) -> None:
    found = judged([row(DELIVERED, 100, 1, "q"), row(CLOCK, 120)], [row(end, 130, 1, "q")], [row(CLOCK, 900)])
    assert said(found) == [("unacked", "found", 110), ("unacked", "mended", 130)]


def test_a_message_that_waits_in_two_queues_is_two() -> None:
    found = judged([row(DELIVERED, 1, 1, "a"), row(DELIVERED, 1, 1, "b"), row(ACKED, 5, 1, "a"), row(CLOCK, 30)])
    assert [(one["what"], one["queue"]) for one in found] == [("unacked", "b")]


def test_a_deleted_queue_ends_what_waited_in_it() -> None:
    found = judged([row(DELIVERED, 1, 1, "a"), row(QUEUE_DELETED, 5, 0, "a"), row(CLOCK, 900)])
    assert found == []


def test_a_consumer_that_takes_and_never_acks_is_found_until_it_does() -> None:
    takes = [row(DELIVERED, 100 + n, n, "q", consumer="c") for n in range(3)]
    found = judged(takes, [row(CLOCK, 151)], [row(ACKED, 160, 2, "q")], [row(CLOCK, 900)])
    assert [one["state"] for one in found if one["what"] == "never acks"] == ["found", "mended"]
    again = judged(takes, [row(ACKED, 105, 0, "q"), row(CLOCK, 900)])
    assert not [one for one in again if one["what"] == "never acks"], "it settled one"


def test_a_consumer_that_went_and_gave_all_back_is_no_finding() -> None:
    takes = [row(DELIVERED, 100 + n, n, "q", consumer="c") for n in range(3)]
    back = [row(REQUEUED, 105, n, "q") for n in range(3)]
    assert judged([*takes, *back], [row(CLOCK, 900)]) == []


def test_a_share_that_grows_beyond_what_is_allowed_is_found_until_it_is_well_again() -> None:
    def window(begin: int, told: int, taken: int) -> tuple[Any, ...]:
        return row(COUNTED, begin, exchange="x", number=told, taken=taken)

    found = judged(
        [window(0, 100, 95), window(100, 100, 80), row(CLOCK, 250)],
        [window(200, 50, 30), window(200, 50, 30), row(CLOCK, 301)],
        [window(300, 100, 99), row(CLOCK, 400)],
        [window(400, 3, 2), row(CLOCK, 600)],
    )
    assert said(found) == [("unroutable", "found", 200), ("unroutable", "mended", 400)]
    assert found[0]["count"] == 20 and found[0]["share"] == 0.2 and found[0]["exchange"] == "x"


def test_what_falls_into_a_gap_of_the_journal_is_no_finding() -> None:
    gap = row(GAP, 100, seq=120, number=120)
    assert judged([row(PUBLISHED, 90, 1), gap, row(CLOCK, 900)]) == []
    late = judged([row(PUBLISHED, 90, 1), row(CLOCK, 105)], [gap], [row(CLOCK, 900)])
    assert said(late) == [("unconfirmed", "found", 100), ("unconfirmed", "unknown", 120)]
    assert judged([gap, row(PUBLISHED, 110, 3), row(CLOCK, 900)]) == [], "told though it was in the gap"
    assert said(judged([gap, row(PUBLISHED, 121, 2), row(CLOCK, 900)])) == [("unconfirmed", "found", 131)]


def test_files_that_are_gone_are_told_and_nothing_is_judged_by_them() -> None:
    found = judged([row(PUBLISHED, 90, 1)], [row(MISSED, 95, seq=3 << 32, number=200)], [row(CLOCK, 900)])
    assert said(found) == [("missed", "found", 200)] and "segment 3" in found[0]["says"]


def test_the_memory_is_bounded_and_what_was_cut_is_said() -> None:
    many = [row(PUBLISHED, 100 + n, n + 1) for n in range(150)]
    memory = Memory()
    slow = Rules(confirm=1000, most=400)
    found = Bucket("aa", 0, slow, memory).judge(many)
    assert len(memory.pending) == 100
    assert [(one["what"], one["count"]) for one in found] == [("cut", 50)]
    assert "p1" not in memory.pending and "p150" in memory.pending, "what has waited longest goes first"


def test_a_memory_is_empty_when_all_is_over() -> None:
    memory = Memory()
    takes = [row(DELIVERED, n, n, "q", consumer="c") for n in range(1, 9)]
    over = [row(ACKED, 20, n, "q") for n in range(1, 9)]
    counted = [row(COUNTED, 0, exchange="x", number=9, taken=9)]
    rules = Rules(confirm=10, ack=30, never=50, forget=1000, window=100)
    for batch in ([row(PUBLISHED, 1, 1), *counted, *takes], [row(CONFIRMED, 2, 1), *over], [row(CLOCK, 5000)]):
        Bucket("aa", 0, rules, memory).judge(batch)
    assert not (memory.pending or memory.consumers or memory.proven or memory.exchanges)


@pytest.mark.parametrize("seed", range(20))
def test_findings_do_not_depend_on_how_rows_are_cut_into_batches(seed: int) -> None:
    """But for the time at which a batch ends, no judgement is made by it."""
    dice = random.Random(seed)
    rows = []
    for n in range(1, 120):
        at = n * 3
        rows.append(row(PUBLISHED, at, n))
        if dice.random() < 0.9:
            rows.append(row(CONFIRMED, at + dice.choice([1, 5, 9, 11, 40]), n))
        rows.append(row(DELIVERED, at + 1, n, "q", consumer=f"c{n % 3}"))
        if dice.random() < 0.8 and n % 3:
            rows.append(row(ACKED, at + dice.choice([2, 8, 10, 30]), n, "q"))
    rows.sort(key=lambda one: one[0])
    end = row(CLOCK, 5000)
    whole = judged([*rows, end])
    cuts = sorted(dice.sample(range(len(rows)), 7))
    pieces = [rows[a:b] for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    cut = judged(*pieces, [end])

    def by_name(found: list[Found]) -> list[tuple[str, str]]:
        return sorted((one["finding"], one["state"]) for one in found if one["what"] != "never acks")

    assert by_name(whole) == by_name(cut)
    assert len(set(by_name(cut))) == len(by_name(cut))
