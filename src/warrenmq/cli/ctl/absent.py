"""Verbs of RabbitMQ's tools that have no meaning here, each with one line that says so and what to use instead.

They end with the status and on the stream of a command that does not exist, so that a script notices.
"""

from __future__ import annotations

from warrenmq.cli._api import USAGE, Failure

ALONE = "Warren has no cluster of Erlang nodes: "
OWN = "those of its own, an experiment, "
ERLANG = "there is no Erlang here: "
API = "use `warren ctl`, `warren delayed` or the API (GET /api/openapi.json lists it)"
SECRETS = "configuration values are not encrypted: keep secrets in WARREN_ variables or in a file only the broker reads"
QUORUM = "nothing is replicated: GET /api/queues/VHOST/NAME shows the queue"
EVAL = (
    "there is no Erlang here to evaluate. What people use eval for:\n"
    "  delayed messages                warren delayed list, GET /api/delayed/VHOST\n"
    "  settings and limits             PUT /api/nodes/NODE/limits, SIGHUP after a change of the configuration file\n"
    "  closing connections             close_connection, close_all_connections\n"
    "  deleting or purging queues      delete_queue, purge_queue\n"
    "  counting connections, queues    GET /api/overview, status\n"
    "  alarms                          alarms, set_vm_memory_high_watermark, set_disk_free_limit\n"
    "  anything else                   GET /api/openapi.json lists the API"
)
RESET = "stop the broker, remove its data folder (`warren ctl status` names it), and start it again"
STOP = "send SIGTERM to the process (`warren ctl status` names it) or stop the service (systemctl stop warren)"
COUNTED = "logins are not counted: the log has every one that was refused"

ABSENT = {
    "eval": EVAL,
    "eval_file": ERLANG + API,
    "exec": ERLANG + API,
    "remote_shell": ERLANG + API,
    "observer": ERLANG + "use /metrics and `warren ctl report`",
    "maybe_stuck": ERLANG + "use `warren ctl check_running` and `warren ctl check_port_connectivity`",
    "runtime_thread_stats": ERLANG + "use the operating system's tools (top -H, py-spy)",
    "schema_info": ERLANG + "use `warren ctl export_definitions`",
    "erlang_cookie_hash": ERLANG + "`warren ctl` logs in with a user of the broker (--url, WARREN_CTL_URL)",
    "erlang_cookie_sources": ERLANG + "`warren ctl` logs in with a user of the broker (--url, WARREN_CTL_URL)",
    "command_line_arguments": ERLANG + "use `warren ctl environment`",
    "resolver_info": ERLANG + "the operating system resolves names; try `warren ctl resolve_hostname NAME`",
    "list_network_interfaces": "use the operating system's tools (ip address)",
    "certificates": "use `openssl x509 -text -in FILE` on tls_cert, or `warren ctl check_certificate_expiration`",
    "consume_event_stream": "there is no stream of internal events: use `warren ctl log_tail_stream` or trace_on",
    "reset": RESET,
    "force_reset": RESET,
    "stop": STOP,
    "shutdown": STOP,
    "force_boot": ALONE + "it starts without waiting for anybody",
    "join_cluster": ALONE + OWN + "come with `warren cluster add`; to move, see export_definitions",
    "forget_cluster_node": ALONE + OWN + "go with `warren cluster remove`",
    "rename_cluster_node": ALONE + "its name is not stored with the data",
    "update_cluster_nodes": ALONE + OWN + "are listed by `warren cluster status`",
    "change_cluster_node_type": ALONE + "durable things are always on disk",
    "sync_queue": "queues have no mirrors: there is nothing to synchronise",
    "cancel_sync_queue": "queues have no mirrors: there is nothing to synchronise",
    "quorum_status": QUORUM,
    "stream_status": QUORUM,
    "reclaim_quorum_memory": "quorum queues have no log of their own: the broker's log is compacted by itself",
    "encode": SECRETS,
    "decode": SECRETS,
    "list_ciphers": SECRETS,
    "list_node_auth_attempt_stats": COUNTED,
    "reset_node_auth_attempt_metrics": COUNTED,
    "enable_auth_attempt_source_tracking": COUNTED,
    "disable_auth_attempt_source_tracking": COUNTED,
    "autocomplete": "there is no completion of verbs: `warren ctl help` lists them",
}


def refuse(verb: str) -> Failure:
    return Failure(f"{verb} is not there: {ABSENT[verb]}", USAGE, plain=True)
