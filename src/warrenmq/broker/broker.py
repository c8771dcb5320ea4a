"""The broker: everything that exists, and the turn.

Duty: hold vhosts, connections and the services they share, and run the end of a turn: deliver what became
deliverable, publish dead letters, flush confirms, close the log's batch, flush output. It never awaits and owns no
socket; the server feeds connections and calls ``end_turn``.
"""

from __future__ import annotations

import base64
import os
import platform
from typing import Final, final

from mypy_extensions import i64

from warrenmq import __version__
from warrenmq.broker import reports, start, store
from warrenmq.broker.access import Access, store_key
from warrenmq.broker.ack_timeout import AckTimeout
from warrenmq.broker.alarms import Alarms
from warrenmq.broker.aside import DamagedMessages
from warrenmq.broker.channel import Channel
from warrenmq.broker.clock import Clock
from warrenmq.broker.connection import Connection
from warrenmq.broker.consumer import Consumer
from warrenmq.broker.crowds import ForgetBindings, Unblock
from warrenmq.broker.dead_letter import DeadLetters
from warrenmq.broker.decorator import DecoratorRegistry, decorators_for
from warrenmq.broker.delay.delays import Delays
from warrenmq.broker.durability import Durability
from warrenmq.broker.exchange.random import Randomness
from warrenmq.broker.firehose import Firehose
from warrenmq.broker.guesses import Guesses
from warrenmq.broker.interceptor import ChannelView, Interceptors
from warrenmq.broker.leftovers import Leftovers
from warrenmq.broker.limits import Limits
from warrenmq.broker.message import Entry, Message, Origin, message_from
from warrenmq.broker.notes import Notes
from warrenmq.broker.policy import Policies
from warrenmq.broker.postponed import Again
from warrenmq.broker.publish import outcomes
from warrenmq.broker.publish.stages import DIRECT_REPLY
from warrenmq.broker.queue.arguments import QUORUM, STREAM, queue_type
from warrenmq.broker.queue.queue import Queue
from warrenmq.broker.queue.quorum import QuorumQueue
from warrenmq.broker.queue.stream import StreamQueue
from warrenmq.broker.records import INTERNAL, Binding, Exchange, Resource
from warrenmq.broker.settling import SLICE, Settling
from warrenmq.broker.sink import Sink
from warrenmq.broker.states import GONE, RUNNING
from warrenmq.broker.timers import Timers
from warrenmq.broker.totals import Totals
from warrenmq.broker.vhost import VHost
from warrenmq.log.log import Log
from warrenmq.log.recovery import Recovered
from warrenmq.log.transient import TransientStore
from warrenmq.wire.fields import Table
from warrenmq.wire.methods import Method
from warrenmq.wire.replies import AmqpError

EXPIRIES: Final = 1000  # messages that expire in one turn; every 4 KiB of a body count as one more
QUEUE_IDS: Final = 1000  # numbers for queues, reserved so many at a time
RABBITMQ_VERSION: Final = "3.10.8"  # whose behaviour we show; clients look at it


@final
class Broker:
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
        self.log: Final = log
        self.transient: Final = transient
        self.clock: Final = clock
        self.io_clock: Final = io_clock
        self.randomness: Final = randomness
        self.notes: Final = notes
        self.node_name: Final = node_name
        self.cluster_name: str = node_name
        self.platform: Final = "Python " + platform.python_version()
        self.version: Final = __version__
        self.rabbitmq_version: Final = RABBITMQ_VERSION
        self.now: i64 = clock.now_ms()
        self.started_at: Final[i64] = self.now
        self.timers: Final = Timers(notes)  # the rules' time: TTL, expiry, delays
        self.io_timers: Final = Timers(notes)  # the wire's time: heartbeats, handshakes, grace, leftovers
        self.limits: Final = Limits()
        # what exists
        self.store: Final = store.DefinitionStore(self)
        self.access: Final = Access(self.store, io_clock, notes)
        self.guesses: Final = Guesses()
        self.policies: Final = Policies(self.store, io_clock, notes)
        self.parameters: dict[tuple[str, str, str], object] = {}  # (component, vhost, name) -> value
        self.global_parameters: dict[str, object] = {}
        self.vhosts: dict[str, VHost] = {}
        self.connections: list[Connection] = []
        self.open_connections: i64 = 0
        self._users: dict[str, int] = {}  # open connections of each user
        self.reply_channels: dict[str, Channel] = {}
        self.interceptors: Interceptors = Interceptors()
        self.decorators: Final = DecoratorRegistry()
        self.firehose: Final = Firehose(self)
        self.dead_letters: Final = DeadLetters(self)
        self.delay: Final = Delays(self)
        self.damaged: Final = DamagedMessages(self)
        self.durability: Final = Durability(self)
        self.leftovers: Final = Leftovers(self)
        self.again: Final = Again(self)
        self.settling: Final = Settling(self)
        self.forgetting: dict[Resource, ForgetBindings] = {}  # by the queue or exchange that is gone
        # the turn
        self.dirty: list[Queue] = []
        self.owing: list[Channel] = []
        self.committed: list[Channel] = []  # their tx.commit is answered before what it gave back is delivered
        self.flushing: list[Connection] = []
        self.cancelled: list[Consumer] = []  # consumers to be told that their queue is gone
        self.owed: bool = False
        self.durable_change: bool = False
        self.defined_batch: i64 = 0  # the last batch of the log that defines or undefines something
        self.log_failing: bool = False
        self.alarms: Alarms | None = None  # set by whoever can measure memory and disk
        self.blocking: str = ""  # why publishers are blocked now, "" when they are not
        self.short: bool = False  # of memory or disk: no message with a body gets in; else the first of each does
        self._ack_timeout: Final = AckTimeout(self)
        self.under_pressure: bool = False
        self.expiries_left: i64 = EXPIRIES
        self.settles_left: i64 = SLICE
        self.windowed: i64 = 0  # entries that queues hold in memory with their content
        self._noted_quorum: bool = False
        self._next_queue_id: i64 = 1
        self._queue_ids_reserved: i64 = 1  # the log knows that numbers below this one may be taken
        self._next_id: i64 = 1
        # counters
        self.unroutable: i64 = 0
        self.totals: Final = Totals(self)

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

    # -- the turn ----------------------------------------------------------------------------------------------

    def begin_turn(self) -> None:
        """Read the clock once for everything that happens until the end of the turn."""
        self.now = self.clock.now_ms()
        self.expiries_left = EXPIRIES
        self.settles_left = SLICE

    def end_turn(self) -> None:
        """Deliver, confirm, commit, flush: once for everything the turn brought."""
        if self.committed:
            self._answer_commits()
        self.settle_down()
        self._flush_confirms()
        owed = self.owed
        self.owed = False
        self.log.end_turn(owed)
        while self.owing or self.dirty:  # an inline log has synced already
            self.settle_down()
            self._flush_confirms()
        flushing = self.flushing
        if flushing:
            self.flushing = []
            for connection in flushing:
                self._flush(connection)

    def settle_down(self) -> None:
        """Deliver from queues that changed and publish dead letters, until nothing moves any more."""
        while self.dirty or self.cancelled or self.dead_letters.pending():
            if self.cancelled:
                cancelled = self.cancelled
                self.cancelled = []
                for consumer in cancelled:
                    consumer.channel.tell_cancelled(consumer)
            dirty = self.dirty
            if dirty:
                self.dirty = []
                for queue in dirty:
                    if queue.dirty and not queue.gone:
                        self._drain(queue)
            if self.dead_letters.pending():
                self.dead_letters.publish_all()

    def _drain(self, queue: Queue) -> None:
        """A queue that fails, on a disk that cannot be read say, does not keep the others from their turn."""
        try:
            queue.drain()
        except Exception as error:
            self.notes.crash("queue_failed", {"queue": str(queue.name)}, error)

    def _flush(self, connection: Connection) -> None:
        """A transport that fails costs its own client the connection, nobody else the output."""
        try:
            connection.flush()
        except Exception as error:
            reports.crashed(connection, error)
            connection.lost("its transport failed")

    def _flush_confirms(self) -> None:
        while self.owing:
            owing = self.owing
            self.owing = []
            for channel in owing:
                channel.flush_confirms()

    def _answer_commits(self) -> None:
        committed = self.committed
        self.committed = []
        for channel in committed:
            channel.release(self.log.synced)

    def run_timers(self) -> bool:
        """Fire one due timer of either kind; says whether one fired."""
        return self.timers.run_next(self.now) or self.io_timers.run_next(self.io_now())

    def io_now(self) -> i64:
        return self.io_clock.now_ms()

    # -- the log -----------------------------------------------------------------------------------------------

    def log_waits(self) -> bool:
        """Has the method being handled changed something durable? Then its answer waits for the log."""
        changed = self.durable_change
        self.durable_change = False
        return changed

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

    def exchange_removed(self, vhost: VHost, exchange: Exchange) -> None:
        """What goes with an exchange: its delayed messages."""
        self.delay.exchange_removed(exchange)

    def queue_gone(self, queue: Queue, deleted: bool) -> None:
        """Tell the publishers that wait for it."""
        for channel in list(self.durability.waiting):
            outcomes.queue_lost(channel.publishing, queue, deleted)

    def fail_queue(self, queue: Queue) -> None:
        """A fault: the queue accepts nothing any more, and what publishers wait for there will not come."""
        queue.failed = True
        queue.eager = True
        self.queue_gone(queue, False)

    def next_queue_id(self) -> i64:
        """A number no queue ever had: the log would take the new one for the old."""
        id = self._next_queue_id
        self._next_queue_id = id + 1
        if id >= self._queue_ids_reserved:
            self._queue_ids_reserved = id + QUEUE_IDS
            self.log.define("counter", "queue_id", b'{"next": %d}' % self._queue_ids_reserved)
        return id

    def saw_queue_id(self, id: i64) -> None:
        if id >= self._next_queue_id:
            self._next_queue_id = id + 1

    def queue_ids_are_taken_below(self, next: i64) -> None:
        """What the log was told before: numbers below this one may have been used."""
        self.saw_queue_id(next - 1)
        self._queue_ids_reserved = self._next_queue_id

    def epoch_begins(self, epoch: i64) -> None:
        """Message ids begin anew with each start, behind all of the starts before."""
        self._next_id = (epoch << 40) + 1

    def next_id(self) -> i64:
        """A message id, unique across restarts."""
        id = self._next_id
        self._next_id = id + 1
        return id

    def generate_name(self, prefix: str) -> str:
        return prefix + base64.urlsafe_b64encode(os.urandom(16)).decode("ascii").rstrip("=")

    # -- publishing --------------------------------------------------------------------------------------------

    def intercept(self, channel: Channel, method: Method) -> Method:
        """Let the interceptors rewrite or refuse a channel method."""
        connection = channel.connection
        view = ChannelView(connection.open_vhost().name, connection.username, connection.name, int(channel.number))
        return self.interceptors.intercept(method, view)

    def amend(self, virtual_host: str, message: Message) -> Message:
        """Let the interceptors amend a message."""
        before = message.basic_message(virtual_host)
        record = self.interceptors.amend(before)
        if record is before:
            return message
        content = record.content
        origin = message.origin
        if record.routing_keys != origin.routing_keys:
            origin = Origin(origin.exchange, record.routing_keys)
        chunks = [content.body] if content.body else []
        new = message_from(origin, message.id, content.header, chunks, len(content.body), record.is_persistent)
        new.expiration = message.expiration
        new.priority = message.priority
        return new

    # -- direct reply-to ---------------------------------------------------------------------------------------

    def listen_for_replies(self, channel: Channel, tag: str) -> None:
        vhost = channel.connection.open_vhost()
        nowhere = Queue(Resource(vhost.name, "queue", DIRECT_REPLY), vhost, 0, False, None, False, {})
        address = self.generate_name(DIRECT_REPLY + ".")
        channel.publishing.publisher.reply_address = address
        channel.reply_consumer = Consumer(channel, nowhere, tag, True, False, 0, 0, {})
        self.reply_channels[address] = channel

    def stop_listening_for_replies(self, channel: Channel) -> None:
        self.reply_channels.pop(channel.publishing.publisher.reply_address, None)
        channel.publishing.publisher.reply_address = ""
        channel.reply_consumer = None

    def deliver_reply(self, address: str, message: Message) -> None:
        channel = self.reply_channels.get(address)
        if channel is not None and channel.reply_consumer is not None:
            consumer = channel.reply_consumer
            consumer.deliver(Entry(message, consumer.queue, 0))
            channel.reuse_delivery_tag()

    # -- connections -------------------------------------------------------------------------------------------

    def connect(self, sink: Sink, peer: str, peer_port: i64, host: str, port: i64) -> Connection:
        connection = Connection(self, sink, peer, peer_port, host, port)
        self.connections.append(connection)
        self.open_connections += 1
        self.totals.connections_opened += 1
        self.io_timers.arm(connection.deadline, self.io_now() + self.limits.handshake_timeout)
        return connection

    def connection_opened(self, connection: Connection) -> None:
        self._users[connection.username] = self._users.get(connection.username, 0) + 1
        reports.about("info", "connection_opened", connection)

    def connection_gone(self, connection: Connection, reason: str) -> None:
        self.connections.remove(connection)
        self.open_connections -= 1
        self.totals.connections_closed += 1
        if connection.vhost is not None:
            connection.vhost.connections -= 1
            self._users[connection.username] = self._users.get(connection.username, 1) - 1
            reports.about("info", "connection_closed", connection)

    def connections_of(self, username: str) -> int:
        return self._users.get(username, 0)

    def check_channel_limits(self, connection: Connection) -> None:
        limit = self.access.user_limit(connection.username, "max-channels")
        if limit < 0:
            return
        count = 0
        for other in self.connections:
            if other.username == connection.username:
                count += len(other.channels)
        if count >= limit:
            raise AmqpError(
                530,
                f"number of channels opened for user '{connection.username}' has reached the maximum allowed "
                f"user limit of ({limit})",
            )

    def update_alarms(self) -> None:
        """Measure; block publishers while an alarm is on, unblock them when the last one clears."""
        alarms = self.alarms
        if alarms is not None:
            alarms.set_log_failed(self.log_failing)
            alarms.check()
            reason = alarms.reason
        else:
            reason = "low on disk" if self.log_failing else ""
        self.short = alarms is not None and (alarms.memory or alarms.disk)
        if reason == self.blocking:
            return
        self.blocking = reason
        self.notes.event("warning" if reason else "info", "alarm", {"reason": reason or "cleared"})
        if not reason:
            blocked = [connection for connection in self.connections if connection.blocked]
            blocked.reverse()
            self.settling.add(Unblock(self, blocked))

    # -- end ---------------------------------------------------------------------------------------------------

    def shut_down(self, reason: str) -> None:
        """Tell every client, when what they have settled is."""
        self.settling.finish()
        for connection in list(self.connections):
            if connection.state >= RUNNING and connection.state < GONE:
                connection.shut(320, reason)
        self.settling.finish()  # what they held goes back
        self.end_turn()
