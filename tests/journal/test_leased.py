"""The journal tells which messages went under which lease, and how they came back from it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyarrow.parquet")

from tests.broker.test_leases import PERSISTENT, Queue
from tests.log.test_told_events import events
from tests.log.test_vanishing import the_files_say_the_same
from warrenmq.client import Properties as Basic
from warrenmq.testing import Broker


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(clock="virtual", data_dir=str(tmp_path / "data")) as broker:
        yield broker


def publish(q: Queue, *ids: str, mode: int = 2) -> None:
    for id in ids:
        q.publish("body", properties=Basic(delivery_mode=mode, message_id=id))


def lives(broker: Broker, folder: Path, *ids: str) -> list[list[tuple[str, str | None]]]:
    """Of each what is told beyond its publish, with the lease that is named."""
    broker.stop()
    the_files_say_the_same(folder)
    begin = ("published", "enqueued", "confirmed")
    told = [events(str(folder / "data"), "--message-id", id) for id in ids]
    return [[(row["event"], row.get("consumer")) for row in rows if row["event"] not in begin] for rows in told]


@pytest.mark.parametrize("mode", [2, 1])
def test_every_end_of_a_lease_is_told(broker: Broker, tmp_path: Path, mode: int) -> None:
    q = Queue(broker, durable=mode == 2)
    q.http.put(f"{broker.http_url}/api/policies/%2F/told", json={"pattern": "", "definition": {"journal": "all"}})
    publish(q, "settled", "given back", "released", "rejected", mode=mode)
    lease = q.lease(count=4, owner="spark")["id"]
    assert len(q.read(lease, 4)) == 4
    q.post(lease, "ack", first=0, last=0)
    q.post(lease, "nack", first=1, last=1)
    q.post(lease, "nack", first=3, last=3, requeue=False)
    q.http.delete(f"/leases/{lease}")
    found = lives(broker, tmp_path, "settled", "given back", "released", "rejected")
    end = [] if mode == 2 else [("forgotten", None)]
    assert found == [
        [("leased", lease), ("lease_settled", None)],
        [("leased", lease), ("lease_requeued", lease), ("requeued", None), *end],
        [("leased", lease), ("lease_released", lease), ("requeued", None), *end],
        [("leased", lease), ("rejected_gone", None)],
    ]
    (leased,) = [row for row in events(str(tmp_path / "data"), "--message-id", "settled") if row["event"] == "leased"]
    assert (leased["user"], leased["vhost"], leased["queue"], leased["position"]) == ("spark", "/", "q", 1)


def test_a_lease_that_ran_out_is_told_so_also_after_a_restart(broker: Broker, tmp_path: Path) -> None:
    q = Queue(broker)
    publish(q, "before", "behind")
    first = q.lease(count=1, ttl_ms=60_000)["id"]
    second = q.lease(count=1, ttl_ms=120_000)["id"]
    broker.advance(61)
    broker.restart()
    broker.advance(61)
    assert lives(broker, tmp_path, "before", "behind") == [
        [("leased", first), ("lease_expired", first), ("requeued", None)],
        [("leased", second), ("lease_expired", second), ("requeued", None)],
    ]


def test_a_quorum_queue_tells_once_that_a_message_came_back(broker: Broker, tmp_path: Path) -> None:
    q = Queue(broker, **{"x-queue-type": "quorum"})  # type: ignore[arg-type]
    publish(q, "given back")
    lease = q.lease(count=1)["id"]
    q.post(lease, "nack")
    assert lives(broker, tmp_path, "given back") == [
        [("leased", lease), ("lease_requeued", lease), ("requeued", None)],
    ]


def test_to_read_a_lease_is_no_delivery(broker: Broker, tmp_path: Path) -> None:
    q = Queue(broker)
    q.publish("body", properties=PERSISTENT)
    lease = q.lease(count=1)["id"]
    for _ in range(2):
        q.read(lease, 1)
    broker.stop()
    assert "delivered" not in {row["event"] for row in events(str(tmp_path / "data"))}
