"""Reading the messages of a lease, in a task.

Duty: the messages in order, over as many connections as it takes, and what to do when some are gone: a lease that ran
out or was released, transient messages that went with a crash of the broker. Nothing is settled by reading. Not here:
taking and settling leases (``leased.py``).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from warrenmq.client import ChannelClosed, ConnectionClosed, Field, Timeout
from warrenmq.spark.bad_records import bad_table
from warrenmq.spark.columns import BATCH_BYTES, BATCH_ROWS, Columns
from warrenmq.spark.connect import STALLED, BrokerLost, connect
from warrenmq.spark.httpapi import HttpApi, Lease, LeaseExpired
from warrenmq.spark.options import Options
from warrenmq.spark.patience import Patience
from warrenmq.spark.secret import Login
from warrenmq.wire.replies import NOT_FOUND, PRECONDITION_FAILED

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger("warrenmq.spark")


@dataclass
class LeasePartition(InputPartition):
    """A lease to be read: ``count`` messages were left when it was planned, and ``settled`` had been acted upon
    (``acting.py``)."""

    queue: str
    lease: str
    count: int
    settled: int = 0


def missing(options: Options, queue: str, lease: str, count: int, known: int) -> None:
    """Some messages of a planned batch are gone, and nobody settled them: an error, or a warning, as asked."""
    gone = "none" if not known else f"only {known}"
    text = (
        f"lease {lease} on queue '{queue}' has {gone} of the {count} messages that were planned: it ran out or was "
        "released, or the broker crashed and they were transient"
    )
    if options.fail_on_data_loss:
        raise LeaseExpired(f"{text}; option failOnDataLoss=false goes on without them")
    log.warning("%s; going on without them because failOnDataLoss=false", text)


def read_lease(options: Options, schema: StructType, partition: LeasePartition) -> Iterator[pa.RecordBatch]:
    with bad_table(options, f"{partition.queue}-lease-{partition.lease}") as bad:
        yield from _read(options, Columns(schema, partition.queue, bad, partition.lease), partition)


def _read(options: Options, columns: Columns, partition: LeasePartition) -> Iterator[pa.RecordBatch]:
    patience = Patience(options)
    done = 0
    count = partition.count
    known = count + partition.settled
    slots: list[int] = []
    while done < count:
        if "slot" in columns.names:
            # Slots are only ever closed, so when the broker agrees below on how many are left, they are these.
            state = _state(options, partition)
            known = _known(options, partition, known, state)
            slots = state.slots()
            if done and len(slots) != count:
                raise BrokerLost(_changed(partition))
            count = len(slots)
            if not count:
                return
        connection = connect(options, f"lease of {partition.queue}")
        try:
            channel = connection.channel()
            login = Login(options, connection)
            arguments = {"x-lease": partition.lease, "x-lease-left": Field("l", count)}
            channel.basic_consume(partition.queue, no_ack=True, arguments=arguments)
            skip = done  # after a lost connection the lease is read from its beginning
            while done < count:
                login.refresh()
                messages = channel.receive(STALLED)
                if not messages:
                    raise BrokerLost(f"lease {partition.lease} on queue '{partition.queue}' gave {done} of {count}")
                if skip:
                    skipped = min(skip, len(messages))
                    messages = messages[skipped:]
                    skip -= skipped
                messages = messages[: count - done]
                columns.extend(messages)
                columns.slots += slots[done : done + len(messages)]
                done += len(messages)
                if messages:
                    patience.progressed()
                if len(columns) >= BATCH_ROWS or columns.bytes >= BATCH_BYTES:
                    yield columns.take()
        except ChannelClosed as closed:
            if closed.code not in (NOT_FOUND, PRECONDITION_FAILED):
                raise BrokerLost(f"queue '{partition.queue}' cannot be read: {closed.text}") from None
            state = _state(options, partition)
            known = _known(options, partition, known, state)
            if done:
                # Which of those already handed on are among the missing cannot be told: the task begins anew.
                raise BrokerLost(_changed(partition)) from None
            count = state.count
        except (ConnectionClosed, Timeout) as gone:
            if not patience.again():
                times = patience.failures
                raise BrokerLost(f"the connection to {options.address} was lost {times} times: {gone}") from None
        finally:
            connection.abort()
    if len(columns):
        yield columns.take()


def _state(options: Options, partition: LeasePartition) -> Lease:
    return HttpApi(options).state(partition.queue, partition.lease) or Lease(partition.lease, 0)


def _known(options: Options, partition: LeasePartition, known: int, state: Lease) -> int:
    """What is settled is not missing; what is neither there nor settled is."""
    if state.known < known:
        missing(options, partition.queue, partition.lease, known, state.known)
    return state.known


def _changed(partition: LeasePartition) -> str:
    return f"messages of lease {partition.lease} on queue '{partition.queue}' were lost or settled while it was read"
