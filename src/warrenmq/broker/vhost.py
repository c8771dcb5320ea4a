"""A virtual host: its exchanges, queues and bindings, and the operations on them.

Duty: what exists, and keeping the log and the route caches in step with it. Raises AmqpError with RabbitMQ's texts.
Not here: who may do it (``channel.check`` and the HTTP API ask ``access.py``), routing, messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from warrenmq.broker import equivalence
from warrenmq.broker.crowds import ForgetBindings
from warrenmq.broker.decorator import validate as validate_decorators
from warrenmq.broker.exchange.arguments import alternate_of
from warrenmq.broker.exchange.bindings import identity
from warrenmq.broker.exchange.types import create
from warrenmq.broker.postponed import Postponed
from warrenmq.broker.publish.routes import Dependents
from warrenmq.broker.queue import arguments as queue_arguments
from warrenmq.broker.queue.queue import Queue
from warrenmq.broker.records import INTERNAL, Binding, Destination, Exchange, Resource
from warrenmq.wire.fields import Table
from warrenmq.wire.replies import AmqpError

if TYPE_CHECKING:
    from warrenmq.broker.broker import Broker
    from warrenmq.broker.connection import Connection

PREDECLARED: Final = [
    ("", "direct", False),
    ("amq.direct", "direct", False),
    ("amq.fanout", "fanout", False),
    ("amq.headers", "headers", False),
    ("amq.match", "headers", False),
    ("amq.rabbitmq.trace", "topic", True),
    ("amq.topic", "topic", False),
]


@final
class VHost:
    """A namespace of exchanges, queues and bindings: declared, bound, deleted and restored here."""

    def __init__(self, name: str, broker: Broker, user: str = INTERNAL) -> None:
        self.name: Final = name
        self.broker: Final = broker
        self.exchanges: dict[str, Exchange] = {}
        self.queues: dict[str, Queue] = {}
        self.tracing: bool = False
        self.user: Final = user  # who made it
        self.description: str = ""
        self.tags: list[str] = []
        self.default_queue_type: str = ""
        self.connections: i64 = 0
        self.leaving: bool = False  # is it being deleted? Then it takes nobody in
        self.exchange_routes: Final = Dependents()
        self.queue_routes: Final = Dependents()
        for exchange_name, type, internal in PREDECLARED:
            self._add_exchange(exchange_name, type, True, False, internal, {}).user = user

    def exchange_name(self, name: str) -> Resource:
        return Resource(self.name, "exchange", name)

    def queue_name(self, name: str) -> Resource:
        return Resource(self.name, "queue", name)

    def set_tracing(self, on: bool) -> None:
        """Switch the firehose: every route is looked up again, as a traced publish takes the long way."""
        self.tracing = on
        self.exchange_routes.all_changed()
        self.queue_routes.all_changed()

    # -- exchanges ---------------------------------------------------------------------------------------------

    def exchange(self, name: str) -> Exchange:
        exchange = self.exchanges.get(name)
        if exchange is None:
            raise AmqpError(404, f"no {self.exchange_name(name)}")
        return exchange

    def declare_exchange(
        self, name: str, type: str, durable: bool, auto_delete: bool, internal: bool, arguments: Table, username: str
    ) -> Exchange:
        exchange = self.exchanges.get(name)
        if exchange is not None:
            equivalence.check_property(exchange.name, "type", exchange.type, type)
            equivalence.check_property(exchange.name, "durable", exchange.durable, durable)
            equivalence.check_property(exchange.name, "auto_delete", exchange.auto_delete, auto_delete)
            equivalence.check_property(exchange.name, "internal", exchange.internal, internal)
            equivalence.check_arguments(exchange.name, exchange.arguments, arguments, ["alternate-exchange"])
            return exchange
        if name.startswith("amq."):
            raise AmqpError(403, f"exchange name '{name}' contains reserved prefix 'amq.*'")
        exchange = self._add_exchange(name, type, durable, auto_delete, internal, arguments)
        exchange.user = username
        if durable:
            self.broker.store_exchange(self, exchange)
        return exchange

    def _add_exchange(
        self, name: str, type: str, durable: bool, auto_delete: bool, internal: bool, arguments: Table
    ) -> Exchange:
        self._finish_forgetting(self.exchange_name(name))
        matcher = create(type, arguments, self.broker.randomness)
        exchange = Exchange(self.exchange_name(name), type, durable, auto_delete, internal, arguments, matcher)
        matcher.validate(exchange)
        validate_decorators(exchange, self.broker.decorators)
        self.exchanges[name] = exchange
        self.refresh_exchange(exchange)
        self.exchange_routes.changed(name)  # somebody's alternate exchange may have been missing
        return exchange

    def restore_exchange(self, name: str, type: str, auto_delete: bool, internal: bool, arguments: Table) -> Exchange:
        """A durable exchange found in the log at start."""
        return self._add_exchange(name, type, True, auto_delete, internal, arguments)

    def refresh_exchange(self, exchange: Exchange) -> None:
        """Arguments, policy or decorators changed: derive what follows from them."""
        self.broker.apply_exchange_policy(self, exchange)
        exchange.alternate = alternate_of(exchange)
        exchange.decorators = self.broker.decorators_for(exchange)
        self.exchange_routes.changed(exchange.name.name)

    def update_scratch(self, exchange: Exchange, key: str, value: object) -> None:
        """The only way to change an exchange's scratches; durable like the exchange."""
        exchange.scratches[key] = value
        if exchange.durable:
            self.broker.store_exchange(self, exchange)

    def delete_exchange(self, name: str, if_unused: bool) -> None:
        """Deleting what is not there is fine."""
        exchange = self.exchanges.get(name)
        if exchange is None:
            return
        if if_unused and exchange.bindings_out:
            raise AmqpError(406, f"{exchange.name} in use")
        self.remove_exchange(exchange)

    def remove_exchange(self, exchange: Exchange) -> None:
        name = exchange.name.name
        if self.exchanges.pop(name, None) is None:
            return
        if exchange.durable:
            self.broker.unstore("exchange", self.name, name)
        stored = self._unbind_all(exchange, exchange.bindings_out)
        stored.extend(self._unbind_all(exchange, exchange.bindings_in))
        self._forget_bindings(exchange.name, stored)
        self.broker.exchange_removed(exchange)
        self.exchange_routes.changed(name)

    # -- queues ------------------------------------------------------------------------------------------------

    def queue(self, name: str) -> Queue:
        queue = self.queues.get(name)
        if queue is None:
            raise AmqpError(404, f"no {self.queue_name(name)}")
        return queue

    def declare_queue(
        self,
        name: str,
        durable: bool,
        exclusive_owner: Connection | None,
        auto_delete: bool,
        arguments: Table,
    ) -> Queue:
        self.broker.totals.queues_declared += 1
        queue = self.queues.get(name)
        if queue is not None:
            self.check_equivalent(queue, durable, exclusive_owner, auto_delete, arguments)
            queue.touch()
            return queue
        resource = self.queue_name(name)
        queue_arguments.validate(resource, arguments, durable, exclusive_owner is not None, auto_delete)
        limit = self.broker.access.vhost_limit(self.name, "max-queues")
        if limit >= 0 and len(self.queues) >= limit:
            raise AmqpError(
                406, f"cannot declare queue '{name}': queue limit in vhost '{self.name}' ({limit}) is reached"
            )
        if exclusive_owner is not None:
            durable = False  # an exclusive queue goes with its connection, so it is recorded as transient
        self.broker.totals.queues_created += 1
        queue = self.add_queue(resource, self.broker.ids.queue(), durable, exclusive_owner, auto_delete, arguments)
        queue.identity = self.broker.ids.name(f"{queue.id}-")
        if durable:
            self.broker.store_queue(self, queue)
        if exclusive_owner is not None:
            exclusive_owner.exclusive_queues[queue] = True
        return queue

    def add_queue(
        self,
        name: Resource,
        id: i64,
        durable: bool,
        exclusive_owner: Connection | None,
        auto_delete: bool,
        arguments: Table,
    ) -> Queue:
        self._finish_forgetting(name)
        queue = self.broker.make_queue(name, self, id, durable, exclusive_owner, auto_delete, arguments)
        self.queues[name.name] = queue
        self.refresh_queue(queue)
        self.queue_routes.changed(name.name)
        return queue

    def refresh_queue(self, queue: Queue) -> None:
        """A policy changed."""
        if self.broker.apply_queue_policy(self, queue):
            queue.apply_settings()

    def check_equivalent(
        self, queue: Queue, durable: bool, exclusive_owner: Connection | None, auto_delete: bool, arguments: Table
    ) -> None:
        self.check_exclusive(queue, exclusive_owner, True)
        equivalence.check_property(queue.name, "durable", queue.durable, durable and exclusive_owner is None)
        equivalence.check_property(queue.name, "auto_delete", queue.auto_delete, auto_delete)
        compared = queue_arguments.OF_TYPE[queue_arguments.queue_type(queue.arguments)]
        equivalence.check_arguments(queue.name, queue.arguments, arguments, compared)

    def check_exclusive(self, queue: Queue, connection: Connection | None, strict: bool) -> None:
        """405 when the queue belongs to another connection; strict: also when only one side wants it exclusive."""
        owner = queue.exclusive_owner
        if owner is connection or (owner is None and not strict):
            return
        raise AmqpError(
            405,
            f"cannot obtain exclusive access to locked {queue.name}. It could be originally declared on another "
            "connection or the exclusive property value does not match that of the original declaration.",
        )

    def delete_queue(self, queue: Queue, if_unused: bool, if_empty: bool) -> i64:
        queue.check_delete(if_unused, if_empty)
        return self.remove_queue(queue)

    def remove_queue(self, queue: Queue) -> i64:
        """Take a queue away, with its bindings; tells its consumers and the publishers that wait for it."""
        if queue.gone:
            return 0
        name = queue.name.name
        count = queue.ready
        del self.queues[name]
        self.queue_routes.changed(name)
        if queue.durable:
            self.broker.unstore("queue", self.name, name)
        self._forget_bindings(queue.name, self._unbind_all(queue, queue.bindings_in))
        queue.stop()
        owner = queue.exclusive_owner
        if owner is not None:
            owner.exclusive_queues.pop(queue, None)
        for consumer in list(queue.dispatch.consumers):
            consumer.channel.queue_deleted(consumer)
        self.broker.queue_gone(queue, True)
        self.broker.totals.queue_deleted(queue)
        return count

    # -- bindings ----------------------------------------------------------------------------------------------

    def bind(self, source: Exchange, destination: Destination, key: str, arguments: Table) -> Binding:
        binding = source.bindings_out.get(identity(source.name, destination.name, key, arguments))
        if binding is not None:
            return binding
        source.matcher.validate_binding(Binding(source, destination, key, arguments))
        binding = self.restore_binding(source, destination, key, arguments)
        if source.durable and _durable(destination):
            self.broker.store_binding(self, binding)
        return binding

    def restore_binding(self, source: Exchange, destination: Destination, key: str, arguments: Table) -> Binding:
        """Take a binding into the indexes, without storing it."""
        id = identity(source.name, destination.name, key, arguments)
        binding = Binding(source, destination, key, arguments)
        source.bindings_out[id] = binding
        if isinstance(destination, Exchange):
            destination.bindings_in[id] = binding
        else:
            assert isinstance(destination, Queue)
            destination.bindings_in[id] = binding
        source.matcher.bind(binding)
        self.exchange_routes.changed(source.name.name)
        return binding

    def is_bound(self, source: Exchange, destination: Destination, key: str, arguments: Table) -> bool:
        return identity(source.name, destination.name, key, arguments) in source.bindings_out

    def unbind(self, source: Exchange, destination: Destination, key: str, arguments: Table) -> None:
        """Unbinding what is not bound is fine."""
        binding = source.bindings_out.get(identity(source.name, destination.name, key, arguments))
        if binding is not None:
            self.remove_binding(binding)

    def remove_binding(self, binding: Binding, cascade: bool = True) -> None:
        """Take a binding away, and with cascade the auto-delete exchange whose last it was."""
        source = binding.source
        destination = binding.destination
        id = identity(source.name, destination.name, binding.key, binding.arguments)
        if source.bindings_out.pop(id, None) is None:
            return
        if isinstance(destination, Exchange):
            destination.bindings_in.pop(id, None)
        else:
            assert isinstance(destination, Queue)
            destination.bindings_in.pop(id, None)
        source.matcher.unbind(binding)
        self.exchange_routes.changed(source.name.name)
        if source.durable and _durable(destination):
            self.broker.unstore_binding(self, binding)
        if cascade and source.auto_delete and not source.bindings_out:
            self.remove_exchange(source)

    def _unbind_all(self, end: Destination, bindings: dict[object, Binding]) -> list[Binding]:
        """A queue or an exchange is gone, and all bindings on one side of it go along. Returns those the log has."""
        taken = dict(bindings)
        bindings.clear()
        sources: dict[Exchange, bool] = {}
        last: Exchange | None = None
        stored: list[Binding] = []
        for id, binding in taken.items():
            source = binding.source
            destination = binding.destination
            if isinstance(destination, Exchange):
                destination.bindings_in.pop(id, None)
            else:
                assert isinstance(destination, Queue)
                destination.bindings_in.pop(id, None)
            if source is not end:
                source.bindings_out.pop(id, None)
                source.matcher.unbind(binding)
                if source is not last:
                    last = source
                    sources[source] = True
            if source.durable and _durable(destination):
                stored.append(binding)
        for source in sources:
            self.exchange_routes.changed(source.name.name)
            if source.auto_delete and not source.bindings_out:
                self.remove_exchange(source)
        return stored

    def _forget_bindings(self, end: Resource, stored: list[Binding]) -> None:
        """The log hears of very many in turns to come: without both its ends a binding means nothing to it, even after
        a crash (``store.py``)."""
        if stored:
            self.broker.jobs.add(ForgetBindings(self, end, stored))

    def check_forgotten(self, name: Resource) -> None:
        """Whoever declares it anew waits until the log has been told of all bindings of the one that is gone."""
        if name in self.broker.forgetting:
            raise Postponed

    def _finish_forgetting(self, name: Resource) -> None:
        """The same for those who cannot wait: its bindings would come again with what has the name from now on."""
        job = self.broker.forgetting.get(name)
        if job is not None:
            job.finish()


def _durable(destination: Destination) -> bool:
    if isinstance(destination, Exchange):
        return destination.durable
    assert isinstance(destination, Queue)
    return destination.durable
