"""Message interceptors: what they make of a message, as a message again."""

from __future__ import annotations

from warrenmq.broker.extensions.interceptor import Interceptors
from warrenmq.broker.message import Message, Origin, message_from


def amend(interceptors: Interceptors, virtual_host: str, message: Message) -> Message:
    """Let the interceptors amend a message; that very one when they leave it as it is."""
    before = message.basic_message(virtual_host)
    record = interceptors.amend(before)
    if record is before:
        return message
    content = record.content
    origin = message.origin
    if record.routing_keys != origin.routing_keys:
        origin = Origin(origin.exchange, record.routing_keys)
    if content.has_body_of(before.content):  # in the pieces that the log may have already
        chunks, size = message.pieces(), message.size
    else:
        chunks, size = [content.body] if content.body else [], len(content.body)
    new = message_from(origin, message.id, content.header, chunks, size, record.is_persistent)
    new.expiration = message.expiration
    new.priority = message.priority
    return new
