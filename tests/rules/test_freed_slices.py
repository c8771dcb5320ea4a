"""What very many messages leave in memory when they are done with is freed some a turn, not all of it at the end."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from tests.limits.gate import advance
from tests.rules.test_slices import publish
from warrenmq.broker.channel.transaction import BufferedAck
from warrenmq.broker.publish.publishing import Uncommitted
from warrenmq.broker.queue.queue import Entry
from warrenmq.broker.services.turn import SLICE
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.wire.methods import method_frame

# Compiled, entries and uncommitted publishes are not known to the collector, so they can be counted only uncompiled.
pytestmark = [pytest.mark.pure, pytest.mark.uncompiled]

MANY = SLICE + 1000
FEW_MORE = 10  # that locals of a test or of a frame on the stack may keep


@pytest.fixture(autouse=True, scope="module")
def looks_at_new_objects_only() -> Iterator[None]:
    """What other tests have left is neither counted nor collected: it takes long."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def no_collection() -> Iterator[None]:
    """So that nothing is freed but by those who let it go."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def living(kind: type) -> int:
    return sum(1 for thing in gc.get_objects() if type(thing) is kind)


def freed_by_turn(core: Core, kind: type, before: int) -> list[int]:
    """How many of these went in each turn until enough have; the last ``send`` was the first."""
    counts = [before, living(kind)]
    while counts[-1] > before - MANY:
        advance(core, 1)
        counts.append(living(kind))
        assert len(counts) < 50
    return [earlier - later for earlier, later in zip(counts, counts[1:], strict=False)]


def holding(core: Core, transaction: bool = False) -> CoreClient:
    client = core.client()
    client.call("queue.declare", queue="q")
    publish(client, "q", range(MANY))
    client.call("basic.consume", queue="q", consumer_tag="c")
    client.take()
    client.call("basic.cancel", consumer_tag="c")
    assert core.queue("q").unacked == MANY
    if transaction:
        client.call("tx.select")
    return client


def finish(client: CoreClient, end: str) -> None:
    if end == "channel.close":
        client.send(end, reply_code=200, reply_text="", class_id=0, method_id=0)
    else:
        client.send(end)


@pytest.mark.parametrize("transaction", [False, True], ids=["at once", "in a transaction"])
@pytest.mark.parametrize("method", ["basic.ack", "basic.nack"])
def test_settled_messages_are_freed_a_slice_a_turn(core: Core, method: str, transaction: bool) -> None:
    client = holding(core, transaction)
    before = living(Entry)
    client.send(method, delivery_tag=0, multiple=True, **({"requeue": False} if method == "basic.nack" else {}))
    if transaction:
        client.send("tx.commit")
    freed = freed_by_turn(core, Entry, before)
    assert sum(freed) >= MANY and max(freed) <= SLICE + FEW_MORE


def test_messages_that_go_back_to_a_queue_that_is_gone_are_freed_a_slice_a_turn(core: Core) -> None:
    client = holding(core)
    core.client().call("queue.delete", queue="q")
    for _ in range(10):
        advance(core, 1)
    before = living(Entry)
    client.send("basic.nack", delivery_tag=0, multiple=True, requeue=True)
    freed = freed_by_turn(core, Entry, before)
    assert sum(freed) >= MANY and max(freed) <= SLICE + FEW_MORE


def test_single_acks_of_a_transaction_are_one_object_and_freed_a_slice_a_turn(core: Core) -> None:
    client = holding(core, transaction=True)
    client.feed(b"".join(method_frame(1, "basic.ack", delivery_tag=tag) for tag in range(1, MANY + 1)))
    assert living(BufferedAck) < FEW_MORE
    before = living(Entry)
    assert before >= MANY
    finish(client, "tx.commit")
    freed = freed_by_turn(core, Entry, before)
    assert sum(freed) >= MANY and max(freed) <= SLICE + FEW_MORE


@pytest.mark.parametrize("end", ["tx.commit", "tx.rollback", "channel.close"])
def test_publishes_of_a_transaction_are_freed_a_slice_a_turn(core: Core, end: str) -> None:
    client = core.client()
    client.call("queue.declare", queue="q")
    client.call("tx.select")
    publish(client, "q", range(MANY))
    before = living(Uncommitted)
    assert before >= MANY
    finish(client, end)
    freed = freed_by_turn(core, Uncommitted, before)
    assert sum(freed) >= MANY and max(freed) <= SLICE + FEW_MORE


def test_publishes_of_a_transaction_that_a_queue_refuses_are_freed_a_slice_a_turn(core: Core) -> None:
    client = core.client()
    client.call("queue.declare", queue="q")
    client.call("queue.declare", queue="full", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    client.call("tx.select")
    publish(client, "full", range(1))
    publish(client, "q", range(MANY))
    before = living(Uncommitted)
    client.send("tx.commit")
    freed = freed_by_turn(core, Uncommitted, before)
    assert sum(freed) >= MANY and max(freed) <= SLICE + FEW_MORE
