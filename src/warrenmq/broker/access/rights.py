"""403, in RabbitMQ's words, for whoever may not: the one place where a missing permission becomes an answer."""

from __future__ import annotations

from warrenmq.broker.access.access import Access
from warrenmq.broker.records import Exchange, Resource
from warrenmq.wire.replies import ACCESS_REFUSED, AmqpError


def check(access: Access, user: str, permission: str, name: Resource, class_id: int = 0, method_id: int = 0) -> None:
    """Unless the user may configure, write or read the resource."""
    if access.allowed(user, name.virtual_host, permission, name.name):
        return
    shown = name
    if name.kind == "exchange" and not name.name:
        shown = Resource(name.virtual_host, "exchange", "amq.default")
    raise AmqpError(ACCESS_REFUSED, f"access to {shown} refused for user '{user}'", class_id, method_id)


def check_topic(
    access: Access,
    user: str,
    permission: str,
    exchange: Exchange,
    routing_key: str,
    class_id: int = 0,
    method_id: int = 0,
) -> None:
    """Unless the user may use this key at the exchange."""
    name = exchange.name
    if not access.topic_allowed(user, name.virtual_host, name.name, permission, routing_key):
        raise AmqpError(
            ACCESS_REFUSED, f"access to topic '{routing_key}' in {name} refused for user '{user}'", class_id, method_id
        )
