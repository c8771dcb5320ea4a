"""Publishers that offer ten times what the disk takes: nobody is lied to, starved or run out of memory."""

from __future__ import annotations

from typing import Any

import pytest
from bench.overload import run


def judge(found: dict[str, Any]) -> None:
    """What holds on any machine, however busy."""
    assert found["confirmed"] > 0 and found["confirmed_but_missing"] == 0, "a confirm was not true"
    assert found["nacked"] == 0
    assert found["slow_publishes"] > 0, "the slow publisher was not served"


def measure(found: dict[str, Any], seconds: float) -> None:
    """What a machine of its own shows besides."""
    assert found["confirmed"] > 1000
    assert found["confirmed_per_second"] * 1024 < 2 * found["disk_bytes_per_second"], "the disk was no bottleneck"
    assert found["resident_most"] < found["watermark"]
    assert "flow" in found["states"]
    # served all the while; a loaded machine meets these tenfold
    assert found["slow_publishes"] >= seconds
    assert found["slow_confirm_flooded_ms"]["p50"] < 2000
    # and as before, once the flood's last message is confirmed
    assert found["slow_confirm_after_ms"]["p50"] < 200


def test_a_flood_of_ten_times_the_disk_leaves_confirms_true_and_a_slow_publisher_served() -> None:
    judge(run(4.0))


@pytest.mark.soak
def test_the_same_for_a_minute_with_memory_small_and_confirms_quick() -> None:
    found = run(60.0)
    judge(found)
    measure(found, 60.0)
