"""A real Prometheus reads a broker with a history: no panel is empty and no alert is blind, ours and RabbitMQ's."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.http.dashboards import DASHBOARD, RULES, metrics_in, of_the_overview, operands, own_queries, rules
from tests.http.history import live
from tests.http.test_numbers import GROUPS
from tests.support.brokers import ROOT, RunningBroker, free_ports, start_warren

PATIENCE = 120.0


#: beside /metrics: read less often, and under names of their own, so that queries over sums find sums
OTHER_PAGES: list[dict[str, Any]] = [
    {
        "job_name": name,
        "metrics_path": path,
        "params": {"family": families},
        "scrape_interval": "1s",
        "scrape_timeout": "1s",
        "metric_relabel_configs": [
            {"source_labels": ["__name__"], "target_label": "__name__", "replacement": f"{name}:$1"}
        ],
    }
    for name, path, families in (("each", "/metrics/per-object", []), ("detailed", "/metrics/detailed", list(GROUPS)))
]


def need(tool: str) -> str:
    found = shutil.which(tool)
    if found is None:
        pytest.skip(f"no {tool}: queries are not asked of a real Prometheus")
    return found


def ready(port: int) -> bool:
    with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=60):
        return True
    return False


class Prometheus:
    """One that scrapes a broker, with our rules."""

    def __init__(self, port: int, broker: RunningBroker, connection: pika.BlockingConnection) -> None:
        self.url = f"http://127.0.0.1:{port}/api/v1"
        self.broker = broker
        self.connection = connection

    def ask(self, path: str, **query: str) -> Any:
        with urllib.request.urlopen(f"{self.url}/{path}?{urllib.parse.urlencode(query)}", timeout=60) as answer:
            return json.loads(answer.read())["data"]

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        found = self.ask("query", query=expression)["result"]
        return [(one["metric"], float(one["value"][1])) for one in found]

    def wait(self, expression: str) -> None:
        """Until there is something."""
        until = time.monotonic() + PATIENCE
        while not self.query(expression):
            assert time.monotonic() < until, f"there is never any {expression}"
            self.connection.process_data_events(0.1)


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """It watches while the history is lived, so that there is something to make rates of."""
    program = need("prometheus")
    folder = tmp_path_factory.mktemp("prometheus")
    port, metrics = free_ports(2)
    with start_warren("--metrics-port", str(metrics), "--journal", "on") as broker:
        where = {"static_configs": [{"targets": [f"127.0.0.1:{metrics}"]}]}
        jobs = [{"job_name": "warren", **where}, *({**where, **job} for job in OTHER_PAGES)]
        config = {
            "global": {"scrape_interval": "500ms", "scrape_timeout": "500ms", "evaluation_interval": "1s"},
            "rule_files": [str(RULES)],
            "scrape_configs": jobs,
        }
        # a busy machine is slower than half a second now and then: the next scrape has it
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        with open(folder / "log", "wb") as log:
            process = subprocess.Popen(
                [
                    *(program, f"--config.file={folder / 'prometheus.yml'}"),
                    *(f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address=127.0.0.1:{port}"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            until = time.monotonic() + PATIENCE
            while not ready(port):
                assert process.poll() is None and time.monotonic() < until, (folder / "log").read_text()[-2000:]
                time.sleep(0.05)
            with pika.BlockingConnection(pika.URLParameters(broker.url)) as early:
                watching = Prometheus(port, broker, early)
                watching.wait("count_over_time(rabbitmq_build_info[1m]) >= 2")
                connection = live(broker)
                _wait_for_the_disk(early)
            watching.connection = connection
            watching.wait(f"timestamp(rabbitmq_global_messages_received_total) > {time.time()}")
            yield watching
            connection.close()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(60)


def _wait_for_the_disk(connection: pika.BlockingConnection) -> None:
    """Confirms of durable messages, which the history has none of."""
    channel = connection.channel()
    channel.queue_declare("durable", durable=True)
    channel.confirm_delivery()
    for _ in range(3):
        channel.basic_publish("", "durable", b"x", pika.BasicProperties(delivery_mode=2))


@pytest.mark.parametrize("panel", own_queries())
def test_no_panel_of_our_dashboard_is_empty(prometheus: Prometheus, panel: str) -> None:
    found = prometheus.query(own_queries()[panel])
    assert found and not any(math.isnan(value) for _, value in found), own_queries()[panel]


@pytest.mark.parametrize("alert", rules())
def test_every_alert_compares_what_is_there(prometheus: Prometheus, alert: str) -> None:
    compared = operands(rules()[alert])
    assert compared
    for one in compared:
        assert prometheus.query(one), one


@pytest.mark.parametrize("query", of_the_overview())
def test_no_panel_of_rabbitmqs_public_dashboard_is_empty(prometheus: Prometheus, query: str) -> None:
    ((labels, _),) = prometheus.query("rabbitmq_identity_info")
    asked = of_the_overview()[query].replace("$cluster", labels["rabbitmq_cluster"])
    assert prometheus.query(asked), asked


@pytest.mark.parametrize("job", ["warren", *(page["job_name"] for page in OTHER_PAGES)])
def test_a_query_over_every_family_of_every_page_finds_something(prometheus: Prometheus, job: str) -> None:
    """Of what only grows, how fast; of anything else, how much."""
    sums: dict[str, Any] = {"metrics_path": "/metrics", "params": {}}
    page = next((page for page in OTHER_PAGES if page["job_name"] == job), sums)
    prefix = "" if job == "warren" else f"{job}:"
    query = urllib.parse.urlencode(page["params"], doseq=True)
    with urllib.request.urlopen(f"{prometheus.broker.http_url}{page['metrics_path']}?{query}", timeout=60) as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))
    queries = {
        f"rate({prefix}{sample.name}[10m])"
        if family.type in ("counter", "histogram", "summary")
        else prefix + sample.name
        for family in families
        for sample in family.samples
    }
    assert len(queries) > 30
    until = time.monotonic() + PATIENCE
    while True:
        empty = sorted(query for query in queries if not prometheus.query(query))
        if not empty or time.monotonic() > until:
            break
        prometheus.connection.process_data_events(0.5)  # a rate is of two looks
    assert empty == []


def test_prometheus_has_the_numbers_of_the_broker(prometheus: Prometheus) -> None:
    """And rates that something moved: what it reads is what the history did."""
    status, overview = prometheus.broker.http("GET", "/api/overview")
    assert status == 200 and isinstance(overview, dict)
    stats = overview["message_stats"]
    for name, member in (("confirmed", "confirm"), ("unroutable_dropped", "drop_unroutable")):
        ((labels, value),) = prometheus.query(f"rabbitmq_global_messages_{name}_total")
        assert labels["protocol"] == "amqp091" and value == stats[member], name
    ((_, rate),) = prometheus.query("sum(rate(rabbitmq_global_messages_received_total[10m]))")
    assert rate > 0
    ((_, confirms),) = prometheus.query("warren_confirm_seconds_count")
    assert confirms == 3


def test_all_rules_are_evaluated_and_no_alert_fires_at_a_broker_that_is_well(prometheus: Prometheus) -> None:
    until = time.monotonic() + PATIENCE
    while True:
        (group,) = prometheus.ask("rules")["groups"]
        states = {rule["name"]: (rule["health"], rule["state"]) for rule in group["rules"]}
        if all(health != "unknown" for health, _ in states.values()) or time.monotonic() > until:
            break
        prometheus.connection.process_data_events(0.2)
    assert {name for name, (health, _) in states.items() if health == "ok"} == set(rules())
    assert [name for name, (_, state) in states.items() if state == "firing"] == []


@pytest.mark.parametrize("path", ["/metrics", "/metrics/per-object", "/metrics/detailed?family=queue_metrics"])
def test_promtool_has_nothing_to_say_about_our_metrics(prometheus: Prometheus, path: str) -> None:
    prometheus.connection.process_data_events(0)
    with urllib.request.urlopen(prometheus.broker.http_url + path, timeout=60) as answer:
        text = answer.read()
    said = subprocess.run([need("promtool"), "check", "metrics"], input=text, capture_output=True)
    assert (said.returncode, said.stdout, said.stderr) == (0, b"", b"")


def test_promtool_has_nothing_to_say_about_our_rules() -> None:
    said = subprocess.run([need("promtool"), "check", "rules", RULES], capture_output=True, text=True)
    assert said.returncode == 0 and "SUCCESS" in said.stdout, said.stdout + said.stderr


# -- without Prometheus -----------------------------------------------------------------------------------------------


def test_every_metric_of_the_dashboard_and_the_alerts_is_one_of_the_brokers(warren: RunningBroker) -> None:
    with urllib.request.urlopen(f"{warren.http_url}/metrics", timeout=60) as answer:
        there = {line.split("{")[0].split(" ")[0] for line in answer.read().decode().splitlines() if line[0] != "#"}
    asked = {name for one in [*own_queries().values(), *rules().values()] for name in metrics_in(one)}
    assert len(asked) > 50
    assert sorted(asked - there) == []


def test_the_dashboard_is_what_its_script_writes() -> None:
    written = subprocess.run(
        [sys.executable, ROOT / "scripts" / "dashboard.py"], check=True, capture_output=True, text=True
    ).stdout
    assert DASHBOARD.read_text() == written, "python scripts/dashboard.py > packaging/grafana/warren.json"


def test_panels_of_the_dashboard_do_not_lie_on_each_other() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        place = panel["gridPos"]
        some = {(place["x"] + right, place["y"] + down) for right in range(place["w"]) for down in range(place["h"])}
        assert not taken & some and place["x"] + place["w"] <= 24, panel["title"]
        taken |= some


# -- alerts, by promtool ----------------------------------------------------------------------------------------------

NODE = 'instance="a",job="warren"'


def flat(value: float) -> str:
    """The same for two hours."""
    return f"{value}+0x120"


def grows(each: float, start: float = 0) -> str:
    """By so much a minute."""
    return f"{start}{each:+}x120"


def bucket(name: str, bound: str) -> dict[str, str]:
    """Of a histogram of which all lie below the bound."""
    bounds = ["0.1", "0.5", "1", "5", "+Inf"]
    return {
        f'{name}_bucket{{{NODE},le="{one}"}}': grows(60 if bounds.index(one) >= bounds.index(bound) else 0)
        for one in bounds
    }


def only(name: str, values: str, labels: str = "") -> dict[str, str]:
    return {f"{name}{{{NODE}{',' + labels if labels else ''}}}": values}


Series = dict[str, str]
READY = "rabbitmq_queue_messages_ready"
#: of each alert, a history at which it fires and one that is nearly it
ALERTS: dict[str, tuple[Series, Series]] = {
    "WarrenDown": (only("up", flat(0)), only("up", flat(1))),
    **{
        alert: (only(name, flat(1)), only(name, flat(0)))
        for alert, name in {
            "WarrenMemoryAlarm": "rabbitmq_alarms_memory_used_watermark",
            "WarrenDiskAlarm": "rabbitmq_alarms_free_disk_space_watermark",
            "WarrenLogFailing": "warren_log_failing",
            "WarrenDataFolderGone": "warren_data_folder_gone",
            "WarrenLedgerQueues": "warren_ledger_queues_off",
            "WarrenJournalFailing": "warren_journal_failing",
        }.items()
    },
    "WarrenDiskFillsUp": (
        only("rabbitmq_disk_space_available_bytes", grows(-10_000_000, 2_000_000_000))
        | only("rabbitmq_disk_space_available_limit_bytes", flat(50_000_000)),
        only("rabbitmq_disk_space_available_bytes", grows(-1_000_000, 2_000_000_000))
        | only("rabbitmq_disk_space_available_limit_bytes", flat(50_000_000)),
    ),
    "WarrenFileDescriptors": (
        only("rabbitmq_process_open_fds", flat(95)) | only("rabbitmq_process_max_fds", flat(100)),
        only("rabbitmq_process_open_fds", flat(90)) | only("rabbitmq_process_max_fds", flat(100)),
    ),
    "WarrenHttpConnections": (
        only("warren_http_connections", flat(95)) | only("warren_http_connections_max", flat(100)),
        only("warren_http_connections", flat(90)) | only("warren_http_connections_max", flat(100)),
    ),
    "WarrenLedgerDifference": (
        only("warren_ledger_difference", flat(-1), 'sum="entries"'),
        only("warren_ledger_difference", flat(0), 'sum="entries"'),
    ),
    "WarrenDamage": (
        only("warren_damaged_messages", flat(0)) | only("warren_damaged_segments", flat(1)),
        only("warren_damaged_messages", flat(0)) | only("warren_damaged_segments", flat(0)),
    ),
    "WarrenJournalLag": (
        only("warren_journal_lag_seconds", flat(301)),
        only("warren_journal_lag_seconds", flat(300)),
    ),
    "WarrenSlowSyncs": (bucket("warren_log_sync_seconds", "1"), bucket("warren_log_sync_seconds", "0.5")),
    "WarrenSlowConfirms": (bucket("warren_confirm_seconds", "5"), bucket("warren_confirm_seconds", "1")),
    "WarrenLoopHeld": (
        only("warren_loop_stall_seconds_sum", grows(7), 'spent="cpu"'),
        only("warren_loop_stall_seconds_sum", grows(5), 'spent="cpu"')
        | only("warren_loop_stall_seconds_sum", grows(30), 'spent="waiting"'),
    ),
    "WarrenNoConsumers": (
        only(READY, flat(1)) | only("rabbitmq_consumers", flat(0)),
        only(READY, flat(1)) | only("rabbitmq_consumers", flat(1)),
    ),
    "WarrenBacklogGrows": (only(READY, grows(100, 10_001)), only(READY, grows(-1, 50_000))),
    "WarrenMessagesWaitLong": (
        only("warren_queue_oldest_waiting_seconds", flat(86_401)),
        only("warren_queue_oldest_waiting_seconds", flat(86_400)),
    ),
    "WarrenMessagesDropped": (
        only("rabbitmq_global_messages_unroutable_dropped_total", grows(1)),
        only("rabbitmq_global_messages_unroutable_dropped_total", flat(1000)),
    ),
    "WarrenDeadLettersLost": (
        only("warren_dead_letters_lost_total", grows(1)),
        only("warren_dead_letters_lost_total", flat(7)),
    ),
    "WarrenAckDeadlines": (
        only("warren_ack_deadlines_missed_total", grows(1)),
        only("warren_ack_deadlines_missed_total", flat(7)),
    ),
    "WarrenLoginsFail": (
        only("rabbitmq_auth_attempts_failed_total", grows(40), 'protocol="amqp091"')
        | only("rabbitmq_auth_attempts_failed_total", grows(30), 'protocol="http"'),
        only("rabbitmq_auth_attempts_failed_total", grows(59), 'protocol="amqp091"'),
    ),
    "WarrenConnectionChurn": (
        only("rabbitmq_connections_opened_total", grows(660)),
        only("rabbitmq_connections_opened_total", grows(540)),
    ),
}


def test_every_alert_has_a_history_at_which_it_fires_and_one_at_which_it_does_not() -> None:
    assert set(ALERTS) == set(rules())


def test_alerts_fire_when_they_should_and_else_do_not(tmp_path: Path) -> None:
    """Each at a broker of its own, of its name."""
    tests = [
        {
            "name": "fires" if fires else "does not fire",
            "interval": "1m",
            "input_series": [
                {"series": series.replace('instance="a"', f'instance="{alert}"'), "values": values}
                for alert, both in ALERTS.items()
                for series, values in both[0 if fires else 1].items()
            ],
            "promql_expr_test": [
                {
                    "expr": f'count(ALERTS{{alertname="{alert}",alertstate="firing",instance="{alert}"}})',
                    "eval_time": "100m",
                    "exp_samples": [{"labels": "{}", "value": 1}] if fires else [],
                }
                for alert in ALERTS
            ],
        }
        for fires in (True, False)
    ]
    file = tmp_path / "tests.yml"
    file.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}))
    said = subprocess.run([need("promtool"), "test", "rules", file], capture_output=True, text=True)
    assert said.returncode == 0, said.stdout + said.stderr
