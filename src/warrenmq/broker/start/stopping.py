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


AT_ONCE: Final = 1000  # queues
MESSAGES: Final = 64  # that wait in a queue count for one queue more


def tell_forgotten(broker: Core) -> Iterator[None]:
    """The process ends: the journal is told what the next one will not find. A step is so many queues, and fewer where
    much waits in them: what the log does not keep of it is counted."""
    left: int = AT_ONCE
    for vhost in list(broker.vhosts.values()):
        for queue in list(vhost.queues.values()):
            queue.tell_forgotten()
            left -= 1 + int(queue.ready) // MESSAGES
            if left <= 0:
                left = AT_ONCE
                yield
    broker.delay.tell_forgotten()
    yield from count_not_told(broker)


def count_not_told(broker: Core) -> Iterator[None]:
    """The journal is told how much the levels left out. A step is so many queues."""
    for vhost in list(broker.vhosts.values()):
        for some in _some_at_a_time(vhost):
            for queue in some:
                if not queue.gone:
                    queue.journal.count_not_told()
            if len(some) == AT_ONCE:
                yield
        vhost.journal.tell_not_told(broker.services.log)


def _some_at_a_time(vhost: VHost) -> Iterator[list[Queue]]:
    queues = list(vhost.queues.values())
    for start in range(0, len(queues), AT_ONCE):
        yield queues[start : start + AT_ONCE]


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
