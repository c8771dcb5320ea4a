"""Queues of Warren as Spark sources: messages held under a lease, which can be read as often as Spark wants.

Duty: leasing what a batch is to hold, and settling it when Spark says the batch is done. An offset in the checkpoint
names the leases of its batch, so a batch that is run again, by whichever process, reads the same messages. That makes
the source exactly-once into a sink that is, while the leases live. Why a driver may die between any two steps:

- The owner is made up once, and its first batch is empty: nothing is leased before the offset log has the owner, so
  whatever is leased is found again by the next process.
- The key of a lease is (batch, number): asking again after a lost reply gives the lease that is already there, and
  leases of a batch whose offset was not logged are taken over by the process that plans that batch next.
- Spark logs offset N before it commits N-1, and a restart in between never commits N-1. But a batch that is planned
  proves that the one before it is in the sink: planning N settles N-1.
- Spark commits a batch only when it builds the next one. When nothing new comes, an empty batch is built, once, so
  that the last one is settled and not left waiting.
- While the driver lives it renews the leases of its owner (``renewal.py``).

Not here: the HTTP calls (``httpapi.py``), reading a lease (``lease_reading.py``), plain RabbitMQ (``plain.py``).
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from warrenmq.spark.compat import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from warrenmq.spark.gathering import Gathering
from warrenmq.spark.httpapi import HttpApi, Lease, LeaseExpired
from warrenmq.spark.lease_reading import LeasePartition, missing, read_lease
from warrenmq.spark.options import Options
from warrenmq.spark.pacing import at_a_rate
from warrenmq.spark.renewal import Renewal
from warrenmq.spark.waiting import waiting

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger("warrenmq.spark")

EVERYTHING = 1_000_000  # messages in one batch when no limit is set
ROWS_PER_LEASE = 50_000
BATCH_TTL_MS = 600_000  # of a batch read, unless leaseTtl says otherwise; each read renews
# Of the first batch of a query that runs but once (trigger once): its owner is not in the log when it leases.
NAMELESS_TTL_MS = 120_000
MOST_LEASES = 8  # of one queue in one batch, unless minPartitions asks for more


def parts_of(options: Options, wanted: int, queues: int) -> int:
    """How many leases (so partitions) of one queue a batch of this size is cut into."""
    by_size = min(MOST_LEASES, max(2, -(-wanted // ROWS_PER_LEASE)))
    if options.max_rows_per_second is not None:
        by_size = 1  # tasks that share a rate gain nothing by being many
    asked = -(-(options.min_partitions or 1) // max(1, queues))
    return max(1, min(max(by_size, asked), wanted))


def take(api: HttpApi, queues: dict[str, int], owner: str, batch: int, size: int | None) -> dict[str, list[Lease]]:
    """Lease up to that many messages of each queue, in several leases; queues that had none are left out."""
    found: dict[str, list[Lease]] = {}
    for queue, wanted in queues.items():
        parts = parts_of(api.options, wanted, len(queues))
        share = None if size is None else max(1, size // (len(queues) * parts))
        leases: list[Lease] = []
        for part in range(parts):
            count = wanted * (part + 1) // parts - wanted * part // parts
            lease = api.lease(queue, count, owner, f"{batch}/{part}", share) if count else None
            if lease is None:
                break  # the queue is empty; what comes later belongs to the next batch
            leases.append(lease)
        if leases:
            found[queue] = leases
    return found


def taken(api: HttpApi, names: list[str], owner: str, batch: int) -> dict[str, list[Lease]]:
    """The leases this batch already has: it was planned before, by an earlier action or a process that died."""
    found: dict[str, list[Lease]] = {}
    for queue in names:
        leases = [lease for lease in api.leases(queue, owner) if lease.key.startswith(f"{batch}/")]
        if leases:
            found[queue] = sorted(leases, key=_number)
    return found


def _number(lease: Lease) -> int:
    return int(lease.key.rpartition("/")[2])


@at_a_rate
class LeasedBatchReader(DataSourceReader):
    """A batch read: everything now in the queues, held under leases and never settled.

    The owner is made when the DataFrame is made, so that every action on it finds the same leases and sees the same
    messages. Spark does not say when a DataFrame is done with, so the leases are short, each action renews them, and so
    does a task while it reads.
    """

    def __init__(self, options: Options, schema: StructType, owner: str) -> None:
        if "leaseTtl" not in options.given:
            options = replace(options, lease_ttl_ms=BATCH_TTL_MS)
        self.options = options
        self.schema = schema
        self.owner = owner

    def partitions(self) -> Sequence[InputPartition]:
        api = HttpApi(self.options)
        names = api.names(stream=False)
        leases = taken(api, names, self.owner, 0)
        if not leases:
            ready = {name: min(count, EVERYTHING) for name, count in waiting(self.options, names).items()}
            leases = take(api, {name: count for name, count in ready.items() if count}, self.owner, 0, None)
        found: list[InputPartition] = []
        for queue, held in leases.items():
            for lease in held:
                api.renew(queue, lease.id)
                found.append(LeasePartition(queue, lease.id, lease.count, lease.settled))
        return found or [LeasePartition("", "", 0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, LeasePartition)
        renewal = Renewal(self.options)
        if partition.count:
            renewal.keep(partition.queue, [partition.lease])
        try:
            yield from read_lease(self.options, self.schema, partition)
        finally:
            renewal.stop()


@at_a_rate
class LeasedStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A streaming read. The checkpoint's offset is {"owner", "batch", "leases": {queue: [[id, count]]}}."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self.options = options
        self.schema = schema
        self.api = HttpApi(options)
        self._left: dict[str, int] | None = None  # AvailableNow: messages still to take of each queue
        self._tidied = False
        self._settled = 0  # every batch up to this one is settled by this process
        self._current: dict[str, Any] | None = None  # Spark before 4.2 does not say where it stands
        self._renewal = Renewal(options)
        self._behind: dict[str, int] | None = None  # messages that the last batch planned leaves in each queue
        self._gathering = Gathering(options)

    def __getstate__(self) -> dict[str, Any]:
        fresh = LeasedStreamReader(self.options, self.schema).__dict__
        return dict(fresh)

    def initialOffset(self) -> dict[str, Any]:
        self._current = {"owner": uuid.uuid4().hex, "batch": 0, "leases": {}}
        return self._current

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.options.max_offsets_per_trigger or EVERYTHING)

    def prepareForTriggerAvailableNow(self) -> None:
        self._left = waiting(self.options, self.api.names(stream=False))

    def latestOffset(self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None) -> dict[str, Any]:
        at = start or self._current or {"owner": uuid.uuid4().hex, "batch": 0, "leases": {}}
        only = limit is None or isinstance(limit, ReadAllAvailable)  # one batch is all that this run will have
        if at["batch"] == 0 and not only:
            self._current = {**at, "batch": 1}
            return self._current
        names = list(self._left) if self._left is not None else self.api.names(stream=False)
        batch = int(at["batch"]) + 1
        self._behind = None
        leases = {} if self._tidied else self._tidy(names, at)
        if not leases:
            leases = self._lease(names, at, batch, limit)
        if not leases and not at["leases"]:
            return at
        # Without leases this is the empty batch that lets Spark commit the one before.
        listed = {queue: [[lease.id, lease.count] for lease in held] for queue, held in leases.items()}
        self._current = {"owner": at["owner"], "batch": batch, "leases": listed}
        return self._current

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """For the query's progress (``progress.lag``): a queue has no end, only messages that wait."""
        return None if self._behind is None else {"behind": self._behind}

    def _lease(
        self, names: list[str], at: dict[str, Any], batch: int, limit: ReadLimit | None
    ) -> dict[str, list[Lease]]:
        most = EVERYTHING
        size = None
        if not isinstance(limit, ReadAllAvailable):
            most = self.options.max_offsets_per_trigger or EVERYTHING
            size = self.options.max_bytes_per_trigger
        share = max(1, most // max(1, len(names)))
        ready = self._left if self._left is not None else waiting(self.options, names)
        self._behind = {name: ready.get(name, 0) for name in names}
        patient = self._left is None and not isinstance(limit, ReadAllAvailable)
        if patient and self._gathering.waits(sum(self._behind.values()), most):
            return {}
        wanted = {name: min(share, ready.get(name, 0)) for name in names}
        api = self.api
        if at["batch"] == 0:  # planning this batch, once the log has its owner, gives the leases their full time
            api = HttpApi(replace(self.options, lease_ttl_ms=min(NAMELESS_TTL_MS, self.options.lease_ttl_ms)))
        taken = take(api, {name: count for name, count in wanted.items() if count}, at["owner"], batch, size)
        for queue, held in taken.items():
            self._renewal.keep(queue, [lease.id for lease in held])
            count = sum(lease.count for lease in held)
            self._behind[queue] = max(0, self._behind[queue] - count)
            if self._left is not None:
                self._left[queue] = max(0, self._left[queue] - count)
        return taken

    def _tidy(self, names: list[str], at: dict[str, Any]) -> dict[str, list[Lease]]:
        """After a restart: leases of the next batch are taken over, any other that no batch knows is let go."""
        self._tidied = True
        known = {lease for held in at["leases"].values() for lease, _ in held}
        following = int(at["batch"]) + 1
        for queue in names:
            for lease in self.api.leases(queue, at["owner"]):
                if lease.id not in known and not lease.key.startswith(f"{following}/"):
                    self.api.release(queue, lease.id)
                else:
                    self._renewal.keep(queue, [lease.id])
        return taken(self.api, names, at["owner"], following)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        self._current = end
        if int(start["batch"]) > self._settled and start["owner"] == end["owner"]:
            self.commit(start)
        found = []
        for queue, held in end["leases"].items():
            for lease, count in held:
                state = self.api.renew(queue, lease)
                known = 0 if state is None else state.known
                if known < count:
                    missing(self.options, queue, lease, count, known)
                if state is not None:
                    self._renewal.keep(queue, [lease])
                    found.append(LeasePartition(queue, lease, state.count, state.settled))
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, LeasePartition)
        return read_lease(self.options, self.schema, partition)

    def commit(self, end: dict[str, Any]) -> None:
        for queue, held in end["leases"].items():
            for lease, _ in held:
                self._settle(queue, lease)
        self._settled = max(self._settled, int(end["batch"]))

    def _settle(self, queue: str, lease: str) -> None:
        try:
            self.api.ack(queue, lease)
        except LeaseExpired as expired:
            if self.options.fail_on_data_loss:
                raise
            log.warning("%s; going on because failOnDataLoss=false", expired)
        self._renewal.drop(queue, lease)

    def stop(self) -> None:
        self._renewal.stop()
