"""Rates and what counters were: sampled all the time, kept as long as RabbitMQ keeps them, in little memory."""

from __future__ import annotations

import random

import pika
import pytest

from tests.http.conftest import Api
from warrenmq.client import Connection, Properties
from warrenmq.http.errors import ApiError
from warrenmq.http.figures.history import BASIC, COLUMNS, GLOBAL, TICK, History, levels_of
from warrenmq.http.figures.rates import Range, Rates, ranges
from warrenmq.http.figures.sampler import Sampler
from warrenmq.http.pacer import SLICE_ITEMS
from warrenmq.http.web import WebServer

pytestmark = pytest.mark.pure

START = 400_000_007  # a tick in 2033, within a minute
WIDTH = len(COLUMNS["queue"])


def queue_rates(history: History, name: str = "q") -> Rates:
    return Rates(history, "queue", [history.find("queue", "/", name)])


def queue_values(messages: int, publish: int) -> list[int]:
    return [messages, messages, 0, publish, *[0] * (WIDTH - 4)]


def test_a_rate_is_the_growth_between_the_last_two_samples() -> None:
    history = History()
    for tick, publish in ((START, 0), (START + 1, 50), (START + 2, 60)):
        history.put(tick, "queue", "/", "q", queue_values(1, publish))
        history.done(tick)
    assert queue_rates(history).details("publish").rate == 2.0


def test_a_round_of_samples_that_was_left_out_does_not_change_the_rate() -> None:
    history = History()
    for tick, publish in ((START, 10), (START + 3, 10 + 15 * 7)):
        history.put(tick, "queue", "/", "q", queue_values(1, publish))
        history.done(tick)
    assert queue_rates(history).details("publish").rate == 7.0


@pytest.mark.parametrize("seed", range(5))
def test_every_value_is_found_again_for_as_long_as_it_is_kept(seed: int) -> None:
    """Against a list of all values, over two hours in which something changes now and then, sometimes by very much."""
    rng = random.Random(seed)
    history = History()
    lived: list[int] = []
    value = 1
    for tick in range(START, START + 1500):
        if rng.random() < 0.3:
            value = max(0, value + rng.choice([1, -1, 40, -30, 1 << 33, -(1 << 33)]))
        lived.append(value)
        history.put(tick, "queue", "/", "q", queue_values(value, 1))
        history.done(tick)
        if rng.random() > 0.02:
            continue
        for (step, keep), age in zip(BASIC, (600, 3600), strict=True):
            told = queue_rates(history).details("messages", Range(age, step))
            assert isinstance(told.samples, list) and len(told.samples) == age // step + 1
            for sample in told.samples:
                place = sample.timestamp // 1000 // TICK - START
                assert sample.sample == (lived[place] if place >= 0 else 0), (step, place)
                assert tick - (place + START) <= keep // TICK


def test_what_is_gone_is_forgotten_and_what_comes_again_begins_anew() -> None:
    history = History()
    for tick, publish in ((START, 900), (START + 1, 1000)):
        history.put(tick, "queue", "/", "q", queue_values(1, publish))
        history.done(tick)
    history.put(START + 2, "queue", "/", "q", queue_values(3, 3))  # deleted and declared since
    history.done(START + 2)
    told = queue_rates(history).details("publish", Range(15, 5))
    assert [sample.sample for sample in told.samples or []] == [3, 0, 0, 0]
    history.done(START + 3)
    assert history.find("queue", "/", "q") is None


def test_levels_are_kept_as_rabbitmq_keeps_them() -> None:
    assert GLOBAL == ((5, 605), (60, 3660), (600, 29400), (1800, 86400))
    assert {kind: len(levels_of(kind)) for kind in COLUMNS} == {
        "queue": 2,
        "exchange": 2,
        "channel": 2,
        "connection": 2,
        "exchange and queue": 1,
        "channel and exchange": 1,
        "channel and queue": 1,
        "vhost": 4,
        "node": 4,
    }


def test_a_queue_costs_nothing_until_it_has_a_message_little_when_idle_and_nine_kilobytes_when_busy() -> None:
    """As docs/http-api.md says."""
    history = History()
    for tick in range(START, START + 800):
        history.put(tick, "queue", "/", "never", [0] * WIDTH)
        history.put(tick, "queue", "/", "idle", queue_values(5, 5))
        history.put(tick, "queue", "/", "busy", queue_values(5, tick))
        history.done(tick)
    octets = {name: track.octets() for name in ("idle", "busy") if (track := history.find("queue", "/", name))}
    assert history.find("queue", "/", "never") is None
    assert octets["idle"] < 600
    assert 8_000 < octets["busy"] < 10_500


@pytest.mark.parametrize(
    "query",
    ["lengths_age=0&lengths_incr=5", "msg_rates_age=60&msg_rates_incr=-1", "node_stats_age=5011&node_stats_incr=10"],
)
def test_a_range_that_makes_no_sense_is_refused(query: str) -> None:
    with pytest.raises(ApiError, match="Invalid range parameters"):
        ranges(dict(part.split("=") for part in query.split("&")))


# -- through the front door ---------------------------------------------------------------------------------------


class Watch:
    """Ahead of every real sample, so that those are left out."""

    def __init__(self) -> None:
        self.time = START * TICK

    def __call__(self) -> float:
        return float(self.time)


class Looking:
    """Rounds of samples, when the test says so."""

    def __init__(self, api: Api) -> None:
        web = api.broker.server.web
        assert isinstance(web, WebServer)
        self._api = api
        self._watch = Watch()
        self._watch.time = max(self._watch.time, web.history.tick * TICK)
        self._sampler = Sampler(api.broker.server, web.history, self._watch)

    def look(self) -> None:
        self._watch.time += TICK
        self._api.broker.run(self._sampler.look())


def publish(api: Api, key: str, count: int) -> None:
    body = {"routing_key": key, "properties": {}, "payload": "x", "payload_encoding": "string"}
    for _ in range(count):
        assert api.ask("POST", "/exchanges/%2F/amq.default/publish", body).status_code == 200


def test_who_asks_first_is_told_the_rate(api: Api) -> None:
    looking = Looking(api)
    assert api.ask("PUT", "/queues/%2F/rated", {}).status_code == 201
    publish(api, "rated", 5)
    looking.look()
    publish(api, "rated", 10)
    looking.look()
    shown = api.get("/queues/%2F/rated")
    assert shown["message_stats"]["publish_details"] == {"rate": 2.0}
    assert shown["messages_details"] == shown["messages_ready_details"] == {"rate": 2.0}
    assert api.get("/exchanges/%2F/amq.default")["message_stats"]["publish_in_details"] == {"rate": 2.0}
    assert api.get("/vhosts/%2F")["message_stats"]["publish_details"] == {"rate": 2.0}
    overview = api.get("/overview")
    assert overview["message_stats"]["publish_details"] == overview["message_stats"]["confirm_details"] == {"rate": 2.0}
    assert overview["queue_totals"]["messages_details"] == {"rate": 2.0}
    assert overview["churn_rates"]["connection_created_details"] == {"rate": 2.0}


def test_a_range_is_told_with_its_averages(api: Api) -> None:
    looking = Looking(api)
    assert api.ask("PUT", "/queues/%2F/ranged", {}).status_code == 201
    for _ in range(3):
        publish(api, "ranged", 10)
        looking.look()
    asked = "lengths_age=20&lengths_incr=5&msg_rates_age=10&msg_rates_incr=5"
    shown = api.get(f"/queues/%2F/ranged?{asked}")
    assert [one["sample"] for one in shown["messages_details"]["samples"]] == [30, 20, 10, 0, 0]
    assert shown["messages_details"]["avg"] == 12.0
    assert shown["messages_details"]["avg_rate"] == 1.5
    assert shown["messages_details"]["rate"] == 2.0
    assert [one["sample"] for one in shown["message_stats"]["publish_details"]["samples"]] == [30, 20, 10]
    times = [one["timestamp"] for one in shown["messages_details"]["samples"]]
    assert [then - now for then, now in zip(times, times[1:], strict=False)] == [5000] * 4
    assert (
        api.get(f"/queues/%2F?{asked}&name=ranged&page=1")["items"][0]["messages_details"] == shown["messages_details"]
    )
    assert api.ask("GET", "/queues/%2F/ranged?lengths_age=20&lengths_incr=0").json() == {
        "error": "bad_request",
        "reason": "Invalid range parameters: age 20, incr 0",
    }


def test_how_long_confirms_waited_and_syncs_took_is_told_of_any_time(api: Api) -> None:
    looking = Looking(api)
    with pika.BlockingConnection(pika.URLParameters(api.broker.url)) as connection:
        channel = connection.channel()
        channel.queue_declare("waited", durable=True)
        channel.confirm_delivery()
        looking.look()
        for _ in range(4):
            channel.basic_publish("", "waited", b"x", pika.BasicProperties(delivery_mode=2))
        channel.basic_publish("", "waited", b"transient")  # waits for nothing
        looking.look()
    node = api.get("/nodes")[0]
    assert node["confirms_waited_details"] == {"rate": 0.8} and node["io_sync_count_details"]["rate"] >= 0.2
    looking.look()
    (node,) = api.get("/nodes?node_stats_age=10&node_stats_incr=5")
    assert [one["sample"] for one in node["confirms_waited_details"]["samples"]] == [
        *([node["confirms_waited"]] * 2),
        node["confirms_waited"] - 4,
    ]
    for name in ("confirm_microseconds", "sync_microseconds"):
        last, then, before = (one["sample"] for one in node[f"{name}_details"]["samples"])
        assert node[name] >= last >= then > before, name


def test_the_sums_of_a_vhost_do_not_fall_when_a_queue_goes(api: Api) -> None:
    looking = Looking(api)
    for name in ("stays", "goes"):
        assert api.ask("PUT", f"/queues/%2F/{name}", {}).status_code == 201
        publish(api, name, 5)
        got = {"count": 5, "ackmode": "ack_requeue_false", "encoding": "auto"}
        assert len(api.ask("POST", f"/queues/%2F/{name}/get", got).json()) == 5
    looking.look()
    assert api.ask("DELETE", "/queues/%2F/goes").status_code == 204
    looking.look()
    stats = api.get("/vhosts/%2F?msg_rates_age=5&msg_rates_incr=5")["message_stats"]
    now, then = stats["deliver_get_details"]["samples"]
    assert now["sample"] == then["sample"] == stats["deliver_get"] >= 10


def test_the_sums_of_a_vhost_do_not_fall_when_a_connection_goes(api: Api) -> None:
    def sums() -> list[int]:
        shown = api.get("/vhosts/%2F")
        [listed] = [one for one in api.get("/vhosts") if one["name"] == "/"]
        assert listed["message_stats"] == shown["message_stats"] and listed["recv_oct"] == shown["recv_oct"]
        return [shown["message_stats"]["publish"], shown["recv_oct"], shown["send_oct"]]

    assert api.ask("PUT", "/queues/%2F/gone", {}).status_code == 201
    publish(api, "gone", 1)
    before = sums()
    with Connection(api.broker.url) as connection:
        channel = connection.channel()
        channel.publish_many("", "gone", [b"x" * 100] * 10, Properties())
        assert channel.basic_get("gone", no_ack=True) is not None
        open_sums = sums()
        assert open_sums[0] == before[0] + 10 and open_sums[1] >= before[1] + 1000 and open_sums[2] > before[2]
    api.broker.settle()
    after = sums()
    assert after[0] == open_sums[0] and after[1] >= open_sums[1] and after[2] >= open_sums[2]
    assert after[1] < before[1] + 2 * (open_sums[1] - before[1])


def test_very_many_queues_are_sampled_a_few_at_a_time(api: Api) -> None:
    document = {"queues": [{"name": f"s{number:05}", "vhost": "/", "durable": False} for number in range(500)]}
    assert api.ask("POST", "/definitions", document).status_code == 204
    server = api.broker.server

    def looks() -> int:
        work = Sampler(server, History(), Watch()).look()
        gave_way = 0
        try:
            while True:
                work.send(None)
                gave_way += 1
        except StopIteration:
            return gave_way

    assert api.broker.call(looks) >= 500 // SLICE_ITEMS
