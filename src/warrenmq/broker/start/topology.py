"""What the log has of vhosts and of what is in them, taken up again at start.

Duty: definitions in the order in which they depend on one another, and the entries of each queue. How they stand in the
log is in ``declared.py``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, final

from librt.strings import read_i64_be
from mypy_extensions import i64

from warrenmq.broker.queue import holder
from warrenmq.broker.queue.classic import leases_of
from warrenmq.broker.queue.queue import Declaration, Queue
from warrenmq.broker.records import INTERNAL
from warrenmq.broker.vhost.declared import stored_binding_key, unpack
from warrenmq.log.causes import RECOVERED
from warrenmq.log.damage import RecordDamaged
from warrenmq.log.levels import level_of

if TYPE_CHECKING:
    from warrenmq.broker.core import Core
    from warrenmq.broker.queue.lease import Lease
    from warrenmq.log.index import QueueIndex

REDELIVERED: Final = 1
SLICE: Final = (1 << 16) - 1  # entries that are taken up at a time, less one


@final
class Loaded:
    """The rest of the definitions, when those of vhosts, access and policies are taken up."""

    def __init__(self) -> None:
        # what belongs to neither vhosts, nor access, nor policies, with its kind
        self.others: Final[list[tuple[str, dict[str, object]]]] = []
        # keys of bindings one end of which is gone: a crash came before the log heard of each that went along
        self.without_ends: Final[list[str]] = []


def load_definitions(broker: Core, definitions: dict[tuple[str, str], bytes]) -> Loaded:
    """Everything durable but messages, in the order in which it depends on one another. Nothing is logged."""
    loaded = Loaded()
    by_kind: dict[str, list[dict[str, object]]] = {}
    for (kind, _), raw in definitions.items():
        value = json.loads(raw)
        assert isinstance(value, dict)
        by_kind.setdefault(kind, []).append(value)
    for value in by_kind.pop("vhost", []):
        vhost = broker.add_vhost(str(value["name"]), str(value.get("user", INTERNAL)))
        vhost.description = str(value.get("description", ""))
        vhost.default_queue_type = str(value.get("default_queue_type", ""))
        vhost.nack_unroutable = value.get("nack_unroutable") is True
        level = level_of(value.get("journal"))
        sample = value.get("journal_sample")
        if level >= 0 and isinstance(sample, int):
            vhost.set_journal(level, sample)
        tags = value.get("tags")
        if isinstance(tags, list):
            vhost.tags = [str(tag) for tag in tags]
    exchanges = by_kind.pop("exchange", [])
    queues = by_kind.pop("queue", [])
    bindings = by_kind.pop("binding", [])
    for kind, values in by_kind.items():
        for value in values:
            if not broker.registry.access.load(kind, value) and not broker.registry.policies.load(kind, value):
                loaded.others.append((kind, value))
    for vhost in broker.vhosts.values():  # what is there from the start was made before its policies were known
        for exchange in vhost.exchanges.values():
            vhost.refresh_exchange(exchange)
    for value in exchanges:
        owner = broker.vhosts[str(value["vhost"])]
        exchange = owner.restore_exchange(
            str(value["name"]),
            str(value["type"]),
            value["auto_delete"] is True,
            value["internal"] is True,
            unpack(value["arguments"]),
        )
        exchange.user = str(value.get("user", ""))
        scratches = value.get("scratches")
        if isinstance(scratches, dict):
            exchange.scratches = scratches
    for value in queues:
        owner = broker.vhosts[str(value["vhost"])]
        id = value["id"]
        assert isinstance(id, int)
        broker.services.ids.saw_queue(id)
        name = owner.queue_name(str(value["name"]))
        identity = str(value.get("identity", id))  # older logs have none
        auto_delete = value["auto_delete"] is True
        queue = owner.add_queue(Declaration(name, id, identity, True, None, auto_delete, unpack(value["arguments"])))
        queue.paused = value.get("paused") is True
    for value in bindings:
        owner = broker.vhosts[str(value["vhost"])]
        source = owner.exchanges.get(str(value["source"]))
        end = str(value["destination"])
        destination = owner.queues.get(end) if value["kind"] == "queue" else owner.exchanges.get(end)
        if source is not None and destination is not None:
            owner.restore_binding(source, destination, str(value["key"]), unpack(value["arguments"]))
        else:
            loaded.without_ends.append(stored_binding_key(value))
    return loaded


@final
class StoredLease:
    """A lease as the log has it."""

    def __init__(self, value: dict[str, object]) -> None:
        self.value: Final = value
        self.settled: int = 0
        self.backs: list[object] = []


def load_queue(
    broker: Core,
    queue: Queue,
    index: QueueIndex,
    delivered_up_to: i64,
    clean: bool,
    leases: list[StoredLease],
) -> Iterator[None]:
    """The entries the log found for a queue, in order of position, so many at a time; those that are leased go to their
    lease."""
    leased: dict[int, tuple[Lease, int]] = {}
    lent = leases_of(queue)
    if lent is not None:
        for stored in leases:
            leased.update(lent.restore(stored.value, stored.settled, stored.backs))
    positions, addresses, expiries, flags_of = index.positions, index.addresses, index.expiries, index.flags
    count: i64 = len(positions)
    queue.counters.came(RECOVERED, count)
    i: i64 = 0
    while i < count:
        if i & SLICE == SLICE:
            yield
        position = positions[i]
        packed = flags_of[i]
        redelivered = holder.was_delivered(packed) or (not clean and position <= delivered_up_to)
        failures = holder.failures_of(packed)
        if failures:
            queue.recovered_failures(position, failures)
        size = holder.size_of(packed)
        if size == holder.LARGE:
            try:
                size = read_i64_be(broker.services.log.read_head(addresses[i]).header, 4)
            except RecordDamaged:  # it is set aside when its turn comes: that it is large is all one knows
                size = holder.LARGE
        reason = holder.reason_of(packed)
        if reason:
            queue.recovered_letter(position, addresses[i], size, reason)
            i += 1
            continue
        if leased and lent is not None and position in leased:
            lease, slot = leased[position]
            flags = REDELIVERED if redelivered else 0
            priority = holder.priority_of(packed)
            lent.claim(lease, slot, addresses[i], size, priority, flags, expiries[i])
            i += 1
            continue
        queue.recover(
            position,
            addresses[i],
            size,
            REDELIVERED if redelivered else 0,
            expiries[i],
            holder.priority_of(packed),
        )
        i += 1
    queue.recovered()
