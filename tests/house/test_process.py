"""What `warren serve` does to its own process."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

TURNS = """
import sys
from warrenmq.server.process import keep_room

def turn():
    return [b"%200d" % i for i in range(8000)]  # not quite two MiB of small objects

keep_room()
turn()
sys._debugmallocstats()
for _ in range(20):
    turn()
sys._debugmallocstats()
"""


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="about CPython's allocator")
def test_a_turns_small_objects_find_room_that_python_did_not_give_back() -> None:
    run = subprocess.run([sys.executable, "-c", TURNS], capture_output=True, text=True, check=True, timeout=60)
    counts = re.findall(r"# arenas reclaimed\s*=\s*([\d,]+)", run.stderr)
    before, after = (int(count.replace(",", "")) for count in counts)
    assert after == before
