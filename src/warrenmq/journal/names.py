"""The names of queues, from the definitions that a log holds: records know queues by number.

Duty: one reader of them, for whoever tells what is in a log. Not here: any other definition (``broker/start``).
"""

from __future__ import annotations

import json


def queue_of(kind: str, value: bytes) -> tuple[int, str, str] | None:
    """Number, vhost and name of a queue's definition; None for any other, or one that cannot be read."""
    if kind != "queue":
        return None
    try:
        found = json.loads(value)
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
