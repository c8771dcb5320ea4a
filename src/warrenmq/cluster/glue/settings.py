"""What an operator has set for the whole cluster: one value in etcd that every node reads with everything else.

Duty: ``paused``, whether nobody takes over by himself, and ``wire``, the version of the protocol and of the log that
all nodes have to know; the value written with one of them changed and the rest as it is. A value that cannot be read is
no setting: nothing that is promised rests on it.
"""

from __future__ import annotations

import json
from typing import Any

from warrenmq.cluster import wire

KEY = "settings"


def _read(values: dict[str, bytes], prefix: str) -> dict[str, Any]:
    try:
        found = json.loads(values.get(prefix + KEY, b"{}"))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def paused(values: dict[str, bytes], prefix: str) -> bool:
    return _read(values, prefix).get("paused") is True


def version(values: dict[str, bytes], prefix: str) -> int:
    """What every node has to know; the lowest there is, unless it was raised."""
    found = _read(values, prefix).get("wire")
    return found if isinstance(found, int) else wire.LOWEST


def changed(values: dict[str, bytes], prefix: str, **fields: object) -> bytes:
    """The value to be written."""
    return json.dumps({**_read(values, prefix), **fields}).encode()
