"""After the same history the numbers are RabbitMQ 3.10's, by value: overview, vhost, queues, exchanges, channels."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pika
import pytest

from tests.http.history import EXCHANGES, QUEUES, VHOST, live
from tests.support.brokers import SHARED_PLUGINS, BrokerUnavailable, RunningBroker, start_rabbitmq, start_warren

PATIENCE = 60.0  # RabbitMQ gathers its numbers now and then; it is asked until they are there
LENGTHS = ("messages", "messages_ready", "messages_unacknowledged")


@dataclass
class Lived:
    """A broker after the history, and the connection that lived it."""

    broker: RunningBroker
    connection: pika.BlockingConnection

    def get(self, path: str) -> Any:
        self.connection.process_data_events(0)  # its heartbeats
        status, answer = self.broker.http("GET", path)
        assert status == 200, (path, status, answer)
        return answer


@dataclass
class Both:
    ours: Lived
    theirs: Lived

    def agree(self, told: Callable[[Lived], Any]) -> Any:
        """What both say, when RabbitMQ has gathered it all."""
        ours = told(self.ours)
        until = time.monotonic() + PATIENCE
        while (theirs := told(self.theirs)) != ours and time.monotonic() < until:
            time.sleep(0.5)
        assert ours == theirs
        return ours


@pytest.fixture(scope="module")
def both() -> Iterator[Both]:
    with contextlib.ExitStack() as stack:
        try:
            oracle = stack.enter_context(start_rabbitmq(SHARED_PLUGINS))
        except BrokerUnavailable as reason:
            pytest.skip(str(reason))
        lived = [Lived(one, live(one)) for one in (stack.enter_context(start_warren()), oracle)]
        yield Both(*lived)
        for one in lived:
            one.connection.close()


def counters(shown: Any) -> dict[str, int]:
    """Its ``message_stats`` without rates; without reads and writes of a disk, which are no messages."""
    stats = shown.get("message_stats") or {}
    return {name: n for name, n in stats.items() if not name.endswith("_details") and not name.startswith("disk_")}


def test_the_overview_and_the_vhost_count_each_publish_once(both: Both) -> None:
    counted = both.agree(lambda lived: counters(lived.get("/api/overview")))
    assert counted == both.agree(lambda lived: counters(lived.get(f"/api/vhosts/{VHOST}")))
    assert counted["publish"] == 105
    assert all(counted.values()), counted


@pytest.mark.parametrize("name", QUEUES)
def test_a_queue_has_the_numbers_that_rabbitmq_says(both: Both, name: str) -> None:
    def told(lived: Lived) -> Any:
        found = {one["name"]: one for one in lived.get(f"/api/queues/{VHOST}")}
        if name not in found:
            return None
        single = lived.get(f"/api/queues/{VHOST}/{name}")
        return [(counters(one), [one[length] for length in LENGTHS]) for one in (found[name], single)]

    shown = both.agree(told)
    assert (shown is None) == (name == "gone-queue")
    assert shown is None or shown[0] == shown[1]


@pytest.mark.parametrize("name", ["amq.default", "amq.direct", *EXCHANGES])
def test_an_exchange_has_the_numbers_that_rabbitmq_says(both: Both, name: str) -> None:
    def told(lived: Lived) -> Any:
        found = {one["name"]: one for one in lived.get(f"/api/exchanges/{VHOST}")}
        listed = found.get("" if name == "amq.default" else name)
        return None if listed is None else [counters(listed), counters(lived.get(f"/api/exchanges/{VHOST}/{name}"))]

    both.agree(told)


def test_every_channel_has_the_numbers_that_rabbitmq_says(both: Both) -> None:
    def told(lived: Lived) -> Any:
        return {one["number"]: counters(one) for one in lived.get("/api/channels")}

    assert len(both.agree(told)) == 11


def test_as_many_things_come_and_go_as_in_rabbitmq_and_none_goes_that_never_came(both: Both) -> None:
    """But for connections: RabbitMQ counts as closed also those that it never counted as opened."""

    def told(lived: Lived) -> Any:
        churn = lived.get("/api/overview")["churn_rates"]
        names = ("channel_created", "channel_closed", "queue_created", "queue_declared", "queue_deleted")
        return {name: churn[name] for name in (*names, "connection_created")}

    churn = both.agree(told)
    assert churn["channel_created"] == churn["channel_closed"] + 11
    ours = both.ours.get("/api/overview")["churn_rates"]
    assert ours["connection_created"] == ours["connection_closed"] + 1


def test_the_totals_of_the_overview_and_the_vhost_are_rabbitmqs(both: Both) -> None:
    both.agree(lambda lived: [lived.get("/api/overview")["queue_totals"][name] for name in LENGTHS])
    both.agree(lambda lived: [lived.get(f"/api/vhosts/{VHOST}")[name] for name in LENGTHS])
    both.agree(lambda lived: lived.get("/api/overview")["object_totals"])


# -- rates ---------------------------------------------------------------------------------------------------------

RANGES = "lengths_age=60&lengths_incr=5&msg_rates_age=3600&msg_rates_incr=60&data_rates_age=600&data_rates_incr=30"
RANGED = {
    "/api/overview": {"queue_totals.messages": "lengths", "message_stats.publish": "msg_rates"},
    f"/api/vhosts/{VHOST}": {
        "messages_ready": "lengths",
        "message_stats.deliver_get": "msg_rates",
        "recv_oct": "data_rates",
    },
    f"/api/queues/{VHOST}/a": {"messages": "lengths", "message_stats.publish": "msg_rates"},
    f"/api/exchanges/{VHOST}/fan": {"message_stats.publish_out": "msg_rates"},
}


@pytest.mark.parametrize("path", RANGED)
def test_a_range_of_time_is_answered_as_by_rabbitmq(both: Both, path: str) -> None:
    """As many samples, so far apart, with the same averages beside them."""

    def told(lived: Lived) -> Any:
        shown = lived.get(f"{path}?{RANGES}")
        found: dict[str, Any] = {}
        for member in RANGED[path]:
            details = shown
            for step in f"{member}_details".split("."):
                details = details[step]
            times = [sample["timestamp"] for sample in details["samples"]]
            apart = {now - then for now, then in zip(times, times[1:], strict=False)}
            found[member] = sorted(details), len(times), apart, {tuple(sorted(one)) for one in details["samples"]}
        return found

    both.agree(told)


@pytest.mark.parametrize(
    "query",
    [
        *("lengths_age=60", "lengths_age=x&lengths_incr=5", "lengths_age=60&lengths_incr=0"),
        *("lengths_age=-5&lengths_incr=5", "lengths_age=10000000&lengths_incr=1", "lengths_age=500&lengths_incr=1"),
    ],
)
def test_a_range_that_makes_no_sense_is_answered_as_by_rabbitmq(both: Both, query: str) -> None:
    def told(lived: Lived) -> Any:
        lived.connection.process_data_events(0)
        status, answer = lived.broker.http("GET", f"/api/queues/{VHOST}/a?{query}")
        assert isinstance(answer, dict)
        return (status, sorted(answer["messages_details"])) if status == 200 else (status, answer)

    both.agree(told)
