"""The core: everything that exists, whoever is connected.

Duty: hold the vhosts and what a message may meet on its way, and see to what goes when a queue or an exchange does. It
never awaits and owns no socket. Clients are not known here: see ``broker.py``.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from warrenmq.broker.dead_letter import DeadLetters
from warrenmq.broker.deduplication.deduplication import Deduplication
from warrenmq.broker.delay.delays import Delays
from warrenmq.broker.delivering.firehose import Firehose
from warrenmq.broker.delivering.witness import Witness
from warrenmq.broker.durability.durability import Clients, Durability
from warrenmq.broker.extensions.interceptor import Interceptors
from warrenmq.broker.node import Node
from warrenmq.broker.parameters import Parameters
from warrenmq.broker.queue.queue import Queue
from warrenmq.broker.queue.surroundings import Surroundings
from warrenmq.broker.receipts.receipts import Receipts
from warrenmq.broker.records import INTERNAL, Exchange, Resource
from warrenmq.broker.replies import DirectReplies
from warrenmq.broker.vhost.registry import Elsewhere, Registry
from warrenmq.broker.vhost.undecided import Undecided
from warrenmq.broker.vhost.vhost import VHost
from warrenmq.log.index import QueueIndex


class Core(Clients, Elsewhere):
    """The sum of what exists, on the services that all of it shares."""

    def __init__(self, services: Surroundings, node_name: str) -> None:
        self.services: Final = services
        self.node: Final = Node(node_name, services.turn.now)
        self.vhosts: Final[dict[str, VHost]] = {}
        self.parameters: Final = Parameters()
        self.interceptors: Interceptors = Interceptors()
        self.firehose: Final = Firehose(services, node_name)
        self.replies: Final = DirectReplies(services.ids)
        self.delay: Final = Delays(services, self.vhosts)
        self.dead_letters: Final = DeadLetters(services, self.delay)
        self.durability: Final = Durability(services, self.vhosts, self.delay, self)
        self.deduplication: Final = Deduplication(services, self.vhosts, self.durability)
        self.receipts: Final = Receipts(services, self.vhosts, self.durability, self.replies)
        self.registry: Final = Registry(services, self.dead_letters, self, self)
        self.undecided: Final = Undecided(services, self.registry.policies, self.vhosts)

    def add_vhost(self, name: str, user: str = INTERNAL) -> VHost:
        vhost = self.vhosts.get(name)
        if vhost is None:
            vhost = VHost(name, self.registry, user)
            self.vhosts[name] = vhost
        return vhost

    def witness(self, witness: Witness) -> None:
        """From now on it is told of messages that carry a trace context. Without one nobody asks, nor pays."""
        self.firehose.witness = witness
        self.registry.witnessed = True
        for vhost in self.vhosts.values():
            vhost.watch()

    def look_again(self, name: Resource) -> None:
        self.undecided.add(name)

    def exchange_refreshed(self, exchange: Exchange) -> None:
        self.delay.refresh(exchange)
        self.deduplication.refresh(exchange)

    def exchange_removed(self, exchange: Exchange) -> None:
        self.delay.exchange_removed(exchange)
        self.deduplication.exchange_removed(exchange)
        self.undecided.forget(exchange.name)

    def queue_gone(self, queue: Queue, deleted: bool) -> None:
        for channel in list(self.durability.waiting):
            channel.queue_lost(queue, deleted)
        if deleted:
            self.undecided.forget(queue.name)

    def drop_from_log(self, queue: Queue) -> None:
        self.durability.drop(queue)

    def names_of_damaged(self, address: i64) -> list[str]:
        """The queues and exchanges a record was written for; it may have moved since."""
        found: list[str] = []
        ids = self.services.log.queues_of(address)
        for vhost in self.vhosts.values():
            for queue in vhost.queues.values():
                if queue.id in ids:
                    found.append(str(queue.name))
        found.extend(self.delay.names_of(ids))
        found.extend(self.deduplication.names_of(ids))
        return found

    def fail_queue(self, queue: Queue) -> None:
        """A fault: the queue accepts nothing any more, and what publishers wait for there will not come."""
        queue.fail()
        self.queue_gone(queue, False)

    def log_indexes(self) -> dict[int, QueueIndex]:
        """All that the log holds for somebody, to be remembered at a clean stop: the next start needs no scan."""
        found = self.delay.log_indexes()
        found.update(self.deduplication.log_indexes())
        for vhost in self.vhosts.values():
            for queue in vhost.queues.values():
                if queue.durable:
                    found[int(queue.id)] = queue.index()
        return found
