"""A message that goes to a queue at once and to a delayed exchange too: each has its own."""

from __future__ import annotations

import pytest

from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.wire.fields import from_python

pytestmark = pytest.mark.pure


def test_what_is_acknowledged_in_a_queue_still_waits_at_a_delayed_exchange(core: Core, client: CoreClient) -> None:
    client.open()
    client.send("exchange.declare", exchange="both", type="fanout", durable=True)
    delayed = {"x-delayed-type": "fanout"}
    client.send("exchange.declare", exchange="later", type="x-delayed-message", durable=True, arguments=delayed)
    client.send("exchange.bind", destination="later", source="both")
    for queue, exchange in (("now", "both"), ("then", "later")):
        client.declare(queue)
        client.send("queue.bind", queue=queue, exchange=exchange)
    client.publish("both", "", b"twice", delivery_mode=2, headers=from_python({"x-delay": 60_000}))
    core.commit()
    got = client.call("basic.get", queue="now")
    client.send("basic.ack", delivery_tag=got["delivery_tag"])
    core.commit()
    core.restart(clean=False)
    assert (got.body, core.ready("now"), core.ready("then")) == (b"twice", 0, 0)
    core.advance(61_000)
    assert (core.ready("now"), core.ready("then")) == (0, 1)
