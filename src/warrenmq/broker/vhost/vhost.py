"""A virtual host: its exchanges, queues and bindings, and the operations on them.

Duty: what exists, and keeping the log and the route caches in step with it. Raises AmqpError with RabbitMQ's texts.
Not here: who may do it (``channel.check`` and the HTTP API ask ``access.py``), routing, messages.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker import equivalence
from warrenmq.broker.access.access import store_key
from warrenmq.broker.exchange.arguments import alternate_of
from warrenmq.broker.exchange.bindings import identity
from warrenmq.broker.exchange.types import DELAYED, create
from warrenmq.broker.extensions.decorator import decorators_for
from warrenmq.broker.extensions.decorator import validate as validate_decorators
from warrenmq.broker.queue import arguments as queue_arguments
from warrenmq.broker.queue.queue import Declaration, Owner, Queue, Realm
from warrenmq.broker.records import INTERNAL, Binding, Destination, Exchange, Resource
from warrenmq.broker.services.postponed import Postponed
from warrenmq.broker.vhost import declared
from warrenmq.broker.vhost.dependents import Dependents
from warrenmq.broker.vhost.forgetting import FEW, ForgetBindings
from warrenmq.broker.vhost.past import Past
from warrenmq.broker.vhost.registry import Registry
from warrenmq.log.events import NOBODY
from warrenmq.log.levels import LEVEL_NAMES, OUTCOMES
from warrenmq.wire.fields import Table
from warrenmq.wire.replies import ACCESS_REFUSED, NOT_FOUND, PRECONDITION_FAILED, RESOURCE_LOCKED, AmqpError

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
class VHost(Realm):
    """A namespace of exchanges, queues and bindings: declared, bound, deleted and restored here."""

    def __init__(self, name: str, registry: Registry, user: str = INTERNAL) -> None:
        super().__init__(name, registry.services)
        self.registry: Final = registry
        self.watched = registry.witnessed
        self.user: Final = user  # who made it
        self.description: str = ""
        self.tags: list[str] = []
        self.default_queue_type: str = ""
        self.nack_unroutable: bool = False  # is a publish that reaches no queue nacked? RabbitMQ acks it
        self.connections: i64 = 0
        self.leaving: bool = False  # is it being deleted? Then it takes nobody in
        self.past: Final = Past()
        self.exchange_routes: Final = Dependents()
        self.queue_routes: Final = Dependents()
        for exchange_name, type, internal in PREDECLARED:
            self._add_exchange(exchange_name, type, True, False, internal, {}).user = user

    def save(self) -> None:
        """Into the definitions: what is said of it itself, not what is in it."""
        self.broker.store.put(
            "vhost",
            self.name,
            {
                "name": self.name,
                "description": self.description,
                "tags": self.tags,
                "default_queue_type": self.default_queue_type,
                "nack_unroutable": self.nack_unroutable,
                "user": self.user,
            }
            | self.journal_metadata(),
        )

    def exchange_name(self, name: str) -> Resource:
        return Resource(self.name, "exchange", name)

    def queue_name(self, name: str) -> Resource:
        return Resource(self.name, "queue", name)

    def set_tracing(self, on: bool) -> None:
        """Switch the firehose."""
        self.tracing = on
        self.watch()

    def watch(self) -> None:
        """Is there anybody to tell? Every route is looked up again, as a watched publish takes the long way."""
        self.watched = self.tracing or self.registry.witnessed
        self.exchange_routes.all_changed()
        self.queue_routes.all_changed()

    def set_journal(self, level: i64, sample: i64) -> None:
        """How much the journal tells of what is in it and has no level of its own."""
        self.journal.level = level
        self.journal.sample = sample
        levels = self.broker.log.levels
        if self.has_default_level():
            levels.forget(NOBODY, self.name)
        else:
            levels.put(NOBODY, self.name, level, sample)
        for queue in self.queues.values():
            queue.journal.settings_changed(queue.settings)
        for exchange in self.exchanges.values():
            if exchange.type == DELAYED:  # what waits there
                self.registry.elsewhere.exchange_refreshed(exchange)

    def journal_metadata(self) -> dict[str, object]:
        """As definitions and the management API say it."""
        return {"journal": LEVEL_NAMES[self.journal.level], "journal_sample": int(self.journal.sample)}

    def has_default_level(self) -> bool:
        return self.journal.level == OUTCOMES and self.journal.sample == 1

    # -- exchanges ---------------------------------------------------------------------------------------------

    def exchange(self, name: str) -> Exchange:
        exchange = self.exchanges.get(name)
        if exchange is None:
            raise AmqpError(NOT_FOUND, f"no {self.exchange_name(name)}")
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
            raise AmqpError(ACCESS_REFUSED, f"exchange name '{name}' contains reserved prefix 'amq.*'")
        exchange = self._add_exchange(name, type, durable, auto_delete, internal, arguments)
        exchange.user = username
        if durable:
            declared.put_exchange(self.broker.store, self.name, exchange)
        return exchange

    def _add_exchange(
        self, name: str, type: str, durable: bool, auto_delete: bool, internal: bool, arguments: Table
    ) -> Exchange:
        self._finish_forgetting(self.exchange_name(name))
        matcher = create(type, arguments, self.broker.randomness)
        exchange = Exchange(self.exchange_name(name), type, durable, auto_delete, internal, arguments, matcher)
        matcher.validate(exchange)
        validate_decorators(exchange, self.registry.decorators)
        self.exchanges[name] = exchange
        self.refresh_exchange(exchange)
        self.exchange_routes.changed(name)  # somebody's alternate exchange may have been missing
        return exchange

    def restore_exchange(self, name: str, type: str, auto_delete: bool, internal: bool, arguments: Table) -> Exchange:
        """A durable exchange found in the log at start."""
        return self._add_exchange(name, type, True, auto_delete, internal, arguments)

    def refresh_exchange(self, exchange: Exchange) -> None:
        """Arguments, policy or decorators changed: derive what follows from them."""
        self.registry.apply_exchange_policy(exchange)
        exchange.alternate = alternate_of(exchange)
        exchange.decorators = decorators_for(exchange, self.registry.decorators)
        self.registry.elsewhere.exchange_refreshed(exchange)
        self.exchange_routes.changed(exchange.name.name)

    def update_scratch(self, exchange: Exchange, key: str, value: object) -> None:
        """The only way to change an exchange's scratches; durable like the exchange."""
        exchange.scratches[key] = value
        if exchange.durable:
            declared.put_exchange(self.broker.store, self.name, exchange)

    def delete_exchange(self, name: str, if_unused: bool) -> None:
        """Deleting what is not there is fine."""
        exchange = self.exchanges.get(name)
        if exchange is None:
            return
        if if_unused and exchange.bindings_out:
            raise AmqpError(PRECONDITION_FAILED, f"{exchange.name} in use")
        self.remove_exchange(exchange)

    def remove_exchange(self, exchange: Exchange) -> None:
        name = exchange.name.name
        if self.exchanges.pop(name, None) is None:
            return
        if exchange.durable:
            self.broker.store.delete("exchange", store_key([self.name, name]))
        exchange.gone = True
        self._unbind_all(exchange, [exchange.bindings_out, exchange.bindings_in])
        self.registry.elsewhere.exchange_removed(exchange)
        self.exchange_routes.changed(name)

    # -- queues ------------------------------------------------------------------------------------------------

    def queue(self, name: str) -> Queue:
        queue = self.queues.get(name)
        if queue is None:
            raise AmqpError(NOT_FOUND, f"no {self.queue_name(name)}")
        return queue

    def declare_queue(
        self,
        name: str,
        durable: bool,
        exclusive_owner: Owner | None,
        auto_delete: bool,
        arguments: Table,
    ) -> Queue:
        self.registry.totals.queues_declared += 1
        queue = self.queues.get(name)
        if queue is not None:
            self.check_equivalent(queue, durable, exclusive_owner, auto_delete, arguments)
            queue.touch()
            return queue
        resource = self.queue_name(name)
        queue_arguments.validate(resource, arguments, durable, exclusive_owner is not None, auto_delete)
        limit = self.registry.access.vhost_limit(self.name, "max-queues")
        if limit >= 0 and len(self.queues) >= limit:
            raise AmqpError(
                PRECONDITION_FAILED,
                f"cannot declare queue '{name}': queue limit in vhost '{self.name}' ({limit}) is reached",
            )
        if exclusive_owner is not None:
            durable = False  # an exclusive queue goes with its connection, so it is recorded as transient
        self.registry.totals.queues_created += 1
        id = self.broker.ids.queue()
        identity = self.broker.ids.name(f"{id}-")
        queue = self.add_queue(Declaration(resource, id, identity, durable, exclusive_owner, auto_delete, arguments))
        if durable:
            declared.put_queue(self.broker.store, self.name, queue)
        if exclusive_owner is not None:
            exclusive_owner.owns(queue)
        return queue

    def add_queue(self, declared: Declaration) -> Queue:
        """Whether it may be declared so has been checked."""
        name = declared.name
        self._finish_forgetting(name)
        queue = self.registry.make_queue(self, declared)
        self.queues[name.name] = queue
        self.refresh_queue(queue)
        self.queue_routes.changed(name.name)
        return queue

    def pause_queue(self, queue: Queue, paused: bool) -> None:
        """Hand nothing out of it any more, or again. A durable queue is as it was after a restart."""
        if queue.paused == paused:
            return
        if paused:
            queue.pause()
        else:
            queue.resume()
        if queue.durable:
            declared.put_queue(self.broker.store, self.name, queue)

    def refresh_queue(self, queue: Queue) -> None:
        """A policy changed."""
        self.registry.apply_queue_policy(queue)

    def check_equivalent(
        self, queue: Queue, durable: bool, exclusive_owner: Owner | None, auto_delete: bool, arguments: Table
    ) -> None:
        self.check_exclusive(queue, exclusive_owner, True)
        equivalence.check_property(queue.name, "durable", queue.durable, durable and exclusive_owner is None)
        equivalence.check_property(queue.name, "auto_delete", queue.declared.auto_delete, auto_delete)
        compared = queue_arguments.OF_TYPE[queue.kind]
        equivalence.check_arguments(queue.name, queue.arguments, arguments, compared)

    def check_exclusive(self, queue: Queue, connection: Owner | None, strict: bool) -> None:
        """405 when the queue belongs to another connection; strict: also when only one side wants it exclusive."""
        owner = queue.declared.exclusive_owner
        if owner is connection or (owner is None and not strict):
            return
        raise AmqpError(
            RESOURCE_LOCKED,
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
            self.broker.store.delete("queue", store_key([self.name, name]))
        self._unbind_all(queue, [queue.bindings_in])
        if queue.durable:
            self.registry.elsewhere.drop_from_log(queue)
        queue.stop()
        owner = queue.declared.exclusive_owner
        if owner is not None:
            owner.owns_no_more(queue)
        for consumer in list(queue.consumers):
            consumer.queue_deleted()
        self.registry.elsewhere.queue_gone(queue, True)
        self.registry.totals.queue_deleted(queue)
        self.past.deliveries.add(queue.deliveries)
        self.broker.taking_apart.add(queue)
        return count

    # -- bindings ----------------------------------------------------------------------------------------------

    def bind(self, source: Exchange, destination: Destination, key: str, arguments: Table) -> Binding:
        binding = source.bindings_out.get(identity(source.name, destination.name, key, arguments))
        if binding is not None:
            return binding
        source.matcher.validate_binding(Binding(source, destination, key, arguments))
        binding = self.restore_binding(source, destination, key, arguments)
        if source.durable and _durable(destination):
            declared.put_binding(self.broker.store, self.name, binding)
        return binding

    def restore_binding(self, source: Exchange, destination: Destination, key: str, arguments: Table) -> Binding:
        """Take a binding into the indexes, without storing it."""
        id = identity(source.name, destination.name, key, arguments)
        binding = Binding(source, destination, key, arguments)
        source.bindings_out[id] = binding
        _bindings_in(destination)[id] = binding
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
        _bindings_in(destination).pop(id, None)
        source.matcher.unbind(binding)
        self.exchange_routes.changed(source.name.name)
        if source.durable and _durable(destination):
            declared.delete_binding(self.broker.store, self.name, binding)
        if cascade and source.auto_delete and not source.bindings_out:
            self.remove_exchange(source)

    def _unbind_all(self, end: Destination, sides: list[dict[object, Binding]]) -> None:
        """A queue or an exchange is gone, and all its bindings go along, also from its own matcher, which would lead
        back to it by them for ever. Of very many the matchers and the log hear in turns to come: nobody finds what is
        gone, and without both its ends a binding means nothing to the log, even after a crash
        (``start/topology.py``)."""
        registry = self.registry
        job = ForgetBindings(registry.forgetting, self.broker.store, self.broker.turn, self.name, end.name)
        sources: dict[Exchange, bool] = {}
        for side in sides:
            many = len(side) > FEW
            taken = dict(side)
            side.clear()
            last: Exchange | None = None
            for id, binding in taken.items():
                source = binding.source
                destination = binding.destination
                if source is end and side is not sides[0]:
                    continue  # it was bound to itself
                if destination is not end:
                    _bindings_in(destination).pop(id, None)
                if many and not source.matcher.chooses():
                    job.unbind(binding)
                else:
                    source.matcher.unbind(binding)
                if source is not end:
                    source.bindings_out.pop(id, None)
                    if source is not last:
                        last = source
                        sources[source] = True
                if source.durable and _durable(destination):
                    job.stored.append(binding)
        for source in sources:
            self.exchange_routes.changed(source.name.name)
            if source.auto_delete and not source.bindings_out:
                self.remove_exchange(source)
        if job.begins():
            self.broker.jobs.add(job)

    def check_forgotten(self, name: Resource) -> None:
        """Whoever declares it anew waits until the log has been told of all bindings of the one that is gone."""
        if name in self.registry.forgetting:
            raise Postponed

    def _finish_forgetting(self, name: Resource) -> None:
        """For those who cannot wait, all at once: its bindings would come again with what has the name from now on."""
        job = self.registry.forgetting.get(name)
        if job is not None:
            job.finish()


def _bindings_in(destination: Destination) -> dict[object, Binding]:
    if isinstance(destination, Exchange):
        return destination.bindings_in
    assert isinstance(destination, Queue)
    return destination.bindings_in


def _durable(destination: Destination) -> bool:
    if isinstance(destination, Exchange):
        return destination.durable
    assert isinstance(destination, Queue)
    return destination.durable
