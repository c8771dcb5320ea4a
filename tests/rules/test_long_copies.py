"""The firehose's copy of a very long message goes to the log some a turn, and copies arrive in order."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.test_long_bodies import BODY, MIB
from tests.rules.test_long_letters import Traffic, traffic_by_turn
from warrenmq.broker.delivering.firehose import AT_ONCE
from warrenmq.testing.core import Core

pytestmark = pytest.mark.slices

MOST = AT_ONCE + 2 * MIB


@pytest.mark.parametrize("gone", [False, True], ids=["stays", "deleted meanwhile"])
@pytest.mark.parametrize("kind", ["quorum", "stream"])
def test_a_copy_for_a_queue_that_logs_it_is_logged_some_a_turn(tmp_path: Path, kind: str, gone: bool) -> None:
    files = Traffic()
    core = Core(tmp_path, files)
    client = core.client()
    client.declare("q", False)
    client.declare("copies", True, {"x-queue-type": kind})
    client.call("queue.bind", queue="copies", exchange="amq.rabbitmq.trace", routing_key="publish.#")
    core.broker.vhosts["/"].set_tracing(True)
    files.take()
    client.publish("", "q", BODY)
    client.publish("", "q", b"behind")
    assert client.get("q", no_ack=True) == BODY.decode()  # nobody waits for the copy
    if gone:
        client.call("queue.delete", queue="copies")
    written = [octets for _, octets in traffic_by_turn(core, files)]
    assert max(written) < MOST
    if gone:
        assert sum(written) < len(BODY) + MOST
        assert not core.broker.services.jobs.busy()
        return
    assert sum(written) > len(BODY)
    core.broker.vhosts["/"].set_tracing(False)
    reader = core.client()
    reader.call("basic.qos", prefetch_count=10)
    reader.send("basic.consume", queue="copies", arguments={"x-stream-offset": "first"} if kind == "stream" else {})
    traffic_by_turn(core, files)
    assert [got.body for got in reader.deliveries()] == [BODY, b"behind"]
