"""Whose turn it is, what comes back where, what is written on a dead letter: asked of both brokers alike."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.compat import long

from tests.differential.campaign import fresh_prefix
from tests.support.brokers import RunningBroker

PATIENCE = 20  # seconds for something that must come


@pytest.fixture(params=["warren", "rabbitmq"])
def broker(request: pytest.FixtureRequest) -> RunningBroker:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, RunningBroker)
    return found


class Desk:
    """One connection with one channel, and queues whose names nobody else has."""

    def __init__(self, broker: RunningBroker) -> None:
        self.connection = pika.BlockingConnection(pika.URLParameters(broker.url + "?heartbeat=0"))
        self.channel = self.connection.channel()
        self.channel.confirm_delivery()
        self._prefix = fresh_prefix()
        self._queues: list[str] = []

    def queue(self, name: str, **arguments: object) -> str:
        wanted = {"x-" + key.replace("_", "-"): value for key, value in arguments.items()}
        full = self._prefix + name
        self.channel.queue_declare(full, durable=True, arguments=wanted)
        self._queues.append(full)
        return full

    def fill(self, queue: str, *bodies: str, **properties: object) -> None:
        for body in bodies:
            self.channel.basic_publish("", queue, body.encode(), pika.BasicProperties(**properties))

    def get(self, queue: str, no_ack: bool = False) -> tuple[int, dict[str, object], str]:
        """The next message, waited for: its tag, headers and body."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            method, properties, body = self.channel.basic_get(queue, auto_ack=no_ack)
            if method is not None:
                return method.delivery_tag, properties.headers or {}, body.decode()
            time.sleep(0.01)
        raise AssertionError(f"nothing came in {queue}")

    def count(self, queue: str) -> int:
        return int(self.channel.queue_declare(queue, passive=True).method.message_count)

    def until(self, true: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not true():
            assert time.monotonic() < end, "it did not come to that"
            self.connection.process_data_events(0.01)

    def close(self) -> None:
        for queue in self._queues:
            self.connection.channel().queue_delete(queue)
        self.connection.close()


@pytest.fixture
def desk(broker: RunningBroker) -> Iterator[Desk]:
    desk = Desk(broker)
    yield desk
    desk.close()


# -- whose turn it is --------------------------------------------------------------------------------------------


def serve(desk: Desk, queues: list[str], prefetch: int, deliveries: int) -> list[str]:
    """One consumer for each on one channel under a global prefetch, then that many messages into each queue;
    acknowledge each as it comes: who got it."""
    served: list[str] = []
    channel = desk.connection.channel()

    def take(channel: BlockingChannel, method: object, properties: object, body: bytes) -> None:
        served.append(method.consumer_tag)  # type: ignore[attr-defined]
        if len(served) < deliveries:
            channel.basic_ack(method.delivery_tag)  # type: ignore[attr-defined]

    channel.basic_qos(prefetch_count=prefetch, global_qos=True)
    for number, queue in enumerate(queues):
        channel.basic_consume(queue, take, consumer_tag=f"c{number}")
    for queue in sorted(set(queues)):
        desk.fill(queue, *map(str, range(deliveries)))
    desk.until(lambda: len(served) >= deliveries)
    channel.close()
    return served


def test_a_global_prefetch_serves_the_consumers_of_one_queue_in_turn(desk: Desk) -> None:
    queue = desk.queue("q")
    assert Counter(serve(desk, [queue] * 3, 2, 12)) == {"c0": 4, "c1": 4, "c2": 4}


def test_a_global_prefetch_starves_none_of_several_queues(desk: Desk) -> None:
    queues = [desk.queue(f"q{number}") for number in range(3)]
    shares = Counter(serve(desk, queues, 1, 99))
    assert all(shares[f"c{number}"] > 10 for number in range(3)), shares


# -- coming back -------------------------------------------------------------------------------------------------


def test_what_comes_back_to_a_queue_with_a_ttl_of_nothing_is_not_delivered_again(desk: Desk) -> None:
    queue = desk.queue("q", message_ttl=0)
    flags: list[bool] = []

    def take(channel: BlockingChannel, method: object, properties: object, body: bytes) -> None:
        flags.append(method.redelivered)  # type: ignore[attr-defined]
        channel.basic_nack(method.delivery_tag, requeue=True)  # type: ignore[attr-defined]

    desk.channel.basic_consume(queue, take)
    desk.fill(queue, *map(str, range(50)))
    desk.until(lambda: len(flags) >= 50)
    assert desk.count(queue) == 0
    assert flags == [False] * 50


# -- what is written on a dead letter ----------------------------------------------------------------------------

A, B, C, SELF = ("a", "expired"), ("b", "expired"), ("c", "expired"), ("self", "rejected")


def history(*entries: tuple[tuple[str, str], int | None]) -> list[dict[str, object]]:
    """Entries of x-death, numbered so that one can see which was kept; without a count where there is None."""
    made = []
    for number, ((queue, reason), count) in enumerate(entries):
        entry: dict[str, object] = {} if count is None else {"count": long(count)}
        made.append({**entry, "queue": queue, "reason": reason, "number": number})
    return made


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (history((SELF, None)), [("self", 1, 0)]),
        (history((A, None)), [("self", 1, None), ("a", None, 0)]),
        (history((SELF, None), (SELF, None)), [("self", 3, 0)]),
        (history((SELF, 5), (SELF, 3)), [("self", 6, 0)]),
        (history((A, None), (A, 3), (A, None)), [("self", 1, None), ("a", 3, 0)]),
        (history((A, 5), (A, None)), [("self", 1, None), ("a", 5, 0)]),
        (history((A, None), (B, None), (C, None), (B, None), (A, None)),
         [("self", 1, None), ("c", 1, 2), ("b", 2, 1), ("a", 2, 0)]),
        (history((A, 1), (SELF, 1), (C, 1)), [("self", 2, 1), ("c", 1, 2), ("a", 1, 0)]),
        ([], [("self", 1, None)]),
    ],
    ids=itertools.count(),
)  # fmt: skip
def test_a_history_of_any_age_is_merged_and_counted_by_queue_and_reason(
    desk: Desk, before: list[dict[str, object]], after: list[tuple[str, int | None, int | None]]
) -> None:
    dead = desk.queue("dead")
    queue = desk.queue("self", dead_letter_exchange="", dead_letter_routing_key=dead)
    known = [{**entry, "queue": queue if entry["queue"] == "self" else entry["queue"]} for entry in before]
    desk.fill(queue, "x", headers={"x-death": known})
    desk.channel.basic_reject(desk.get(queue)[0], requeue=False)
    deaths = desk.get(dead, no_ack=True)[1]["x-death"]
    assert isinstance(deaths, list)
    found = [(death["queue"], death.get("count"), death.get("number")) for death in deaths]
    assert found == [(queue if name == "self" else name, count, number) for name, count, number in after]


def test_a_history_behind_the_newest_death_is_turned_round_each_time(desk: Desk) -> None:
    names = [desk.queue("5")]
    for number in "4321":
        names.insert(0, desk.queue(number, dead_letter_exchange="", dead_letter_routing_key=names[0]))
    desk.fill(names[0], "x")
    seen = []
    for name in names:
        tag, headers, _ = desk.get(name)
        desk.channel.basic_reject(tag, requeue=False)
        deaths = headers.get("x-death", [])
        assert isinstance(deaths, list)
        seen.append("".join(death["queue"][-1] for death in deaths))
    assert seen == ["", "1", "21", "312", "4213"]
