"""What `warren serve` does to its own process."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from warrenmq.broker.services.tally import Tally
from warrenmq.server import process
from warrenmq.server.background import Background

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

BODIES = """
import ctypes
from warrenmq.server.process import settle_malloc

end = ctypes.CDLL("libc.so.6").sbrk
end.restype = ctypes.c_void_p
count = 8 * 320
ends = [0] * (2 * count // 64)  # lists that would grow meanwhile would lie behind the pieces, and keep them there
pieces = [b""] * count
if settle_malloc():
    for half in range(2):  # 320 MiB, freed some at a time as long bodies are
        for number in range(count):
            pieces[number] = bytes(128 << 10)
        for some in range(count // 64):
            for number in range(count - 64 * (some + 1), count - 64 * some):
                pieces[number] = b""
            ends[half * count // 64 + some] = end(0)
    print(*ends)
"""

LET_GO = """
import decimal, json, sqlite3, ssl, zlib
from warrenmq.server.process import let_go_of_code

def octets():
    with open("/proc/self/status") as status:
        (line,) = [line for line in status if line.startswith("RssFile")]
    return int(line.split()[1])

json.dumps(ssl.OPENSSL_VERSION + str(zlib.crc32(b"")) + sqlite3.sqlite_version)
before = octets()
let_go_of_code()
after = octets()
print(before, after, json.loads(json.dumps(float(decimal.Decimal("1.5")))))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="about glibc's malloc")
def test_very_much_memory_is_given_back_some_at_a_time() -> None:
    run = subprocess.run([sys.executable, "-c", BODIES], capture_output=True, text=True, check=True, timeout=60)
    ends = [int(end) for end in run.stdout.split()]
    if not ends:
        pytest.skip("another C library")
    given_back = [before - after for before, after in pairwise(ends) if after < before]
    assert sum(given_back) > 320 << 20 and max(given_back) <= 80 << 20  # some ten milliseconds each, at most


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="about CPython's allocator")
def test_a_turns_small_objects_find_room_that_python_did_not_give_back() -> None:
    run = subprocess.run([sys.executable, "-c", TURNS], capture_output=True, text=True, check=True, timeout=60)
    counts = re.findall(r"# arenas reclaimed\s*=\s*([\d,]+)", run.stderr)
    before, after = (int(count.replace(",", "")) for count in counts)
    assert after == before


def test_room_is_kept_once_messages_come_in_numbers_and_not_before(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[int] = []
    waiting: list[Callable[[], object]] = []
    tally = Tally()
    monkeypatch.setattr(process, "keep_room", lambda: kept.append(int(tally.published)))

    class Later(Background):
        def __init__(self) -> None:
            pass

        def later(self, seconds: float, what: str, work: Callable[[], object]) -> Any:  # noqa: ARG002
            waiting.append(work)

    process.keep_room_when_busy(Later(), tally)
    for published in (0, 9_999, 10_000):
        tally.published = published
        waiting.pop()()
    assert kept == [10_000] and not waiting


@pytest.mark.skipif(sys.platform != "linux", reason="Linux maps files so")
def test_code_that_was_let_go_runs_again() -> None:
    """And less of it is in memory than before."""
    run = subprocess.run([sys.executable, "-c", LET_GO], capture_output=True, text=True, check=True, timeout=60)
    before, after, answer = run.stdout.split()
    assert int(after) < int(before) and answer == "1.5"
