"""The JSON of the management API as typed models: what answers look like (requests are in ``requests.py``).

Names and shapes are RabbitMQ 3.10's. The OpenAPI description is generated from these (``openapi.py``). Where RabbitMQ
reports what only an Erlang node has (reductions, garbage collection of a process), the field is left out.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct, UnsetType, field

Json = Any
Object = dict[str, Any]


class Sample(Struct):
    """The value of a counter at a time, in milliseconds since 1970."""

    sample: int
    timestamp: int


class Rate(Struct):
    """The change of a counter a second; and, where a range of time was asked for, what it was."""

    rate: float = 0.0
    samples: list[Sample] | UnsetType = UNSET
    avg_rate: float | UnsetType = UNSET
    avg: float | UnsetType = UNSET


class Problem(Struct):
    """The body of an answer that is no success."""

    error: str
    reason: Json


class Who(Struct):
    """The user whom the request's credentials name."""

    name: str
    tags: list[str]


class Status(Struct, omit_defaults=True):
    """The outcome of a check, with a reason when it failed."""

    status: str
    reason: str | UnsetType = UNSET


class Unwell(Struct):
    """A health check that failed; some say more, such as what is missing."""

    status: str
    reason: str


class QueueTotals(Struct):
    """The messages of several queues together."""

    messages: int
    messages_details: Rate
    messages_ready: int
    messages_ready_details: Rate
    messages_unacknowledged: int
    messages_unacknowledged_details: Rate


class ObjectTotals(Struct):
    """The number of objects of each kind."""

    channels: int
    connections: int
    exchanges: int
    queues: int
    consumers: int | UnsetType = UNSET  # for those who see everybody's


class ExchangeTypeInfo(Struct):
    """An exchange type that can be declared."""

    name: str
    description: str
    enabled: bool = True


class Listener(Struct):
    """A port at which the broker is reached, by protocol."""

    node: str
    protocol: str
    ip_address: str
    port: int
    socket_opts: Object = {}


class Context(Struct):
    """An HTTP listener, and under which path it serves the API."""

    node: str
    description: str
    path: str
    ip: str
    port: str


class Overview(Struct):
    """The first page: versions, totals, rates and listeners of the broker."""

    management_version: str
    rates_mode: str
    sample_retention_policies: dict[str, list[int]]
    exchange_types: list[ExchangeTypeInfo]
    product_version: str
    product_name: str
    rabbitmq_version: str
    cluster_name: str
    erlang_version: str
    erlang_full_version: str
    disable_stats: bool
    enable_queue_totals: bool
    message_stats: Object
    churn_rates: Object
    queue_totals: QueueTotals
    object_totals: ObjectTotals
    statistics_db_event_queue: int
    node: str | UnsetType = UNSET
    listeners: list[Listener] | UnsetType = UNSET
    contexts: list[Context] | UnsetType = UNSET


class Node(Struct):
    """The one node: its process, its resources and their limits, its alarms. Writes and syncs are the log's, averages
    are milliseconds. Warren's own: how many confirms waited for the disk (``confirms_waited``), and the time of all of
    them and of all syncs together."""

    name: str
    type: str
    running: bool
    os_pid: str
    uptime: int
    processors: int
    run_queue: int
    fd_used: int
    fd_total: int
    sockets_used: int
    sockets_total: int
    proc_used: int
    proc_total: int
    mem_used: int
    mem_limit: int
    mem_alarm: bool
    mem_calculation_strategy: str
    disk_free: int
    disk_free_limit: int
    disk_free_alarm: bool
    rates_mode: str
    partitions: list[str]
    exchange_types: list[ExchangeTypeInfo]
    auth_mechanisms: list[ExchangeTypeInfo]
    applications: list[Object]
    contexts: list[Context]
    log_files: list[str]
    db_dir: str
    config_files: list[str]
    net_ticktime: int
    enabled_plugins: list[str]
    cluster_links: list[Object]
    connection_created: int
    connection_closed: int
    channel_created: int
    channel_closed: int
    queue_declared: int
    queue_created: int
    queue_deleted: int
    confirms_waited: int
    confirm_microseconds: int
    sync_microseconds: int
    io_sync_count: int
    io_write_count: int
    io_write_bytes: int
    io_sync_avg_time: float
    io_write_avg_time: float
    mem_used_details: Rate
    fd_used_details: Rate
    sockets_used_details: Rate
    proc_used_details: Rate
    disk_free_details: Rate
    connection_created_details: Rate
    connection_closed_details: Rate
    channel_created_details: Rate
    channel_closed_details: Rate
    queue_declared_details: Rate
    queue_created_details: Rate
    queue_deleted_details: Rate
    confirms_waited_details: Rate
    confirm_microseconds_details: Rate
    sync_microseconds_details: Rate
    io_sync_count_details: Rate
    io_write_count_details: Rate
    io_write_bytes_details: Rate


class VhostInfo(Struct):
    """A virtual host with the sums over its queues."""

    name: str
    description: str
    tags: list[str]
    default_queue_type: str
    metadata: Object
    tracing: bool
    cluster_state: dict[str, str]
    messages: int
    messages_details: Rate
    messages_ready: int
    messages_ready_details: Rate
    messages_unacknowledged: int
    messages_unacknowledged_details: Rate
    recv_oct: int
    recv_oct_details: Rate
    send_oct: int
    send_oct_details: Rate
    message_stats: Object


class UserInfo(Struct):
    """An account, with the hash of its password."""

    name: str
    password_hash: str
    hashing_algorithm: str
    tags: list[str]
    limits: dict[str, int]


class PermissionInfo(Struct):
    """The three patterns of one user in one vhost."""

    user: str
    vhost: str
    configure: str
    write: str
    read: str


class TopicPermissionInfo(Struct):
    """The routing keys that one user may write and read at one topic exchange."""

    user: str
    vhost: str
    exchange: str
    write: str
    read: str


class PolicyInfo(Struct):
    """A policy or operator policy."""

    vhost: str
    name: str
    pattern: str
    apply_to: str = field(name="apply-to")
    definition: Object
    priority: float | int


class PolicyInForce(Struct):
    """The number of queues and exchanges on which a policy (or an ``operator`` policy) is in force right now, and
    ``first``, at most a hundred of them by kind and name."""

    vhost: str
    name: str
    operator: bool
    queues: int = 0
    exchanges: int = 0
    first: list[Object] = []


class Parameter(Struct):
    """A runtime parameter of a component within a vhost."""

    value: Json
    vhost: str
    component: str
    name: str


class GlobalParameter(Struct):
    """A runtime parameter that belongs to no vhost."""

    name: str
    value: Json


class VhostLimits(Struct):
    """The limits set for one vhost."""

    vhost: str
    value: dict[str, int]


class UserLimits(Struct):
    """The limits set for one user."""

    user: str
    value: dict[str, int]


class BindingInfo(Struct):
    """A binding, with the key under which its URL names it."""

    source: str
    vhost: str
    destination: str
    destination_type: str
    routing_key: str
    arguments: Object
    properties_key: str


class DeduplicationInfo(Struct):
    """The memory of an exchange with a window: `window` in ms, `max` ids at most. What was taken `since` then (ms
    since 1970) is remembered; `evicted_early` had to go for others before their time."""

    window: int
    max: int
    since: int
    ids: int
    duplicates: int
    evicted_early: int


class ChannelDetails(Struct):
    """The channel of a consumer, in short."""

    name: str
    number: int
    connection_name: str
    node: str
    peer_host: str
    peer_port: int
    user: str


class QueueName(Struct):
    """The queue that a consumer reads, by name and vhost."""

    name: str
    vhost: str


class ExchangeName(Struct):
    """The exchange that something was published to, by name and vhost."""

    name: str
    vhost: str


class ByChannel(Struct):
    """The part of one channel in the figures of a queue or an exchange."""

    channel_details: ChannelDetails
    stats: Object


class ByExchange(Struct):
    """The part of one exchange in the figures of a queue or a channel."""

    exchange: ExchangeName
    stats: Object


class ByQueue(Struct):
    """The part of one queue in the figures of an exchange or a channel."""

    queue: QueueName
    stats: Object


class ExchangeInfo(Struct):
    """An exchange with its policy and what went through it."""

    name: str
    vhost: str
    type: str
    durable: bool
    auto_delete: bool
    internal: bool
    arguments: Object
    user_who_performed_action: str
    message_stats: Object | UnsetType = UNSET
    policy: str | UnsetType = UNSET
    messages_delayed: int | UnsetType = UNSET
    deduplication: DeduplicationInfo | UnsetType = UNSET
    incoming: list[ByChannel] | UnsetType = UNSET
    outgoing: list[ByQueue] | UnsetType = UNSET


class ConsumerInfo(Struct):
    """A subscription with its prefetch and its channel."""

    arguments: Object
    ack_required: bool
    active: bool
    activity_status: str
    channel_details: ChannelDetails
    consumer_tag: str
    exclusive: bool
    prefetch_count: int
    queue: QueueName


class TimeInQueue(Struct):
    """The times that messages had waited when they were handed out: ``le`` counts those of at most so many seconds."""

    count: int
    sum_ms: int
    le: dict[str, int]


class QueueAges(Struct):
    """Ages in ms, null where there is nothing. ``oldest_waiting_at_least``: it was there when the broker started."""

    oldest_waiting_ms: int | None
    oldest_held_ms: int | None
    oldest_waiting_at_least: bool | UnsetType = UNSET
    time_in_queue: TimeInQueue | UnsetType = UNSET


class QueueInfo(Struct):
    """A queue: its declaration, policy, messages, consumers and rates."""

    name: str
    vhost: str
    type: str
    durable: bool
    auto_delete: bool
    exclusive: bool
    arguments: Object
    node: str
    state: str
    policy: str | None
    operator_policy: str | None
    effective_policy_definition: Object
    consumers: int
    exclusive_consumer_tag: str | None
    single_active_consumer_tag: str | None
    head_message_timestamp: int | None
    idle_since: str | UnsetType
    messages: int
    messages_details: Rate
    messages_ready: int
    messages_ready_details: Rate
    messages_unacknowledged: int
    messages_unacknowledged_details: Rate
    message_bytes: int
    message_bytes_ready: int
    message_bytes_unacknowledged: int
    message_stats: Object | UnsetType = UNSET
    owner_pid_details: Object | UnsetType = UNSET
    consumer_details: list[ConsumerInfo] | UnsetType = UNSET
    incoming: list[ByExchange] | UnsetType = UNSET
    deliveries: list[ByChannel] | UnsetType = UNSET
    ages: QueueAges | UnsetType = UNSET
    # quorum queues only, in RabbitMQ's words; the last two say plainly what one node can promise
    messages_dlx: int | UnsetType = UNSET
    message_bytes_dlx: int | UnsetType = UNSET
    leader: str | UnsetType = UNSET
    online: list[str] | UnsetType = UNSET
    members: int | UnsetType = UNSET
    replicated: bool | UnsetType = UNSET


class MessageInfo(Struct):
    """A message fetched over HTTP."""

    payload_bytes: int
    redelivered: bool
    exchange: str
    routing_key: str
    message_count: int
    properties: Object | list[Json]
    payload: str
    payload_encoding: str


class Routed(Struct):
    """The answer to a publish: did any queue get it?"""

    routed: bool


class ConnectionInfo(Struct):
    """A client's connection: its ends, its user, its traffic and what the client says of itself."""

    name: str
    node: str
    type: str
    protocol: str
    state: str
    user: str
    user_who_performed_action: str
    vhost: str
    host: str
    port: int
    peer_host: str
    peer_port: int
    ssl: bool
    ssl_protocol: str | None
    ssl_key_exchange: str | None
    ssl_cipher: str | None
    ssl_hash: str | None
    peer_cert_subject: str | None
    peer_cert_issuer: str | None
    peer_cert_validity: str | None
    auth_mechanism: str
    channels: int
    channel_max: int
    frame_max: int
    timeout: int
    connected_at: int
    client_properties: Object
    recv_oct: int
    recv_oct_details: Rate
    send_oct: int
    send_oct_details: Rate
    send_pend: int
    user_provided_name: str | UnsetType = UNSET


class ConnectionDetails(Struct):
    """The connection of a channel, in short."""

    name: str
    peer_host: str
    peer_port: int


class ChannelInfo(Struct):
    """A channel: its modes, its prefetch, what is unconfirmed and unacknowledged."""

    name: str
    number: int
    node: str
    state: str
    user: str
    user_who_performed_action: str
    vhost: str
    connection_details: ConnectionDetails
    confirm: bool
    transactional: bool
    consumer_count: int
    prefetch_count: int
    global_prefetch_count: int
    messages_unacknowledged: int
    messages_unconfirmed: int
    messages_uncommitted: int
    acks_uncommitted: int
    pending_raft_commands: int
    message_stats: Object
    consumer_details: list[ConsumerInfo] | UnsetType = UNSET
    publishes: list[ByExchange] | UnsetType = UNSET
    deliveries: list[ByQueue] | UnsetType = UNSET


class Page(Struct):
    """An answer to a listing asked for with ``page``."""

    total_count: int
    item_count: int
    filtered_count: int
    page: int
    page_size: int
    page_count: int
    items: list[Json]


class Definitions(Struct, omit_defaults=True):
    """The export of everything that is declared or set."""

    rabbit_version: str
    rabbitmq_version: str | UnsetType = UNSET
    product_name: str | UnsetType = UNSET
    product_version: str | UnsetType = UNSET
    users: list[Object] | UnsetType = UNSET
    vhosts: list[Object] | UnsetType = UNSET
    permissions: list[Object] | UnsetType = UNSET
    topic_permissions: list[Object] | UnsetType = UNSET
    parameters: list[Object] | UnsetType = UNSET
    global_parameters: list[Object] | UnsetType = UNSET
    policies: list[Object] | UnsetType = UNSET
    queues: list[Object] | UnsetType = UNSET
    exchanges: list[Object] | UnsetType = UNSET
    bindings: list[Object] | UnsetType = UNSET
