"""After the same history the numbers are RabbitMQ 3.10's, by value: overview, vhost, queues, exchanges, channels."""

from __future__ import annotations

import contextlib
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pika
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.http.history import EXCHANGES, QUEUES, VHOST, live
from tests.http.left_out import (
    LEFT_OUT,
    MEMBERS_LEFT_OUT,
    compared,
    left_out,
    member_compared,
    member_left_out,
    plain,
)
from tests.support.brokers import (
    SHARED_PLUGINS,
    BrokerUnavailable,
    RunningBroker,
    free_ports,
    start_rabbitmq,
    start_warren,
)

PATIENCE = 60.0  # RabbitMQ gathers its numbers now and then; it is asked until they are there
LENGTHS = ("messages", "messages_ready", "messages_unacknowledged")


@dataclass
class Lived:
    """A broker after the history, and the connection that lived it."""

    broker: RunningBroker
    connection: pika.BlockingConnection
    metrics_port: int

    def metrics(self, path: str = "/metrics") -> dict[str, list[tuple[dict[str, str], float]]]:
        """Every sample, by its name."""
        self.connection.process_data_events(0)
        found: dict[str, list[tuple[dict[str, str], float]]] = {}
        with urllib.request.urlopen(f"http://{self.broker.host}:{self.metrics_port}{path}", timeout=60) as answer:
            for family in text_string_to_metric_families(answer.read().decode()):
                for sample in family.samples:
                    found.setdefault(sample.name, []).append((dict(sample.labels), sample.value))
        return found

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
            (port,) = free_ports(1)
            plugins = (*SHARED_PLUGINS, "rabbitmq_prometheus")
            config = f"prometheus.tcp.ip = 127.0.0.1\nprometheus.tcp.port = {port}\nmanagement.rates_mode = detailed\n"
            oracle = stack.enter_context(start_rabbitmq(plugins, config))
        except BrokerUnavailable as reason:
            pytest.skip(str(reason))
        warren = stack.enter_context(start_warren())
        lived = [Lived(one, live(one), there) for one, there in ((warren, warren.http_port), (oracle, port))]
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


def pairs(shown: Any, *lists: str) -> dict[str, dict[Any, tuple[list[str], dict[str, int]]]]:
    """Of each list its rows, by the name or number of the other one: their members, and their counters."""
    found: dict[str, dict[Any, Any]] = {}
    for name in lists:
        for row in shown[name]:
            [(kind, other)] = [(key, one) for key, one in row.items() if key != "stats"]
            members = [*sorted(row), *(f"{kind}.{member}" for member in sorted(other))]
            at = other.get("number", other["name"])
            found.setdefault(name, {})[at] = members, counters({"message_stats": row["stats"]})
    return found


#: RabbitMQ's pair may lack what a channel published that was over before it was gathered; its other figures have it
ENDED_EARLY = {frozenset({"a", ""}): range(17, 23)}


def without_ended(found: dict[str, dict[Any, tuple[list[str], dict[str, int]]]], name: str) -> Any:
    """The pair of which RabbitMQ may tell less is left out, once it is seen to be in its range."""
    for rows in found.values():
        for other in [other for other in rows if frozenset({name, other}) in ENDED_EARLY]:
            if rows[other][1]["publish"] in ENDED_EARLY[frozenset({name, other})]:
                del rows[other]
    return found


@pytest.mark.parametrize("name", sorted(QUEUES.keys() - {"gone-queue"}))
def test_a_queue_has_the_pairs_that_rabbitmq_says(both: Both, name: str) -> None:
    def told(lived: Lived) -> Any:
        return without_ended(pairs(lived.get(f"/api/queues/{VHOST}/{name}"), "incoming", "deliveries"), name)

    both.agree(told)


@pytest.mark.parametrize("name", ["", "amq.direct", *sorted(EXCHANGES.keys() - {"gone"})])
def test_an_exchange_has_the_pairs_that_rabbitmq_says(both: Both, name: str) -> None:
    def told(lived: Lived) -> Any:
        shown = lived.get(f"/api/exchanges/{VHOST}/{name or 'amq.default'}")
        return without_ended(pairs(shown, "incoming", "outgoing"), name)

    both.agree(told)


def test_every_channel_has_the_pairs_that_rabbitmq_says(both: Both) -> None:
    """Nothing of a queue or an exchange that is gone."""

    def told(lived: Lived) -> Any:
        names = {one["number"]: quote(one["name"]) for one in lived.get("/api/channels")}
        shown = {number: lived.get(f"/api/channels/{name}") for number, name in names.items()}
        return {number: pairs(one, "publishes", "deliveries") for number, one in shown.items()}

    agreed = both.agree(told)
    assert len(agreed) == 11 and len(agreed[2]["publishes"]) == 5 and len(agreed[4]["deliveries"]) == 4
    assert agreed[8] == {}  # it took from one that is gone


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


#: what is asked for -> how its parts are told apart
OBJECTS: dict[str, tuple[str, str]] = {
    "overview": ("/api/overview", ""),
    "vhost": ("/api/vhosts", "name"),
    "queue": (f"/api/queues/{VHOST}", "name"),
    "exchange": (f"/api/exchanges/{VHOST}", "name"),
    "connection": ("/api/connections", "vhost"),
    "channel": ("/api/channels", "number"),
    "node": ("/api/nodes", "type"),
}


def numbers(value: Any, path: str) -> Iterator[tuple[str, float]]:
    """Every number in it by its path, without places in lists."""
    if isinstance(value, dict):
        for name, one in value.items():
            yield from numbers(one, f"{path}.{name}")
    elif isinstance(value, list):
        for one in value:
            yield from numbers(one, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, value


def numbers_of(lived: Lived, kind: str) -> dict[tuple[str, str], list[float]]:
    path, key = OBJECTS[kind]
    shown = lived.get(path)
    found: dict[tuple[str, str], list[float]] = {}
    for one in shown if isinstance(shown, list) else [shown]:
        if kind == "vhost" and one["name"] != VHOST:
            continue  # of a vhost where nothing happened RabbitMQ tells no number
        for where, value in numbers(one, kind):
            found.setdefault((str(one[key]) if key else "", where), []).append(value)
    return found


@pytest.mark.parametrize("kind", OBJECTS)
def test_every_number_that_rabbitmq_tells_is_there_with_its_value_or_is_known_to_be_left_out(
    both: Both, kind: str
) -> None:
    def told(lived: Lived) -> Any:
        wanted = {path for _, path in numbers_of(both.theirs, kind)}
        found = numbers_of(lived, kind)
        return {at: sorted(values) for at, values in found.items() if at[1] in wanted and member_compared(at[1])}

    both.agree(told)
    theirs, ours = numbers_of(both.theirs, kind), numbers_of(both.ours, kind)
    assert {at for at in theirs if not member_left_out(at[1])} - set(ours) == set()
    there = {path for _, path in theirs}
    for prefix in MEMBERS_LEFT_OUT:  # what is no longer needed in the table is taken out of it
        if prefix.startswith(f"{kind}."):
            assert any(path.startswith(prefix) for path in there), prefix
            assert not any(path.startswith(prefix) for _, path in ours), prefix


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
    f"/api/exchanges/{VHOST}/fan": {"message_stats.publish_out": "msg_rates", "incoming.0.stats.publish": "msg_rates"},
    f"/api/queues/{VHOST}/i": {"incoming.0.stats.publish": "msg_rates", "deliveries.0.stats.ack": "msg_rates"},
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
                details = details[int(step) if step.isdigit() else step]
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


# -- metrics -------------------------------------------------------------------------------------------------------

GROUPS = (
    *("connection_churn_metrics", "node_metrics", "node_coarse_metrics", "node_persister_metrics", "ra_metrics"),
    *("auth_attempt_metrics", "auth_attempt_detailed_metrics", "queue_coarse_metrics", "queue_metrics"),
    *("queue_consumer_count", "connection_coarse_metrics", "connection_metrics", "channel_metrics"),
    *("channel_exchange_metrics", "channel_process_metrics", "channel_queue_metrics"),
    *("channel_queue_exchange_metrics", "vhost_status", "exchange_bindings", "exchange_names"),
)
DETAILED = "/metrics/detailed?" + "&".join(f"family={group}" for group in GROUPS)


@pytest.mark.parametrize("path", ["/metrics", "/metrics/per-object", DETAILED], ids=["all", "each", "detailed"])
def test_every_family_of_rabbitmqs_metrics_is_there_or_is_known_to_be_left_out(both: Both, path: str) -> None:
    ours, theirs = both.ours.metrics(path), both.theirs.metrics(path)
    assert [name for name in theirs if name not in ours and not left_out(name)] == []
    assert [name for name in ours if left_out(name)] == []


def test_nothing_is_said_to_be_left_out_that_rabbitmq_does_not_have(both: Both) -> None:
    pages = ("/metrics", "/metrics/per-object", DETAILED)
    theirs = {plain(name) for path in pages for name in both.theirs.metrics(path)}
    unused = [one for one in LEFT_OUT if not any(name.startswith(one) for name in theirs)]
    assert unused == ["rabbitmq_auth_attempts_detailed_"]  # there only with a key of rabbitmq.conf


def test_the_metrics_say_what_rabbitmqs_say(both: Both) -> None:
    """Every family of messages, by value and label; but for what died without being dead-lettered (ledger.md)."""

    def told(lived: Lived) -> Any:
        found = lived.metrics()
        names = [name for name in both.theirs.metrics() if compared(name)]
        return {
            name: sorted(
                (sorted(labels.items()), value)
                for labels, value in found[name]
                if labels.get("dead_letter_strategy") != "disabled"
            )
            for name in names
        }

    said = both.agree(told)
    assert len(said) > 45
    assert dict(said["rabbitmq_global_messages_received_total"][0][0]) == {"protocol": "amqp091"}


@pytest.mark.parametrize("path", ["/metrics/per-object", DETAILED], ids=["each", "detailed"])
def test_the_metrics_of_each_object_say_what_rabbitmqs_say(both: Both, path: str) -> None:
    """Of each queue, exchange and vhost by its name; of each channel, which RabbitMQ numbers, as one of them."""

    def told(lived: Lived) -> Any:
        found = lived.metrics(path)
        names = [name for name in both.theirs.metrics(path) if compared(name)]
        return {name: by_object(found[name]) for name in names}

    said = both.agree(told)
    assert len(said) > (40 if path != DETAILED else 25)


def by_object(samples: list[tuple[dict[str, str], float]]) -> Any:
    """What is told by channel and exchange, or by channel and queue, is added up for the channel; but for an exchange
    that is gone, which RabbitMQ tells as long as the channel is there."""
    named: dict[tuple[tuple[str, str], ...], float] = {}
    channels: dict[str, float] = {}
    for labels, value in samples:
        if labels.get("dead_letter_strategy") == "disabled" or labels.get("exchange") == "gone":
            continue
        if "channel" in labels:
            channels[labels["channel"]] = channels.get(labels["channel"], 0) + value
        else:
            named[tuple(sorted(labels.items()))] = value
    if channels:
        return sorted(value for value in channels.values() if value)
    return {key: value for key, value in named.items() if value}


@pytest.mark.parametrize("path", ["/metrics/per-object", DETAILED], ids=["each", "detailed"])
def test_the_metrics_of_a_channel_are_told_by_exchange_and_by_queue_as_by_rabbitmq(both: Both, path: str) -> None:
    """But for one exchange and one queue that are gone, which RabbitMQ tells as long as the channel is there."""

    def told(lived: Lived) -> Any:
        found: dict[str, list[Any]] = {}
        for name, samples in lived.metrics(path).items():
            for labels, value in samples:
                others = {label: one for label, one in labels.items() if label != "channel"}
                if "_channel_" in name and others and not {"gone", "gone-queue"} & {*others.values()} and value:
                    found.setdefault(name, []).append((sorted(others.items()), value))
        return {name: sorted(rows) for name, rows in found.items()}

    said = both.agree(told)
    assert len(said) == 11
    prefix = "rabbitmq_detailed" if path == DETAILED else "rabbitmq"
    assert ([("exchange", "fan"), ("vhost", VHOST)], 13.0) in said[f"{prefix}_channel_messages_published_total"]


def test_rabbitmq_310_does_not_tell_sizes_of_messages_nor_which_page_it_is(both: Both) -> None:
    """Ours are those of newer ones (test_own_metrics.py)."""
    found = both.theirs.metrics()
    assert not any(name.startswith("rabbitmq_message_size") for name in found)
    assert "rabbitmq_endpoint" not in found["rabbitmq_identity_info"][0][0]


QUERIES = [
    *("", "family=queue_coarse_metrics", "family=queue_coarse_metrics&vhost=numbers"),
    *("family=queue_coarse_metrics&vhost=%2F", "family=queue_coarse_metrics&vhost=none", "family=nonsense"),
    *("family=queue_coarse_metrics,vhost_status", "family=queue_consumer_count&vhost=numbers&vhost=%2F"),
    *("family=vhost_status&vhost=numbers", "family=exchange_names&vhost=none", "vhost=numbers"),
    "family=channel_metrics&family=queue_consumer_count&family=queue_metrics&vhost=none",
]


@pytest.mark.parametrize("query", QUERIES)
def test_what_is_asked_of_the_detailed_metrics_is_answered_as_by_rabbitmq(both: Both, query: str) -> None:
    def told(lived: Lived) -> Any:
        found = lived.metrics(f"/metrics/detailed?{query}")
        return {
            name: (by_object(samples), len(samples))
            for name, samples in found.items()
            if not left_out(name) and not name.endswith("_info")
        }

    both.agree(told)


def test_logins_over_amqp_are_counted_as_by_rabbitmq_right_or_wrong(both: Both) -> None:
    for lived in (both.ours, both.theirs):
        wrong = pika.PlainCredentials("guest", "wrong")
        parameters = pika.ConnectionParameters(lived.broker.host, lived.broker.port, credentials=wrong)
        with pytest.raises(pika.exceptions.AMQPConnectionError):
            pika.BlockingConnection(parameters)

    def told(lived: Lived) -> Any:
        found = lived.metrics()
        return {
            kind: [n for labels, n in found[f"rabbitmq_auth_attempts_{kind}"] if labels["protocol"] == "amqp091"]
            for kind in ("total", "succeeded_total", "failed_total")
        }

    assert both.agree(told) == {"total": [2], "succeeded_total": [1], "failed_total": [1]}


@pytest.mark.parametrize("path", ["/metrics/nonsense", "/metrics/detailed/x"])
def test_a_page_of_metrics_that_is_not_there_is_not_found_as_in_rabbitmq(both: Both, path: str) -> None:
    def status(lived: Lived) -> int:
        with pytest.raises(urllib.error.HTTPError) as refused:
            lived.metrics(path)
        return refused.value.code

    assert both.agree(status) == 404


def test_why_messages_are_gone_is_told_of_each_queue(both: Both) -> None:
    found = both.ours.metrics("/metrics/per-object")["warren_queue_messages_gone_total"]
    assert {(labels["queue"], labels["cause"]): value for labels, value in found if labels["vhost"] == VHOST} == {
        ("c", "rejected_gone"): 10,
        ("dying", "rejected_dead_lettered"): 2,
        ("brief", "expired_dead_lettered"): 3,
        ("newest", "limit_dead_lettered"): 3,
        ("nowhere-letters", "limit_gone"): 2,
        ("short", "refused"): 2,
        ("short-letters", "refused"): 2,
        ("a", "rejected_gone"): 1,
    }


def test_what_reached_no_queue_is_told_of_each_exchange(both: Both) -> None:
    found = both.ours.metrics("/metrics/per-object")["warren_exchange_messages_unroutable_total"]
    told = {(labels["exchange"], labels["outcome"]): value for labels, value in found if labels["vhost"] == VHOST}
    stats = counters(both.ours.get(f"/api/vhosts/{VHOST}"))
    assert told.keys() == {("", "dropped"), ("", "returned"), ("amq.direct", "returned")}
    assert told["amq.direct", "returned"] == 6
    assert told["", "dropped"] == stats["drop_unroutable"]
    assert sum(told.values()) == stats["return_unroutable"] + stats["drop_unroutable"]


def test_dead_letters_that_went_nowhere_are_told_of_each_queue(both: Both) -> None:
    """Beside those of queues that have no dead-letter exchange, which are meant to be gone."""
    found = both.ours.metrics("/metrics/per-object")["warren_queue_dead_letters_lost_total"]
    told = {labels["queue"]: value for labels, value in found if labels["vhost"] == VHOST}
    assert told == {"nowhere-letters": 2}
    assert both.ours.metrics()["warren_dead_letters_lost_total"] == [({}, 2)]


def test_each_endpoint_of_the_metrics_says_which_it_is(both: Both) -> None:
    for path, name in (("/metrics", "aggregated"), ("/metrics/per-object", "per-object"), (DETAILED, "detailed")):
        ((labels, _),) = both.ours.metrics(path)["rabbitmq_identity_info"]
        assert labels["rabbitmq_endpoint"] == name
