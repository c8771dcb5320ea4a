"""The names of queues, from the definitions that a log holds: records know queues by number.

Duty: one reader of them, for whoever tells what is in a log; for a delayed exchange, whose messages the log holds as
those of a queue, a name that no queue has. Not here: any other definition (``broker/start``).
"""

from __future__ import annotations

import json

from warrenmq.broker.records import AS_QUEUE


def queue_of(kind: str, value: bytes) -> tuple[int, str, str] | None:
    """Number, vhost and name of a queue's definition or a delayed exchange's; None for any other, or one that cannot be
    read."""
    if kind != "queue" and (kind != "exchange" or b'"delayed"' not in value):
        return None
    try:
        found = json.loads(value)
        if kind == "exchange":
            return int(found["scratches"]["delayed"]), str(found["vhost"]), AS_QUEUE + str(found["name"])
        return int(found["id"]), str(found["vhost"]), str(found["name"])
    except (ValueError, KeyError, TypeError):
        return None  # a name is a courtesy


def is_stream(kind: str, value: bytes) -> bool:
    """Does the event that names a queue say that it is a stream? Definitions do not."""
    if kind != "queue" or b'"stream"' not in value:
        return False
    try:
        return json.loads(value).get("stream") is True
    except ValueError:
        return False
