"""format("amqp") as a sink: rows become messages, confirmed before the task is done.

Duty: Spark's writers. ``unroutable`` says what becomes of rows the broker did not take: ``fail`` fails the task and
names them, ``report`` writes them with the reason to ``unroutablePath``. Not here: publishing (``publisher.py``).

With ``deduplicate`` the exchange takes no row twice, and a task fails that cannot be sure of it (``deduplicated.py``).

Message ids: a row without one gets ``<job>-<partition>-<row>`` (batch) or ``<query>-<batch>-<partition>-<row>``
(streaming), which is the same when Spark repeats the task or, streaming, the whole batch (``message_ids.py``).
"""

from __future__ import annotations

import contextlib
import json
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyspark.sql.datasource as api
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from warrenmq.spark.chunk import Chunk
from warrenmq.spark.compat import arrow_schema
from warrenmq.spark.deduplicated import Watch, check_options, now_ms, streaming_batch_began
from warrenmq.spark.options import NO_TABLE_OPTIONS, OptionError, Options
from warrenmq.spark.publisher import Publisher
from warrenmq.spark.schema import WRITE_COLUMNS
from warrenmq.spark.storage import Hidden, filesystem_of

if TYPE_CHECKING:
    import pyarrow as pa

NAMED = 10  # failed rows named in an error
# Spark's own names for what a streaming task belongs to.
QUERY_ID = "sql.streaming.queryId"
BATCH_ID = "streaming.sql.batchId"


class RowsNotAccepted(RuntimeError):
    """The broker did not take some rows and ``unroutable`` is ``fail``. Spark fails the task with this text."""


@dataclass
class Written(WriterCommitMessage):
    """The results of one task."""

    job: str = ""  # what all ids of the job or query begin with
    rows: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    report: str | None = None


def check_write_schema(schema: StructType) -> None:
    known = dict(WRITE_COLUMNS)
    names = schema.fieldNames()
    if "body" not in names:
        raise OptionError(f"rows to write need a column 'body'; these have: {', '.join(names)}")
    for column in schema.fields:
        name = column.name
        kind = column.dataType.simpleString()
        if name not in known:
            raise OptionError(f"format amqp cannot write column '{name}'; it writes: {', '.join(known)}")
        good = (
            kind == known[name]
            or (name == "body" and kind == "string")
            or (name == "headers" and kind.startswith("map<string,"))
            or (known[name] == "int" and kind in ("tinyint", "smallint", "bigint"))
            or (name == "timestamp" and kind == "bigint")
            or kind == "void"
        )
        if not good:
            raise OptionError(f"column '{name}' is {kind}; format amqp writes {known[name]}")


def check_target(schema: StructType, options: Options) -> None:
    if not options.given:  # a table's rows must not go to whatever broker is on this machine
        raise OptionError(f"no option says where to publish: give at least 'host' or 'url'{NO_TABLE_OPTIONS}")
    if "exchange" not in schema.fieldNames() and options.exchange is None:
        raise OptionError("say where to publish: option 'exchange' (may be empty) or a column 'exchange'")


class Sink:
    """The parts that batch and streaming writers share; pickled to the workers."""

    def __init__(self, options: Options, schema: StructType, streaming: bool = False) -> None:
        check_write_schema(schema)
        check_target(schema, options)
        self.options = options
        self.began = now_ms() if options.batch_began is None else options.batch_began
        if options.deduplicate:
            check_options(options, streaming)
        self.job = options.batch_key or uuid.uuid4().hex[:16]
        if len(self.job) > 200:
            raise OptionError("option 'batchKey' is longer than 200 characters")

    def write(self, batches: Iterator[pa.RecordBatch]) -> Written:
        job, prefix = task_of(self.job)
        written = Written(job)
        failed: list[dict[str, Any]] = []
        watch = Watch(self.options, began_of(self.options, self.began)) if self.options.deduplicate else None
        if watch is not None:
            batches = watch.over(batches)
        for chunk in Publisher(self.options, prefix).run(batches):
            written.rows += chunk.batch.num_rows
            for outcome in set(chunk.outcomes):
                written.outcomes[outcome] = written.outcomes.get(outcome, 0) + chunk.outcomes.count(outcome)
            rows = failed_rows(chunk)
            if rows and self.options.unroutable == "fail":
                raise RowsNotAccepted(named(rows, self.options))
            failed.extend(rows)
        if watch is not None:
            watch.ask_again()
        if failed:
            written.report = write_report(self.options.unroutable_path or "", f"{prefix}rows", failed)
        elif self.options.unroutable_path is not None:
            remove_report(self.options.unroutable_path, f"{prefix}rows")
        return written

    def count(self, messages: list[WriterCommitMessage | None], batch: str = "") -> None:
        """On the driver, once all tasks are done: the counts beside the reported rows.

        Their file is named after the query, which only its tasks know, so that a batch which is repeated by another
        run is counted once.
        """
        if self.options.unroutable_path is None:
            return
        name = self.job + batch
        outcomes: dict[str, int] = {}
        for message in messages:
            if isinstance(message, Written):
                name = message.job
                for outcome, count in message.outcomes.items():
                    outcomes[outcome] = outcomes.get(outcome, 0) + count
        # A leading underscore keeps Spark from reading the file as data.
        write_text(self.options.unroutable_path, f"_counts-{name}.json", json.dumps(outcomes, sort_keys=True))


class AmqpWriter(DataSourceArrowWriter):
    """The batch sink: one publisher a task, confirmed before the task reports."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self.sink = Sink(options, schema)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self.sink.write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self.sink.count(messages)


class _Streaming:
    def __init__(self, options: Options, schema: StructType) -> None:
        self.sink = Sink(options, schema, streaming=True)
        self.schema = schema

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self.sink.count(messages, f"-{batchId}")

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Nothing to undo: confirmed messages stay, and come again with the same ids."""


if hasattr(api, "DataSourceStreamArrowWriter"):

    class AmqpStreamWriter(_Streaming, api.DataSourceStreamArrowWriter):
        """The streaming sink, batch by batch."""

        def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
            return self.sink.write(iterator)

else:  # Spark 4.0 hands rows to streaming sinks

    class AmqpStreamWriter(_Streaming, api.DataSourceStreamWriter):  # type: ignore[no-redef]
        """The streaming sink, batch by batch."""

        def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
            return self.sink.write(_batches(iterator, self.schema))


def _batches(rows: Iterator[Any], schema: StructType, size: int = 2500) -> Iterator[pa.RecordBatch]:
    import pyarrow

    arrow = arrow_schema(schema)
    held: list[tuple[Any, ...]] = []
    for row in rows:
        held.append(tuple(row))
        if len(held) == size:
            columns = list(zip(*held, strict=True))
            yield pyarrow.RecordBatch.from_arrays(
                [pyarrow.array(c, f.type) for c, f in zip(columns, arrow, strict=True)], schema=arrow
            )
            held = []
    if held:
        columns = list(zip(*held, strict=True))
        yield pyarrow.RecordBatch.from_arrays(
            [pyarrow.array(c, f.type) for c, f in zip(columns, arrow, strict=True)], schema=arrow
        )


def task_of(job: str) -> tuple[str, str]:
    """What all ids of this job or streaming batch begin with, and those of this task; the same when it is repeated."""
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        return job, f"{job}-0-"
    query = context.getLocalProperty(QUERY_ID)
    batch = context.getLocalProperty(BATCH_ID)
    if query and batch:
        job = f"{query}-{batch}"
    return job, f"{job}-{context.partitionId()}-"


def began_of(options: Options, planned: int) -> int:
    """When rows of this task can have been published first, in ms since 1970."""
    from pyspark import TaskContext

    context = TaskContext.get()
    batch = None if context is None else context.getLocalProperty(BATCH_ID)
    if batch is None:
        return planned
    if options.checkpoint_location is None:  # written by foreachBatch, which may be repeated as well
        raise OptionError(
            "option 'deduplicate' inside foreachBatch needs option 'checkpointLocation', the query's own, on the write"
        )
    return streaming_batch_began(options.checkpoint_location, batch)


def failed_rows(chunk: Chunk) -> list[dict[str, Any]]:
    rows = []
    for row in chunk.failures():
        rows.append(
            {
                "message_id": chunk.rows.message_ids[row],
                "exchange": chunk.rows.exchanges[row],
                "routing_key": chunk.rows.routing_keys[row],
                "outcome": chunk.outcomes[row],
                "reply_code": chunk.codes.get(row),
                "reply_text": chunk.texts.get(row),
                "body": chunk.rows.bodies[row],
                "reported_at": int(time.time() * 1_000_000),
            }
        )
    return rows


def named(rows: list[dict[str, Any]], options: Options) -> str:
    texts = []
    for row in rows[:NAMED]:
        code = f" {row['reply_code']}" if row["reply_code"] else ""
        text = f" {row['reply_text']}" if row["reply_text"] else ""
        texts.append(
            f"message_id={row['message_id']} exchange='{row['exchange']}' routing_key='{row['routing_key']}' "
            f"{row['outcome']}{code}{text}"
        )
    more = f" and {len(rows) - NAMED} more" if len(rows) > NAMED else ""
    return (
        f"{len(rows)} rows were not accepted by {options.address} (option unroutable=report writes them away "
        f"instead of failing): {'; '.join(texts)}{more}"
    )


def write_report(path: str, name: str, rows: list[dict[str, Any]]) -> str:
    """The rows as one Parquet file whose name is the same when the task is repeated: nothing is reported twice."""
    import pyarrow
    import pyarrow.parquet as parquet

    schema = pyarrow.schema(
        [
            ("message_id", pyarrow.string()),
            ("exchange", pyarrow.string()),
            ("routing_key", pyarrow.string()),
            ("outcome", pyarrow.string()),
            ("reply_code", pyarrow.int32()),
            ("reply_text", pyarrow.string()),
            ("body", pyarrow.binary()),
            ("reported_at", pyarrow.timestamp("us", "UTC")),
        ]
    )
    table = pyarrow.Table.from_pylist(rows, schema=schema)
    filesystem, folder = filesystem_of(path)
    hidden = Hidden(filesystem, folder, f"{name}.parquet")
    parquet.write_table(table, hidden.path, filesystem=filesystem)
    return hidden.show()


def remove_report(path: str, name: str) -> None:
    """What an earlier attempt at this task could not publish, and this one could."""
    filesystem, folder = filesystem_of(path)
    with contextlib.suppress(FileNotFoundError):
        filesystem.delete_file(f"{folder}/{name}.parquet")


def write_text(path: str, name: str, text: str) -> None:
    filesystem, folder = filesystem_of(path)
    filesystem.create_dir(folder, recursive=True)
    with filesystem.open_output_stream(f"{folder}/{name}") as file:
        file.write(text.encode())
