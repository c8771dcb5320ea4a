"""A deleted queue is gone at once, for everybody and on disk; the log counts what it held some a turn."""

from __future__ import annotations

import pytest

from tests.limits.gate import advance
from tests.rules.test_slices import publish
from warrenmq.broker.services.turn import SLICE
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient

pytestmark = pytest.mark.slices

MANY = SLICE + 2000


def live(core: Core) -> int:
    """Records that the log takes for held by a queue."""
    return sum(int(segment.live) for segment in core.log.segments.values())


def filled(core: Core, taken: bool) -> CoreClient:
    client = core.client()
    client.call("queue.declare", queue="q", durable=True)
    publish(client, "q", range(MANY), delivery_mode=2)
    if taken:
        client.call("basic.consume", queue="q")
        assert len(client.deliveries()) == MANY
    return client


def deleted(core: Core, client: CoreClient) -> list[int]:
    """How many records died in each turn."""
    left = [live(core)]
    client.send("queue.delete", queue="q")
    left.append(live(core))
    while core.broker.services.jobs.busy():
        advance(core, 1)
        left.append(live(core))
        assert len(left) < 100
    return [before - after for before, after in zip(left, left[1:], strict=False)]


@pytest.mark.parametrize("taken", [False, True], ids=["waiting", "with a consumer"])
def test_a_bounded_number_of_messages_is_let_go_a_turn(core: Core, taken: bool) -> None:
    died = deleted(core, filled(core, taken))
    assert sum(died) == MANY and max(died) <= SLICE and len(died) >= 2


def test_those_of_a_transaction_and_of_a_job_under_way_are_among_them(core: Core) -> None:
    client = filled(core, True)
    client.send("basic.nack", delivery_tag=SLICE + 500, multiple=True, requeue=False)
    assert core.broker.services.jobs.busy()
    other = core.client()
    died = deleted(core, other)
    assert sum(died) == MANY - SLICE and max(died) <= SLICE
    assert live(core) == 0
    client = filled(core, True)
    client.call("tx.select")
    client.send("basic.ack", delivery_tag=0, multiple=True)
    died = deleted(core, core.client())
    assert sum(died) == MANY and max(died) <= SLICE


@pytest.mark.parametrize("taken", [False, True], ids=["waiting", "with a consumer"])
def test_a_crash_in_the_middle_finds_nothing_of_the_queue(core: Core, taken: bool) -> None:
    client = filled(core, taken)
    client.send("queue.delete", queue="q")
    assert core.broker.services.jobs.busy()
    core.restart(clean=False)
    assert "messages_without_queue" not in [name for name, _ in core.notes.seen]
    assert live(core) == 0 and not core.broker.vhosts["/"].queues


def test_nothing_is_compacted_in_the_middle_and_the_room_comes_back_behind_it(core: Core) -> None:
    client = filled(core, True)
    client.send("queue.delete", queue="q")
    assert core.broker.services.jobs.busy()
    core.log.flush()
    before = core.log.maintenance.checkpoints
    while core.log.maintain(100):
        pass
    assert core.log.maintenance.checkpoints == before
    while core.broker.services.jobs.busy():
        advance(core, 1)
    core.log.flush()
    assert live(core) == 0
    core.log.maintenance.checkpoint()
    assert core.log.maintenance.checkpoints == before + 1


def test_what_others_hold_of_it_stays(core: Core) -> None:
    client = core.client()
    client.call("exchange.declare", exchange="e", type="fanout", durable=True)
    for name in ("q", "other"):
        client.call("queue.declare", queue=name, durable=True)
        client.call("queue.bind", queue=name, exchange="e")
    publish(client, "other", range(5), delivery_mode=2)
    client.publish("e", "", b"x")
    client.call("basic.consume", queue="q")
    client.call("queue.delete", queue="q")
    core.restart(clean=False)
    assert core.client().get("other") == "0"


def test_a_transient_message_that_a_quorum_queue_keeps_outlives_the_classic_queue_that_had_it_too(core: Core) -> None:
    client = core.client()
    client.call("exchange.declare", exchange="e", type="fanout", durable=True)
    client.call("queue.declare", queue="q", durable=True)
    client.call("queue.declare", queue="kept", durable=True, arguments={"x-queue-type": "quorum"})
    for name in ("q", "kept"):
        client.call("queue.bind", queue=name, exchange="e")
    client.publish("e", "", b"x")
    client.call("basic.consume", queue="q")
    assert live(core) == 1
    client.call("queue.delete", queue="q")
    assert live(core) == 1
    core.restart()
    assert core.queue("kept").ready == 1
