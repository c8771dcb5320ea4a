"""A very long body that waits on disk is read some a turn, and whoever waits for it gets it whole and in its place."""

from __future__ import annotations

import pytest

from tests.limits.gate import advance
from warrenmq.broker.queue.fifo import LONG
from warrenmq.broker.queue.read_ahead import PARTS
from warrenmq.testing.core import Core

pytestmark = pytest.mark.pure

BODY = b"".join(b"%07d " % number for number in range(LONG // 8 + 500_000))  # some 20 MB
PIECE = 256 << 10  # about what the log keeps of it in one record


def waiting_on_disk(core: Core) -> None:
    client = core.client(persistent=True)
    client.call("queue.declare", queue="q", durable=True)
    client.publish("", "q", BODY)
    client.publish("", "q", b"behind")
    core.restart()


def turns_until_whole(core: Core) -> int:
    turns = 0
    while core.broker.jobs.busy():
        advance(core, 1)
        turns += 1
        assert turns < 100
    return turns


def test_a_long_body_is_read_some_a_turn_and_what_is_behind_it_does_not_overtake_it(core: Core) -> None:
    waiting_on_disk(core)
    client = core.client()
    client.call("basic.consume", queue="q", no_ack=True)
    assert core.broker.jobs.busy() and not client.deliveries()
    assert turns_until_whole(core) >= len(BODY) // (PARTS * PIECE) - 1
    assert [got.body for got in client.deliveries()] == [BODY, b"behind"]


def test_basic_get_waits_for_it(core: Core) -> None:
    waiting_on_disk(core)
    client = core.client()
    client.send("basic.get", queue="q", no_ack=True)
    assert core.broker.jobs.busy() and not client.received
    turns_until_whole(core)
    advance(core, 1)
    (got,) = client.take()
    assert got.body == BODY
    assert client.call("basic.get", queue="q", no_ack=True).body == b"behind"


@pytest.mark.parametrize("end", ["queue.delete", "queue.purge"])
def test_a_queue_that_is_deleted_or_purged_meanwhile_reads_no_more_of_it(core: Core, end: str) -> None:
    waiting_on_disk(core)
    client = core.client()
    client.call("basic.consume", queue="q", no_ack=True)
    assert core.broker.jobs.busy()
    other = core.client()
    other.send(end, queue="q")
    turns_until_whole(core)
    for _ in range(5):
        advance(core, 1)
    assert not core.broker.jobs.busy()
    assert "q" not in core.broker.vhosts["/"].queues or core.queue("q").ready == 0
