"""The verbs of ``warren ctl``: rabbitmqctl's, with how many arguments each takes. What a verb returns is printed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from warren.cli import _ctl_checks as checks
from warren.cli import _ctl_objects as objects
from warren.cli import _ctl_settings as settings
from warren.cli import _ctl_who as who
from warren.cli._ctl_call import Call, Result


@dataclass(frozen=True)
class Verb:
    run: Callable[[Call], Result]
    least: int
    most: int | None
    usage: str

    @property
    def help(self) -> str:
        return f"{self.run.__name__} {self.usage}".strip()


def _table(*rows: tuple[Callable[[Call], Result], int, int | None, str]) -> dict[str, Verb]:
    return {row[0].__name__: Verb(*row) for row in rows}


COLUMNS = "[-p VHOST] [COLUMN ...]"
VERBS = _table(
    (who.add_user, 1, 2, "USER [PASSWORD]"),
    (who.delete_user, 1, 1, "USER"),
    (who.change_password, 1, 2, "USER [PASSWORD]"),
    (who.clear_password, 1, 1, "USER"),
    (who.authenticate_user, 2, 2, "USER PASSWORD"),
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
    (settings.add_vhost, 1, 1, "VHOST [--description TEXT] [--tags TAGS] [--default-queue-type TYPE]"),
    (settings.delete_vhost, 1, 1, "VHOST"),
    (settings.list_vhosts, 0, None, "[COLUMN ...]"),
    (settings.set_vhost_limits, 1, 1, "[-p VHOST] JSON"),
    (settings.clear_vhost_limits, 0, 0, "[-p VHOST]"),
    (settings.list_vhost_limits, 0, 0, "[-p VHOST] [--global]"),
    (settings.set_user_limits, 2, 2, "USER JSON"),
    (settings.clear_user_limits, 2, 2, "USER LIMIT|all"),
    (settings.list_user_limits, 0, 0, "[--user USER]"),
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
    (objects.list_queues, 0, None, COLUMNS),
    (objects.list_exchanges, 0, None, COLUMNS),
    (objects.list_bindings, 0, None, COLUMNS),
    (objects.list_connections, 0, None, "[COLUMN ...]"),
    (objects.list_channels, 0, None, "[COLUMN ...]"),
    (objects.list_consumers, 0, None, COLUMNS),
    (objects.purge_queue, 1, 1, "[-p VHOST] QUEUE"),
    (objects.delete_queue, 1, 1, "[-p VHOST] [--if-empty] [--if-unused] QUEUE"),
    (objects.trace_on, 0, 0, "[-p VHOST]"),
    (objects.trace_off, 0, 0, "[-p VHOST]"),
    (objects.close_connection, 2, 2, "NAME REASON"),
    (objects.close_all_connections, 1, 1, "[-p VHOST] [--global] [--limit N] REASON"),
    (objects.set_vm_memory_high_watermark, 1, 2, "FRACTION | absolute SIZE"),
    (objects.set_disk_free_limit, 1, 2, "SIZE"),
    (objects.stop_app, 0, 0, ""),
    (objects.start_app, 0, 0, ""),
    (objects.ping, 0, 0, ""),
    (objects.status, 0, 0, ""),
    (checks.await_startup, 0, 0, "[-t SECONDS]"),
    (checks.check_running, 0, 0, ""),
    (checks.is_running, 0, 0, ""),
    (checks.is_booting, 0, 0, ""),
    (checks.alarms, 0, 0, ""),
    (checks.check_alarms, 0, 0, ""),
    (checks.check_local_alarms, 0, 0, ""),
    (checks.check_virtual_hosts, 0, 0, ""),
    (checks.listeners, 0, 0, ""),
    (checks.check_port_connectivity, 0, 0, ""),
    (checks.check_port_listener, 1, 1, "PORT"),
    (checks.check_protocol_listener, 1, 1, "PROTOCOL"),
    (checks.check_if_node_is_quorum_critical, 0, 0, ""),
    (checks.check_if_node_is_mirror_sync_critical, 0, 0, ""),
    (checks.node_health_check, 0, 0, ""),
    (checks.server_version, 0, 0, ""),
    (checks.eval, 0, None, "EXPRESSION: says what to use instead"),
    (objects.export_definitions, 0, 1, "[FILE | -]"),
    (objects.import_definitions, 0, 1, "[FILE | -]"),
)
