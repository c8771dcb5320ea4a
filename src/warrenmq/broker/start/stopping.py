"""What ``stop_app`` leaves: durable exchanges, queues and bindings, and what the log keeps in them.

Duty: to forget the rest, as a restart of the process does. Not here: the clients, who have been told to go before
(``Broker.shut_down``); leases, which are kept until their own end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from warrenmq.broker.queue.queue import Queue
from warrenmq.broker.records import Binding, Exchange

if TYPE_CHECKING:
    from warrenmq.broker.core import Core
    from warrenmq.broker.vhost.vhost import VHost


COUNTED_AT_ONCE: Final = 1000  # queues


def tell_forgotten(broker: Core) -> None:
    """The process ends: the journal is told what the next one will not find."""
    for vhost in broker.vhosts.values():
        for queue in vhost.queues.values():
            queue.tell_forgotten()
    broker.delay.tell_forgotten()
    for _ in count_not_told(broker):
        pass


def count_not_told(broker: Core) -> Iterator[None]:
    """The journal is told how much the levels left out. A step is so many queues."""
    left = COUNTED_AT_ONCE
    for vhost in list(broker.vhosts.values()):
        for queue in list(vhost.queues.values()):
            if left == 0:
                left = COUNTED_AT_ONCE
                yield
            left -= 1
            if not queue.gone:
                queue.journal.count_not_told()
        vhost.journal.tell_not_told(broker.services.log)


def forget_transient(broker: Core) -> Iterator[None]:
    """A step is one exchange, queue or binding."""
    broker.deduplication.forget_transient()
    for vhost in list(broker.vhosts.values()):
        for _ in _forget_bindings(vhost):
            yield
        for exchange in list(vhost.exchanges.values()):
            if not exchange.durable:
                vhost.remove_exchange(exchange)
            yield
        for queue in list(vhost.queues.values()):
            if queue.durable:
                queue.forget_transient()
                queue.touch()  # its expiry begins anew
            else:
                vhost.remove_queue(queue)
            yield


def _forget_bindings(vhost: VHost) -> Iterator[None]:
    """First of all: a durable auto-delete exchange does not go because its last binding was a transient one."""
    for exchange in list(vhost.exchanges.values()):
        for binding in list(exchange.bindings_out.values()):
            if not _is_durable(binding):
                vhost.remove_binding(binding, False)
            yield


def _is_durable(binding: Binding) -> bool:
    destination = binding.destination
    if isinstance(destination, Exchange):
        return binding.source.durable and destination.durable
    assert isinstance(destination, Queue)
    return binding.source.durable and destination.durable
