"""Verbs of ``warren ctl`` about feature flags. Warren has none to turn on: what RabbitMQ 3.10's stand for is built in,
so each is listed as enabled, and enabling one changes nothing."""

from __future__ import annotations

from warren.cli._api import USAGE, Failure
from warren.cli._ctl_call import Call, Result, columns_of
from warren.cli._ctl_output import Table

COLUMNS = ["name", "state", "stability", "provided_by", "desc"]
_AGENT = "rabbitmq_management_agent"
FLAGS = [
    ("classic_mirrored_queue_version", "rabbit", "Support setting version for classic mirrored queues"),
    ("drop_unroutable_metric", _AGENT, "Count unroutable publishes to be dropped in stats"),
    ("empty_basic_get_metric", _AGENT, "Count AMQP `basic.get` on empty queues in stats"),
    ("implicit_default_bindings", "rabbit",
     "Default bindings are now implicit, instead of being stored in the database"),
    ("maintenance_mode_status", "rabbit", "Maintenance mode status"),
    ("quorum_queue", "rabbit", "Support queues of type `quorum`"),
    ("stream_queue", "rabbit", "Support queues of type `stream`"),
    ("user_limits", "rabbit", "Configure connection and channel limits for a user"),
    ("virtual_host_metadata", "rabbit", "Virtual host metadata (description, tags, etc)"),
]  # fmt: skip


def flags() -> list[dict[str, str]]:
    return [
        {"name": name, "state": "enabled", "stability": "stable", "provided_by": by, "desc": text}
        for name, by, text in FLAGS
    ]


def list_feature_flags(call: Call) -> Result:
    return Table(columns_of(call, ["name", "state"], COLUMNS), list(flags()))


def enable_feature_flag(call: Call) -> Result:
    if call.arguments[0] not in ("all", *(name for name, _, _ in FLAGS)):
        raise Failure(f"This feature flag is not supported by node {call.node}", USAGE)
    return None
