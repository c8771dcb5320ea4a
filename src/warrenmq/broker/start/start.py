"""The start: what the log found becomes vhosts, queues with their messages, schedules and leases again.

Duty: the order in which that is taken up, definitions first: the messages may be known much later, and are many. Until
``steps`` is through, clients may log in and nothing else, no timer of the rules fires, and nothing is logged. What a
stored definition looks like is in ``store.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, final

from warrenmq.broker.deduplication import deduplication
from warrenmq.broker.queue.classic import leases_of
from warrenmq.broker.start import topology
from warrenmq.log.index import QueueIndex
from warrenmq.log.recovery import Recovered

if TYPE_CHECKING:
    from warrenmq.broker.core import Core
    from warrenmq.broker.queue.queue import Queue


@final
class Start:
    """One start of a broker; all definitions are taken up when it is made."""

    def __init__(self, broker: Core, recovered: Recovered) -> None:
        self._broker: Final = broker
        self._recovered: Final = recovered
        self._stored_leases: Final[dict[str, topology.StoredLease]] = {}
        self._returned: Final[list[dict[str, object]]] = []
        self._remembered: Final[list[dict[str, object]]] = []
        broker.services.ids.epoch_begins(recovered.epoch)
        loaded = topology.load_definitions(broker, recovered.definitions)
        self._without_ends: Final = loaded.without_ends
        self._take(loaded.others)

    def _take(self, others: list[tuple[str, dict[str, object]]]) -> None:
        """Definitions that belong to neither vhosts, nor access, nor policies."""
        acted: list[dict[str, object]] = []
        went_back: list[dict[str, object]] = []
        for kind, value in others:
            if kind == "lease":
                self._stored_leases[_lease_key(value)] = topology.StoredLease(value)
            elif kind == "lease_settled":
                acted.append(value)
            elif kind == "lease_back":
                went_back.append(value)
            elif kind == "lease_returned":
                self._returned.append(value)
            elif kind == deduplication.KIND:
                self._remembered.append(value)
            else:
                _load_other(self._broker, kind, value)
        for value in acted:
            lease = self._stored_leases.get(_lease_key(value))
            if lease is not None:
                lease.settled = int(str(value["settled"]))
        for value in went_back:
            lease = self._stored_leases.get(_lease_key(value))
            if lease is not None:
                lease.backs.append(value["slots"])

    def finish(self) -> None:
        """All of it at once."""
        for _ in self.steps():
            pass

    def steps(self) -> Iterator[None]:
        """Take up the messages, some at a time, once the log knows them."""
        broker = self._broker
        recovered = self._recovered
        log = broker.services.log
        for key in self._without_ends:
            log.undefine("binding", key)
        held: dict[int, list[topology.StoredLease]] = {}
        for stored in self._stored_leases.values():
            held.setdefault(int(str(stored.value["queue"])), []).append(stored)
        by_id: dict[int, Queue] = {}
        for vhost in broker.vhosts.values():
            for queue in vhost.queues.values():
                by_id[queue.id] = queue
        for value in self._returned:
            owner = by_id.get(int(str(value["queue"])))
            if owner is not None:
                leases = leases_of(owner)
                if leases is not None:
                    leases.remember_returned(str(value["id"]))
        for id, index in recovered.queues.items():
            found = by_id.get(id)
            if found is not None:
                upto = recovered.delivered_up_to.get(id, 0)
                yield from topology.load_queue(broker, found, index, upto, recovered.clean, held.pop(id, []))
        for id, rest in held.items():  # of queues of which the log has no message
            found = by_id.get(id)
            if found is not None:
                yield from topology.load_queue(broker, found, QueueIndex(), 0, recovered.clean, rest)
        yield
        broker.delay.recover(recovered)
        yield
        broker.deduplication.recover(self._remembered, recovered)
        dropped = {int(str(value["holder"])) for value in self._remembered}
        for id, index in recovered.queues.items():
            if id not in by_id and id not in dropped and not broker.delay.knows(id):
                broker.services.notes.event(
                    "warning", "messages_without_queue", {"queue_id": id, "messages": len(index)}
                )
                log.drop_queue(id, index.addresses)
        log.tell_found()


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
