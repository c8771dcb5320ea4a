"""What test_clients.py expects of every client, with Celery: a worker in a thread of its own, and who sends it tasks.

Arguments: QUEUE HOST:PORT HOST:PORT ...
"""

import sys
import threading
import time

from celery import Celery
from kombu.exceptions import OperationalError

queue, *places = sys.argv[1:]
app = Celery("takeover", broker=";".join(f"amqp://guest:guest@{place}//" for place in places))
app.conf.update(
    task_default_queue=queue,
    task_acks_late=True,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    broker_transport_options={"confirm_publish": True},
    broker_connection_timeout=5,
    worker_hijack_root_logger=False,
    worker_enable_remote_control=False,
)


def got(number: int) -> None:
    print("got", number, flush=True)


take = app.task(name="take")(got)


def work() -> None:
    while True:
        try:
            app.Worker(pool="solo", loglevel="ERROR", without_gossip=True, without_mingle=True, quiet=True).start()
        except (OSError, OperationalError):
            pass
        time.sleep(0.1)


threading.Thread(target=work, daemon=True).start()
number = 0
while True:
    number += 1
    try:
        take.apply_async((number,), retry=True, retry_policy={"max_retries": 50, "interval_max": 0.2})
        print("confirmed", number, flush=True)
    except (OSError, OperationalError):
        pass
    time.sleep(0.05)
