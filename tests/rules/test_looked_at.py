"""Nobody looks at each of very many deliveries in one go: neither when they are taken, nor to find out whose they are.

Counted is how often one line runs within one call of a function: a loop over all of them shows, wherever it stands.
"""

from __future__ import annotations

import dis
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

import pytest

from tests.limits.gate import advance
from tests.rules.test_slices import publish
from warrenmq.broker.services.turn import SLICE
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient

# Compiled code tells no debugger which line runs.
pytestmark = [pytest.mark.pure, pytest.mark.uncompiled]

MANY = SLICE + 200
TWO_SLICES = 2 * SLICE + 200
LOOKED_INTO = ("broker/channel/", "broker/connection/", "broker/queue/classic.py", "broker/queue/quorum.py")


def repeats_a_line(code: CodeType) -> bool:
    return any("JUMP_BACKWARD" in instruction.opname for instruction in dis.get_instructions(code))


@contextmanager
def repeats() -> Iterator[Counter[str]]:
    """How often each line ran at most in one call."""
    most: Counter[str] = Counter()
    repeating: dict[CodeType, bool] = {}

    def look_into(frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        code = frame.f_code
        if event != "call":
            return None
        if code not in repeating:
            repeating[code] = any(part in code.co_filename for part in LOOKED_INTO) and repeats_a_line(code)
        if not repeating[code]:
            return None
        ran: Counter[int] = Counter()

        def line(frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
            if event == "line":
                ran[frame.f_lineno] += 1
            elif event == "return" and ran:
                number, times = ran.most_common(1)[0]
                if times > 100:
                    named = f"{code.co_filename.split('/warrenmq/')[1]}:{number} {code.co_name}"
                    most[named] = max(most[named], times)
            return line

        return line

    before = sys.gettrace()
    sys.settrace(look_into)
    try:
        yield most
    finally:
        sys.settrace(before)


def holding(core: Core, queue_type: str, transaction: bool = False) -> CoreClient:
    """A client with more than a slice of unacknowledged deliveries of one queue."""
    client = core.client()
    client.call("queue.declare", queue="q", durable=True, arguments={"x-queue-type": queue_type})
    publish(client, "q", range(MANY))
    client.call("basic.qos", prefetch_count=60_000)  # else a consumer of a quorum queue gets 2,000
    client.call("basic.consume", queue="q", consumer_tag="c")
    client.take()
    client.call("basic.cancel", consumer_tag="c")
    assert core.queue("q").unacked == MANY
    if transaction:
        client.call("tx.select")
    return client


def shared(core: Core, queue_type: str) -> CoreClient:
    """A client with more than two slices of unacknowledged deliveries, which three consumers got in turn."""
    client = core.client()
    client.call("queue.declare", queue="q", durable=True, arguments={"x-queue-type": queue_type})
    publish(client, "q", range(TWO_SLICES))
    client.call("basic.qos", prefetch_count=60_000)
    for tag in ("a", "b", "c"):
        client.call("basic.consume", queue="q", consumer_tag=tag)
    client.take()
    assert core.queue("q").unacked == TWO_SLICES
    return client


def sorted_at_most(ran: Counter[str]) -> int:
    """How many were looked at in one go; not counted is the copying of their tags, some nanoseconds for each."""
    return max(times for name, times in ran.items() if not name.endswith("take_tagged_up_to"))


def until_all_are_back(core: Core) -> None:
    for _ in range(50):
        if core.queue("q").ready == MANY:
            return
        advance(core, 1)
    raise AssertionError(f"{core.queue('q').ready} of {MANY} are back")


@pytest.mark.parametrize("queue_type", ["classic", "quorum"])
def test_a_channel_that_ends_looks_at_a_slice_of_what_it_held(core: Core, queue_type: str) -> None:
    client = holding(core, queue_type)
    with repeats() as ran:
        client.send("channel.close", reply_code=200, reply_text="", class_id=0, method_id=0)
        until_all_are_back(core)
    assert max(ran.values()) <= SLICE + 1, ran.most_common(3)


def test_consumers_of_a_quorum_queue_whose_channel_ends_are_told_apart_some_at_a_time(core: Core) -> None:
    client = shared(core, "quorum")
    with repeats() as ran:
        client.send("channel.close", reply_code=200, reply_text="", class_id=0, method_id=0)
        for _ in range(50):
            advance(core, 1)
    assert core.queue("q").ready == TWO_SLICES
    assert sorted_at_most(ran) <= 2 * SLICE + 1, ran.most_common(3)


def test_a_client_that_rejects_what_several_consumers_got_is_sorted_some_at_a_time(core: Core) -> None:
    client = shared(core, "classic")
    with repeats() as ran:
        client.send("basic.nack", delivery_tag=0, multiple=True, requeue=False)
        for _ in range(50):
            advance(core, 1)
    assert core.queue("q").unacked == core.queue("q").ready == 0
    assert sorted_at_most(ran) <= 2 * SLICE + 1, ran.most_common(3)


@pytest.mark.parametrize("method", ["basic.nack", "basic.recover"])
def test_a_client_that_gives_back_everything_makes_nobody_look_at_more_than_a_slice(core: Core, method: str) -> None:
    client = holding(core, "classic")
    with repeats() as ran:
        if method == "basic.nack":
            client.send(method, delivery_tag=0, multiple=True, requeue=True)
        else:
            client.send(method, requeue=True)
        until_all_are_back(core)
    assert max(ran.values()) <= SLICE + 1, ran.most_common(3)


def test_a_client_that_rejects_everything_makes_nobody_look_at_more_than_a_slice(core: Core) -> None:
    client = holding(core, "classic")
    with repeats() as ran:
        client.send("basic.nack", delivery_tag=0, multiple=True, requeue=False)
        for _ in range(50):
            advance(core, 1)
    assert core.queue("q").unacked == 0
    assert max(ran.values()) <= SLICE + 1, ran.most_common(3)


def test_a_commit_that_gives_back_everything_looks_at_a_slice_at_a_time(core: Core) -> None:
    client = holding(core, "classic", transaction=True)
    client.send("basic.nack", delivery_tag=0, multiple=True, requeue=True)
    with repeats() as ran:
        client.send("tx.commit")
        until_all_are_back(core)
    assert max(ran.values()) <= SLICE + 1, ran.most_common(3)
