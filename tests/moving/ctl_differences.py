"""Where `warren ctl` differs from rabbitmqctl on purpose. The guide tells of these (`docs/moving-from-rabbitmq.md`)."""

from __future__ import annotations

import re

from tests.http.dialogue import NOT_TOLD

NAMES = "a name that other verbs take, not an Erlang process identifier"
COUNTED = "counted in another way, or not at all"
RUN = "differs from run to run"
ARGUMENTS = "an object in JSON, not a list of names, AMQP types and values"

#: Verb -> column -> why its values are not compared, only that there are as many.
OWN_COLUMNS: dict[str, dict[str, str]] = {
    "list_queues": {
        **dict.fromkeys(sorted(NOT_TOLD), COUNTED),
        "pid": NAMES,
        "owner_pid": NAMES,
        "disk_reads": COUNTED,
        "disk_writes": COUNTED,
        "head_message_timestamp": "of what is ready, not of what is with consumers",
        "arguments": ARGUMENTS,
    },
    "list_bindings": {"arguments": ARGUMENTS},
    "list_connections": {
        "pid": NAMES,
        "peer_port": RUN,
        "connected_at": RUN,
        "recv_cnt": COUNTED,
        "recv_oct": COUNTED,
        "send_cnt": COUNTED,
        "send_oct": COUNTED,
        "peer_host": "a text in JSON, not a list of four numbers",
    },
    "list_channels": {"pid": NAMES, "connection": NAMES},
    "list_consumers": {"channel_pid": NAMES, "arguments": ARGUMENTS},
}

#: Columns of the above whose plain form is RabbitMQ's; only JSON differs.
ONLY_IN_JSON = {ARGUMENTS, "a text in JSON, not a list of four numbers"}

#: Rows that only RabbitMQ has.
OWN_LINES = re.compile("internal_cluster_id")

_BOX = "a cell of a box is printed as in the plain table, not as Erlang prints the term"
_CRASH = "the real tool crashes"
#: Case -> why only its exit status and its streams are compared, or not even these.
OWN_WORDS: dict[str, str] = {
    "list_bindings --formatter pretty_table": _BOX,
    "list_users --formatter pretty_table": _BOX,
    "list_connections --formatter pretty_table": _BOX,
    "list_channels --formatter pretty_table": _BOX,
    "list_consumers --formatter pretty_table": _BOX,
    "list_vhost_limits --formatter pretty_table": "no box around nothing",
    "list_hashes": "the hash functions of Python",
    "ping": "there is no epmd to be registered with",
    "check_port_listener 1": "there is no port for clustering to be listed",
    "check_protocol_listener mqtt": "there is no port for clustering to be listed",
    "node_health_check": "says nothing of its deprecation",
    "wait --pid 1": "there is no Erlang distribution to wait for",
    "wait NOFILE -t 1": "the broker's name is not known before it is there",
    "close_connection nonsense bye": "connections have names, which may be anything",
    "bogus": "lists the verbs of warren ctl",
}
#: Case -> why even the exit status differs.
OWN_STATUS: dict[str, str] = {
    "list_vhost_limits -p v1 --formatter csv": _CRASH,
    "list_user_limits --formatter csv": _CRASH,
    "list_user_limits --user u1 --formatter csv": _CRASH,
    "delete_queue q.exclusive": "an exclusive queue belongs to its connection: close that one",
    "trace_on -p nov": "a vhost that does not exist is told, not traced",
}

#: Verb -> keys of its JSON that only an Erlang node has.
OWN_KEYS: dict[str, set[str]] = {
    "status": {
        "enabled_plugin_file",
        "raft_data_directory",
        "release_series_support_status",
        "vm_memory_high_watermark_setting",
    },
    "memory_breakdown": set(
        """allocated_unused atom binary code connection_channels connection_other connection_readers connection_writers
        metrics mgmt_db mnesia msg_index other_ets other_proc plugins queue_procs queue_slave_procs quorum_ets
        quorum_queue_dlx_procs quorum_queue_procs reserved_unallocated stream_queue_coordinator_procs
        stream_queue_procs stream_queue_replica_reader_procs""".split()
    ),
}
