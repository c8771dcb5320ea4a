"""Spark's own Python daemon, which has imported what its workers need before it forks them.

A query starts several Python workers (to plan, to follow offsets, to read, to write), and each would import pyarrow,
pandas and the connector anew: most of a small query's time. Spark imports after the fork because such imports may start
threads; of these only OpenBLAS would, and it is told not to. Not for users: they start few queries.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import pandas  # noqa: E402, F401
import pyarrow.parquet  # noqa: E402, F401
import pyspark.daemon  # noqa: E402
import pyspark.worker  # noqa: E402, F401

import warrenmq.spark.source  # noqa: E402, F401

if __name__ == "__main__":
    pyspark.daemon.manager()
