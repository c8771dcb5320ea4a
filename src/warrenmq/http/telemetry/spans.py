"""Spans of publish and deliver, for messages that carry a ``traceparent``: children of whoever put it there.

A span is a moment, as the broker never waits: when a message was taken, and each time it was handed out; how long it
lay in a queue is what lies between the two. A message whose context says that nobody records it has none. Messages
are never changed: consumers see the context of the publisher.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from opentelemetry.trace import SpanKind
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from warrenmq.broker.delivering.witness import TRACEPARENT, Witness
from warrenmq.broker.records import Content

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer
    from opentelemetry.util.types import AttributeValue

    from warrenmq.broker.message import Message
    from warrenmq.broker.sender import Sender
    from warrenmq.wire.fields import Table

_CONTEXT = TraceContextTextMapPropagator()
_KEYS = (TRACEPARENT, "tracestate")


class Spans(Witness):
    """A witness that tells a tracer."""

    def __init__(self, tracer: Tracer) -> None:
        super().__init__()
        self._tracer = tracer

    def published(self, sender: Sender, vhost: str, message: Message, queues: list[str]) -> None:
        exchange = message.origin.exchange
        destination: dict[str, AttributeValue] = {
            "messaging.destination.name": exchange or "amq.default",
            "warren.queues": queues,
        }
        self._tell("publish", exchange or "amq.default", SpanKind.SERVER, sender, vhost, message, destination)

    def delivered(self, receiver: Sender, vhost: str, queue: str, message: Message, redelivered: bool) -> None:
        destination: dict[str, AttributeValue] = {
            "messaging.destination.name": queue,
            "warren.redelivered": redelivered,
            "warren.exchange": message.origin.exchange or "amq.default",
        }
        self._tell("deliver", queue, SpanKind.PRODUCER, receiver, vhost, message, destination)

    def _tell(
        self,
        operation: str,
        name: str,
        kind: SpanKind,
        client: Sender,
        vhost: str,
        message: Message,
        more: dict[str, AttributeValue],
    ) -> None:
        properties = Content(message.header(), b"").properties
        carrier = _carrier({} if properties.headers is None else properties.headers)
        if TRACEPARENT not in carrier:
            return
        context = _CONTEXT.extract(carrier)
        if not context:
            return  # it says something else
        attributes: dict[str, AttributeValue] = {
            "messaging.system": "warren",
            "messaging.operation.name": operation,
            "messaging.rabbitmq.destination.routing_key": message.origin.routing_keys[0],
            "messaging.message.body.size": int(message.size),
            "warren.vhost": vhost,
            "warren.connection": client.connection_name,
            "warren.channel": int(client.channel_number),
            **more,
        }
        if properties.message_id is not None:
            attributes["messaging.message.id"] = properties.message_id
        if properties.correlation_id is not None:
            attributes["messaging.message.conversation_id"] = properties.correlation_id
        now = time.time_ns()
        span = self._tracer.start_span(f"{operation} {name}", context, kind, attributes, start_time=now)
        span.end(now)


def _carrier(headers: Table) -> dict[str, str]:
    found: dict[str, str] = {}
    for key in _KEYS:
        field = headers.get(key)
        if field is not None and isinstance(field.value, (str, bytes)):
            value = field.value
            found[key] = value.decode("ascii", "replace") if isinstance(value, bytes) else value
    return found
