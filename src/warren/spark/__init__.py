"""Spark through PySpark: format("amqp") for queues, streams and exchanges, and the pipeline's jobs.

``route``, ``ingest``, ``publish`` and ``summary`` are functions over DataFrames; ``session`` starts Spark. They are
imported on first use, so that importing this package needs neither pyspark nor Java.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "ingest": "warren.spark.jobs.ingest",
    "publish": "warren.spark.jobs.publish",
    "publish_stream": "warren.spark.jobs.publish",
    "route": "warren.spark.routing",
    "route_files": "warren.spark.routing",
    "summary": "warren.spark.jobs.summary",
    "session": "warren.spark.sessions",
    "register": "warren.spark.sessions",
}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    # No module of this package may be named like one of these functions: importing it would hide the function.
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'warren.spark' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)
