"""The Celery application of test_celery.py: the test makes one for each broker, the worker process one for its own."""

from __future__ import annotations

import os
import time
from typing import Any

from celery import Celery


def make(broker_url: str) -> Celery:
    app = Celery("warren_tests", broker=broker_url, backend="rpc://", set_as_current=False)
    app.conf.update(
        task_default_queue="celery-test",
        task_acks_late=True,
        worker_prefetch_multiplier=4,
        broker_connection_retry_on_startup=True,
        result_persistent=False,
    )

    @app.task(name="add", shared=False)
    def add(x: int, y: int) -> int:
        return x + y

    @app.task(name="flaky", shared=False, bind=True, max_retries=3)
    def flaky(self: Any, succeed_on: int) -> int:
        """Fails until its n-th attempt."""
        attempt = self.request.retries + 1
        if attempt < succeed_on:
            raise self.retry(countdown=0.2, exc=RuntimeError(f"attempt {attempt}"))
        return int(attempt)

    @app.task(name="when", shared=False)
    def when() -> float:
        return time.time()

    @app.task(name="total", shared=False)
    def total(numbers: list[int]) -> int:
        return sum(numbers)

    @app.task(name="broken", shared=False)
    def broken() -> None:
        raise ValueError("on purpose")

    return app


app = make(os.environ.get("CELERY_TEST_BROKER", "amqp://"))
