"""What test_clients.py expects of every client, with Celery: a worker, a process of its own, and who sends it tasks.

Arguments: QUEUE HOST:PORT HOST:PORT ...
"""

import subprocess
import sys
import time

from celery import Celery
from kombu.exceptions import OperationalError

whole = [word for word in sys.argv[1:] if word != "worker"]
queue, *places = whole
app = Celery("takeover", broker=";".join(f"amqp://guest:guest@{place}//" for place in places))
app.conf.update(
    task_default_queue=queue,
    task_acks_late=True,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    broker_transport_options={"confirm_publish": True},
    broker_connection_timeout=5,
    worker_redirect_stdouts=False,
    worker_enable_remote_control=False,
)


def got(number: int) -> None:
    print("got", number, flush=True)


take = app.task(name="take")(got)

if "worker" in sys.argv:
    app.worker_main(["worker", "--pool=solo", "--loglevel=ERROR", "--without-gossip", "--without-mingle"])
    sys.exit()

subprocess.Popen([sys.executable, __file__, "worker", *whole])
number = 0
while True:
    number += 1
    try:
        take.apply_async((number,), retry=True, retry_policy={"max_retries": 50, "interval_max": 0.2})
        print("confirmed", number, flush=True)
    except (OSError, OperationalError):
        pass
    time.sleep(0.05)
