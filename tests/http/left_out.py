"""What RabbitMQ 3.10 tells in numbers and we do not, and why; and what is told by both and not compared by value.

Families of the metrics pages first, then members of the HTTP API's objects.
"""

from __future__ import annotations

#: by the beginning of their names, without ``detailed_``
LEFT_OUT = {
    "erlang_": "there is no Erlang",
    "rabbitmq_erlang_": "there is no Erlang",
    "telemetry_": "of RabbitMQ's own exporter",
    "process_start_time_seconds": "of RabbitMQ's own exporter",
    "rabbitmq_raft_": "there is one node and no Raft",
    "rabbitmq_schema_db_": "definitions are in the log",
    "rabbitmq_msg_store_": "messages are in the log",
    "rabbitmq_queue_index_": "there is no queue index",
    "rabbitmq_io_read_": "reads of the log are not timed",
    "rabbitmq_io_seek_": "the log is appended to",
    "rabbitmq_io_reopen_": "files of the log stay open",
    "rabbitmq_auth_attempts_detailed_": "not counted by user and address, of which there is no end",
    "rabbitmq_alarms_file_descriptor_limit": "there is no such alarm",
    "rabbitmq_queue_process_": "queues are no processes",
    "rabbitmq_channel_process_": "channels are no processes",
    "rabbitmq_connection_process_": "connections are no processes",
    "rabbitmq_connection_incoming_packets_total": "not counted",
    "rabbitmq_connection_outgoing_packets_total": "not counted",
    "rabbitmq_queue_consumer_": "how busy consumers are is not counted",
    "rabbitmq_queue_messages_ram": "what is in memory is not counted by queue",
    "rabbitmq_queue_messages_ready_ram": "what is in memory is not counted by queue",
    "rabbitmq_queue_messages_unacked_ram": "what is in memory is not counted by queue",
    "rabbitmq_queue_messages_persistent": "not counted",
    "rabbitmq_queue_messages_paged_out": "what is in memory is not counted by queue",
    "rabbitmq_queue_head_message_timestamp": "the queue itself has it in the HTTP API",
    "rabbitmq_queue_disk_": "the log reads and writes for all queues together",
}
#: families whose numbers are of the machine, the process or the connections before, and no messages
OF_THE_NODE = (
    *("rabbitmq_process_", "rabbitmq_disk_space_", "rabbitmq_resident_memory_", "rabbitmq_alarms_"),
    *("rabbitmq_build_info", "rabbitmq_identity_info", "rabbitmq_connections_", "rabbitmq_connection_"),
    "rabbitmq_global_publishers",  # RabbitMQ's may fall below 0
    "rabbitmq_io_",  # of other files
    "rabbitmq_auth_attempts_",  # as many of HTTP as somebody has asked; those of AMQP are compared by themselves
)
#: where RabbitMQ forgets what a channel got from, and published to, a queue that is deleted, and a channel that is over
FORGOTTEN = (
    *("rabbitmq_channel_messages_delivered_total", "rabbitmq_channel_get_empty_total"),
    "rabbitmq_queue_messages_published_total",
)


def plain(name: str) -> str:
    """As /metrics calls what /metrics/detailed has under another name."""
    return name.replace("_detailed_", "_", 1)


def left_out(name: str) -> bool:
    return any(plain(name).startswith(one) for one in LEFT_OUT)


def compared(name: str) -> bool:
    """Is it there, and the same on both?"""
    name = plain(name)
    return not left_out(name) and not name.startswith(OF_THE_NODE) and name not in FORGOTTEN


# -- the HTTP API ------------------------------------------------------------------------------------------------------

#: members with a number in them, by the beginning of their path without indices
MEMBERS_LEFT_OUT = {
    "queue.backing_queue_status": "of RabbitMQ's own way to keep a classic queue",
    "queue.garbage_collection": "there is no Erlang",
    "queue.reductions": "there is no Erlang",
    "queue.memory": "queues are no processes",
    "queue.consumer_": "how busy consumers are is not counted",
    "queue.messages_ram": "what is in memory is not counted by queue",
    "queue.messages_ready_ram": "what is in memory is not counted by queue",
    "queue.messages_unacknowledged_ram": "what is in memory is not counted by queue",
    "queue.messages_paged_out": "what is in memory is not counted by queue",
    "queue.messages_persistent": "not counted",
    "queue.message_bytes_ram": "what is in memory is not counted by queue",
    "queue.message_bytes_paged_out": "what is in memory is not counted by queue",
    "queue.message_bytes_persistent": "not counted",
    "channel.garbage_collection": "there is no Erlang",
    "channel.reductions": "there is no Erlang",
    "connection.garbage_collection": "there is no Erlang",
    "connection.reductions": "there is no Erlang",
    "connection.recv_cnt": "not counted",
    "connection.send_cnt": "not counted",
    "overview.message_stats.disk_": "the log reads and writes for all queues together: see the node",
    "overview.listeners.socket_opts": "of Erlang's sockets",
    "node.context_switches": "of Erlang's schedulers",
    "node.gc_": "there is no Erlang",
    "node.io_read_": "reads of the log are not timed",
    "node.io_seek_": "the log is appended to",
    "node.io_reopen_": "files of the log stay open",
    "node.io_sync_avg_time_details": "an average has no rate",
    "node.io_write_avg_time_details": "an average has no rate",
    "node.metrics_gc_queue_length": "there is no such queue",
    "node.mnesia_": "definitions are in the log",
    "node.msg_store_": "messages are in the log",
    "node.queue_index_": "there is no queue index",
    "node.ra_open_file_metrics": "there is one node and no Raft",
}
#: those of the machine, the process, the clock or the connections before; rates are compared in test_rates.py
MEMBERS_OF_THE_NODE = (
    *(
        "overview.listeners",
        "overview.contexts",
        "overview.churn_rates.connection_",
        "overview.statistics_db_event_queue",
    ),
    *("node.fd_", "node.sockets_", "node.proc_", "node.mem_", "node.disk_free", "node.uptime", "node.run_queue"),
    *("node.io_sync_", "node.io_write_", "node.connection_", "node.contexts"),
    *(
        "vhost.recv_oct",
        "vhost.send_oct",
        "connection.recv_oct",
        "connection.send_oct",
    ),  # names in the handshake differ
    *("connection.connected_at", "connection.peer_port", "connection.port", "channel.connection_details.peer_port"),
)


def member_left_out(path: str) -> bool:
    return path.startswith(tuple(MEMBERS_LEFT_OUT))


def member_compared(path: str) -> bool:
    """Is it there, and the same on both?"""
    return not member_left_out(path) and not path.startswith(MEMBERS_OF_THE_NODE) and "_details" not in path
