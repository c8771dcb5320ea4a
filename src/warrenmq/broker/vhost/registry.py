"""What a vhost asks when something is declared, changed or removed in it.

Duty: the parts that all vhosts share: users and limits, policies, decorators, totals, and which kind of queue is made.
What else has to be seen to when a queue or an exchange goes is the broker's affair.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import trait

from warrenmq.broker.access.access import Access
from warrenmq.broker.extensions.decorator import DecoratorRegistry
from warrenmq.broker.policy.policies import Policies
from warrenmq.broker.queue.arguments import QUORUM, STREAM, queue_type
from warrenmq.broker.queue.classic import ClassicQueue
from warrenmq.broker.queue.office import DeadLetterOffice, Outstanding
from warrenmq.broker.queue.queue import Declaration, Queue, Realm
from warrenmq.broker.queue.quorum import QuorumQueue
from warrenmq.broker.queue.stream import StreamQueue
from warrenmq.broker.queue.surroundings import Surroundings
from warrenmq.broker.records import Exchange, Resource
from warrenmq.broker.vhost.forgetting import ForgetBindings
from warrenmq.broker.vhost.totals import Totals


@trait
class Elsewhere:
    """Whoever has to see to what goes when something changes in a vhost."""

    def look_again(self, name: Resource) -> None:
        """A policy's pattern had been given up when this queue or exchange was looked at."""
        raise NotImplementedError

    def exchange_refreshed(self, exchange: Exchange) -> None:
        """Its policies may have changed."""
        raise NotImplementedError

    def exchange_removed(self, exchange: Exchange) -> None:
        """What goes with an exchange: its delayed messages, the ids that it remembers."""
        raise NotImplementedError

    def drop_from_log(self, queue: Queue) -> None:
        """A durable queue goes: everything it still holds, waiting or with consumers."""
        raise NotImplementedError

    def queue_gone(self, queue: Queue, deleted: bool) -> None:
        """Tell the publishers that wait for it."""
        raise NotImplementedError


@final
class Registry:
    """The parts that all vhosts share."""

    def __init__(
        self, services: Surroundings, dead_letters: DeadLetterOffice, outstanding: Outstanding, elsewhere: Elsewhere
    ) -> None:
        self.services: Final = services
        self._dead_letters: Final = dead_letters
        self._outstanding: Final = outstanding
        self.elsewhere: Final = elsewhere
        self.access: Final = Access(services.store, services.io_clock, services.notes)
        self.policies: Final = Policies(services.store, services.io_clock, services.notes)
        self.decorators: Final = DecoratorRegistry()
        self.totals: Final = Totals()
        self.forgetting: Final[dict[Resource, ForgetBindings]] = {}  # by the queue or exchange that is gone
        self.witnessed: bool = False  # is somebody told of messages that carry a trace context, in all vhosts?
        self._noted_quorum: bool = False

    def make_queue(self, vhost: Realm, declared: Declaration) -> Queue:
        queue = self._made(vhost, declared)
        queue.journal.settings_changed(queue.settings)
        return queue

    def _made(self, vhost: Realm, declared: Declaration) -> Queue:
        type = queue_type(declared.arguments)
        if type == STREAM:
            return StreamQueue(vhost, declared)
        if type == QUORUM:
            self._note_quorum(declared.name)
            return QuorumQueue(vhost, declared, self._dead_letters, self._outstanding)
        return ClassicQueue(vhost, declared, self._dead_letters)

    def _note_quorum(self, name: Resource) -> None:
        if not self._noted_quorum:
            self._noted_quorum = True
            self.services.notes.event(
                "warning", "quorum_queue_without_replicas", {"queue": str(name), "members": 1, "replicated": False}
            )

    def apply_exchange_policy(self, exchange: Exchange) -> None:
        resource = exchange.name
        passed_over = self.policies.passed_over(resource.virtual_host)
        name, operator, definition = self.policies.effective(resource.virtual_host, "exchange", resource.name)
        if self.policies.passed_over(resource.virtual_host) != passed_over:
            self.elsewhere.look_again(resource)
        exchange.policy.take(name, operator, definition)

    def apply_queue_policy(self, queue: Queue) -> None:
        """Find out which policies apply, and tell the queue."""
        passed_over = self.policies.passed_over(queue.vhost.name)
        name, operator, definition = self.policies.effective(queue.vhost.name, "queue", queue.name.name, queue.kind)
        if self.policies.passed_over(queue.vhost.name) != passed_over:
            self.elsewhere.look_again(queue.name)
        queue.take_policy(name, operator, definition)
