"""OpenTelemetry through the front door: a configuration file, pika, and a collector that reads what arrives."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.brokers import ROOT, RunningBroker, free_ports, start_warren
from tests.support.collector import Collector, attributes, collecting

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
SAMPLED = f"00-{TRACE}-{PARENT}-01"


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with collecting() as found:
        yield found


@pytest.fixture(scope="module")
def broker(collector: Collector, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    file = tmp_path_factory.mktemp("telemetry") / "warren.toml"
    file.write_text(f'otel_endpoint = "{collector.url}"\notel_interval = 0.2\n')
    # how long spans are gathered, a variable of the SDK's own
    variables = {"OTEL_BSP_SCHEDULE_DELAY": "100", "OTEL_RESOURCE_ATTRIBUTES": "deployment=test"}
    with start_warren("--config", str(file), environment=variables) as broker:
        yield broker


def published(broker: RunningBroker, queue: str, *messages: dict[str, Any]) -> list[dict[str, Any]]:
    """Publishes a message for each of these headers, and says with which headers they were delivered."""
    got: list[dict[str, Any]] = []
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        channel = connection.channel()
        channel.queue_declare(queue)
        channel.basic_consume(queue, lambda _, method, found, body: got.append(found.headers or {}), auto_ack=True)
        for number, headers in enumerate(messages):
            properties = pika.BasicProperties(headers=headers, message_id=f"{queue}-{number}")
            channel.basic_publish("", queue, b"x" * 100, properties)
        while len(got) < len(messages):
            connection.process_data_events(0.1)
    return got


def about(collector: Collector, queue: str) -> list[Any]:
    return [span for span in collector.spans if attributes(span)["messaging.rabbitmq.destination.routing_key"] == queue]


def test_a_message_with_a_context_has_a_span_of_its_publish_and_one_of_its_delivery(
    broker: RunningBroker, collector: Collector
) -> None:
    before = time.time_ns()
    (headers,) = published(broker, "traced", {"traceparent": SAMPLED, "tracestate": "a=b", "other": 1})
    assert headers == {"traceparent": SAMPLED, "tracestate": "a=b", "other": 1}
    collector.wait(lambda: len(about(collector, "traced")) == 2)
    spans = {span.name: span for span in about(collector, "traced")}
    assert set(spans) == {"publish amq.default", "deliver traced"}
    for span in spans.values():
        assert (span.trace_id.hex(), span.parent_span_id.hex(), span.trace_state) == (TRACE, PARENT, "a=b")
        assert before <= span.start_time_unix_nano <= span.end_time_unix_nano <= time.time_ns()
    publish, deliver = spans["publish amq.default"], spans["deliver traced"]
    assert publish.start_time_unix_nano <= deliver.start_time_unix_nano
    assert publish.span_id != deliver.span_id
    told = attributes(publish)
    assert told.pop("warren.connection").startswith("127.0.0.1:")
    assert told == {
        "messaging.system": "warren",
        "messaging.operation.name": "publish",
        "messaging.destination.name": "amq.default",
        "messaging.rabbitmq.destination.routing_key": "traced",
        "messaging.message.body.size": 100,
        "messaging.message.id": "traced-0",
        "warren.vhost": "/",
        "warren.channel": 1,
        "warren.queues": ["traced"],
    }
    told = attributes(deliver)
    assert told["messaging.operation.name"] == "deliver" and told["messaging.destination.name"] == "traced"
    assert told["warren.redelivered"] is False and told["warren.exchange"] == "amq.default"


def test_a_message_without_a_context_or_one_that_nobody_records_has_no_spans(
    broker: RunningBroker, collector: Collector
) -> None:
    unsampled = f"00-{TRACE}-{PARENT}-00"
    nested = {"x": {"traceparent": SAMPLED}}
    said: list[dict[str, Any]] = [
        {},
        {"traceparent": unsampled},
        {"traceparent": "nonsense"},
        {"traceparent": 7},
        nested,
    ]
    assert published(broker, "untraced", *said) == said
    published(broker, "after", {"traceparent": SAMPLED})
    collector.wait(lambda: len(about(collector, "after")) == 2)
    assert about(collector, "untraced") == []


def test_a_vhost_that_is_made_later_and_one_that_is_traced_tell_as_well(
    broker: RunningBroker, collector: Collector
) -> None:
    broker.http("PUT", "/api/vhosts/later", {"tracing": True})
    everything = {"configure": ".*", "write": ".*", "read": ".*"}
    broker.http("PUT", "/api/permissions/later/guest", everything)
    parameters = pika.ConnectionParameters(broker.host, broker.port, virtual_host="later")
    with pika.BlockingConnection(parameters) as connection:
        channel = connection.channel()
        for queue in ("here", "copies"):
            channel.queue_declare(queue)
        channel.queue_bind("copies", "amq.rabbitmq.trace", "#")
        for on in (True, False):
            broker.http("PUT", "/api/vhosts/later", {"tracing": on})
            channel.basic_publish("amq.direct", "nowhere", b"", pika.BasicProperties(headers={"traceparent": SAMPLED}))
            channel.basic_publish("", "here", b"", pika.BasicProperties(headers={"traceparent": SAMPLED}))
            assert channel.basic_get("here", auto_ack=True)[0] is not None
        copies = channel.queue_declare("copies", passive=True).method.message_count
        assert copies == 3
        while channel.basic_get("copies", auto_ack=True)[0] is not None:
            pass
    collector.wait(lambda: len(about(collector, "here")) == 4 and len(about(collector, "nowhere")) == 2)
    assert {attributes(span)["warren.vhost"] for span in about(collector, "here")} == {"later"}
    assert [attributes(span)["warren.queues"] for span in about(collector, "nowhere")] == [[], []]
    assert not [span for span in collector.spans if "copies" in span.name]


def test_every_family_of_the_metrics_is_sent_with_its_values(broker: RunningBroker, collector: Collector) -> None:
    published(broker, "counted", *[{}] * 7)
    with urllib.request.urlopen(f"{broker.http_url}/metrics", timeout=60) as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))
    count = next(one.samples[0].value for one in families if one.name == "rabbitmq_global_messages_received")
    collector.wait(lambda: collector.value("rabbitmq_global_messages_received", protocol="amqp091") >= count)
    names: set[str] = set()
    for family in families:
        if family.type == "histogram":
            names.add(family.name)
        else:
            names |= {one.name.removesuffix("_total") for one in family.samples if not one.name.endswith("_created")}
    assert len(names) > 100
    assert names == set(collector.metrics)
    received = collector.metrics["rabbitmq_global_messages_received"].sum
    assert received.is_monotonic and received.aggregation_temporality == 2  # cumulative
    assert received.data_points[0].as_double == count >= 7
    assert 0 < received.data_points[0].start_time_unix_nano < received.data_points[0].time_unix_nano
    assert collector.value("rabbitmq_exchanges") >= 7 and not collector.metrics["rabbitmq_exchanges"].HasField("sum")
    (sizes,) = collector.metrics["rabbitmq_message_size_bytes"].histogram.data_points
    assert sizes.count == count == sum(sizes.bucket_counts) and sizes.sum >= 700
    assert list(sizes.explicit_bounds)[:2] == [100, 1000] and sizes.bucket_counts[0] >= 7
    assert {key: collector.resource[key] for key in ("service.name", "deployment")} == {
        "service.name": "warren",
        "deployment": "test",
    }


def test_a_collector_that_is_not_there_harms_nobody_and_is_said_once() -> None:
    (nobody,) = free_ports(1)
    endpoint = f"http://127.0.0.1:{nobody}"
    with start_warren("--otel-endpoint", endpoint, "--otel-interval", "0.1") as broker:
        log = broker.folder / "log"
        end = time.monotonic() + 60
        while "what=spans" not in log.read_text() and time.monotonic() < end:
            published(broker, "here", {"traceparent": SAMPLED})
        published(broker, "here", {"traceparent": SAMPLED})
        said = log.read_text()
        assert said.count("what=metrics") == 1 and "Traceback" not in said and "Retry" not in said, said


def run(code: str, *paths: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(str(one) for one in (*paths, ROOT / "src", ROOT))
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=300)


def test_who_does_not_ask_for_it_imports_nothing_of_it() -> None:
    said = run(
        "import sys, urllib.request\n"
        "from warrenmq.testing import Broker\n"
        "with Broker() as broker:\n"
        "    urllib.request.urlopen(broker.http_url + '/metrics').read()\n"
        "    assert not broker.server.broker.vhosts['/'].watched\n"
        "print([name for name in sys.modules if name.startswith(('opentelemetry', 'warrenmq.http.telemetry'))])\n"
    )
    assert said.stdout == "[]\n", said.stdout + said.stderr


def test_without_the_extra_the_start_is_refused_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "opentelemetry.py").write_text("raise ModuleNotFoundError('no', name='opentelemetry')\n")
    arguments = ["serve", "--port", "0", "--data-dir", str(tmp_path / "data"), "--otel-endpoint", "http://127.0.0.1:1"]
    said = run(f"from warrenmq.cli.main import run; import sys; sys.exit(run({arguments!r}))", tmp_path)
    assert said.returncode == 1
    hint = 'pip install "warrenmq[otel]", or leave it out'
    assert said.stderr.splitlines()[-1] == f"warren: otel_endpoint: opentelemetry is not installed; {hint}", said.stderr
    assert "Traceback" not in said.stderr
