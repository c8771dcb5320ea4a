"""Spark's side of a streaming query, without Spark: the order in which it plans, logs, reads, writes and commits.

Duty: drive a ``DataSourceStreamReader`` as Spark's micro-batch execution does, against a checkpoint and a sink that
outlive the run, and die at a chosen point. What is durable here is durable there: the offset log, the commit log, the
sink. Everything else (the reader, its connections) belongs to one run. Points to die at are the steps of the protocol
and the moment after each HTTP call of the reader, when the broker has done something that nobody knows of yet.

The order, from Spark's MicroBatchExecution: ``latestOffset`` -> offset N is logged -> ``commit(N-1)`` -> ``partitions``
-> ``read`` -> the sink writes -> commit N is logged. A run that finds offset N without commit N repeats the batch from
``partitions`` on, and does not call ``commit(N-1)`` again.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from warrenmq.spark.httpapi import HttpApi

IDLE_POLLS = 2  # a continuing query is over when so many polls in a row found nothing


EachBatch = Callable[[int, list[list[Any]]], None]


class Died(BaseException):
    """The driver is gone. No handler of the connector may take it for a failure it can mend."""


class Fate:
    """Counts the points a run passes and dies at the chosen one (0: never)."""

    def __init__(self, at: int = 0) -> None:
        self.at = at
        self.passed: list[str] = []

    def passes(self, point: str) -> None:
        self.passed.append(point)
        if len(self.passed) == self.at:
            raise Died(point)


@dataclass
class Checkpoint:
    """What outlives a run: the two logs, and a sink that takes each batch once, as Spark's file sink does."""

    offsets: list[str] = field(default_factory=list)
    commits: set[int] = field(default_factory=set)
    sink: dict[int, list[bytes]] = field(default_factory=dict)
    again: dict[int, list[list[bytes]]] = field(default_factory=dict)  # what repeated batches held

    def write(self, batch: int, rows: list[bytes]) -> None:
        if batch in self.sink:
            self.again.setdefault(batch, []).append(rows)
        else:
            self.sink[batch] = rows

    def rows(self) -> list[bytes]:
        return [row for rows in self.sink.values() for row in rows]


def run(
    checkpoint: Checkpoint, reader: Any, fate: Fate, available_now: bool, each_batch: EachBatch | None = None
) -> None:
    """One run of the query, until it has nothing more to do or dies. ``each_batch`` is its foreachBatch, instead of a
    sink that takes everything: it gets the number of the batch and the Arrow tables of each of its partitions."""
    ask = HttpApi._call

    def asked(api: HttpApi, method: str, path: str, body: object, timeout: float = 30) -> Any:
        answer = ask(api, method, path, body, timeout)
        fate.passes(f"{method} {path.split('?')[0].rpartition('/')[2]} answered")
        return answer

    HttpApi._call = asked  # type: ignore[method-assign,assignment]
    try:
        _run(checkpoint, reader, fate, available_now, each_batch)
    finally:
        HttpApi._call = ask  # type: ignore[method-assign]


def _run(checkpoint: Checkpoint, reader: Any, fate: Fate, available_now: bool, each_batch: EachBatch | None) -> None:
    limit = reader.getDefaultReadLimit()
    if available_now:
        reader.prepareForTriggerAvailableNow()
    fate.passes("started")
    batch = len(checkpoint.offsets) - 1
    planned = batch >= 0 and batch not in checkpoint.commits
    end = checkpoint.offsets[batch] if batch >= 0 else None
    committed = end
    if planned:
        committed = checkpoint.offsets[batch - 1] if batch else None
    else:
        batch += 1
    idle = 0
    while True:
        if not planned:
            start = json.loads(committed) if committed is not None else _through_json(reader.initialOffset)
            end = json.dumps(reader.latestOffset(start, limit))
            fate.passes(f"batch {batch} planned")
            if committed is not None and end == committed:
                idle += 1
                if available_now or idle >= IDLE_POLLS:
                    return
                continue
            idle = 0
            checkpoint.offsets.append(end)
            fate.passes(f"offset {batch} logged")
            if batch:
                reader.commit(json.loads(checkpoint.offsets[batch - 1]))
                fate.passes(f"commit({batch - 1}) called")
        assert end is not None
        start = json.loads(committed) if committed is not None else _through_json(reader.initialOffset)
        partitions = pickle.loads(pickle.dumps(list(reader.partitions(start, json.loads(end)))))
        fate.passes(f"batch {batch} partitioned")
        worker = pickle.loads(pickle.dumps(reader))
        tables = [list(worker.read(partition)) for partition in partitions]
        fate.passes(f"batch {batch} read")
        if each_batch is None:
            bodies = [table.column("body").to_pylist() for part in tables for table in part]
            checkpoint.write(batch, [row for rows in bodies for row in rows])
        else:
            each_batch(batch, tables)
        fate.passes(f"batch {batch} written")
        checkpoint.commits.add(batch)
        fate.passes(f"commit {batch} logged")
        committed, planned = end, False
        batch += 1


def _through_json(offset: Callable[[], Any]) -> Any:
    return json.loads(json.dumps(offset()))
