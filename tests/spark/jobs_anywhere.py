"""The jobs over a journal, as a user's program calls them: the same on a cluster and through Spark Connect."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCE = Path(__file__).read_text() if "__file__" in globals() else ""  # programs have it in front of theirs
KEPT = {"vhost": "/", "durable": True, "auto_delete": False, "arguments": {}}
#: where ``bench.planted`` says that its messages went
PLANTED: dict[str, Any] = {
    "vhosts": [{"name": "/"}],
    "exchanges": [{"name": "orders", "type": "topic", "internal": False, **KEPT}],
    "queues": [{"name": "work", **KEPT}, {"name": "dead", **KEPT}],
    "bindings": [
        {
            "source": "orders",
            "vhost": "/",
            "destination": "work",
            "destination_type": "queue",
            "routing_key": "k",
            "arguments": {},
        }
    ],
}
PUBLISHED = 200 - 2 - 2  # of two nothing was told, of two not what they were
#: of a journal of 200 messages with two of each fault
FOUND = {
    "audit": [[], [2, 2, 2]],
    "report": True,
    "whatif": [PUBLISHED, PUBLISHED, PUBLISHED],
    "summary": [["k", "work", "there", "absent", PUBLISHED], ["k", None, "routed", "unroutable", PUBLISHED]],
    "replay": [2, {"confirmed": 2}, True],
    "replayed again": {"confirmed": 2},
}


def jobs(spark: SparkSession, journal: str, broker: dict[str, Any], queue: str) -> dict[str, Any]:
    """What all of them find: replay sends two messages to the queue, once."""
    from warrenmq.spark import audit, replay, whatif
    from warrenmq.spark.replaying import Target
    from warrenmq.spark.reporting import gather, page
    from warrenmq.spark.reporting.facts import tables_in

    found: dict[str, Any] = {}
    done = audit(spark, journal, f"{journal}-audit")
    found["audit"] = [done.missing_files, sorted(done.unaccounted.values())]
    found["report"] = "6 messages are missing." in page(gather(tables_in(spark, f"{journal}-audit")))
    after = copy.deepcopy(PLANTED)
    after["bindings"] = []
    supposed = whatif(spark, journal, PLANTED, after, f"{journal}-whatif")
    found["whatif"] = [supposed.messages, supposed.changed, supposed.worse]
    rows = spark.read.parquet(f"{journal}-whatif/summary").collect()
    named = ("routing_key", "queue", "before", "after", "messages")
    found["summary"] = sorted(([row[name] for name in named] for row in rows), key=str)
    supposed.close()
    lake = str(Path(journal).with_name("lake-of-replay"))
    spark.range(2).selectExpr(
        "cast('again' as binary) as body", "'' as exchange", "'gone' as routing_key"
    ).write.parquet(lake)
    target = Target("", queue, at_least_once=True)
    sent = replay(spark, lake, broker, f"{journal}-replay", target=target)
    found["replay"] = [sent.rows, dict(sent.outcomes), sent.complete]
    found["replayed again"] = dict(replay(spark, lake, broker, f"{journal}-replay", target=target).outcomes)
    return found
