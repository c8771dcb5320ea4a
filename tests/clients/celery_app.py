"""The Celery application of test_celery.py: the test makes one for each broker, the worker process one for its own.

With quorum queues it is the one that Celery's guide describes for them, and countdowns wait in the broker.
"""

from __future__ import annotations

import os
import time
from typing import Any

from celery import Celery
from kombu import Exchange, Queue

DELAYED = "celery-delayed"


def make(broker_url: str, quorum: bool = False) -> Celery:
    app = Celery("warren_tests", broker=broker_url, backend="rpc://", set_as_current=False)
    app.conf.update(
        task_default_queue="celery-test",
        task_acks_late=True,
        worker_prefetch_multiplier=4,
        broker_connection_retry_on_startup=True,
        result_persistent=False,
    )
    if quorum:
        queue = Queue(
            DELAYED, Exchange(DELAYED, type="topic"), routing_key=DELAYED, queue_arguments={"x-queue-type": "quorum"}
        )
        app.conf.update(
            task_queues=[queue],
            task_default_queue=DELAYED,
            task_default_exchange=DELAYED,
            task_default_exchange_type="topic",
            task_default_routing_key=DELAYED,
            task_default_queue_type="quorum",
            broker_native_delayed_delivery_queue_type="quorum",
            worker_detect_quorum_queues=True,
        )

    @app.task(name="add", shared=False)
    def add(x: int, y: int) -> int:
        return x + y

    @app.task(name="flaky", shared=False, bind=True, max_retries=3)
    def flaky(self: Any, succeed_on: int, countdown: float = 0.2) -> int:
        """Fails until its n-th attempt."""
        attempt = self.request.retries + 1
        if attempt < succeed_on:
            raise self.retry(countdown=countdown, exc=RuntimeError(f"attempt {attempt}"))
        return int(attempt)

    @app.task(name="when", shared=False)
    def when() -> float:
        return time.time()

    @app.task(name="journey", shared=False, bind=True)
    def journey(self: Any) -> dict[str, Any]:
        """How this task came: when, through which exchange and queues, and with which headers of one's own."""
        headers = self.request.headers or {}
        return {
            "ran": time.time(),
            "exchange": self.request.delivery_info["exchange"],
            "waited in": [(death["queue"], death["reason"]) for death in headers.get("x-death", [])],
            "numbers": headers.get("numbers"),
        }

    @app.task(name="total", shared=False)
    def total(numbers: list[int]) -> int:
        return sum(numbers)

    @app.task(name="broken", shared=False)
    def broken() -> None:
        raise ValueError("on purpose")

    return app


app = make(os.environ.get("CELERY_TEST_BROKER", "amqp://"), "CELERY_TEST_QUORUM" in os.environ)
