"""What the broker's objects look like in the API's JSON: one function per kind of object, no side effects."""

from __future__ import annotations

import base64
import hashlib
from datetime import UTC, datetime
from urllib.parse import quote_plus

from msgspec import UNSET, UnsetType

from warrenmq.broker.channel.channel import Channel
from warrenmq.broker.channel.consumer import Subscription
from warrenmq.broker.channel.session import Session
from warrenmq.broker.channel.states import CLOSING, RUNNING
from warrenmq.broker.connection.connection import Connection
from warrenmq.broker.deduplication.window import Window
from warrenmq.broker.exchange.types import DELAYED
from warrenmq.broker.queue.queue import Queue
from warrenmq.broker.records import Binding, Exchange
from warrenmq.broker.vhost.vhost import VHost
from warrenmq.http.bridge import Bridge
from warrenmq.http.figures.rates import NOW, Ranges
from warrenmq.http.figures.stats import Sums, add, channel_counters, exchange_counters, queue_counters, vhost_counters
from warrenmq.http.metrics.clients import unconfirmed
from warrenmq.http.models import (
    BindingInfo,
    ChannelDetails,
    ChannelInfo,
    ConnectionDetails,
    ConnectionInfo,
    ConsumerInfo,
    DeduplicationInfo,
    ExchangeInfo,
    QueueInfo,
    QueueName,
    QueueTotals,
    VhostInfo,
)
from warrenmq.wire.fields import Table, encode_table, to_python

# -- exchanges and bindings


def exchange_info(bridge: Bridge, exchange: Exchange, wanted: Ranges = NOW) -> ExchangeInfo:
    name = exchange.name.name
    counted = exchange_counters(exchange)
    rates = bridge.rates("exchange", exchange.name.virtual_host, name)
    return ExchangeInfo(
        name=name,
        vhost=exchange.name.virtual_host,
        type=exchange.type,
        durable=exchange.durable,
        auto_delete=exchange.auto_delete,
        internal=exchange.internal,
        arguments=to_python(exchange.arguments),
        user_who_performed_action=exchange.user,
        message_stats=rates.stats(counted, wanted.msg_rates) if counted else UNSET,
        policy=UNSET if exchange.policy.name is None else exchange.policy.name,
        messages_delayed=int(bridge.broker.delay.waiting(exchange)) if exchange.type == DELAYED else UNSET,
        deduplication=deduplication_info(
            bridge.broker.deduplication.window_of(exchange), bridge.broker.services.clock.now_ms()
        ),
    )


def deduplication_info(window: Window | None, now: int) -> DeduplicationInfo | UnsetType:
    if window is None:
        return UNSET
    return DeduplicationInfo(
        window=int(window.length),
        max=int(window.most),
        since=int(window.complete_since(now)),
        ids=int(window.count),
        duplicates=int(window.duplicates),
        evicted_early=int(window.evicted_early),
    )


def properties_key(key: str, arguments: Table) -> str:
    """What names one binding among those of the same source and destination in a path."""
    quoted = quote_plus(key).replace("~", "%7E")
    if not arguments:
        return quoted or "~"
    digest = hashlib.sha256(encode_table(dict(sorted(arguments.items())))).digest()[:4]
    return f"{quoted}~{base64.urlsafe_b64encode(digest).decode().rstrip('=')}"


def binding_info(binding: Binding) -> BindingInfo:
    return BindingInfo(
        source=binding.source.name.name,
        vhost=binding.source.name.virtual_host,
        destination=binding.destination.name.name,
        destination_type=binding.destination.name.kind,
        routing_key=binding.key,
        arguments=to_python(binding.arguments),
        properties_key=properties_key(binding.key, binding.arguments),
    )


def default_binding(queue: Queue) -> BindingInfo:
    """The binding every queue has to the default exchange; nobody made it and nobody can remove it."""
    name = queue.name.name
    return BindingInfo("", queue.name.virtual_host, name, "queue", name, {}, properties_key(name, {}))


# -- queues


def queue_info(bridge: Bridge, queue: Queue, wanted: Ranges = NOW) -> QueueInfo:
    name = queue.name.name
    vhost = queue.name.virtual_host
    ready, unacked = int(queue.ready), int(queue.unacked)
    ready_bytes, unacked_bytes = int(queue.ready_bytes), int(queue.unacked_bytes)
    letters, letter_bytes = queue.letters_waiting()
    consumers = queue.consumers
    rates = bridge.rates("queue", vhost, name)
    busy = bool(consumers)
    idle = ready == 0 or not busy
    active = next((one.tag for one in consumers if one.active), None) if queue.single_active else None
    exclusive = queue.exclusive_consumer()
    counted = queue_counters(queue)
    return QueueInfo(
        name=name,
        vhost=vhost,
        type=queue.kind,
        durable=queue.durable,
        auto_delete=queue.declared.auto_delete,
        exclusive=queue.declared.exclusive_owner is not None,
        arguments=to_python(queue.arguments),
        node=bridge.node,
        state="paused" if queue.paused else "running",
        policy=queue.policy.name,
        operator_policy=queue.policy.operator,
        effective_policy_definition=queue.policy.definition,
        consumers=queue.consumer_count(),
        exclusive_consumer_tag=None if exclusive is None else exclusive.tag,
        single_active_consumer_tag=active,
        head_message_timestamp=queue.head_timestamp(),
        idle_since=moment(queue.idle_since) if idle else UNSET,
        messages=ready + unacked + letters,
        messages_details=rates.details("messages", wanted.lengths),
        messages_ready=ready,
        messages_ready_details=rates.details("messages_ready", wanted.lengths),
        messages_unacknowledged=unacked,
        messages_unacknowledged_details=rates.details("messages_unacknowledged", wanted.lengths),
        message_bytes=ready_bytes + unacked_bytes + letter_bytes,
        message_bytes_ready=ready_bytes,
        message_bytes_unacknowledged=unacked_bytes,
        message_stats=rates.stats(counted, wanted.msg_rates) if counted else UNSET,
        owner_pid_details=_owner(queue.declared.exclusive_owner)
        if isinstance(queue.declared.exclusive_owner, Connection)
        else UNSET,
        messages_dlx=letters if queue.kind == "quorum" else UNSET,
        message_bytes_dlx=letter_bytes if queue.kind == "quorum" else UNSET,
        leader=bridge.node if queue.kind == "quorum" else UNSET,
        online=[bridge.node] if queue.kind == "quorum" else UNSET,
        members=1 if queue.kind == "quorum" else UNSET,
        replicated=False if queue.kind == "quorum" else UNSET,
    )


def _owner(connection: Session) -> dict[str, object]:
    return {"name": connection.name, "peer_host": connection.peer.host, "peer_port": int(connection.peer.port)}


def moment(milliseconds: int) -> str:
    return datetime.fromtimestamp(int(milliseconds) / 1000, UTC).isoformat(timespec="milliseconds")


def queue_totals(bridge: Bridge, sums: dict[VHost, Sums], vhosts: list[VHost], wanted: Ranges = NOW) -> QueueTotals:
    ready = sum(sums[vhost].ready for vhost in vhosts)
    unacked = sum(sums[vhost].unacked for vhost in vhosts)
    rates = bridge.rates_of_vhosts(vhosts)
    return QueueTotals(
        ready + unacked,
        rates.details("messages", wanted.lengths),
        ready,
        rates.details("messages_ready", wanted.lengths),
        unacked,
        rates.details("messages_unacknowledged", wanted.lengths),
    )


def vhost_stats(
    bridge: Bridge, sums: dict[VHost, Sums], vhosts: list[VHost], wanted: Ranges = NOW
) -> dict[str, object]:
    counters: dict[str, int] = {}
    for vhost in vhosts:
        add(counters, vhost_counters(sums[vhost]))
    return bridge.rates_of_vhosts(vhosts).stats(counters, wanted.msg_rates)


def vhost_info(bridge: Bridge, sums: dict[VHost, Sums], vhost: VHost, wanted: Ranges = NOW) -> VhostInfo:
    lengths = wanted.msg_rates or wanted.lengths  # as in RabbitMQ, which takes the other one here
    totals = queue_totals(bridge, sums, [vhost], Ranges(lengths=lengths))
    rates = bridge.rates("vhost", "", vhost.name)
    received, sent = sums[vhost].received, sums[vhost].sent
    metadata: dict[str, object] = {"description": vhost.description, "tags": list(vhost.tags)}
    if vhost.nack_unroutable:
        metadata["nack_unroutable"] = True
    if not vhost.has_default_level():
        metadata |= vhost.journal_metadata()
    return VhostInfo(
        name=vhost.name,
        description=vhost.description,
        tags=list(vhost.tags),
        default_queue_type=vhost.default_queue_type or "undefined",
        metadata=metadata,
        tracing=vhost.tracing,
        cluster_state={bridge.node: "running"},
        messages=totals.messages,
        messages_details=totals.messages_details,
        messages_ready=totals.messages_ready,
        messages_ready_details=totals.messages_ready_details,
        messages_unacknowledged=totals.messages_unacknowledged,
        messages_unacknowledged_details=totals.messages_unacknowledged_details,
        recv_oct=received,
        recv_oct_details=rates.details("recv_oct", wanted.data_rates),
        send_oct=sent,
        send_oct_details=rates.details("send_oct", wanted.data_rates),
        message_stats=vhost_stats(bridge, sums, [vhost], wanted),
    )


# -- connections, channels, consumers


def connection_state(connection: Connection) -> str:
    if connection.reading.blocked:
        return "blocked"
    if connection.broker.services.pressure.reason and connection.state == RUNNING:
        return "blocking"  # it has not published since
    if connection.reading.in_flow or connection.reading.flow_until > connection.broker.services.turn.now:
        return "flow"
    if connection.state == RUNNING:
        return "running"
    return "closing" if connection.state == CLOSING else "closed"


def connection_info(bridge: Bridge, connection: Connection, wanted: Ranges = NOW) -> ConnectionInfo:
    vhost = connection.vhost
    properties = to_python(connection.peer.properties)
    given = properties.get("connection_name")
    session = connection.peer.session
    host, _, port = connection.name.rpartition(" -> ")[2].rpartition(":")
    received, sent = int(connection.input.received), int(connection.output.sent)
    rates = bridge.rates("connection", "", connection.name)
    return ConnectionInfo(
        name=connection.name,
        node=bridge.node,
        type="network",
        protocol="AMQP 0-9-1",
        state=connection_state(connection),
        user=connection.username,
        user_who_performed_action=connection.username,
        vhost="" if vhost is None else vhost.name,
        host=host,
        port=int(port) if port.isdigit() else 0,
        peer_host=connection.peer.host,
        peer_port=int(connection.peer.port),
        ssl=session is not None,
        ssl_protocol=None if session is None else session.protocol,
        ssl_key_exchange=None if session is None else session.key_exchange,
        ssl_cipher=None if session is None else session.cipher,
        ssl_hash=None if session is None else session.hash,
        peer_cert_subject=(session.subject or None) if session is not None else None,
        peer_cert_issuer=(session.issuer or None) if session is not None else None,
        peer_cert_validity=(session.validity or None) if session is not None else None,
        auth_mechanism=connection.peer.mechanism,
        channels=len(connection.channels),
        channel_max=int(connection.channel_max),
        frame_max=int(connection.output.frame_max),
        timeout=int(connection.heartbeat),
        connected_at=int(connection.connected_at),
        client_properties=properties,
        recv_oct=received,
        recv_oct_details=rates.details("recv_oct", wanted.data_rates),
        send_oct=sent,
        send_oct_details=rates.details("send_oct", wanted.data_rates),
        send_pend=int(connection.output.pending()),
        user_provided_name=given if isinstance(given, str) else UNSET,
    )


def channel_name(channel: Channel) -> str:
    return f"{channel.connection.name} ({int(channel.number)})"


def channel_details(bridge: Bridge, channel: Channel) -> ChannelDetails:
    connection = channel.connection
    return ChannelDetails(
        name=channel_name(channel),
        number=int(channel.number),
        connection_name=connection.name,
        node=bridge.node,
        peer_host=connection.peer.host,
        peer_port=int(connection.peer.port),
        user=connection.username,
    )


def consumer_info(bridge: Bridge, consumer: Subscription) -> ConsumerInfo:
    name = consumer.queue.name
    return ConsumerInfo(
        arguments=to_python(consumer.arguments),
        ack_required=not consumer.no_ack,
        active=consumer.active,
        activity_status="up" if consumer.active else "waiting",
        channel_details=channel_details(bridge, consumer.channel),
        consumer_tag=consumer.tag,
        exclusive=consumer.exclusive,
        prefetch_count=int(consumer.asked_prefetch),
        queue=QueueName(name.name, name.virtual_host),
    )


def channel_info(bridge: Bridge, channel: Channel, wanted: Ranges = NOW) -> ChannelInfo:
    connection = channel.connection
    vhost = connection.vhost
    name = channel_name(channel)
    tx = channel.tx
    return ChannelInfo(
        name=name,
        number=int(channel.number),
        node=bridge.node,
        state="running",  # credit is the connection's: it is what shows "flow"
        user=connection.username,
        user_who_performed_action=connection.username,
        vhost="" if vhost is None else vhost.name,
        connection_details=ConnectionDetails(connection.name, connection.peer.host, int(connection.peer.port)),
        confirm=channel.publishing.sender.confirms,
        transactional=tx is not None,
        consumer_count=len(channel.consumers),
        prefetch_count=int(channel.consumers.prefetch),
        global_prefetch_count=int(channel.consumers.global_prefetch),
        messages_unacknowledged=int(channel.outstanding.unacked.count),
        messages_unconfirmed=unconfirmed(channel.publishing.confirms.waiting),
        messages_uncommitted=0 if tx is None else int(tx.uncommitted()),
        acks_uncommitted=0 if tx is None else int(tx.buffered_acks()),
        pending_raft_commands=0,
        message_stats=bridge.rates("channel", "", name).stats(channel_counters(channel), wanted.msg_rates),
    )
