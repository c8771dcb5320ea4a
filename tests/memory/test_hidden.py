"""A collection of garbage in ``warren serve`` looks at what came since the last long one, however much there is.

In processes of their own: the collector is one for the whole process. How long a collection takes is planted.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.pure

BEGIN = """
import gc, weakref
from warrenmq.server import garbage

seconds = 0.0
of_one = 2 * garbage.LONG
def cpu():
    global seconds
    seconds += of_one
    return seconds

looked_at = []
def told(phase, about):
    if phase == "start" and about["generation"] == garbage.OLDEST:
        looked_at.append(len(gc.get_objects()))

garbage.settle(told, garbage.Hiding(cpu))

class Ring:
    def __init__(self):
        self.itself = self
"""


def printed(script: str) -> list[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", BEGIN + script], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_no_collection_looks_at_more_than_came_since_the_last_long_one() -> None:
    """A million objects that stay: with Python's own settings the last one would look at nearly all of them."""
    most, last = printed("""
kept = [[] for _ in range(1_500_000)]
print(max(looked_at), gc.get_freeze_count())
""")
    assert int(most) < 500_000
    assert int(last) > 1_000_000


def test_a_short_collection_hides_nothing() -> None:
    before, after, found = printed("""
of_one = garbage.LONG / 2
print(gc.get_freeze_count())
kept = [[] for _ in range(1000)]
ring = weakref.ref(Ring())
gc.collect()
print(gc.get_freeze_count(), ring() is None)
""")
    assert int(after) <= int(before)
    assert found == "True"


def test_what_was_hidden_and_became_garbage_is_found_after_some_times() -> None:
    hidden, found = printed("""
ring = Ring()
gone = weakref.ref(ring)
gc.collect()
del ring
gc.collect()
print(gone() is None)
for _ in range(garbage.REVIEW + 2):
    gc.collect()
print(gone() is None)
""")
    assert (hidden, found) == ("False", "True")


def test_queues_exchanges_and_connections_that_come_and_go_leave_nothing_hidden() -> None:
    """All of them are hidden while they are there."""
    counts = printed("""
import tempfile, pathlib
from tests.limits.gate import advance
from tests.memory.test_deleted import living
from warrenmq.testing.core import Core

with tempfile.TemporaryDirectory() as folder, Core(pathlib.Path(folder)) as core:
    for _ in range(5):
        client = core.client()
        client.call("exchange.declare", exchange="e", type="topic")
        for number in range(50):
            kind = "quorum" if number % 2 else "classic"
            client.declare(str(number), durable=True, arguments={"x-queue-type": kind})
            client.call("queue.bind", queue=str(number), exchange="e", routing_key=f"k.{number}")
            client.fill(str(number), "a", "b")
            client.consume(str(number), tag=str(number), prefetch=1)
        gc.collect()
        assert len(gc.get_objects()) < 1000
        for number in range(50):
            client.call("queue.delete", queue=str(number))
        client.call("exchange.delete", exchange="e")
        core.broker.begin_turn()
        client.connection.lost("gone")
        core.end_turn()
        del client
        core.settle()
        core.commit()
        for _ in range(3):
            advance(core, 1000)
            core.commit()
        gc.unfreeze()
        print(sum(living().values()))
        gc.freeze()
""")
    assert len(set(counts[1:])) == 1, counts
