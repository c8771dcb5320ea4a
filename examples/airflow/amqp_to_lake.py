"""An Airflow operator that takes what is new in a stream or queue into a lake, and a DAG that uses it hourly.

Put this file in the DAG folder of an Airflow 3 whose workers have `warrenmq[spark]` and Java. The task may be repeated
or run again at any time: the checkpoint beside the lake knows what is in it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from airflow.sdk import DAG, BaseOperator


class AmqpToLakeOperator(BaseOperator):
    """`options` are those of format("amqp"); a secret belongs in `passwordEnv`, `passwordFile` or `tokenFile`."""

    template_fields = ("options", "lake", "master")

    def __init__(self, *, options: dict[str, str], lake: str, master: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.options = options
        self.lake = lake
        self.master = master

    def execute(self, context: Any) -> int:
        """How many messages came in, which is also the task's XCom."""
        from warrenmq.spark import ingest, session

        return ingest(session(self.master, name=f"airflow {self.task_id}"), self.options, self.lake).rows


with DAG("orders_to_lake", schedule=timedelta(hours=1), start_date=datetime(2026, 1, 1), catchup=False):
    AmqpToLakeOperator(
        task_id="ingest",
        options={"host": "a.example:5672,b.example:5672", "stream": "orders", "passwordEnv": "AMQP_PASSWORD"},
        lake="/lake/orders",
        max_active_tis_per_dag=1,  # one checkpoint has one writer
    )
