"""A real Celery worker, unmodified, and kombu by itself."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import kombu
import pytest
from celery import Celery, chain, group
from kombu.transport.native_delayed_delivery import (
    bind_queue_to_native_delayed_delivery_exchange,
    calculate_routing_key,
    declare_native_delayed_delivery_exchanges_and_queues,
    level_name,
)

from tests.clients.celery_app import make
from tests.support.brokers import RunningBroker, shared_rabbitmq, shared_warren

ROOT = Path(__file__).parents[2]


@contextmanager
def worker(url: str, folder: Path, **environment: str) -> Iterator[Path]:
    """A worker process that is ready; what it writes to its log."""
    log = folder / "log"
    with open(log, "wb") as output:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "celery",
                "-A",
                "tests.clients.celery_app",
                "worker",
                "--pool",
                "threads",
                "--concurrency",
                "4",
                "--loglevel",
                "INFO",
                "--hostname",
                "tester@localhost",
            ],
            cwd=ROOT,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "CELERY_TEST_BROKER": url, "PYTHONPATH": str(ROOT), "C_FORCE_ROOT": "1", **environment},
        )
        try:
            deadline = time.monotonic() + 60
            while b"ready." not in log.read_bytes():
                assert process.poll() is None and time.monotonic() < deadline, log.read_text()
                time.sleep(0.1)
            yield log
            process.terminate()
            assert process.wait(60) == 0, log.read_text()
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


@pytest.fixture(scope="module", params=["warren", "rabbitmq"])
def celery(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Celery]:
    """A worker process consuming from the broker, and an application that sends it tasks."""
    broker = shared_warren() if request.param == "warren" else shared_rabbitmq()
    with make(broker.url) as app, worker(broker.url, tmp_path_factory.mktemp("celery")):
        yield app


@pytest.fixture(scope="module", params=["warren", "rabbitmq"])
def delaying(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Celery]:
    """The same where queues are quorum queues: the worker sets native delayed delivery up, in a vhost of its own."""
    broker = shared_warren() if request.param == "warren" else shared_rabbitmq()
    vhost = "celery-native"
    assert broker.http("PUT", f"/api/vhosts/{vhost}", {})[0] == 201
    everything = {"configure": ".*", "write": ".*", "read": ".*"}
    assert broker.http("PUT", f"/api/permissions/{vhost}/guest", everything)[0] in (201, 204)
    url = broker.url_of("guest", "guest", vhost)
    with make(url, quorum=True) as app, worker(url, tmp_path_factory.mktemp("celery"), CELERY_TEST_QUORUM="1") as log:
        yield app
        said = log.read_text()
        assert "Traceback" not in said and "delayed delivery" not in said, said  # it tells only of failures
    assert broker.http("DELETE", f"/api/vhosts/{vhost}")[0] == 204


def test_a_task_gives_its_result(celery: Celery) -> None:
    assert celery.tasks["add"].delay(2, 3).get(timeout=60) == 5


def test_many_tasks_give_all_their_results(celery: Celery) -> None:
    results = [celery.tasks["add"].delay(number, number) for number in range(100)]
    assert [result.get(timeout=60) for result in results] == [2 * number for number in range(100)]


def test_a_retried_task_succeeds_on_its_third_attempt(celery: Celery) -> None:
    assert celery.tasks["flaky"].delay(3).get(timeout=60) == 3


def test_a_failing_task_reports_its_error(celery: Celery) -> None:
    with pytest.raises(ValueError, match="on purpose"):
        celery.tasks["broken"].delay().get(timeout=60)


def test_a_task_with_an_eta_does_not_run_early(celery: Celery) -> None:
    eta = datetime.now(UTC) + timedelta(seconds=1.5)
    ran = celery.tasks["when"].apply_async(eta=eta).get(timeout=60)
    assert eta.timestamp() <= ran


def test_a_group_gives_every_result_in_order(celery: Celery) -> None:
    assert group(celery.tasks["add"].s(number, 10) for number in range(10))().get(timeout=60) == [
        number + 10 for number in range(10)
    ]


def test_a_chain_passes_results_on(celery: Celery) -> None:
    add = celery.tasks["add"]
    assert chain(add.s(1, 2), add.s(10), add.s(100))().get(timeout=60) == 113


def test_the_worker_answers_remote_control(celery: Celery) -> None:
    """pidbox: a fanout exchange, auto-delete queues with x-expires, replies to a queue of one's own."""
    assert celery.control.ping(destination=["tester@localhost"], timeout=60) == [{"tester@localhost": {"ok": "pong"}}]


def test_a_countdown_waits_in_the_queues_of_native_delayed_delivery(delaying: Celery) -> None:
    """Three seconds: two in the queue of the second bit, one in that of the first."""
    sent = time.time()
    came = delaying.tasks["journey"].apply_async(countdown=3).get(timeout=60)
    assert came["ran"] - sent >= 3
    assert came["exchange"] == "celery_delayed_delivery"
    assert came["waited in"] == [["celery_delayed_0", "expired"], ["celery_delayed_1", "expired"]]


def test_an_eta_is_kept_by_native_delayed_delivery(delaying: Celery) -> None:
    eta = datetime.now(UTC) + timedelta(seconds=2.5)
    came = delaying.tasks["journey"].apply_async(eta=eta).get(timeout=60)
    assert came["ran"] >= eta.timestamp()
    assert came["exchange"].startswith("celery_delayed_")


def test_a_retry_waits_in_native_delayed_delivery_and_succeeds(delaying: Celery) -> None:
    assert delaying.tasks["flaky"].delay(3, countdown=1).get(timeout=60) == 3


@pytest.mark.parametrize("countdown", [None, 1])
def test_integers_beyond_32_bits_in_headers_arrive_as_they_were_sent(delaying: Celery, countdown: int | None) -> None:
    """py-amqp writes them as field type ``L``; the delayed ones were dead-lettered as well."""
    numbers = [2**31 - 1, 2**31, 2**32, 2**40, 2**62, -(2**31), -(2**40)]
    came = delaying.tasks["journey"].apply_async(countdown=countdown, headers={"numbers": numbers}).get(timeout=60)
    assert came["numbers"] == numbers
    assert bool(came["waited in"]) == (countdown is not None)


def test_many_countdowns_at_once_all_run(delaying: Celery) -> None:
    add = delaying.tasks["add"]
    results = [add.apply_async((number, number), countdown=1 + number % 3) for number in range(60)]
    assert [result.get(timeout=60) for result in results] == [2 * number for number in range(60)]


def test_a_task_may_take_a_list(celery: Celery) -> None:
    assert celery.tasks["total"].delay(list(range(1000))).get(timeout=60) == 499500


def test_kombu_publishes_and_consumes_with_a_priority_queue_and_a_topic_exchange(broker: RunningBroker) -> None:
    exchange = kombu.Exchange("kombu-topics", "topic", durable=False, auto_delete=True)
    queue = kombu.Queue("kombu-queue", exchange, routing_key="a.#", durable=False, max_priority=5, exclusive=True)
    received: list[object] = []

    def on_message(body: object, message: kombu.Message) -> None:
        received.append(body)
        message.ack()

    with kombu.Connection(broker.url, transport_options={"confirm_publish": True}) as connection:
        queue(connection).declare()
        producer = connection.Producer(serializer="json")
        for number, priority in ((1, 0), (2, 5), (3, 3)):
            producer.publish({"number": number}, exchange=exchange, routing_key="a.b", priority=priority)
        with connection.Consumer(queue, callbacks=[on_message], prefetch_count=1):
            while len(received) < 3:
                connection.drain_events(timeout=60)
    assert received == [{"number": 2}, {"number": 3}, {"number": 1}]


def test_kombu_simple_queue_round_trip(broker: RunningBroker) -> None:
    with kombu.Connection(broker.url) as connection:
        with connection.SimpleQueue("kombu-simple", queue_opts={"durable": False, "auto_delete": True}) as simple:
            simple.put({"hello": "world"}, headers={"a": 1})
            message = simple.get(timeout=60)
            assert (message.payload, message.headers) == ({"hello": "world"}, {"a": 1})
            message.ack()
            with pytest.raises((simple.Empty, socket.timeout)):
                simple.get(timeout=0.2)


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_kombu_sets_up_native_delayed_delivery_and_a_message_comes_when_it_is_due(
    broker: RunningBroker, kind: str
) -> None:
    """What a Celery worker does where queues are quorum queues. py-amqp writes the longer TTLs as field type ``L``."""
    exchange = kombu.Exchange(f"native-{kind}", "topic", durable=False, auto_delete=True)
    with kombu.Connection(broker.url) as connection:
        declare_native_delayed_delivery_exchanges_and_queues(connection, kind, prefix=kind)
        queue = kombu.Queue(f"native-{kind}", exchange, routing_key="task", durable=False, exclusive=True)
        queue(connection).declare()
        bind_queue_to_native_delayed_delivery_exchange(connection, queue, prefix=kind)
        sent = time.monotonic()
        connection.Producer(serializer="json").publish(
            {"late": True}, exchange=level_name(27, kind), routing_key=calculate_routing_key(1, "task")
        )
        received: list[object] = []
        with connection.Consumer(queue, callbacks=[lambda body, message: received.append(body)], no_ack=True):
            connection.drain_events(timeout=120)
        assert time.monotonic() - sent >= 1
        assert received == [{"late": True}]
        status, answer = broker.http("GET", f"/api/queues/%2F/{level_name(27, kind)}")
        assert status == 200 and isinstance(answer, dict)
        assert answer["arguments"]["x-message-ttl"] == 2**27 * 1000
        for level in range(28):
            connection.channel().queue_delete(level_name(level, kind))
            connection.channel().exchange_delete(level_name(level, kind))
        connection.channel().exchange_delete(f"{kind}_celery_delayed_delivery")
