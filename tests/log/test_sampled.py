"""Of the messages that durable queues hold 1 in so many is told, wholly, and of the others nothing but how much."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

pytest.importorskip("pyarrow.parquet")

from tests.broker.test_leases import Queue
from tests.http.conftest import Api
from tests.log.test_journal_files import rows_of
from tests.log.test_journal_writer import Busy, Died, dying
from tests.log.test_levels import House, house
from tests.log.test_told_events import events
from tests.log.test_vanishing import the_files_say_the_same
from tests.support import web
from warrenmq.client import Properties as Basic
from warrenmq.journal.export import end_of
from warrenmq.journal.writer import Writer
from warrenmq.log.events import Named
from warrenmq.log.levels import OUTCOMES, is_sampled
from warrenmq.testing import Broker

__all__ = ["house"]  # a fixture

Rows = list[dict[str, Any]]
MESSAGES = 60


def lives(rows: Rows) -> dict[int, list[str]]:
    """What is told of each message, by its id."""
    found: dict[int, list[str]] = {}
    for row in rows:
        if "message" in row:
            found.setdefault(row["id"] if "id" in row else row["message"], []).append(row["event"])
    return found


def left_out(rows: Rows) -> int:
    (row,) = [row for row in rows if row["event"] == "left out"]
    assert row["time"] <= row["until"]
    return int(row["number"])


def read_all(channel: BlockingChannel) -> None:
    channel.basic_qos(prefetch_count=MESSAGES)
    got = channel.consume("s", arguments={"x-stream-offset": "first"})
    for _ in range(MESSAGES):
        next(got)
    channel.cancel()


def publish_many(house: House, queue: str) -> None:
    house.channel.confirm_delivery()
    for n in range(MESSAGES):
        house.publish(str(n), queue, mode=2)


@pytest.mark.parametrize("by", ["policy", "vhost"])
@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_a_durable_message_is_told_from_its_publish_to_its_end_or_not_at_all(house: House, by: str, kind: str) -> None:
    if by == "policy":
        house.policy("q", journal_sample=4)
    else:
        house.level(journal_sample=4)
    house.channel.queue_declare("q", durable=True, arguments={"x-queue-type": kind})
    publish_many(house, "q")
    house.channel.basic_nack(house.get("q"), requeue=True)
    for _ in range(MESSAGES):
        house.channel.basic_ack(house.get("q"))
    rows = house.stop()
    told = lives(rows)
    assert MESSAGES / 12 < len(told) < MESSAGES / 2
    once = Counter(["published", "enqueued", "confirmed", "fetched", "acked"])
    given_back = once + Counter(["fetched", "requeued"])
    assert all(Counter(life) in (once, given_back) for life in told.values())
    assert sum(map(len, told.values())) + left_out(rows) == once.total() * MESSAGES + 2
    assert {row["number"] for row in rows if row["event"] == "level"} == {4}


def test_a_dead_letter_is_told_as_its_own_queue_wants_it(house: House) -> None:
    house.policy("q", journal_sample=4)
    house.policy("same", journal_sample=4)
    both = {"x-dead-letter-exchange": "amq.fanout"}
    house.channel.queue_declare("q", durable=True, arguments=both)
    house.channel.queue_declare("same", durable=True)
    house.channel.queue_bind("same", "amq.fanout")
    publish_many(house, "q")
    for _ in range(MESSAGES // 2):
        house.channel.basic_reject(house.get("q"), requeue=False)
    house.channel.queue_declare("every", durable=True)
    house.channel.queue_bind("every", "amq.fanout")
    house.channel.queue_unbind("same", "amq.fanout")
    for _ in range(MESSAGES // 2):
        house.channel.basic_reject(house.get("q"), requeue=False)
    rows = house.stop()
    published = {row["id"] for row in rows if row["event"] == "published"}
    assert 0 < len(published) < MESSAGES / 2
    assert {row["id"] for row in rows if row["event"] == "rejected_dead_lettered"} == published
    letters = {row["message"]: row["id"] for row in rows if row["event"] == "written"}
    queues = {row["message"]: row["queue"] for row in rows if row["event"] == "enqueued" and row["message"] in letters}
    assert {letters[one] for one in queues if queues[one] == "same"} <= published
    every = {letters[one] for one in queues if queues[one] == "every"}
    assert len(every) == MESSAGES // 2 and every & published and every - published


def test_a_message_that_any_of_its_queues_tells_is_told_in_all_of_them(house: House) -> None:
    house.policy("some", journal_sample=1000)
    house.policy("memory", journal="all")
    for queue in ("some", "every"):
        house.channel.queue_declare(queue, durable=True)
        house.channel.queue_bind(queue, "amq.fanout")
    house.channel.queue_declare("memory")
    for n in range(MESSAGES // 2):
        house.publish(f"first {n}", "", "amq.fanout", mode=2)
    house.channel.queue_unbind("every", "amq.fanout")
    house.channel.queue_bind("memory", "amq.fanout")
    for n in range(MESSAGES // 2):
        house.publish(f"then {n}", "", "amq.fanout", mode=2)
    house.channel.queue_purge("some")
    rows = house.stop()
    counts = Counter(row["event"] for row in rows if "message" in row)
    assert (counts["published"], counts["enqueued"], counts["purged"]) == (MESSAGES, 2 * MESSAGES, MESSAGES)
    assert "left out" not in {row["event"] for row in rows}


def test_what_was_wanted_when_a_message_was_published_holds_until_its_end(house: House) -> None:
    """A change holds for the whole batch of the log that it is in: a confirm says that a batch is over."""
    house.channel.confirm_delivery()
    for queue in ("q", "other"):
        house.channel.queue_declare(queue, durable=True)
    house.publish("before", "q", mode=2)
    house.get("q")
    house.policy("q", journal_sample=1_000_000)
    for n in range(9):
        house.publish(f"sampled {n}", "q", mode=2)
        house.get("q")
    assert house.api.ask("DELETE", "/policies/%2F/q").status_code == 204
    house.publish("between", "other", mode=2)
    house.publish("behind", "q", mode=2)
    house.get("q")
    house.channel.basic_ack(0, multiple=True)
    rows = house.stop()
    assert [row["message_id"] for row in rows if row["event"] == "published"] == ["before", "between", "behind"]
    assert sorted(len(life) for life in lives(rows).values()) == [3, 5, 5]
    assert left_out(rows) == 5 * 9


def test_what_is_read_from_a_stream_is_told_of_those_that_are_told(house: House) -> None:
    house.policy("s", journal_sample=4)
    house.channel.queue_declare("s", durable=True, arguments={"x-queue-type": "stream"})
    publish_many(house, "s")
    for _ in range(2):
        read_all(house.channel)
    rows = house.stop()
    offsets = [row["position"] for row in rows if row["event"] == "enqueued"]
    assert 0 < len(offsets) < MESSAGES / 2
    assert Counter(row["position"] for row in rows if row["event"] == "read") == Counter(offsets * 2)
    assert left_out(rows) == 5 * (MESSAGES - len(offsets))


def test_what_is_leased_is_told_of_those_that_are_told(tmp_path: Path) -> None:
    with Broker(clock="virtual", data_dir=str(tmp_path / "data")) as broker:
        q = Queue(broker)
        q.http.put(f"{broker.http_url}/api/policies/%2F/p", json={"pattern": "", "definition": {"journal-sample": 4}})
        for n in range(MESSAGES):
            q.publish("body", properties=Basic(delivery_mode=2, message_id=str(n)))
        first = q.lease(count=MESSAGES, ttl_ms=60_000)["id"]
        q.post(first, "ack", first=0, last=MESSAGES // 2 - 1)
        broker.advance(61)
        second = q.lease(count=MESSAGES // 4)["id"]
        q.http.delete(f"/leases/{second}")
    the_files_say_the_same(tmp_path)
    rows = events(str(tmp_path / "data"))
    published = {row["id"] for row in rows if row["event"] == "published"}
    assert 0 < len(published) < MESSAGES / 2
    of_leases = {row["event"] for row in rows if row["event"].startswith("lease")}
    assert of_leases == {"leased", "lease_settled", "lease_expired", "lease_released"}
    assert set(lives(rows)) == published


class Sampled(Busy):
    """Its queue tells 1 in 3."""

    def __init__(self, folder: Path, segment_bytes: int = 3000) -> None:
        super().__init__(folder, segment_bytes)
        queue = Named(1, b'{"id": 1, "vhost": "/", "name": "q"}')
        self.log.levels.put(queue, "/", OUTCOMES, 3)

    def wanted(self) -> set[int]:
        return {id for id in range(1, self.number + 1) if is_sampled(id, 3)}


def told_by(target: Path) -> tuple[set[int], set[str], set[str]]:
    """The messages that are told, the records that anything is told of, and those that are told to have left."""
    rows = rows_of(target)
    ids = [row["id"] for row in rows if row["event"] == "published"]
    assert len(ids) == len(set(ids))
    records = {row["message"]: row["event"] for row in rows if "message" in row}
    return set(ids), set(records), {one for one, event in records.items() if event == "acked"}


def test_what_is_left_out_stays_so_in_later_segments_and_for_later_processes(tmp_path: Path) -> None:
    busy = Sampled(tmp_path / "data")
    target = tmp_path / "journal"
    while busy.synced[0] < 8:
        assert Writer(busy.folder, target).advance(*busy.turn())
    busy.empty()
    Writer(busy.folder, target).advance(*busy.synced)
    ids, records, left = told_by(target)
    assert ids == busy.wanted()
    assert len(records) == len(ids) and left == records
    rows = rows_of(target)
    number = sum(row["number"] for row in rows if row["event"] == "left out")
    assert number == 3 * (busy.number - len(ids))


def test_wherever_the_writer_dies_what_is_left_out_is_left_out(tmp_path: Path) -> None:
    busy = Sampled(tmp_path / "data")
    target, before = tmp_path / "journal", tmp_path / "before"
    deaths: set[str] = set()
    Writer(busy.folder, target)
    while busy.synced[0] < 4:
        synced = busy.turn()
        shutil.rmtree(before, ignore_errors=True)
        target.rename(before)
        for step in range(1000):
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(before, target)
            try:
                Writer(busy.folder, target, dying(step)).advance(*synced)
                break
            except Died as died:
                deaths.add(str(died))
            Writer(busy.folder, target).advance(*synced)
            ids, records, _ = told_by(target)
            assert ids == busy.wanted() and len(records) == len(ids)
    assert "left out" in deaths


def test_what_was_left_out_of_a_segment_is_forgotten_when_the_log_has_it_no_more(tmp_path: Path) -> None:
    busy = Sampled(tmp_path / "data")
    target = tmp_path / "journal"
    writer = Writer(busy.folder, target)
    busy.log.maintenance.journalled(0)
    while busy.synced[0] < 4:
        writer.advance(*busy.turn())
    assert len(list(target.glob(".left-out-*"))) == 3
    busy.empty()
    busy.log.maintenance.journalled(busy.synced[0])
    assert not busy.tidy() & {1, 2, 3}
    assert len(list(target.glob(".left-out-*"))) == 3  # the journal was not told yet that they are settled
    for _ in range(3):
        writer.advance(*busy.turn())
    assert not list(target.glob(".left-out-*"))
    ids, records, _ = told_by(target)
    assert ids == busy.wanted() and len(records) == len(ids)


def test_a_damaged_note_of_what_was_left_out_is_no_obstacle(tmp_path: Path) -> None:
    busy = Sampled(tmp_path / "data")
    target = tmp_path / "journal"
    while busy.synced[0] < 3:
        Writer(busy.folder, target).advance(*busy.turn())
    for path in target.glob(".left-out-*"):
        path.write_bytes(b"\0" * 9)
    busy.empty()
    Writer(busy.folder, target).advance(*busy.synced)
    ids, _, left = told_by(target)
    assert ids == busy.wanted() and len(left) > len(ids)


def test_a_running_journal_keeps_what_it_left_out_over_a_restart_of_the_broker(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Broker(data_dir=str(data), journal="on") as broker:
        with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection, web.Client() as client:
            Api(broker, client).put("/policies/%2F/p", {"pattern": "", "definition": {"journal-sample": 4}})
            channel = connection.channel()
            channel.queue_declare("q", durable=True)
            channel.queue_declare("s", durable=True, arguments={"x-queue-type": "stream"})
            channel.confirm_delivery()
            for n in range(MESSAGES):
                for queue in ("q", "s"):
                    properties = pika.BasicProperties(delivery_mode=2, message_id=f"{queue} {n}")
                    channel.basic_publish("", queue, b"", properties)
        broker.restart()
        with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
            channel = connection.channel()
            for _ in range(MESSAGES):
                channel.basic_ack(channel.basic_get("q")[0].delivery_tag)
            read_all(channel)
    target = data / "journal"
    Writer(data, target).advance(*end_of(data))  # what it did not get done when it was stopped
    rows = rows_of(target)
    lives: dict[str, list[str]] = {}
    for row in rows:
        if "message" in row:
            lives.setdefault(row["message"], []).append(row["event"])
    consumed = Counter(["published", "enqueued", "confirmed", "fetched", "acked"])
    kinds = Counter(len(life) for life in lives.values())
    assert 0 < kinds[5] < MESSAGES / 2 and 0 < kinds[3] < MESSAGES / 2 and set(kinds) == {3, 5}
    assert all(Counter(life) == consumed for life in lives.values() if len(life) == 5)
    offsets = {row["position"] for row in rows if row["event"] == "enqueued" and row["queue"] == "s"}
    assert {row["position"] for row in rows if row["event"] == "read"} == offsets and len(offsets) == kinds[3]
    left = sum(row["number"] for row in rows if row["event"] == "left out")
    assert left == 5 * (MESSAGES - kinds[5]) + 4 * (MESSAGES - kinds[3])
