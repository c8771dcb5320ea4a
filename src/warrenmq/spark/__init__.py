"""Spark through PySpark: format("amqp") for queues, streams and exchanges, and the pipeline's jobs.

``route``, ``ingest``, ``publish``, ``settle``, ``summary``, ``decode_bodies`` and ``encode_bodies`` are functions over
DataFrames; ``session`` starts Spark. They are imported on first use, so that importing this package needs neither
pyspark nor Java.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "audit": "warrenmq.spark.auditing",
    "decode_bodies": "warrenmq.spark.bodies.decode",
    "encode_bodies": "warrenmq.spark.bodies.encode",
    "ingest": "warrenmq.spark.jobs.ingest",
    "lag": "warrenmq.spark.progress",
    "lake": "warrenmq.spark.laking.job",
    "publish": "warrenmq.spark.jobs.publish",
    "publish_stream": "warrenmq.spark.jobs.publish",
    "replay": "warrenmq.spark.replaying",
    "route": "warrenmq.spark.routing",
    "route_files": "warrenmq.spark.routing",
    "summary": "warrenmq.spark.jobs.summary",
    "settle": "warrenmq.spark.acting",
    "watch": "warrenmq.spark.watching",
    "whatif": "warrenmq.spark.supposing",
    "session": "warrenmq.spark.sessions",
    "register": "warrenmq.spark.sessions",
}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    # No module of this package may be named like one of these functions: importing it would hide the function.
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'warrenmq.spark' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)
