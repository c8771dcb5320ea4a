"""The start: what the log found becomes vhosts, queues with their messages, schedules and leases again.

Duty: the order in which that is taken up. What a stored definition looks like is in ``store.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warrenmq.broker.deduplication import deduplication
from warrenmq.broker.queue.classic import leases_of
from warrenmq.broker.start import topology
from warrenmq.log.index import QueueIndex
from warrenmq.log.recovery import Recovered

if TYPE_CHECKING:
    from warrenmq.broker.core import Core
    from warrenmq.broker.queue.queue import Queue


def recover(broker: Core, recovered: Recovered) -> None:
    broker.services.ids.epoch_begins(recovered.epoch)
    others = topology.load_definitions(broker, recovered.definitions)
    stored_leases: dict[str, topology.StoredLease] = {}
    acted: list[dict[str, object]] = []
    went_back: list[dict[str, object]] = []
    returned: list[dict[str, object]] = []
    remembered: list[dict[str, object]] = []
    for kind, value in others:
        if kind == "lease":
            stored_leases[_lease_key(value)] = topology.StoredLease(value)
        elif kind == "lease_settled":
            acted.append(value)
        elif kind == "lease_back":
            went_back.append(value)
        elif kind == "lease_returned":
            returned.append(value)
        elif kind == deduplication.KIND:
            remembered.append(value)
        else:
            _load_other(broker, kind, value)
    for value in acted:
        lease = stored_leases.get(_lease_key(value))
        if lease is not None:
            lease.settled = int(str(value["settled"]))
    for value in went_back:
        lease = stored_leases.get(_lease_key(value))
        if lease is not None:
            lease.backs.append(value["slots"])
    held: dict[int, list[topology.StoredLease]] = {}
    for stored in stored_leases.values():
        held.setdefault(int(str(stored.value["queue"])), []).append(stored)
    by_id: dict[int, Queue] = {}
    for vhost in broker.vhosts.values():
        for queue in vhost.queues.values():
            by_id[queue.id] = queue
    for value in returned:
        owner = by_id.get(int(str(value["queue"])))
        if owner is not None:
            leases = leases_of(owner)
            if leases is not None:
                leases.remember_returned(str(value["id"]))
    for id, index in recovered.queues.items():
        found = by_id.get(id)
        if found is not None:
            upto = recovered.delivered_up_to.get(id, 0)
            topology.load_queue(broker, found, index, upto, recovered.clean, held.pop(id, []))
    for id, rest in held.items():  # of queues of which the log has no message
        found = by_id.get(id)
        if found is not None:
            topology.load_queue(broker, found, QueueIndex(), 0, recovered.clean, rest)
    broker.delay.recover(recovered)
    broker.deduplication.recover(remembered, recovered)
    dropped = {int(str(value["holder"])) for value in remembered}
    for id, index in recovered.queues.items():
        if id not in by_id and id not in dropped and not broker.delay.knows(id):
            broker.services.notes.event("warning", "messages_without_queue", {"queue_id": id, "messages": len(index)})
            broker.services.log.drop_queue(id, index.addresses)
    broker.services.log.tell_found()


def _lease_key(value: dict[str, object]) -> str:
    return f"{value['queue']} {value['id']}"


def _load_other(broker: Core, kind: str, value: dict[str, object]) -> None:
    """A definition that belongs to the broker as a whole."""
    if kind == "parameter":
        broker.parameters.of_vhosts[(str(value["component"]), str(value["vhost"]), str(value["name"]))] = value["value"]
    elif kind == "counter":
        broker.services.ids.queues_are_taken_below(int(str(value["next"])))
    elif kind == "global_parameter":
        broker.parameters.globally[str(value["name"])] = value["value"]
        if value["name"] == "cluster_name":
            broker.node.cluster_name = str(value["value"])
    elif kind == "cluster":
        pass  # which node led from where on is the log's own affair
    else:
        broker.services.notes.event("warning", "unknown_definition", {"kind": kind})
