"""What the disk did not take, and nobody held any more, is in the journal with all that it was but its body."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow")

import pyarrow.parquet as pq

from tests.log.test_tools import warren
from warrenmq.journal.export import export
from warrenmq.journal.lookup import answer
from warrenmq.log.levels import is_sampled
from warrenmq.log.outage import MOST_HEADS
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.testing.faults import FaultyDisk
from warrenmq.wire.fields import from_python

pytestmark = pytest.mark.pure

WHY = "the disk could not take it"


@pytest.fixture
def core(tmp_path: Path) -> Core:
    return Core(tmp_path / "data", files=FaultyDisk(), held=True)


@pytest.fixture
def client(core: Core) -> CoreClient:
    client = core.client(persistent=True)
    client.declare("q")
    client.declare("other")
    core.commit()
    client.open(2, "confirm.select")
    client.take()
    return client


def fail(core: Core) -> None:
    assert isinstance(core.files, FaultyDisk)
    core.files.fail("sync")


def repair(core: Core) -> None:
    assert isinstance(core.files, FaultyDisk)
    core.files.repair()
    core.retry()


def rows(core: Core, target: str = "tables") -> list[dict[str, Any]]:
    core.turn()
    assert core.log.flush()
    journal = core.folder.parent / target
    export(core.folder, journal)
    return pq.read_table(journal).to_pylist()  # type: ignore[no-any-return]


def life(core: Core, **question: object) -> dict[str, Any]:
    [found] = [part["life"] for part in answer(core.folder.parent / "tables", question) if "life" in part]
    assert isinstance(found, dict)
    return found


def test_it_is_found_by_what_it_was(core: Core, client: CoreClient) -> None:
    fail(core)
    client.publish(
        "",
        "q",
        b"0123456789",
        channel=2,
        message_id="order-4711",
        correlation_id="c",
        headers=from_python({"customer": "seven"}),
    )
    core.commit()
    assert client.story() == ["nack 1+"]
    repair(core)
    rows(core)
    for question in ({"message_id": "order-4711"}, {"correlation_id": "c"}, {"header": "customer", "value": "seven"}):
        found = life(core, **question)
        assert [event["event"] for event in found["events"]] == ["published", "withdrawn", "nacked"]
        assert found["size"] == 10 and found["exchange"] == "" and found["routing_keys"] == ["q"]
        assert found["properties"]["headers"] == {"customer": "seven"}
        assert found["events"][-1]["text"] == WHY
        [place] = found["places"]
        assert (place["queue"], place["state"], place["cause"]) == ("q", "gone", "withdrawn")
    core.restart(clean=False)
    assert core.ready("q") == 0


def test_also_a_long_one_and_one_for_several_queues_and_one_that_failed_twice(core: Core, client: CoreClient) -> None:
    client.send("queue.bind", 1, queue="q", exchange="amq.fanout", routing_key="")
    client.send("queue.bind", 1, queue="other", exchange="amq.fanout", routing_key="")
    core.commit()
    client.take()
    fail(core)
    client.publish("", "q", bytes(600_000), channel=2, message_id="long")
    client.publish("amq.fanout", "k", b"xy", channel=2, message_id="both")
    core.commit()
    core.retry()  # in vain
    repair(core)
    told = rows(core)
    assert {row["message_id"]: row["size"] for row in told if row["event"] == "published"} == {
        "long": 600_000,
        "both": 2,
    }
    assert {place["queue"] for place in life(core, message_id="both")["places"]} == {"q", "other"}
    core.stop()
    code, said = warren("verify", str(core.folder))
    assert code == 0, said
    code, said = warren("salvage", str(core.folder), str(core.folder.parent / "new"))
    assert code == 0, said


def test_what_a_consumer_has_stays_whole_beside_it(core: Core, client: CoreClient) -> None:
    client.send("basic.consume", 1, queue="other", no_ack=False)
    fail(core)
    client.publish("", "q", b"gone", channel=2, message_id="gone")
    client.publish("", "other", b"seen", channel=2, message_id="seen")
    core.commit()
    repair(core)
    rows(core)
    assert life(core, message_id="gone")["places"][0]["cause"] == "withdrawn"
    assert life(core, message_id="seen")["state"] == "held"
    core.restart(clean=False)
    assert core.ready("other") == 1


def test_at_the_level_off_nothing_is_told_of_it(core: Core, client: CoreClient) -> None:
    core.policy("^q$", journal="off")
    core.commit()
    fail(core)
    client.publish("", "q", b"x", channel=2, message_id="secret")
    client.publish("", "other", b"x", channel=2, message_id="told")
    core.commit()
    repair(core)
    told = rows(core)
    assert [row["message_id"] for row in told if row["event"] == "published"] == ["told"]
    assert b"secret" not in b"".join(path.read_bytes() for path in core.folder.glob("segment-*"))
    assert [row["number"] for row in told if row["event"] == "left out"] == [2], "its publish and its end"


def test_of_a_sample_it_is_told_as_any_other(core: Core, client: CoreClient) -> None:
    core.policy("^q$", journal="outcomes", journal_sample=3)
    core.commit()
    fail(core)
    for n in range(12):
        client.publish("", "q", b"x", channel=2, message_id=f"m{n}")
    core.commit()
    repair(core)
    told = rows(core)
    ids = [row["id"] for row in told if row["event"] == "published"]
    assert 0 < len(ids) < 12 and all(is_sampled(id, 3) for id in ids)
    assert all(row["message_id"] for row in told if row["event"] == "published")
    assert len([row for row in told if row["event"] == "withdrawn"]) == len(ids)


def test_with_bodies_it_says_why_there_is_none(core: Core, client: CoreClient) -> None:
    core.policy("^q$", journal="all+bodies")
    core.commit()
    client.publish("", "q", b"", channel=2, message_id="empty")
    core.commit()
    fail(core)
    client.publish("", "q", b"x", channel=2, message_id="gone")
    core.commit()
    repair(core)
    found = {row["message_id"]: (row["body"], row["text"]) for row in rows(core) if row["event"] == "published"}
    assert found == {"empty": (b"", None), "gone": (None, "body left out: the disk did not take it")}


def test_a_full_disk_is_not_filled_with_what_they_were(core: Core, client: CoreClient) -> None:
    fail(core)
    much = "x" * 100_000
    for n in range(2 * MOST_HEADS // len(much)):
        client.publish("", "q", b"x", channel=2, message_id=f"m{n}", headers=from_python({"much": much}))
    core.commit()
    core.retry()  # in vain: what came while the first one was written is kept as it is, too
    kept = core.log.commits.outage.retained
    assert MOST_HEADS // 2 < sum(sealed.size() for sealed in kept) < MOST_HEADS + 10_000
    repair(core)
    told = [row for row in rows(core) if row["event"] == "published"]
    assert len(told) == 2 * MOST_HEADS // len(much)
    assert {row["message_id"] is None for row in told} == {True, False}
    assert all(row["id"] for row in told)
