"""Celery over Warren: nothing in it knows which broker it talks to."""

import os

from celery import Celery

app = Celery("shop", broker=os.environ["CELERY_BROKER"], backend="rpc://")
app.conf.update(
    task_acks_late=True,  # a task whose worker dies goes to another one
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,  # long tasks: a worker takes no more than it works on
    broker_transport_options={"confirm_publish": True},  # delay() returns when the task is on disk
    broker_connection_retry_on_startup=True,
)


@app.task
def total(prices: list[int]) -> int:
    return sum(prices)
