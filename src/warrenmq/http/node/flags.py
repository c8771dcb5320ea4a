"""/feature-flags: none to turn on. What RabbitMQ 3.10's stand for is built in, so each is shown as enabled.

Enabling one changes nothing.
"""

from __future__ import annotations

from warrenmq.http.endpoint import ADMINISTRATOR, Call, Endpoint, NoContent
from warrenmq.http.errors import bad_request

_AGENT = "rabbitmq_management_agent"
FLAGS = {
    "classic_mirrored_queue_version": ("rabbit", "Support setting version for classic mirrored queues"),
    "drop_unroutable_metric": (_AGENT, "Count unroutable publishes to be dropped in stats"),
    "empty_basic_get_metric": (_AGENT, "Count AMQP `basic.get` on empty queues in stats"),
    "implicit_default_bindings": (
        "rabbit",
        "Default bindings are now implicit, instead of being stored in the database",
    ),
    "maintenance_mode_status": ("rabbit", "Maintenance mode status"),
    "quorum_queue": ("rabbit", "Support queues of type `quorum`"),
    "stream_queue": ("rabbit", "Support queues of type `stream`"),
    "user_limits": ("rabbit", "Configure connection and channel limits for a user"),
    "virtual_host_metadata": ("rabbit", "Virtual host metadata (description, tags, etc)"),
}


async def list_flags(call: Call) -> list[dict[str, str]]:
    return [
        {"name": name, "state": "enabled", "stability": "stable", "provided_by": by, "desc": text, "doc_url": ""}
        for name, (by, text) in FLAGS.items()
    ]


async def enable_flag(call: Call) -> NoContent:
    if call.path["name"] not in FLAGS:
        raise bad_request("unsupported")
    return NoContent()


ENDPOINTS = [
    Endpoint("GET", "/feature-flags", ADMINISTRATOR, list_flags, "Feature flags: all of RabbitMQ 3.10's are on"),
    Endpoint("PUT", "/feature-flags/{name}/enable", ADMINISTRATOR, enable_flag, "Nothing to do: it is on", status=204),
]
