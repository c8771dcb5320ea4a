"""What ``warren ctl`` says before an answer, unless it is to be quiet: rabbitmqctl's lines.

Fields in braces: an argument by its place, ``vhost``, ``node`` (asked of the broker), ``rest`` (the arguments behind
the first, in brackets), or an option's name. A key with an option, a last argument or a number behind the verb
(``+1``: one argument beside the first) is taken before the verb alone.
"""

from __future__ import annotations

from warrenmq.cli.ctl.call import Call

_NODE_ASKED = "Asking node {node} to report any local resource alarms ..."
_POLICY = 'for pattern "{1}" to "{2}" with priority "{priority}" for vhost "{vhost}" ...'

BANNERS = {
    "add_user": 'Adding user "{0}" ...',
    "delete_user": 'Deleting user "{0}" ...',
    "change_password": 'Changing password for user "{0}" ...',
    "clear_password": 'Clearing password for user "{0}" ...',
    "authenticate_user": 'Authenticating user "{0}" ...',
    "set_user_tags": 'Setting tags for user "{0}" to {rest} ...',
    "list_users": "Listing users ...",
    "set_permissions": 'Setting permissions for user "{0}" in vhost "{vhost}" ...',
    "clear_permissions": 'Clearing permissions for user "{0}" in vhost "{vhost}" ...',
    "list_permissions": 'Listing permissions for vhost "{vhost}" ...',
    "list_user_permissions": 'Listing permissions for user "{0}" ...',
    "set_topic_permissions": 'Setting topic permissions on "{1}" for user "{0}" in vhost "{vhost}" ...',
    "clear_topic_permissions": 'Clearing topic permissions for user "{0}" in vhost "{vhost}" ...',
    "clear_topic_permissions +1": 'Clearing topic permissions on "{1}" for user "{0}" in vhost "{vhost}" ...',
    "list_topic_permissions": 'Listing topic permissions for vhost "{vhost}" ...',
    "list_user_topic_permissions": 'Listing topic permissions for user "{0}" ...',
    "add_vhost": 'Adding vhost "{0}" ...',
    "update_vhost_metadata": 'Updating metadata of vhost "{0}" ...',
    "delete_vhost": 'Deleting vhost "{0}" ...',
    "set_vhost_tags": 'Setting tags for virtual host "{0}" to {rest} ...',
    "list_vhosts": "Listing vhosts ...",
    "restart_vhost": "Trying to restart vhost '{vhost}' on node '{node}' ...",
    "set_vhost_limits": 'Setting vhost limits to "{0}" for vhost "{vhost}" ...',
    "clear_vhost_limits": 'Clearing vhost "{vhost}" limits ...',
    "list_vhost_limits": 'Listing limits for vhost "{vhost}" ...',
    "list_vhost_limits --global": "Listing limits for all vhosts ...",
    "set_user_limits": 'Setting user limits to "{1}" for user "{0}" ...',
    "clear_user_limits": 'Clearing "{1}" limit for user "{0}" ...',
    "clear_user_limits all": 'Clearing all limits for user "{0}" ...',
    "list_user_limits": 'Listing limits for user "{user}" ...',
    "list_user_limits --global": "Listing limits for all users ...",
    "set_parameter": 'Setting runtime parameter "{1}" for component "{0}" to "{2}" in vhost "{vhost}" ...',
    "clear_parameter": 'Clearing runtime parameter "{1}" for component "{0}" on vhost "{vhost}" ...',
    "list_parameters": 'Listing runtime parameters for vhost "{vhost}" ...',
    "set_global_parameter": 'Setting global runtime parameter "{0}" to "{1}" ...',
    "clear_global_parameter": 'Clearing global runtime parameter "{0}" ...',
    "list_global_parameters": "Listing global runtime parameters ...",
    "set_cluster_name": "Setting cluster name to {0} ...",
    "set_policy": 'Setting policy "{0}" ' + _POLICY,
    "clear_policy": 'Clearing policy "{0}" on vhost "{vhost}" ...',
    "list_policies": 'Listing policies for vhost "{vhost}" ...',
    "set_operator_policy": 'Setting operator policy override "{0}" ' + _POLICY,
    "clear_operator_policy": 'Clearing operator policy "{0}" on vhost "{vhost}" ...',
    "list_operator_policies": 'Listing operator policy overrides for vhost "{vhost}" ...',
    "list_queues": "Timeout: {timeout} seconds ...\nListing queues for vhost {vhost} ...",
    "list_unresponsive_queues": "Listing unresponsive queues for vhost {vhost} ...",
    "list_exchanges": "Listing exchanges for vhost {vhost} ...",
    "list_bindings": "Listing bindings for vhost {vhost}...",
    "list_connections": "Listing connections ...",
    "list_channels": "Listing channels ...",
    "list_consumers": "Listing consumers in vhost {vhost} ...",
    "list_feature_flags": "Listing feature flags ...",
    "enable_feature_flag": 'Enabling feature flag "{0}" ...',
    "enable_feature_flag all": "Enabling all feature flags ...",
    "purge_queue": "Purging queue '{0}' in vhost '{vhost}' ...",
    "delete_queue": "Deleting queue '{0}' on vhost '{vhost}' ...",
    "delete_queue --if-empty": "Deleting queue '{0}' on vhost '{vhost}' if queue is empty ...",
    "delete_queue --if-unused": "Deleting queue '{0}' on vhost '{vhost}' if queue is unused ...",
    "trace_on": 'Starting tracing for vhost "{vhost}" ...',
    "trace_off": 'Stopping tracing for vhost "{vhost}" ...',
    "close_connection": "Closing connection {0}, reason: {1}...",
    "close_all_connections": "Closing all connections in vhost {vhost}, reason: {0}...",
    "close_all_connections --global": "Closing all connections to node {node} (across all vhosts), reason: {0}...",
    "close_all_user_connections": "Closing connections of user {0}, reason: {1}...",
    "export_definitions": 'Exporting definitions in JSON to a file at "{0}" ...',
    "export_definitions -": "",  # the answer is the document
    "import_definitions": "Importing definitions in JSON from standard input ...",
    "import_definitions +0": 'Importing definitions in JSON from a file at "{0}" ...',
    "set_vm_memory_high_watermark": "Setting memory threshold on {node} to {0} ...",
    "set_vm_memory_high_watermark +1": "Setting memory threshold on {node} to {1} bytes ...",
    "set_disk_free_limit": "Setting disk free limit on {node} to {0} bytes ...",
    "set_disk_free_limit +1": "Setting disk free limit on {node} to {1} times the total RAM ...",
    "set_log_level": 'Setting log level to "{0}" ...',
    "stop_app": "Stopping rabbit application on node {node} ...",
    "start_app": "Starting node {node} ...",
    "suspend_listeners": "Will suspend client connection listeners on node {node}. "
    "The node will no longer accept client connections!",
    "resume_listeners": "Will resume client connection listeners on node {node}. "
    "The node will now accept client connections",
    "force_gc": "Will ask all processes on node {node} to schedule a full sweep GC",
    "await_online_nodes": "Will wait for at least {0} nodes to join the cluster of {node}. "
    "Timeout: {patience} seconds.",
    "ping": "Will ping {node}. This only checks that it answers and lets the user in. Timeout: 60000 ms.",
    "status": "Status of node {node} ...",
    "cluster_status": "Cluster status of node {node} ...",
    "environment": "Application environment of node {node} ...",
    "report": "Reporting server status of node {node} ...\n",
    "memory_breakdown": "Reporting memory breakdown on node {node}...",
    "is_running": "Asking node {node} for its status ...",
    "is_booting": "Asking node {node} for its boot status ...",
    "check_running": "Checking if RabbitMQ is running on node {node} ...",
    "alarms": "Asking node {node} to report any known resource alarms ...",
    "check_alarms": _NODE_ASKED,
    "check_local_alarms": _NODE_ASKED,
    "check_virtual_hosts": "Checking if all vhosts are running on node {node} ...",
    "check_certificate_expiration": "Checking certificate expiration on node {node} ...",
    "listeners": "Asking node {node} to report its protocol listeners ...",
    "check_port_connectivity": "Testing TCP connections to all active listeners on node {node} ...",
    "check_port_listener": "Asking node {node} if there's an active listener on port {0} ...",
    "check_protocol_listener": "Asking node {node} if there's an active listener for protocol {0} ...",
    "check_if_node_is_quorum_critical": "Checking if node {node} is critical for quorum of any quorum queues ...",
    "check_if_node_is_mirror_sync_critical": (
        "Checking if node {node} is critical for data safety of any classic mirrored queues ..."
    ),
    "node_health_check": "Timeout: 70 seconds ...\nChecking health of node {node} ...",
    "server_version": "Asking node {node} for its RabbitMQ version...",
    "erlang_version": "Asking node {node} for the version of its runtime...",
    "discover_peers": "Discovering peers nodes ...",
    "resolve_hostname": "Asking node {node} to resolve hostname {0} to {family} addresses...",
    "list_hashes": "Listing supported hash algorithms ...",
    "cipher_suites": "Listing available cipher suites in OpenSSL format",
    "tls_versions": "Listing all TLS versions supported by the runtime...",
    "os_env": "Listing environment variables that are read here...",
    "log_location": "Log file location(s) on node {node} ...",
    "log_tail": "Last {number} log lines on node {node} ...",
}


def banner(verb: str, call: Call) -> str:
    """The line with its end, or nothing for a verb that says nothing first."""
    narrower = [f"{verb} --{name}" for name in call.options] + [f"{verb} {one}" for one in call.arguments[-1:]]
    narrower += [f"{verb} +{len(call.arguments) - 1}"]
    found = next((BANNERS[key] for key in (*narrower, verb) if key in BANNERS), "")
    if not found:
        return ""
    fields: dict[str, object] = {
        "vhost": call.vhost,
        "rest": "[" + ", ".join(call.arguments[1:]) + "]",
        "priority": call.options.get("priority", "0"),
        "user": call.options.get("user", "guest"),
        "timeout": _seconds(call.options.get("timeout", "60")),
        "patience": call.options.get("timeout", "300"),
        "family": call.options.get("address-family", "IPv4"),
        "number": call.options.get("number", "50"),
    }
    if "{node}" in found:
        fields["node"] = call.node
    return found.format(*call.arguments, **fields) + "\n"


def _seconds(given: str) -> str:
    return str(float(given)) if given.isdigit() else given
