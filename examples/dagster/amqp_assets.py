"""A dagster asset that is a lake fed from a stream: each materialization takes what is new.

    AMQP_HOST=localhost AMQP_STREAM=orders LAKE=/tmp/orders dagster asset materialize -f amqp_assets.py --select orders

It needs `warrenmq[spark]` and Java beside dagster. It may fail and run again at any time: the checkpoint beside the
lake knows what is in it.
"""

from __future__ import annotations

import os

import dagster as dg


@dg.asset
def orders() -> dg.MaterializeResult:
    from warrenmq.spark import ingest, session

    options = {"host": os.environ["AMQP_HOST"], "stream": os.environ["AMQP_STREAM"]}
    for variable, option in (("AMQP_USER", "username"), ("AMQP_PASSWORD_FILE", "passwordFile")):
        if variable in os.environ:
            options[option] = os.environ[variable]
    spark = session(os.environ.get("SPARK_MASTER"), name="dagster orders")
    done = ingest(spark, options, os.environ["LAKE"])
    return dg.MaterializeResult(metadata={"rows": done.rows, "batches": done.batches, "seconds": done.seconds})


defs = dg.Definitions(assets=[orders])
