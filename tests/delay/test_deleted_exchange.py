"""A deleted delayed exchange is gone at once with all that waited there; its data is let go some a turn."""

from __future__ import annotations

import pytest

from tests.delay.test_long_delayed import kept
from tests.limits.gate import advance
from tests.rules.test_drop_slices import live
from warrenmq.broker.services.turn import SLICE
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.wire.content import Properties, content_frames, encode_header
from warrenmq.wire.fields import from_python
from warrenmq.wire.methods import method_frame

pytestmark = pytest.mark.slices

MANY = SLICE + 2000


def filled(core: Core, durable: bool) -> CoreClient:
    client = core.client()
    client.declare("q", durable)
    arguments = {"x-delayed-type": "fanout"}
    client.call("exchange.declare", exchange="later", type="x-delayed-message", durable=durable, arguments=arguments)
    client.call("queue.bind", queue="q", exchange="later")
    header = encode_header(Properties(delivery_mode=2, headers=from_python({"x-delay": 60_000})), 1)
    one = method_frame(1, "basic.publish", exchange="later") + content_frames(1, header, b"x", 131072)
    for _ in range(MANY // 100):
        client.feed(one * 100)
    while core.broker.delay.total() < MANY // 100 * 100:
        advance(core, 1)
    return client


def left(core: Core, durable: bool) -> int:
    return live(core) if durable else kept(core)


@pytest.mark.parametrize("durable", [True, False])
def test_what_waited_is_gone_at_once_and_let_go_a_slice_a_turn(core: Core, durable: bool) -> None:
    client = filled(core, durable)
    counts = [left(core, durable)]
    client.send("exchange.delete", exchange="later")
    assert core.broker.delay.total() == 0 and core.broker.services.jobs.busy()
    counts.append(left(core, durable))
    while core.broker.services.jobs.busy():
        advance(core, 1)
        counts.append(left(core, durable))
    went = [before - after for before, after in zip(counts, counts[1:], strict=False)]
    assert sum(went) == MANY // 100 * 100 and max(went) <= SLICE and counts[-1] == 0
    advance(core, 60_000)
    assert core.ready("q") == 0


def test_a_crash_in_the_middle_finds_nothing_of_it(core: Core) -> None:
    client = filled(core, True)
    client.send("exchange.delete", exchange="later")
    assert core.broker.services.jobs.busy()
    core.restart(clean=False)
    assert live(core) == 0 and core.broker.delay.total() == 0


def test_an_exchange_of_that_name_declared_in_the_middle_is_another_one(core: Core) -> None:
    client = filled(core, False)
    client.send("exchange.delete", exchange="later")
    assert core.broker.services.jobs.busy()
    client.call("exchange.declare", exchange="later", type="x-delayed-message", arguments={"x-delayed-type": "fanout"})
    client.call("queue.bind", queue="q", exchange="later")
    client.publish("later", "", b"new", headers=from_python({"x-delay": 1000}))
    advance(core, 1000)
    assert client.call("basic.get", queue="q", no_ack=True).body == b"new"
    assert kept(core) == 0
