"""The verbs of ``warren ctl``: rabbitmqctl's, with how many arguments each takes. What a verb returns is printed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from warrenmq.cli.ctl import checks, flags, host, lists, node, operations, report, settings, wait, who
from warrenmq.cli.ctl.call import Call, Result


@dataclass(frozen=True)
class Verb:
    """A command of `warren ctl`: what it does, and how many arguments it takes."""

    run: Callable[[Call], Result]
    least: int
    most: int | None
    usage: str

    @property
    def name(self) -> str:
        return self.run.__name__

    @property
    def options(self) -> set[str]:
        """The options of this verb alone: those in its usage."""
        return set(re.findall(r"--([\w-]+)", self.usage))

    @property
    def help(self) -> str:
        return f"{self.name} {self.usage}".strip()


def _table(*rows: tuple[Callable[[Call], Result], int, int | None, str]) -> dict[str, Verb]:
    return {row[0].__name__: Verb(*row) for row in rows}


COLUMNS = "[-p VHOST] [COLUMN ...]"
METADATA = "[--description TEXT] [--tags TAGS] [--default-queue-type TYPE] [--nack-unroutable true|false] "
METADATA += "[--journal off|outcomes|all] [--journal-sample N]"
VERBS = _table(
    (who.add_user, 1, 2, "USER [PASSWORD]"),
    (who.delete_user, 1, 1, "USER"),
    (who.change_password, 1, 2, "USER [PASSWORD]"),
    (who.clear_password, 1, 1, "USER"),
    (who.authenticate_user, 1, 2, "USER [PASSWORD]"),
    (who.hash_password, 1, 1, "PASSWORD"),
    (who.set_user_tags, 1, None, "USER [TAG ...]"),
    (who.list_users, 0, 0, ""),
    (who.set_permissions, 4, 4, "[-p VHOST] USER CONFIGURE WRITE READ"),
    (who.clear_permissions, 1, 1, "[-p VHOST] USER"),
    (who.list_permissions, 0, 0, "[-p VHOST]"),
    (who.list_user_permissions, 1, 1, "USER"),
    (who.set_topic_permissions, 4, 4, "[-p VHOST] USER EXCHANGE WRITE READ"),
    (who.clear_topic_permissions, 1, 2, "[-p VHOST] USER [EXCHANGE]"),
    (who.list_topic_permissions, 0, 0, "[-p VHOST]"),
    (who.list_user_topic_permissions, 1, 1, "USER"),
    (settings.add_vhost, 1, 1, f"VHOST {METADATA}"),
    (settings.update_vhost_metadata, 1, 1, f"VHOST {METADATA}"),
    (settings.delete_vhost, 1, 1, "VHOST"),
    (settings.set_vhost_tags, 1, None, "VHOST [TAG ...]"),
    (settings.list_vhosts, 0, None, "[COLUMN ...]"),
    (settings.set_vhost_limits, 1, 1, "[-p VHOST] JSON"),
    (settings.clear_vhost_limits, 0, 0, "[-p VHOST]"),
    (settings.list_vhost_limits, 0, 0, "[-p VHOST] [--global]"),
    (settings.set_user_limits, 2, 2, "USER JSON"),
    (settings.clear_user_limits, 2, 2, "USER LIMIT|all"),
    (settings.list_user_limits, 0, 0, "[--user USER] [--global]"),
    (settings.set_parameter, 3, 3, "[-p VHOST] COMPONENT NAME JSON"),
    (settings.clear_parameter, 2, 2, "[-p VHOST] COMPONENT NAME"),
    (settings.list_parameters, 0, 0, "[-p VHOST]"),
    (settings.set_global_parameter, 2, 2, "NAME JSON"),
    (settings.clear_global_parameter, 1, 1, "NAME"),
    (settings.list_global_parameters, 0, 0, ""),
    (settings.set_cluster_name, 1, 1, "NAME"),
    (settings.set_policy, 3, 3, "[-p VHOST] [--priority N] [--apply-to WHAT] NAME PATTERN JSON"),
    (settings.clear_policy, 1, 1, "[-p VHOST] NAME"),
    (settings.list_policies, 0, 0, "[-p VHOST]"),
    (settings.set_operator_policy, 3, 3, "[-p VHOST] [--priority N] [--apply-to WHAT] NAME PATTERN JSON"),
    (settings.clear_operator_policy, 1, 1, "[-p VHOST] NAME"),
    (settings.list_operator_policies, 0, 0, "[-p VHOST]"),
    (lists.list_queues, 0, None, "[-p VHOST] [--online] [--offline] [--local] [COLUMN ...]"),
    (lists.list_unresponsive_queues, 0, None, "[-p VHOST] [--local] [--queue-timeout MS] [COLUMN ...]"),
    (lists.list_exchanges, 0, None, COLUMNS),
    (lists.list_bindings, 0, None, COLUMNS),
    (lists.list_connections, 0, None, "[COLUMN ...]"),
    (lists.list_channels, 0, None, "[COLUMN ...]"),
    (lists.list_consumers, 0, None, COLUMNS),
    (operations.purge_queue, 1, 1, "[-p VHOST] QUEUE"),
    (operations.delete_queue, 1, 1, "[-p VHOST] [--if-empty] [--if-unused] QUEUE"),
    (operations.trace_on, 0, 0, "[-p VHOST]"),
    (operations.trace_off, 0, 0, "[-p VHOST]"),
    (operations.close_connection, 2, 2, "NAME REASON"),
    (operations.close_all_connections, 1, 1, "[-p VHOST] [--global] [--limit N] [--per-connection-delay MS] REASON"),
    (operations.close_all_user_connections, 2, 2, "USER REASON"),
    (operations.export_definitions, 1, 1, "FILE | - [--format json]"),
    (operations.import_definitions, 0, 1, "[FILE | -] [--format json] [--skip-if-unchanged]"),
    (node.set_vm_memory_high_watermark, 1, 2, "FRACTION | absolute SIZE"),
    (node.set_disk_free_limit, 1, 2, "SIZE | mem_relative FRACTION"),
    (node.set_log_level, 1, 1, "LEVEL"),
    (node.stop_app, 0, 0, ""),
    (node.start_app, 0, 0, ""),
    (node.suspend_listeners, 0, 0, ""),
    (node.resume_listeners, 0, 0, ""),
    (node.force_gc, 0, 0, ""),
    (node.hipe_compile, 1, 1, "FOLDER: does nothing"),
    (node.restart_vhost, 0, 0, "[-p VHOST]"),
    (flags.list_feature_flags, 0, None, "[COLUMN ...]"),
    (flags.enable_feature_flag, 1, 1, "FLAG | all"),
    (wait.await_startup, 0, 0, "[-t SECONDS]"),
    (wait.await_online_nodes, 1, 1, "COUNT [-t SECONDS]"),
    (wait.wait, 0, 1, "FILE | --pid PID [-t SECONDS]"),
    (report.status, 0, 0, "[--unit bytes|mb|gb]"),
    (report.cluster_status, 0, 0, ""),
    (report.environment, 0, 0, ""),
    (report.memory_breakdown, 0, 0, "[--unit bytes|mb|gb]"),
    (report.report, 0, 0, ""),
    (report.listeners, 0, 0, ""),
    (report.alarms, 0, 0, ""),
    (checks.ping, 0, 0, ""),
    (checks.check_running, 0, 0, ""),
    (checks.is_running, 0, 0, ""),
    (checks.is_booting, 0, 0, ""),
    (checks.check_alarms, 0, 0, ""),
    (checks.check_local_alarms, 0, 0, ""),
    (checks.check_virtual_hosts, 0, 0, ""),
    (checks.check_certificate_expiration, 0, 0, "[--unit days|weeks|months|years] [--within N]"),
    (checks.check_port_connectivity, 0, 0, ""),
    (checks.check_port_listener, 1, 1, "PORT"),
    (checks.check_protocol_listener, 1, 1, "PROTOCOL"),
    (checks.check_if_node_is_quorum_critical, 0, 0, ""),
    (checks.check_if_node_is_mirror_sync_critical, 0, 0, ""),
    (checks.node_health_check, 0, 0, ""),
    (host.version, 0, 0, ""),
    (host.server_version, 0, 0, ""),
    (host.erlang_version, 0, 0, "[--details]"),
    (host.list_hashes, 0, 0, ""),
    (host.cipher_suites, 0, 0, "[--all] [--format openssl]"),
    (host.tls_versions, 0, 0, ""),
    (host.os_env, 0, 0, ""),
    (host.resolve_hostname, 1, 1, "NAME [--address-family IPv4|IPv6]"),
    (host.discover_peers, 0, 0, ""),
    (host.log_location, 0, 0, "[--all]"),
    (host.log_tail, 0, 0, "[--number N]"),
    (host.log_tail_stream, 0, 0, "[--duration SECONDS]"),
    (host.rotate_logs, 0, 0, ""),
)
