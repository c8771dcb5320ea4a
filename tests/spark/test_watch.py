"""`warren pipeline watch` in a real Spark, over the journal of a real broker."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.support import channel, drain, finished, reading
from tests.spark.test_audit import pipeline
from tests.support.brokers import RunningBroker

pytest.importorskip("pyspark", reason="PySpark is not installed")

from tests.spark.test_watch_crash_points import RULES, Growing, expected, story
from warrenmq.spark.httpapi import HttpApi
from warrenmq.spark.options import parse
from warrenmq.spark.watching.job import Watched, start, table, watch
from warrenmq.spark.watching.judging import SECOND, Rules

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MESSAGES = 25
NO_CLOCK = 1 << 60  # so far behind the clock that nothing becomes overdue by it


def told(found: Watched) -> Counter[tuple[str, str, int]]:
    return Counter((row["what"], row["state"], row["record"]) for row in found.table.collect())


class Dies:
    """At the chosen step of writing findings, once."""

    def __init__(self, step: str) -> None:
        self.step = step
        self.died = 0

    def __call__(self, step: str) -> None:
        if step == self.step and not self.died:
            self.died += 1
            raise RuntimeError("the driver died")


def test_a_watch_that_is_killed_goes_on_and_tells_everything_once(
    spark: SparkSession, warren: RunningBroker, name: str, tmp_path: Path
) -> None:
    """Between the runs the journal's files are joined; findings come as messages too, each with its name as id. All
    steps are in ``test_watch_crash_points.py``."""
    with channel(warren) as declaring:
        declaring.exchange_declare(name, "topic", durable=True)
        declaring.queue_declare(name, durable=True)
        declaring.queue_bind(name, name, "#")
    remembers(warren, name)
    journal, out = Growing(tmp_path / "journal"), str(tmp_path / "out")
    rows = story(MESSAGES)
    send = {**reading(warren), "exchange": name, "deduplicate": "true"}
    steps = ["written", "sent"]
    cut = -(-len(rows) // len(steps))
    for at, step in enumerate(steps):
        journal.tell(rows[at * cut : (at + 1) * cut])
        dies = Dies(step)
        with pytest.raises(Exception, match="the driver died"):
            finished(
                start(spark, str(journal.folder), out, rules=RULES, send=send, once=True, behind=NO_CLOCK, step=dies)
            )
        assert dies.died
        journal.join(9)
        if at == 0:
            journal.seal()
    found = watch(spark, str(journal.folder), out, rules=RULES, send=send, once=True)
    assert told(found) == expected(MESSAGES)
    assert found.open().count() == sum(1 for n in range(MESSAGES) if n % 3 == 0)
    messages = drain(warren, name)
    ids = Counter(message.properties.message_id for message in messages)
    assert ids == Counter(f"{row['finding']}/{row['state']}" for row in found.table.collect())
    one = json.loads(messages[0].body)
    assert one["what"] in ("unconfirmed", "unacked") and messages[0].routing_key == f"{one['what']}.{one['state']}"


def remembers(broker: RunningBroker, exchange: str) -> None:
    """It takes an id once within the hour."""
    http = HttpApi(parse({**reading(broker), "exchange": ""}, writing=True))
    policy = {"pattern": f"^{exchange}$", "definition": {"deduplication-window": 3_600_000}, "apply-to": "exchanges"}
    assert http.call("PUT", f"/api/policies/%2F/{exchange}", policy)[0] in (201, 204)


def test_a_running_watch_tells_of_a_broker_what_is_overdue_while_it_runs(spark: SparkSession, tmp_path: Path) -> None:
    """A consumer that takes and never acks, unroutable messages; and that both are well again."""
    from warrenmq.client import Connection, Properties
    from warrenmq.testing import Broker

    journal = tmp_path / "data" / "journal"
    rules = Rules(ack=2 * SECOND, never=2 * SECOND, taken=3, window=3 * SECOND, least=5)
    out = tmp_path / "out"
    with (
        Broker(data_dir=tmp_path / "data", journal="on", journal_interval=0.1) as broker,
        Connection(broker.url) as connection,
    ):
        talking = connection.channel()
        talking.queue_declare("work", durable=True)
        talking.confirm_select()
        talking.publish_many("", "work", [b"x"] * 5, Properties(delivery_mode=2))
        talking.publish_many("amq.direct", "nowhere", [b"x"] * 5, Properties(delivery_mode=2))
        talking.wait_for_confirms(60)
        talking.basic_consume("work")
        tags: list[int] = []
        while len(tags) < 5:
            tags += [message.delivery_tag for message in talking.receive(60)]
        wait_for(lambda: bool(list(journal.glob("*.parquet"))))
        query = start(spark, str(journal), str(out), rules=rules, behind=SECOND, interval="200 milliseconds")

        def seen(state: str) -> set[str]:
            query.awaitTermination(1)  # raises what it failed with
            if not out.exists():
                return set()
            return {row["what"] for row in table(spark, str(out)).collect() if row["state"] == state}

        try:
            wait_for(lambda: {"unacked", "never acks", "unroutable"} <= seen("found"))
            assert not seen("mended")
            talking.basic_ack(tags[-1], multiple=True)
            connection.flush()
            wait_for(lambda: {"unacked", "never acks"} <= seen("mended"))
            found = Counter(row["what"] for row in table(spark, str(out)).where("state = 'found'").collect())
            assert found == {"unacked": 5, "never acks": 1, "unroutable": 1}
        finally:
            query.stop()


def wait_for(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 300
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_the_command_watches_once_and_says_what_is_open(spark: SparkSession, tmp_path: Path) -> None:
    journal = Growing(tmp_path / "journal")
    journal.tell(story(9))
    done = pipeline("watch", journal.folder, "--out", tmp_path / "out", "--once", "--confirm", "10s", "--ack", "10s")
    assert done.exit_code == 1, done.output
    assert "3 findings are open" in done.output and "unacked      mended            3" in done.output
    done = pipeline("watch", journal.folder, "--out", tmp_path / "out", "--once", "--json")
    found = json.loads(done.stdout)
    assert done.exit_code == 1 and found["open"] == 3
    assert {"what": "unacked", "state": "mended", "findings": 3} in found["items"]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--confirm", "soon"], "confirm"),
        (["--share", "0"], "'share' is 0"),
        (["--host", "localhost"], "--exchange, which is not given"),
    ],
)
def test_wrong_input_is_one_line(spark: SparkSession, tmp_path: Path, arguments: list[str], line: str) -> None:
    (tmp_path / "journal").mkdir()
    done = pipeline("watch", tmp_path / "journal", "--out", tmp_path / "out", "--once", *arguments)
    assert done.exit_code == 2 and line in done.output.splitlines()[-1]


def test_a_folder_that_is_not_there_is_one_line(spark: SparkSession, tmp_path: Path) -> None:
    done = pipeline("watch", tmp_path / "nothing", "--out", tmp_path / "out", "--once")
    assert done.exit_code == 2 and "there is no" in done.output.splitlines()[-1]
