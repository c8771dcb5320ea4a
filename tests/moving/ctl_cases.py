"""What is asked of rabbitmqctl, rabbitmq-diagnostics and `warren ctl`, in this order: first what only looks, then what
changes something. A line is one call as it would be typed behind the tool's name."""

from __future__ import annotations

#: Verb -> every column that the real tool accepts.
COLUMNS = {
    "list_queues": """arguments auto_delete consumer_capacity consumer_utilisation consumers disk_reads disk_writes
        durable exclusive exclusive_consumer_pid exclusive_consumer_tag head_message_timestamp leader members memory
        message_bytes message_bytes_persistent message_bytes_ram message_bytes_ready message_bytes_unacknowledged
        messages messages_persistent messages_ram messages_ready messages_ready_ram messages_unacknowledged
        messages_unacknowledged_ram name online owner_pid pid policy slave_pids state synchronised_slave_pids
        type""".split(),
    "list_exchanges": "arguments auto_delete durable internal name policy type".split(),
    "list_bindings": "arguments destination_kind destination_name routing_key source_kind source_name".split(),
    "list_connections": """auth_mechanism channel_max channels client_properties connected_at frame_max host name
        peer_cert_issuer peer_cert_subject peer_cert_validity peer_host peer_port pid port protocol recv_cnt recv_oct
        send_cnt send_oct send_pend ssl ssl_cipher ssl_hash ssl_key_exchange ssl_protocol state timeout user
        vhost""".split(),
    "list_channels": """acks_uncommitted confirm connection consumer_count global_prefetch_count
        messages_unacknowledged messages_uncommitted messages_unconfirmed name number pid prefetch_count transactional
        user vhost""".split(),
    "list_consumers": """ack_required active activity_status arguments channel_pid consumer_tag prefetch_count
        queue_name""".split(),
    "list_vhosts": "cluster_state default_queue_type description name tags tracing".split(),
    "list_feature_flags": "desc name provided_by stability state".split(),
    "list_unresponsive_queues": "name durable auto_delete arguments pid recoverable_slaves".split(),
}

_LOOKING = """
list_queues
list_exchanges
list_bindings
list_connections
list_channels
list_consumers
list_vhosts
list_users
list_permissions
list_user_permissions u1
list_topic_permissions
list_user_topic_permissions u1
list_vhost_limits
list_vhost_limits -p v1
list_vhost_limits --global
list_user_limits
list_user_limits --user u1
list_parameters
list_global_parameters
list_policies
list_operator_policies
list_feature_flags
list_unresponsive_queues
list_node_auth_attempt_stats
"""

#: Each of the above also so.
FORMATS = ["-q", "-s", "--formatter json", "--formatter csv", "--formatter pretty_table"]
_UNFORMATTED = {"list_node_auth_attempt_stats"}

_ASKING = """
list_queues -q --no-table-headers
list_queues -p v1 -q name durable
list_queues -q name,type
list_queues --online -q
list_queues --offline -q
list_queues --local -q
list_queues -p nov
list_bindings -p nov
list_permissions -p nov
list_topic_permissions -p nov
list_user_permissions nobody
list_user_topic_permissions nobody
list_user_topic_permissions u2
list_policies -p nov
list_policies -p v1
list_operator_policies -p v1
list_parameters -p v1
list_vhost_limits -p nov
list_user_limits --user nobody
list_channels -q name number
list_exchanges -p v1 -q
list_consumers -p v1
list_ciphers
list_hashes
authenticate_user u1 p1
authenticate_user u1 wrong
authenticate_user nobody wrong
version
await_startup
await_online_nodes 1
await_online_nodes 2 -t 1
ping
is_running
is_booting
check_running
check_alarms
check_local_alarms
check_virtual_hosts
check_port_listener AMQP
check_port_listener 1
check_port_listener abc
check_protocol_listener amqp
check_protocol_listener mqtt
check_certificate_expiration
check_certificate_expiration --unit weeks --within 1
check_certificate_expiration --unit fortnights
check_if_node_is_quorum_critical
check_if_node_is_mirror_sync_critical
node_health_check
alarms
server_version
discover_peers
resolve_hostname localhost
resolve_hostname no.such.invalid
quorum_status q.plain
stream_status q.plain
rotate_logs
restart_vhost
restart_vhost -p nov
hipe_compile x
enable_feature_flag all
enable_feature_flag user_limits
enable_feature_flag nope
force_gc
wait --pid 1
wait NOFILE -t 1
"""

#: Answers that are no tables, for programs to read; their keys are compared.
_TOLD = """
status --formatter json
cluster_status --formatter json
memory_breakdown --formatter json
listeners --formatter json
log_location --formatter json
"""

#: The same, and equal to the letter.
_TOLD_EQUALLY = """
alarms --formatter json
is_running --formatter json
is_booting --formatter json
server_version --formatter json
check_running --formatter json
check_alarms --formatter json
check_local_alarms --formatter json
check_virtual_hosts --formatter json
ping --formatter json
add_user --formatter json u9 p9
list_users -q --formatter json
"""

_WRONG = """
bogus
list_queuez
list_queues nope
list_queues --nope
list_exchanges nope
list_bindings nope
list_connections nope
list_channels nope
list_consumers nope
list_vhosts nope
list_users extra
list_permissions extra
list_user_permissions
list_policies extra
add_user
add_user a b c
delete_user
change_password
set_user_tags
set_permissions u1
set_permissions u1 a b
clear_permissions
set_topic_permissions u1 a
add_vhost
delete_vhost
set_policy p
set_policy p ^ not-json
set_policy p ^ {"nope":1}
set_policy p ^ {"max-length":1} --apply-to nonsense
set_policy p ^ {"max-length":1} --priority x
set_parameter c
set_parameter c n 1
clear_parameter c n
set_vhost_limits
set_vhost_limits not-json
set_vhost_limits {"nope":1}
set_user_limits u1
set_user_limits u1 not-json
set_user_limits nobody {"max-channels":1}
clear_user_limits u1
clear_user_limits nobody all
purge_queue
purge_queue nope
delete_queue
delete_queue nope
close_connection
close_connection nonsense bye
close_all_connections
close_all_user_connections u1
set_vm_memory_high_watermark
set_vm_memory_high_watermark x
set_vm_memory_high_watermark 1.5
set_vm_memory_high_watermark absolute x
set_disk_free_limit
set_disk_free_limit nonsense
set_log_level
set_log_level nonsense
check_port_listener
check_protocol_listener
enable_feature_flag
wait
wait NOFILE --pid 1
set_cluster_name
set_vhost_tags
await_online_nodes
await_online_nodes x
authenticate_user u1
list_users --priority 1
list_users -x
environment nope
export_definitions
export_definitions /no-such-folder/file
import_definitions /no-such-file
set_disk_free_limit 50MB extra
set_vm_memory_high_watermark 0.4 extra
"""

_CHANGING = """
add_user u3 p3
add_user u3 p3
change_password u3 p4
change_password nobody p
clear_password u3
set_user_tags u3 management x
set_user_tags nobody x
set_permissions u3 a b c
set_permissions nobody a b c
set_permissions -p nov u3 a b c
clear_permissions u3
clear_permissions nobody
clear_permissions -p nov u3
set_topic_permissions u3 amq.topic a b
set_topic_permissions nobody amq.topic a b
clear_topic_permissions u3 amq.topic
clear_topic_permissions u3
clear_topic_permissions nobody
set_user_limits u3 {"max-connections":4}
clear_user_limits u3 max-connections
clear_user_limits u3 all
delete_user u3
delete_user u3
add_vhost v2 --description two --tags c
add_vhost v2
set_vhost_tags v2 d e
set_vhost_tags nov d
list_vhosts -q name tags description
set_vhost_limits -p v2 {"max-connections":7}
set_vhost_limits -p nov {"max-connections":7}
clear_vhost_limits -p v2
trace_on -p v2
trace_off -p v2
trace_on -p nov
delete_vhost v2
delete_vhost v2
set_policy p3 ^none {"max-length":3} --priority 2 --apply-to queues
clear_policy p3
clear_policy p3
set_operator_policy o3 ^none {"max-length":3}
set_operator_policy o4 ^none {"dead-letter-exchange":"x"}
clear_operator_policy o3
clear_operator_policy o3
set_global_parameter g2 {"b":1}
clear_global_parameter g2
clear_global_parameter g2
set_cluster_name ours
set_log_level debug
set_log_level info
set_vm_memory_high_watermark 0.5
set_vm_memory_high_watermark absolute 3GB
set_vm_memory_high_watermark 0.4
set_disk_free_limit mem_relative 0.0001
set_disk_free_limit 1MB
purge_queue q.plain
delete_queue q.durable --if-empty
delete_queue q.exclusive
delete_queue q.plain --if-unused
suspend_listeners
resume_listeners
close_all_user_connections nobody bye
close_all_connections -p v1 --global --limit 1 bye
close_all_connections bye
close_all_user_connections guest bye
stop_app
check_running
start_app
check_running
"""

#: What only rabbitmq-diagnostics has; everything else is asked of rabbitmqctl.
DIAGNOSTICS = {
    "alarms",
    "discover_peers",
    "is_running",
    "is_booting",
    "listeners",
    "log_location",
    "memory_breakdown",
    "quorum_status",
    "stream_status",
    "resolve_hostname",
    "server_version",
}


def _lines(text: str) -> list[str]:
    return text.split("\n")[1:-1]


FORMATTED = [f"{line} {form}" for line in _lines(_LOOKING) if line not in _UNFORMATTED for form in FORMATS]
ALL_COLUMNS = [f"{verb} -q {' '.join(columns)}" for verb, columns in COLUMNS.items()]
TOLD = _lines(_TOLD)
CASES = [
    *_lines(_LOOKING),
    *FORMATTED,
    *ALL_COLUMNS,
    *_lines(_ASKING),
    *TOLD,
    *_lines(_TOLD_EQUALLY),
    *_lines(_WRONG),
    *_lines(_CHANGING),
]


def tool(case: str) -> str:
    verb = case.split()[0]
    return "rabbitmq-diagnostics" if verb in DIAGNOSTICS or verb.startswith("check_") else "rabbitmqctl"
