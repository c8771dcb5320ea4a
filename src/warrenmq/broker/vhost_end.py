"""Deleting a virtual host with all it holds, in steps.

Duty: nobody gets in any more, whoever is in is told to leave, everything goes piece by piece (``Server.work_through``),
the vhost itself last: a crash in the middle leaves a vhost with less in it, which can be deleted again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warrenmq.broker.definitions import parameters
from warrenmq.log.events import NOBODY
from warrenmq.wire.replies import CONNECTION_FORCED

if TYPE_CHECKING:
    from warrenmq.broker.broker import Broker
    from warrenmq.broker.vhost.vhost import VHost


def delete_vhost(broker: Broker, vhost: VHost) -> Iterator[None]:
    vhost.leaving = True
    name = vhost.name
    for connection in broker.connections:
        if connection.vhost is vhost:
            connection.shut(CONNECTION_FORCED, f"vhost '{name}' is deleted")
            yield
    for queue in list(vhost.queues.values()):
        vhost.remove_queue(queue)
        yield
    for exchange in list(vhost.exchanges.values()):
        for binding in list(exchange.bindings_out.values()):
            vhost.remove_binding(binding)
            yield
        vhost.remove_exchange(exchange)
        yield
    access = broker.registry.access
    for user, where in list(access.permissions):
        if where == name:
            access.clear_permissions(user, where)
            yield
    for component, where, parameter in list(broker.parameters.of_vhosts):
        if where == name:
            parameters.delete(broker, component, where, parameter)
            yield
    for operator in (False, True):
        for policy in broker.registry.policies.in_vhost(name, operator):
            broker.registry.policies.delete(name, policy.name, operator)
            yield
    parameters.vhost_deleted(broker, name)  # what an import has brought meanwhile
    access.vhost_deleted(name)
    broker.registry.policies.vhost_deleted(name)
    broker.registry.totals.vhost_deleted(name)
    vhost.journal.tell_not_told(broker.services.log)
    del broker.vhosts[name]
    broker.services.log.levels.forget(NOBODY, name)
    broker.services.store.delete("vhost", name)
