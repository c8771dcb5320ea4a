"""Tables of events as the journal's files have them, made from a few words a row."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from warrenmq.journal.parquet import BUT_BODIES, write
from warrenmq.wire.content import Properties, encode_header
from warrenmq.wire.fields import from_python

LOG = "00000000000000aa"


def table(rows: Iterable[dict[str, Any]]) -> pa.Table:
    """Rows with the columns that they name; times in µs."""
    return pa.Table.from_pylist(list(rows), schema=BUT_BODIES)


def write_file(folder: Path, segment: int, rows: Iterable[dict[str, Any]], headers: list[str], end: int = 100) -> Path:
    path = folder / f"journal-{LOG}-{segment:010d}-{0:010d}-{end:010d}.parquet"
    write(path, table(rows), headers)
    return path


def published(time: int, message: int, id: int, message_id: str = "", **more: Any) -> dict[str, Any]:
    headers = from_python(more.pop("headers", {}))
    properties = Properties(delivery_mode=2, message_id=message_id or None, headers=headers or None)
    return {
        "time": time,
        "event": "published",
        "message": message,
        "id": id,
        "vhost": "/",
        "user": "guest",
        "connection": "127.0.0.1:1 -> 127.0.0.1:2",
        "channel": 1,
        "exchange": "",
        "routing_keys": ["q"],
        "size": 4,
        "message_id": message_id or None,
        "header": encode_header(properties, 4),
        **more,
    }


def at_queue(time: int, event: str, message: int, queue: str = "q", **more: Any) -> dict[str, Any]:
    return {"time": time, "event": event, "message": message or None, "vhost": "/", "queue": queue, **more}
