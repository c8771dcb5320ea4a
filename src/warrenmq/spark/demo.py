"""`make demo`: a broker, a publisher, and the pipeline over what it published, in one terminal.

Duty: show that the parts fit: live publishing (routable, unroutable, delayed) with confirms and returns, a streaming
``ingest`` beside it, then ``route`` over the same messages without a broker, and ``summary``. Ends with whether the
broker and ``route`` agree, and leaves nothing behind. Not here: anything but calls of what users can call themselves.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warrenmq.client import Connection, Field, Properties, Returned
from warrenmq.spark.errors import one_line
from warrenmq.spark.requirements import RequirementMissing, check

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DELAY_MS = 3000
EVERY = 0.25  # seconds between two bursts
BURST = 200


def main(seconds: int = 20) -> int:
    """The whole demo; the exit status."""
    begun = time.monotonic()
    try:
        check()
    except RequirementMissing as missing:
        print(f"demo: {missing}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="warren-demo-") as folder:
        broker = start_broker(Path(folder))
        try:
            return run(broker, Path(folder), seconds, begun)
        except KeyboardInterrupt:
            tell(begun, "stopping")
            return 130
        except Exception as error:
            print(f"demo: {one_line(error)}", file=sys.stderr)
            return 1
        finally:
            broker.stop()


def tell(begun: float, line: str) -> None:
    print(f"[{time.monotonic() - begun:5.1f} s] {line}", flush=True)


@dataclass
class DemoBroker:
    process: subprocess.Popen[bytes]
    port: int
    http_port: int

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}/"

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.process.kill()


def start_broker(folder: Path) -> DemoBroker:
    ready = folder / "ready.json"
    import warrenmq

    root = os.path.dirname(os.path.dirname(os.path.abspath(warrenmq.__file__)))
    path = os.pathsep.join(part for part in (root, os.environ.get("PYTHONPATH", "")) if part)
    process = subprocess.Popen(
        [sys.executable, "-m", "warrenmq", "serve", "--port", "0", "--http-port", "0", "--ready-file", str(ready),
         "--data-dir", str(folder / "data")],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not ready.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RequirementMissing("the broker did not start; try: warren serve --port 0")
        time.sleep(0.05)
    addresses = json.loads(ready.read_text())
    return DemoBroker(
        process, int(str(addresses["amqp"]).rpartition(":")[2]), int(str(addresses["http"]).rpartition(":")[2])
    )


@dataclass
class Published:
    """What the publisher sent and what it was told."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    returned: int = 0
    confirmed: int = 0
    stop: threading.Event = field(default_factory=threading.Event)


def declare(broker: DemoBroker) -> None:
    with Connection(broker.url) as connection:
        channel = connection.channel()
        channel.exchange_declare("shop", "topic", durable=True)
        channel.exchange_declare("later", "x-delayed-message", durable=True, arguments={
            "x-delayed-type": "direct", "x-delayed-mandatory": "honest"})  # fmt: skip
        for queue, exchange, key in (
            ("orders", "shop", "order.#"), ("payments", "shop", "*.paid"), ("reminders", "later", "remind"),
        ):  # fmt: skip
            channel.queue_declare(queue, durable=True)
            channel.queue_bind(queue, exchange, key)


def publisher(broker: DemoBroker, published: Published, seed: int = 7) -> None:
    """Bursts of messages until told to stop; every answer of the broker is counted."""
    chance = random.Random(seed)
    with Connection(broker.url) as connection:
        channel = connection.channel()
        channel.confirm_select()
        while not published.stop.is_set():
            for _ in range(BURST):
                number = len(published.rows)
                kind = chance.random()
                exchange, headers = "shop", None
                if kind < 0.75:
                    key = chance.choice(["order.new", "order.paid", "order.sent.abroad"])
                elif kind < 0.85:
                    key = "complaint"  # nobody listens
                elif kind < 0.93:
                    exchange, key, headers = "later", "remind", {"x-delay": Field("I", DELAY_MS)}
                else:
                    key = "subscription.paid"
                body = json.dumps({"order": number, "total": chance.randint(1, 500)}).encode()
                properties = Properties(
                    headers=headers, delivery_mode=2, message_id=f"demo-{number}", timestamp=int(time.time())
                )
                channel.basic_publish(exchange, key, body, properties, mandatory=True)
                published.rows.append(
                    {
                        "exchange": exchange, "routing_key": key, "message_id": f"demo-{number}",
                        "headers": {"x-delay": str(DELAY_MS)} if headers else None,
                        "header_types": {"x-delay": "I"} if headers else None, "published_at": time.time(),
                        "body_size": len(body),
                    }
                )  # fmt: skip
            channel.wait_for_confirms(30)
            published.returned += sum(isinstance(event, Returned) for event in channel.take_events())
            published.confirmed = len(published.rows)
            published.stop.wait(EVERY)


def run(broker: DemoBroker, folder: Path, seconds: int, begun: float) -> int:
    tell(begun, f"broker at {broker.url.replace('guest:guest@', '')}, starting Spark")
    declare(broker)
    from warrenmq.spark.sessions import running_session, session

    running = running_session()
    spark = running or session("local[2]", "warren demo")
    try:
        return pipeline(spark, broker, folder, seconds, begun)
    finally:
        if running is None:
            spark.stop()


def pipeline(spark: SparkSession, broker: DemoBroker, folder: Path, seconds: int, begun: float) -> int:
    from warrenmq.spark.httpapi import HttpApi
    from warrenmq.spark.jobs.ingest import follow, start, stop_gently
    from warrenmq.spark.jobs.summary import lines_of, plot, summary, text
    from warrenmq.spark.options import parse
    from warrenmq.spark.routing import route

    options = {
        "host": "127.0.0.1", "port": str(broker.port), "httpPort": str(broker.http_port),
        "queue": "orders,payments,reminders",
    }  # fmt: skip
    lake = str(folder / "lake")
    published = Published()
    publishing = threading.Thread(target=publisher, args=(broker, published), daemon=True)
    tell(begun, "publishing: orders, payments, complaints nobody listens to, and reminders in 3 s")
    publishing.start()
    ingesting = start(spark, options, lake, continuous=True, interval="2 seconds")
    stop = time.monotonic() + seconds
    while (left := stop - time.monotonic()) > 0:
        time.sleep(min(2, left))
        rows = sum(int(step["numInputRows"]) for step in ingesting.recentProgress)
        tell(begun, f"published {published.confirmed:,}, returned {published.returned:,}, in the lake {rows:,}")
        if not ingesting.isActive or not publishing.is_alive():
            break
    published.stop.set()
    publishing.join(30)
    tell(begun, "publisher stopped; waiting for the last reminders to fall due")
    time.sleep(DELAY_MS / 1000 + 0.5)
    stop_gently(ingesting)
    follow(start(spark, options, lake))  # what is left, to the end
    ingested = spark.read.parquet(lake)
    tell(begun, f"the lake holds {ingested.count():,} rows; what came in:")
    print(text(lines_of(summary(ingested, window="5 seconds"))))

    tell(begun, "route: the same messages through the broker's own code, without the broker")
    _, definitions = HttpApi(parse(options)).call("GET", "/api/definitions")
    table = folder / "published.json"
    table.write_text("\n".join(json.dumps(row) for row in published.rows))
    messages = spark.read.schema(
        "exchange string, routing_key string, message_id string, headers map<string,string>, "
        "header_types map<string,string>, published_at double, body_size bigint"
    ).json(str(table))
    messages = messages.selectExpr("* except (published_at)", "timestamp_seconds(published_at) as published_at")
    routed = route(messages, definitions, user="guest")
    routed.write.parquet(str(folder / "routed"))
    lines = lines_of(summary(spark.read.parquet(str(folder / "routed")), window="5 seconds"))
    print(text(lines))
    plot(lines, str(folder / "rates.png"))
    return verdict(spark, folder, published, begun)


def verdict(spark: SparkSession, folder: Path, published: Published, begun: float) -> int:
    """Whether the pipeline agrees with what the broker did."""
    routed = spark.read.parquet(str(folder / "routed"))
    outcomes = Counter({row["outcome"]: int(row["count"]) for row in routed.groupBy("outcome").count().collect()})
    copies = int(routed.selectExpr("sum(size(queues)) as copies").collect()[0]["copies"] or 0)
    lake = spark.read.parquet(str(folder / "lake"))
    arrived = lake.select("queue", "message_id").distinct().count()
    twice = lake.count() - arrived
    agree = outcomes["returned"] == published.returned and copies == arrived
    tell(begun, f"the broker returned {published.returned:,}, route says {outcomes['returned']:,}; "
                f"in the queues {arrived:,}, route says {copies:,}; twice in the lake {twice:,}")  # fmt: skip
    tell(begun, "they agree" if agree else "THEY DIFFER")
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
