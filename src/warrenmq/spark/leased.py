"""Queues of Warren as Spark sources: messages held under a lease, which can be read as often as Spark wants.

Duty: leasing what a batch is to hold, reading leases, settling them when Spark says the batch is done. An offset in the
checkpoint names the leases of its batch, so a batch that is run again, by whichever process, reads the same messages.
That makes the source exactly-once into a sink that is, while the leases live.

- The owner is made up once, in the query's first offset; the key of a lease is (batch, number), so asking again after a
  lost reply or a crash gives the lease that is already there.
- Spark commits a batch only when it builds the next one. When nothing new comes, an empty batch is built, once, so
  that the last one is settled and not left waiting.
- While the driver lives it renews the leases of its owner.

Not here: the HTTP calls (``httpapi.py``) and queues of plain RabbitMQ (``plain.py``).
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from warrenmq.client import ChannelClosed, ConnectionClosed, Timeout
from warrenmq.spark.columns import Columns
from warrenmq.spark.compat import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from warrenmq.spark.connect import BrokerLost, connect
from warrenmq.spark.httpapi import HttpApi, Lease, LeaseExpired
from warrenmq.spark.options import Options
from warrenmq.spark.stream import BATCH_BYTES, BATCH_ROWS, STALLED
from warrenmq.spark.waiting import waiting

if TYPE_CHECKING:
    import pyarrow as pa

EVERYTHING = 1_000_000  # messages in one batch when no limit is set
ROWS_PER_LEASE = 50_000
BATCH_TTL_MS = 3_600_000  # of a batch read, unless leaseTtl says otherwise
MOST_LEASES = 8  # of one queue in one batch, unless minPartitions asks for more


@dataclass
class LeasePartition(InputPartition):
    queue: str
    lease: str
    count: int


def parts_of(options: Options, wanted: int, queues: int) -> int:
    """How many leases (so partitions) of one queue a batch of this size is cut into."""
    by_size = min(MOST_LEASES, max(2, -(-wanted // ROWS_PER_LEASE)))
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


def read_lease(options: Options, schema: StructType, partition: LeasePartition) -> Iterator[pa.RecordBatch]:
    """The messages of a lease, in order. Nothing is settled by reading."""
    if not partition.count:
        return
    columns = Columns(schema, partition.queue)
    lost = 0
    done = 0
    while done < partition.count:
        connection = connect(options, f"lease of {partition.queue}")
        try:
            channel = connection.channel()
            channel.basic_consume(partition.queue, no_ack=True, arguments={"x-lease": partition.lease})
            skip = done  # after a lost connection the lease is read from its beginning
            while done < partition.count:
                messages = channel.receive(STALLED)
                if not messages:
                    raise BrokerLost(
                        f"lease {partition.lease} on queue '{partition.queue}' gave {done} of {partition.count}"
                    )
                if skip:
                    skipped = min(skip, len(messages))
                    messages = messages[skipped:]
                    skip -= skipped
                messages = messages[: partition.count - done]
                columns.extend(messages)
                done += len(messages)
                if len(columns) >= BATCH_ROWS or columns.bytes >= BATCH_BYTES:
                    yield columns.take()
        except ChannelClosed as closed:
            if closed.code in (404, 406, 410):
                raise LeaseExpired(
                    f"lease {partition.lease} on queue '{partition.queue}' cannot be read any more: {closed.text}"
                ) from None
            raise BrokerLost(f"queue '{partition.queue}' cannot be read: {closed.text}") from None
        except (ConnectionClosed, Timeout) as closed:
            lost += 1
            if lost > options.retries:
                raise BrokerLost(f"the connection to {options.address} was lost {lost} times: {closed}") from None
        finally:
            connection.abort()
    if len(columns):
        yield columns.take()


class LeasedBatchReader(DataSourceReader):
    """A batch read: everything now in the queues, held under leases and never settled.

    The owner is made when the DataFrame is made, so that every action on it finds the same leases and sees the same
    messages. Spark does not say when a DataFrame is done with, so the leases are short and each action renews them.
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
                found.append(LeasePartition(queue, lease.id, lease.count))
        return found or [LeasePartition("", "", 0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, LeasePartition)
        return read_lease(self.options, self.schema, partition)


class LeasedStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A streaming read. The checkpoint's offset is {"owner", "batch", "leases": {queue: [[id, count]]}}."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self.options = options
        self.schema = schema
        self.api = HttpApi(options)
        self._left: dict[str, int] | None = None  # AvailableNow: messages still to take of each queue
        self._tidied = False
        self._current: dict[str, Any] | None = None  # Spark before 4.2 does not say where it stands
        self._renewing: threading.Thread | None = None
        self._held: dict[str, set[str]] = {}

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
        self._renew()
        names = list(self._left) if self._left is not None else self.api.names(stream=False)
        batch = int(at["batch"]) + 1
        leases = {} if self._tidied else self._tidy(names, at)
        if not leases:
            leases = self._lease(names, at["owner"], batch, limit)
        if not leases and not at["leases"]:
            return at
        for queue, held in leases.items():
            self._held.setdefault(queue, set()).update(lease.id for lease in held)
            if self._left is not None:
                self._left[queue] = max(0, self._left[queue] - sum(lease.count for lease in held))
        # Without leases this is the empty batch that lets Spark commit the one before.
        listed = {queue: [[lease.id, lease.count] for lease in held] for queue, held in leases.items()}
        self._current = {"owner": at["owner"], "batch": batch, "leases": listed}
        return self._current

    def _lease(self, names: list[str], owner: str, batch: int, limit: ReadLimit | None) -> dict[str, list[Lease]]:
        most = EVERYTHING
        size = None
        if not isinstance(limit, ReadAllAvailable):
            most = self.options.max_offsets_per_trigger or EVERYTHING
            size = self.options.max_bytes_per_trigger
        share = max(1, most // max(1, len(names)))
        ready = self._left if self._left is not None else waiting(self.options, names)
        wanted = {name: min(share, ready.get(name, 0)) for name in names}
        return take(self.api, {name: count for name, count in wanted.items() if count}, owner, batch, size)

    def _tidy(self, names: list[str], at: dict[str, Any]) -> dict[str, list[Lease]]:
        """After a restart: leases of the next batch are taken over, any other that no batch knows is let go."""
        self._tidied = True
        known = {lease for held in at["leases"].values() for lease, _ in held}
        following = int(at["batch"]) + 1
        for queue in names:
            for lease in self.api.leases(queue, at["owner"]):
                if lease.id in known:
                    self._held.setdefault(queue, set()).add(lease.id)
                elif not lease.key.startswith(f"{following}/"):
                    self.api.release(queue, lease.id)
        return taken(self.api, names, at["owner"], following)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        self._current = end
        self._renew()
        found = []
        for queue, held in end["leases"].items():
            for lease, count in held:
                self._held.setdefault(queue, set()).add(lease)
                found.append(LeasePartition(queue, lease, count))
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, LeasePartition)
        return read_lease(self.options, self.schema, partition)

    def commit(self, end: dict[str, Any]) -> None:
        for queue, held in end["leases"].items():
            for lease, _ in held:
                self.api.ack(queue, lease)
                self._held.get(queue, set()).discard(lease)

    # --- renewing

    def _renew(self) -> None:
        if self._renewing is None:
            self._renewing = threading.Thread(target=self._keep_renewing, daemon=True, name="renew leases")
            self._renewing.start()

    def _keep_renewing(self) -> None:
        pause = threading.Event()
        while not pause.wait(max(0.05, self.options.lease_ttl_ms / 3000)):
            for queue, held in list(self._held.items()):
                for lease in list(held):
                    try:
                        self.api.renew(queue, lease)
                    except BrokerLost:
                        break  # the broker is away: the lease does not run out while it is down, and we ask again
