"""A broker under load is killed again and again, and its journal accounts for every message; without one of its files
the audit names what is missing. So do the journals of a cluster whose leader was killed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from tests.spark.recount import recount
from tests.spark.support import channel, kill
from tests.support.brokers import RunningBroker, start_warren
from tests.support.cluster import Cluster, Member, Publisher, drained
from warrenmq.client import Channel, ClientError, Connection, Properties
from warrenmq.journal.files import NAME

pytest.importorskip("pyspark", reason="PySpark is not installed")

from warrenmq.spark.auditing import audit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

KILLS = 3
BATCH = 50
JOURNAL = ("--journal", "on", "--journal-interval", "0.1")


def until(question: Callable[[], bool]) -> None:
    """However long that takes: the test has a time-out of its own."""
    while not question():
        time.sleep(0.02)


class Load:
    """One publishes with confirms, one consumes: most are acknowledged, one in ten is rejected and dead-lettered."""

    def __init__(self, broker: RunningBroker, run: int) -> None:
        self.broker = broker
        self.run = run
        self.confirmed: list[str] = []
        self.consumed = 0
        self.threads = [threading.Thread(target=self._guarded, args=(work,)) for work in (self._publish, self._consume)]
        for thread in self.threads:
            thread.start()

    def has_done_some(self) -> bool:
        return len(self.confirmed) >= 4 * BATCH and self.consumed >= 2 * BATCH

    def join(self) -> None:
        for thread in self.threads:
            thread.join()

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except (ClientError, OSError):
            pass  # killed

    def _publish(self) -> None:
        with Connection(self.broker.url) as connection:
            publishing = connection.channel()
            publishing.confirm_select()
            number = 0
            while True:
                ids = [f"{self.run}-{number + n}" for n in range(BATCH)]
                for id in ids:
                    publishing.basic_publish("", "work", b"x" * 200, Properties(delivery_mode=2, message_id=id))
                publishing.wait_for_confirms(600)
                self.confirmed += ids
                number += BATCH

    def _consume(self) -> None:
        with Connection(self.broker.url) as connection:
            consuming = connection.channel()
            while True:
                message = consuming.basic_get("work")
                if message is None:
                    continue
                if self.consumed % 10 == 9:
                    consuming.basic_reject(message.delivery_tag, requeue=False)
                else:
                    consuming.basic_ack(message.delivery_tag)
                self.consumed += 1


def journal_of_kills(data: Path) -> set[str]:
    """Runs of a broker that are killed under load, and one in which all is consumed; the ids that were confirmed."""
    confirmed: set[str] = set()
    for run in range(KILLS):
        with start_warren(*JOURNAL, data_dir=data, stop_cleanly=False) as broker:
            if run == 0:
                with channel(broker) as declaring:
                    declaring.queue_declare("dead", durable=True)
                    letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
                    declaring.queue_declare("work", durable=True, arguments=letters)
            load = Load(broker, run)
            until(load.has_done_some)
            kill(broker)
            load.join()
            confirmed |= set(load.confirmed)
    with start_warren(*JOURNAL, data_dir=data) as broker, channel(broker) as last:
        while (message := last.basic_get("work")) is not None:
            last.basic_ack(message.delivery_tag)
        told_to_its_end(last, data / "journal")
    return confirmed


def told_to_its_end(last: Channel, journal: Path) -> None:
    """The journal has everything up to now: it tells of a queue's end, the last that happened."""
    last.queue_declare("end", durable=True)
    last.queue_delete("end")
    until(lambda: "queue deleted" in told(journal))


def told(journal: Path) -> set[str]:
    """All events that any file tells of."""
    found: set[str] = set()
    for path in journal.glob("*.parquet"):
        try:
            found |= set(pq.ParquetFile(path).read(["event"]).column("event").to_pylist())
        except FileNotFoundError:
            continue  # joined meanwhile
    return found


def test_a_journal_of_a_broker_that_was_killed_under_load_accounts_for_every_message(
    spark: SparkSession, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    confirmed = journal_of_kills(data)
    journal = data / "journal"
    found = audit(spark, str(journal), only=["messages"])
    assert found.complete and found.unaccounted == {}, (found.holes, found.unaccounted)
    rows = {row["message_id"]: row for row in found.tables["messages"].collect()}
    assert confirmed <= set(rows)
    assert {rows[id]["publisher"] for id in confirmed} <= {"confirmed", "unconfirmed"}
    letters = {id for id in rows if rows[id]["consumers"] == "waiting"}
    assert {rows[id]["records"] for id in letters} == {2}  # dead-lettered, and still there
    assert {rows[id]["consumers"] for id in rows if id not in letters} == {"consumed"}
    sums = {(row["queue"], row["outcome"]): row["messages"] for row in found.tables["ledger"].collect()}
    assert sums["work", "rejected_dead_lettered"] == sums["dead", "waiting"] == len(letters)
    assert sums["work", "acked"] == len(rows) - len(letters)
    found.close()

    files = sorted(journal.glob("*.parquet"))
    gone = next(path for path in files[1:-1] if "enqueued" in pq.ParquetFile(path).read(["event"])["event"].to_pylist())
    gone.unlink()
    found = audit(spark, str(journal), only=[])
    assert not found.complete
    match = NAME.fullmatch(gone.name)
    assert match is not None
    log, segment, begin, end = match[1], *map(int, match.groups()[1:])
    part = (
        f" from {begin} to {end}" if any(f"-{segment:010d}-" in one.name for one in journal.glob("*.parquet")) else ""
    )
    assert found.missing_files == [f"log {log}: segment {segment}{part}"]
    wrong = found.tables["unaccounted"].where("what = 'no beginning'").collect()
    assert {row["record"] for row in wrong} == recount(journal).no_beginning
    assert {row["because"] for row in wrong} <= {"file missing"}
    found.close()


def test_the_journals_of_a_cluster_with_takeovers_account_for_every_message(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Each leader tells of what it leads, and of what was there before it: alone and together they say the same."""
    with Cluster(tmp_path, 2, journal="on", journal_interval=0.1) as cluster:
        publisher = Publisher(cluster)
        for _ in range(2):
            publisher.wait_for_more(200)
            leader = cluster.need_leader()
            until(lambda: "enqueued" in told(journal_of(leader)))  # noqa: B023  (it is waited for here)
            leader.kill()
            publisher.wait_for_more(200)
            leader.start()
            cluster.wait_in_sync(2)
        publisher.stop()
        leader = cluster.need_leader()
        found = drained(leader)
        assert publisher.confirmed <= set(found)
        with Connection(host="127.0.0.1", port=leader.port) as connection:
            told_to_its_end(connection.channel(), journal_of(leader))
    journals = [str(journal_of(member)) for member in cluster.members]
    for paths in (journals, [str(journal_of(leader))]):
        audited = audit(spark, paths, only=[])
        assert audited.complete and audited.unaccounted == {}, (paths, audited.holes, audited.unaccounted)
        (numbers,) = audited.tables["ledger"].where("queue = 'numbers'").collect()
        assert (numbers["outcome"], numbers["messages"]) == ("auto_acked", len(found))
        said = {row["publisher"]: row["messages"] for row in audited.tables["publishes"].collect()}
        assert set(said) <= {"confirmed", "unconfirmed"} and sum(said.values()) == len(found)
        audited.close()

    for journal in journals:
        for file in Path(journal).glob("journal-*-0000000002-*.parquet"):
            file.unlink()
    audited = audit(spark, journals, only=[])
    (named,) = audited.missing_files
    assert named.endswith(": segment 2") and audited.missing > 0
    audited.close()


def journal_of(member: Member) -> Path:
    return member.folder / "data" / "journal"
