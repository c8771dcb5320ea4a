"""The broker: everything that exists.

Duty: hold vhosts, connections and the services they share. It never awaits and owns no socket; the server feeds
connections and calls ``end_turn``. What happens then is in ``turn.py``.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker import start, store
from warrenmq.broker.access import Access, store_key
from warrenmq.broker.ack_timeout import AckTimeout
from warrenmq.broker.aside import DamagedMessages
from warrenmq.broker.clock import Clock
from warrenmq.broker.connection import Connection
from warrenmq.broker.connections import Connections
from warrenmq.broker.crowds import ForgetBindings, Unblock
from warrenmq.broker.dead_letter import DeadLetters
from warrenmq.broker.decorator import DecoratorRegistry, decorators_for
from warrenmq.broker.delay.delays import Delays
from warrenmq.broker.durability import Durability
from warrenmq.broker.firehose import Firehose
from warrenmq.broker.guesses import Guesses
from warrenmq.broker.interceptor import Interceptors
from warrenmq.broker.leftovers import Leftovers
from warrenmq.broker.message import Entry
from warrenmq.broker.node import Node
from warrenmq.broker.notes import Notes
from warrenmq.broker.policy import Policies
from warrenmq.broker.postponed import Again
from warrenmq.broker.publish import outcomes
from warrenmq.broker.queue.arguments import QUORUM, STREAM, queue_type
from warrenmq.broker.queue.queue import Queue
from warrenmq.broker.queue.quorum import QuorumQueue
from warrenmq.broker.queue.stream import StreamQueue
from warrenmq.broker.randomness import Randomness
from warrenmq.broker.records import INTERNAL, Binding, Exchange, Resource
from warrenmq.broker.replies import DirectReplies
from warrenmq.broker.services import Services
from warrenmq.broker.settling import outstanding
from warrenmq.broker.sink import Sink
from warrenmq.broker.states import GONE, RUNNING
from warrenmq.broker.totals import Totals
from warrenmq.broker.vhost import VHost
from warrenmq.log.log import Log
from warrenmq.log.recovery import Recovered
from warrenmq.log.transient import TransientStore
from warrenmq.wire.fields import Table


@final
class Broker(Services):
    """Everything that exists, on the services that all of it shares."""

    def __init__(
        self,
        log: Log,
        transient: TransientStore,
        clock: Clock,
        io_clock: Clock,
        randomness: Randomness,
        notes: Notes,
        node_name: str = "warren@localhost",
    ) -> None:
        super().__init__(log, transient, clock, io_clock, randomness, notes)
        self.node: Final = Node(node_name, self.turn.now)
        self.dead_letters: Final = DeadLetters(self)
        # what exists
        self.store: Final = store.DefinitionStore(self)
        self.access: Final = Access(self.store, io_clock, notes)
        self.guesses: Final = Guesses()
        self.policies: Final = Policies(self.store, io_clock, notes)
        self.parameters: dict[tuple[str, str, str], object] = {}  # (component, vhost, name) -> value
        self.global_parameters: dict[str, object] = {}
        self.vhosts: dict[str, VHost] = {}
        self.totals: Final = Totals(self)
        self.connections: Final = Connections(self.access, self.totals)
        self.replies: Final = DirectReplies(self.ids)
        self.interceptors: Interceptors = Interceptors()
        self.decorators: Final = DecoratorRegistry()
        self.firehose: Final = Firehose(self)
        self.delay: Final = Delays(self)
        self.damaged: Final = DamagedMessages(self)
        self.durability: Final = Durability(self)
        self.leftovers: Final = Leftovers(self.io_timers, io_clock)
        self.again: Final = Again(self)
        self.forgetting: dict[Resource, ForgetBindings] = {}  # by the queue or exchange that is gone
        self._ack_timeout: Final = AckTimeout(self)
        self._noted_quorum: bool = False

    # -- start -------------------------------------------------------------------------------------------------

    def recover(self, recovered: Recovered) -> None:
        """Take up what the log found."""
        start.recover(self, recovered)

    def create_defaults(self, username: str, password: str, vhost: str = "/") -> None:
        """The first start: a vhost, and a user who may do everything there."""
        if not self.vhosts:
            made = self.add_vhost(vhost)
            made.description = "Default virtual host"
            self.store.put_vhost(made)
        self._ack_timeout.start()
        self.access.create_defaults(username, password, vhost)

    # -- vhosts and what they hold -----------------------------------------------------------------------------

    def add_vhost(self, name: str, user: str = INTERNAL) -> VHost:
        vhost = self.vhosts.get(name)
        if vhost is None:
            vhost = VHost(name, self, user)
            self.vhosts[name] = vhost
        return vhost

    def make_queue(
        self,
        name: Resource,
        vhost: VHost,
        id: i64,
        durable: bool,
        exclusive_owner: Connection | None,
        auto_delete: bool,
        arguments: Table,
    ) -> Queue:
        if queue_type(arguments) == STREAM:
            return StreamQueue(name, vhost, id, durable, exclusive_owner, auto_delete, arguments)
        if queue_type(arguments) == QUORUM:
            self._note_quorum(name)
            return QuorumQueue(name, vhost, id, durable, exclusive_owner, auto_delete, arguments)
        return Queue(name, vhost, id, durable, exclusive_owner, auto_delete, arguments)

    def _note_quorum(self, name: Resource) -> None:
        if not self._noted_quorum:
            self._noted_quorum = True
            self.notes.event(
                "warning", "quorum_queue_without_replicas", {"queue": str(name), "members": 1, "replicated": False}
            )

    def store_exchange(self, vhost: VHost, exchange: Exchange) -> None:
        self.store.put_exchange(vhost, exchange)

    def store_queue(self, vhost: VHost, queue: Queue) -> None:
        self.store.put_queue(vhost, queue)

    def store_binding(self, vhost: VHost, binding: Binding) -> None:
        self.store.put_binding(vhost, binding)

    def unstore_binding(self, vhost: VHost, binding: Binding) -> None:
        self.store.delete_binding(vhost, binding)

    def unstore(self, kind: str, vhost: str, name: str) -> None:
        self.store.delete(kind, store_key([vhost, name]))

    def apply_exchange_policy(self, vhost: VHost, exchange: Exchange) -> None:
        name, operator, definition = self.policies.effective(vhost.name, "exchange", exchange.name.name)
        exchange.policy = name
        exchange.operator_policy = operator
        exchange.policy_definition = definition

    def apply_queue_policy(self, vhost: VHost, queue: Queue) -> bool:
        """Find out which policies apply; says whether they say anything else than before."""
        name, operator, definition = self.policies.effective(
            vhost.name, "queue", queue.name.name, queue_type(queue.arguments)
        )
        queue.policy = name
        queue.operator_policy = operator
        if definition == queue.policy_definition:
            return False
        queue.policy_definition = definition
        return True

    def decorators_for(self, exchange: Exchange) -> list[object]:
        return decorators_for(exchange, self.decorators)

    def exchange_removed(self, exchange: Exchange) -> None:
        """What goes with an exchange: its delayed messages."""
        self.delay.exchange_removed(exchange)

    def queue_gone(self, queue: Queue, deleted: bool) -> None:
        """Tell the publishers that wait for it."""
        for channel in list(self.durability.waiting):
            outcomes.queue_lost(channel.publishing, queue, deleted)

    def outstanding(self, queue: Queue) -> list[Entry]:
        """What is with consumers, or on its way back from them."""
        return outstanding(self, queue)

    def fail_queue(self, queue: Queue) -> None:
        """A fault: the queue accepts nothing any more, and what publishers wait for there will not come."""
        queue.failed = True
        queue.eager = True
        self.queue_gone(queue, False)

    # -- connections -------------------------------------------------------------------------------------------

    def connect(self, sink: Sink, peer: str, peer_port: i64, host: str, port: i64) -> Connection:
        connection = Connection(self, sink, peer, peer_port, host, port)
        self.connections.add(connection)
        self.io_timers.arm(connection.deadline, self.io_now() + self.limits.handshake_timeout)
        return connection

    def update_alarms(self) -> None:
        """Measure; block publishers while an alarm is on, unblock them when the last one clears."""
        if not self.pressure.look():
            return
        reason = self.pressure.reason
        self.notes.event("warning" if reason else "info", "alarm", {"reason": reason or "cleared"})
        if not reason:
            blocked = [connection for connection in self.connections if connection.blocked]
            blocked.reverse()
            self.jobs.add(Unblock(self, blocked))

    # -- end ---------------------------------------------------------------------------------------------------

    def shut_down(self, reason: str) -> None:
        """Tell every client, when what they have settled is."""
        self.jobs.finish()
        for connection in self.connections:
            if connection.state >= RUNNING and connection.state < GONE:
                connection.shut(320, reason)
        self.jobs.finish()  # what they held goes back
        self.end_turn()
