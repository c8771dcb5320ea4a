"""Who is told of messages that carry a trace context: the seam for OpenTelemetry. This one forgets everything.

Duty: the two calls, and which messages they are about. Who makes spans of them is ``http/telemetry``; when anybody is
asked is the affair of ``firehose.py``.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

from warrenmq.broker.message import Message
from warrenmq.broker.sender import Sender

TRACEPARENT: Final = "traceparent"
_IN_HEADER: Final = b"\x0btraceparent"  # a short string with its length, as the keys of headers are written


@mypyc_attr(allow_interpreted_subclasses=True)
class Witness:
    """A listener who wants to know of each publish and each delivery of a message with a trace context."""

    def published(self, sender: Sender, vhost: str, message: Message, queues: list[str]) -> None:
        """It was taken, and goes to these queues."""

    def delivered(self, receiver: Sender, vhost: str, queue: str, message: Message, redelivered: bool) -> None:
        """It was handed out."""


def is_traced(message: Message) -> bool:
    """May it carry a trace context? Whoever is told looks closer."""
    return _IN_HEADER in message.header()
