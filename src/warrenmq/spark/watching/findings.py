"""Findings where people look: in a table, and as messages.

Duty: what one batch found, as a file of the table and then to an exchange. The file is named for the query and the
batch and appears whole, so a batch that is run again replaces it by the same; the messages have the findings' names as
ids, which an exchange with a deduplication window takes once. Not here: what is a finding (``judging``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from warrenmq.spark.chunk import CONFIRMED
from warrenmq.spark.jobs.publish import published
from warrenmq.spark.lakehouse import query_id
from warrenmq.spark.options import parse
from warrenmq.spark.storage import Hidden, filesystem_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

Step = Callable[[str], None]

TIMES = ("since", "at")
SCHEMA = (
    "finding string, what string, state string, log string, vhost string, queue string, exchange string, "
    "routing_key string, message_id string, record bigint, user string, connection string, channel int, "
    "consumer string, count bigint, share double, since timestamp, at timestamp, says string"
)
MESSAGES = "message_id string, routing_key string, content_type string, body binary"


class Findings:
    """The function that ``foreachBatch`` calls; over Spark Connect it is pickled and called on the server."""

    def __init__(self, out: str, checkpoint: str, options: Mapping[str, str] | None, step: Step | None = None) -> None:
        self.out = out
        self.checkpoint = checkpoint
        self.options = dict(options) if options is not None else None
        self.step = step

    def __call__(self, df: DataFrame, batch: int) -> None:
        lines = df.toArrow().column("told").to_pylist()
        self.write(lines, batch, query_id(self.checkpoint), df.sparkSession)

    def write(self, lines: list[str], batch: int, query: str, spark: SparkSession | None) -> None:
        """Whoever dies in between is called again with the same."""
        told = [json.loads(line) for line in sorted(lines)]
        self._step("judged")
        if told:
            self._file(told, f"findings-{query[:8]}-{batch:010d}.parquet")
            if self.options is not None:
                self._send(told, batch, spark)
                self._step("sent")

    def _file(self, told: list[dict[str, Any]], name: str) -> None:
        import pyarrow.parquet as parquet

        filesystem, folder = filesystem_of(self.out)
        hidden = Hidden(filesystem, folder, name)
        parquet.write_table(table_of(told), hidden.path, filesystem=filesystem)
        self._step("written")
        hidden.show()
        self._step("shown")

    def _send(self, told: list[dict[str, Any]], batch: int, spark: SparkSession | None) -> None:
        assert spark is not None and self.options is not None
        options = {**self.options, "checkpointLocation": self.checkpoint}  # which says when the batch began
        rows = [message_of(one) for one in told]
        df = spark.createDataFrame(rows, MESSAGES).coalesce(1)
        outcomes = published(df, parse(options, writing=True), f"watch-{batch}").collect()
        lost = [row for row in outcomes if row["outcome"] != CONFIRMED]
        if lost:
            say = f"{len(lost)} findings were not taken as messages ({lost[0]['outcome']}); they are in the table"
            print(f"warren pipeline watch: {say}", flush=True)

    def _step(self, name: str) -> None:
        if self.step is not None:
            self.step(name)


def message_of(one: Mapping[str, Any]) -> tuple[str, str, str, bytearray]:
    """A finding as a message: its id is its name and state, its routing key says of which kind it is."""
    key = f"{one['what']}.{one['state']}".replace(" ", "_")
    return f"{one['finding']}/{one['state']}", key, "application/json", bytearray(json.dumps(one).encode())


def table_of(told: list[dict[str, Any]]) -> pa.Table:
    """Findings with all columns, those that are of no concern null."""
    import pyarrow as pa

    types = {
        "string": pa.string(),
        "bigint": pa.int64(),
        "int": pa.int32(),
        "double": pa.float64(),
        "timestamp": pa.timestamp("us", "UTC"),
    }
    columns = [column.split() for column in SCHEMA.split(", ")]
    return pa.table({name: pa.array([one.get(name) for one in told], types[kind]) for name, kind in columns})
