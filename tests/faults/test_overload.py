"""Publishers that offer ten times what the disk takes: nobody is lied to, starved or run out of memory."""

from __future__ import annotations

import pytest
from bench.overload import run


def judge(seconds: float) -> None:
    found = run(seconds)
    assert found["confirmed"] > 1000 and found["confirmed_but_missing"] == 0, "a confirm was not true"
    assert found["nacked"] == 0
    assert found["confirmed_per_second"] * 1024 < 2 * found["disk_bytes_per_second"], "the disk was no bottleneck"
    assert found["resident_most"] < found["watermark"]
    assert "flow" in found["states"]
    # served all the while; a loaded machine meets these tenfold
    assert found["slow_publishes"] >= seconds
    assert found["slow_confirm_flooded_ms"]["p50"] < 2000
    # and as before, once the flood's last message is confirmed
    assert found["slow_confirm_after_ms"]["p50"] < 200


def test_a_flood_of_ten_times_the_disk_leaves_confirms_true_memory_small_and_a_slow_publisher_served() -> None:
    judge(8.0)


@pytest.mark.soak
def test_the_same_for_a_minute() -> None:
    judge(60.0)
