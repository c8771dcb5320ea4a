"""What happens in the demo, and whether the sum closes.

A publisher sends orders, payments, reminders for later, complaints nobody listens to and orders that are no JSON. Spark
streams the queues into a lake and rejects the bad rows to their dead-letter queue. In the middle the broker is killed.
At the end every message must be in the lake, a dead letter, or returned to the publisher; and ``route``, which is the
broker's own code without a broker, must say the same of the same messages.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warrenmq.spark.demo.broker import DemoBroker
from warrenmq.spark.demo.picture import Samples, save
from warrenmq.spark.demo.publisher import BURST, DEAD, EVERY, QUEUES, Published, declare, publish
from warrenmq.spark.demo.show import Bars, Show
from warrenmq.spark.errors import one_line
from warrenmq.spark.requirements import RequirementMissing, check

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

AWAY = 3.0  # seconds without a broker
PATIENCE = 180.0  # seconds for the rest to arrive; bounds hanging, nothing else
# Compiling well takes a JVM longer than running what was compiled badly, in a program that lives two minutes.
QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def main(seconds: int = 20, png: str = "warren-demo.png", as_json: bool = False) -> int:
    """The whole demo; the exit status. ``as_json``: the sum is the output, as JSON, and what is shown is no output."""
    try:
        check()
    except RequirementMissing as missing:
        print(f"demo: {missing}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="warren-demo-") as folder:
        show = Show(aside=as_json)
        broker = DemoBroker(Path(folder))
        try:
            found = run(show, broker, Path(folder), seconds, png)
            if as_json:
                print(json.dumps({**found.told(), "picture": png}))
            return 0 if found.closes and found.agrees else 1
        except KeyboardInterrupt:
            show.step("stopping", good=False)
            return 130
        except Exception as error:
            print(f"demo: {one_line(error)}", file=sys.stderr)
            return 1
        finally:
            broker.stop()


def run(show: Show, broker: DemoBroker, folder: Path, seconds: int, png: str) -> Verdict:
    from warrenmq.spark.sessions import running_session, session, silence

    broker.start()
    declare(broker)
    show.step(f"a broker on port {broker.port}, with the queues {', '.join(QUEUES)}, {DEAD}")
    running = running_session()
    with show.waiting("Spark starts"), quiet(folder / "spark.log"):
        spark = running or session("local[2]", "warren demo", {"spark.driver.extraJavaOptions": QUICK_JVM})
    if running is None:
        silence(spark)  # what fails is told here, in one line
    show.step(f"Spark {spark.version}, in this process")
    try:
        return pipeline(show, spark, broker, folder, seconds, png)
    finally:
        if running is None:
            spark.stop()


@contextmanager
def quiet(path: Path) -> Iterator[None]:
    """A JVM that is started meanwhile, and its workers, write their standard error to a file."""
    ours = os.dup(2)
    with path.open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(ours, 2)
        os.close(ours)


@dataclass
class Ingest:
    """The streaming query: good rows to the lake, bad ones to their dead-letter queue."""

    options: dict[str, str]
    lake: str
    rows: int = 0
    rejected: int = 0

    def start(self, spark: SparkSession, checkpoint: str) -> StreamingQuery:
        reading = spark.readStream.format("amqp").options(**self.options).load()
        writing = reading.writeStream.foreachBatch(self.batch).option("checkpointLocation", checkpoint)
        return writing.trigger(processingTime="1 second").start()

    def batch(self, batch: DataFrame, number: int) -> None:
        from warrenmq.spark import settle

        judged = batch.selectExpr(
            "*", "if(get_json_object(cast(body as string), '$.total') is null, 'reject', null) as action"
        ).persist()
        count = judged.count()
        if count:
            good = judged.filter("action is null").select("queue", "message_id", "body")
            good.write.mode("overwrite").parquet(f"{self.lake}/batch={number}")
            rejected = settle(judged.filter("action is not null"), self.options)
            self.rejected += rejected
            self.rows += count - rejected
        judged.unpersist()


def pipeline(show: Show, spark: SparkSession, broker: DemoBroker, folder: Path, seconds: int, png: str) -> Verdict:
    from warrenmq.spark.jobs.ingest import stop_gently

    address = {"host": "127.0.0.1", "port": str(broker.port), "httpPort": str(broker.http_port)}
    ingest = Ingest({**address, "queue": ",".join(QUEUES), "leaseColumns": "true"}, str(folder / "lake"))
    published = Published(max(2, int(seconds / EVERY)) * BURST)
    publishing = threading.Thread(target=publish, args=(broker, published), daemon=True)
    with show.waiting("the streaming query takes its first batch"):
        query = ingest.start(spark, str(folder / "checkpoint"))
        publishing.start()
        while query.isActive and not ingest.rows:
            time.sleep(0.1)
    show.step("a streaming query: queues to a lake of Parquet files, what is no JSON to dead letters")
    published.go_on.set()
    samples = watch(show, broker, query, ingest, published)
    published.stop.set()
    publishing.join(30)
    if query.exception() is not None or not query.isActive:
        raise RuntimeError(str(query.exception() or "the query ended"))
    with show.waiting("the query stops"):
        stop_gently(query)
    save(samples, png)
    show.picture(samples, png)
    show.step(f"the picture is in {png}")
    return verdict(show, spark, broker, folder, address, published)


def watch(show: Show, broker: DemoBroker, query: StreamingQuery, ingest: Ingest, published: Published) -> Samples:
    """Publish, kill the broker, bring it back, and wait until every message is accounted for."""
    samples = Samples()
    begun = time.monotonic()
    deadline = begun + published.total / BURST * EVERY + PATIENCE
    killed: float | None = None
    away = False
    with Bars(show, published.total) as bars:
        while time.monotonic() < deadline and query.isActive:
            now = time.monotonic() - begun
            accounted = ingest.rows + ingest.rejected + published.returned
            samples.add(now, len(published.rows), min(published.total, accounted))
            bars.update(len(published.rows), ingest.rows, ingest.rejected, published.returned, away)
            if killed is None and len(published.rows) >= 0.4 * published.total:
                broker.kill()
                killed, away = now, True
                show.step("[bold red]kill -9[/] for the broker, in the middle of everything", good=None)
            elif killed is not None and away and now - killed >= AWAY:
                broker.start()
                away = False
                samples.away.append((killed, time.monotonic() - begun))
                show.step("the broker is back, with what it had confirmed")
            # A message that was stored twice counts twice here: it is over when nothing is left in the broker.
            sent = len(published.rows) == published.total and not away
            if sent and accounted >= published.total and is_empty(broker):
                break
            time.sleep(0.1)
        bars.update(len(published.rows), ingest.rows, ingest.rejected, published.returned, away)
    return samples


def is_empty(broker: DemoBroker) -> bool:
    """Nothing waits in the queues, nothing is leased, and no reminder is to come."""
    _, queues = _ask(broker, "/api/queues/%2F")
    _, later = _ask(broker, "/api/exchanges/%2F/later")
    return not any(queue["messages"] for queue in queues if queue["name"] != DEAD) and not later["messages_delayed"]


def _ask(broker: DemoBroker, path: str) -> tuple[int, Any]:
    from warrenmq.spark.httpapi import HttpApi
    from warrenmq.spark.options import parse

    return HttpApi(parse({"host": "127.0.0.1", "httpPort": str(broker.http_port), "queue": "x"})).call("GET", path)


@dataclass
class Verdict:
    """The sum of the demo."""

    published: int
    lake: int
    dead_letters: int
    returned: int
    sent_again: int
    twice: int  # of these, those that are there twice
    routed: int = 0  # to queues, by ``route``
    routed_back: int = 0  # that ``route`` returns

    @property
    def missing(self) -> int:
        return self.published - self.lake - self.dead_letters - self.returned

    @property
    def closes(self) -> bool:
        return self.missing == 0

    @property
    def agrees(self) -> bool:
        """Does ``route`` say the same?"""
        return self.routed_back == self.returned and self.routed == self.lake + self.dead_letters

    def told(self) -> dict[str, object]:
        return {**asdict(self), "missing": self.missing, "closes": self.closes, "agrees": self.agrees}


def verdict(
    show: Show, spark: SparkSession, broker: DemoBroker, folder: Path, address: dict[str, str], published: Published
) -> Verdict:
    """Whether the sum closes, and whether ``route`` says the same."""
    with show.waiting("counting"):
        lake, in_lake = _counts(spark.read.parquet(str(folder / "lake")))
        dead, are_dead = _counts(spark.read.format("amqp").options(**address, queue=DEAD).load())
    twice = in_lake - lake + are_dead - dead
    found = Verdict(published.total, lake, dead, published.returned, published.again, twice)
    show.sum(
        "the sum",
        [
            ("", "published", published.total, "and confirmed"),
            ("=", "in the lake", lake, "orders, payments, reminders that came late"),
            ("+", "dead letters", dead, "no JSON: rejected row by row"),
            ("+", "returned", published.returned, "nobody listens to complaints"),
            ("", "missing", found.missing, ""),
        ],
        found.closes,
    )
    show.step(
        f"{found.sent_again:,} were sent again after the crash; {found.twice:,} of them are there twice"
        " (told by message_id)",
        good=None,
    )
    with show.waiting("route: the same messages through the broker's own code, without a broker"):
        found.routed_back, found.routed = _routed(spark, broker, folder, published)
    said = "they agree" if found.agrees else "THEY DIFFER"
    show.step(
        f"route, without a broker: {found.routed_back:,} returned, {found.routed:,} to queues; {said}",
        good=found.agrees,
    )
    show.step("nothing is missing" if found.closes else "THE SUM DOES NOT CLOSE", good=found.closes)
    return found


def _counts(table: DataFrame) -> tuple[int, int]:
    """Different messages, and rows."""
    row = table.selectExpr("count(distinct message_id) as messages", "count(*) as count").collect()[0]
    return int(row["messages"]), int(row["count"])


def _routed(spark: SparkSession, broker: DemoBroker, folder: Path, published: Published) -> tuple[int, int]:
    """Messages that ``route`` would return, and those it would put into queues."""
    from warrenmq.spark.routing import route

    _, definitions = _ask(broker, "/api/definitions")
    table = folder / "published.json"
    table.write_text("\n".join(json.dumps(row) for row in published.rows))
    messages = spark.read.schema(
        "exchange string, routing_key string, message_id string, headers map<string,string>, "
        "header_types map<string,string>, body_size bigint"
    ).json(str(table))
    row = (
        route(messages, definitions, user="guest")
        .selectExpr("count_if(outcome = 'returned') as returned", "count_if(size(queues) = 1) as routed")
        .collect()[0]
    )
    return int(row["returned"]), int(row["routed"])
