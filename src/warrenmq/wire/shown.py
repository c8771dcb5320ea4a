"""Properties of a message as people and programs without AMQP are shown them: plain values, by name.

Duty: from a content header to what JSON can say. Not here: which messages are shown, and to whom.
"""

from __future__ import annotations

from warrenmq.wire.content import decode_properties
from warrenmq.wire.fields import printable, to_python
from warrenmq.wire.replies import AmqpError


def shown_properties(header: bytes | None) -> dict[str, object]:
    """None where there is no header, or one that cannot be read."""
    if not header:
        return {}
    try:
        properties = decode_properties(header)
    except AmqpError:
        return {}
    present = properties.present().items()
    shown = {name: printable(value) if isinstance(value, str) else value for name, value in present}
    if properties.headers is not None:
        shown["headers"] = to_python(properties.headers)
    return shown
