"""`warren bench` and `make bench`: what they say is true of what flowed, and nonsense is refused in a line."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bench.growth import AXES, WHY, main_flow
from bench.scenarios import SCENARIOS

from bench import __main__ as bench
from bench import bulk_attacks, cluster, consoles, day, floors, http_attacks, report, shapes, stalls
from warrenmq.bench.run import BenchFailed, percentiles, run
from warrenmq.bench.workload import Workload
from warrenmq.client import Connection
from warrenmq.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


def left(broker: Broker) -> list[str]:
    return broker.call(lambda: sorted(broker.server.broker.vhosts["/"].queues))


SHAPES = {
    "the default exchange": Workload(messages=300),
    "confirms and acks": Workload(
        messages=300, persistent=True, durable=True, confirms=50, ack_every=10, prefetch=20, mandatory=True
    ),
    "one confirm at a time": Workload(messages=20, confirms=1),
    "a fanout": Workload(messages=100, exchange_type="fanout", queues=3),
    "topic keys on an exchange that is there": Workload(
        messages=200, exchange_type="topic", exchange="amq.topic", queues=2, keys=7, bindings=20
    ),
    "several of each": Workload(messages=300, publishers=2, consumers=2, queues=2),
    "a rate": Workload(messages=200, rate=2000, size=32),
    "fill and drain": Workload(messages=300, fill=True),
    "publishing alone": Workload(messages=300, consumers=0),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_message_of_a_run_is_accounted_for_and_nothing_is_left_behind(broker: Broker, shape: str) -> None:
    workload = SHAPES[shape]
    figures = run(broker.url, workload, timeout=120)
    assert figures["messages"] == workload.messages
    assert figures["received"] == workload.deliveries
    assert figures["returned"] == figures["nacked"] == 0
    costs = figures["fill"] if workload.fill else figures
    assert costs["rate"] > 0 and costs["cpu_s_per_million"] >= 0
    assert ("latency_ms" in figures) == (workload.rate > 0)
    assert ("confirm_ms" in figures) == (workload.confirms == 1)
    assert left(broker) == []


def test_an_exchange_that_was_there_is_still_there(broker: Broker) -> None:
    run(broker.url, SHAPES["topic keys on an exchange that is there"])
    with Connection(broker.url) as connection:
        connection.channel().exchange_declare("amq.topic", "topic", passive=True)


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        (Workload(messages=0), "messages: 0; allowed: 1 or more"),
        (Workload(size=-1), "size: -1; allowed: 0 or more"),
        (Workload(exchange_type="round"), "exchange: 'round'"),
        (Workload(exchange="amq.topic"), "exchange 'amq.topic' without its type"),
        (Workload(prefetch=5, ack_every=10), "ack_every 10 is more than prefetch 5"),
    ],
)
def test_nonsense_is_refused_with_what_would_be_right(broker: Broker, workload: Workload, said: str) -> None:
    with pytest.raises(BenchFailed, match=said):
        run(broker.url, workload)


def test_no_broker_is_one_line() -> None:
    with pytest.raises(BenchFailed, match="^cannot connect to 127.0.0.1:1: Connection refused$"):
        run("amqp://guest:guest@127.0.0.1:1/", Workload())


def test_the_command_prints_figures_for_people_and_for_programs(broker: Broker) -> None:
    command = [
        sys.executable,
        "-m",
        "warrenmq",
        "bench",
        "--url",
        broker.url,
        "-n",
        "200",
        "-t",
        "fanout",
        "--queues=2",
    ]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "messages/s" in shown and "200 published, 400 received, 0 returned, 0 nacked" in shown
    figures = json.loads(subprocess.run([*command, "--json"], capture_output=True, text=True, check=True).stdout)
    assert figures["received"] == 400
    wrong = subprocess.run([*command, "-t", "round"], capture_output=True, text=True)
    assert wrong.returncode == 2 and wrong.stderr.startswith("warren bench: exchange: 'round'")


def test_percentiles_are_of_the_values_in_milliseconds() -> None:
    found = percentiles([n * 1_000_000 for n in range(1, 1001)])
    assert (found["p50"], found["p99"], found["max"]) == (501, 991, 1000)


def test_each_scenario_has_a_name_of_its_own_and_makes_sense() -> None:
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS)
    assert [problem for scenario in SCENARIOS for problem in scenario.workload.problems()] == []


@pytest.mark.parametrize("axis", AXES)
def test_every_axis_of_growth_can_be_measured_and_says_why(broker: Broker, axis: str) -> None:
    from bench.brokers import Running

    running = Running("Warren", "", broker.url, broker.port, 0.0, lambda: None)
    for value in AXES[axis][:2]:
        point = main_flow(axis, value, running, 0.01)
        assert point["at"] == value and point["rate"] > 0 and point["resident_mb"] > 1
    assert WHY[axis]
    assert left(broker) == []


@pytest.mark.slow
def test_every_other_shape_of_traffic_can_be_measured() -> None:
    found = shapes.measure(None, 0.005, 1, with_rabbitmq=False)
    assert list(found["runs"]) == list(shapes.WORKS)
    for name, one in found["runs"].items():
        (record,) = one["runs"]["Warren"]
        assert record["rate"] > 0 and record["count"] > 0, name
    assert len(report.shapes(found, {"date": "today", "cpu": "one", "cores": 1}, Path())) > len(shapes.WORKS)


@pytest.mark.slow
def test_floors_are_measured_beside_the_broker() -> None:
    found = floors.measure(0.005, 1)
    assert {(one["name"], one["unit"]) for one in found["lines"]} == {
        *((name, "CPU s/M") for name in ("a", "a1k", "a16k", "a1m")),
        ("c", "CPU µs"),
        ("c", "p50, ms"),
        ("connect", "CPU µs"),
        ("connect", "µs for its client"),
    }
    assert all(one["brokers"][0] >= 0 for one in found["lines"])
    assert [one["floors"][0] > 0 for one in found["lines"] if one["unit"] == "p50, ms"] == [True, True]
    assert "write and sync" in "".join(report.floors(found, {"date": "today", "cpu": "one", "cores": 1}, Path()))


def test_the_page_is_written_from_whatever_figures_there_are(tmp_path: Path) -> None:
    results = Path(report.__file__).parent / "results"
    kept = sorted(results.glob("*.json"))
    assert [file.stem for file in kept if file.stem not in report.SECTIONS] == []
    (tmp_path / "results").mkdir()
    report.write(tmp_path, tmp_path / "results")
    assert (tmp_path / "benchmarks.md").read_text().startswith("# Benchmarks")
    for file in kept:
        shutil.copy(file, tmp_path / "results")
        report.write(tmp_path, tmp_path / "results")
    page = (tmp_path / "benchmarks.md").read_text()
    assert page.count("\n## ") >= len(kept)


def cluster_flow(nodes: int, leader: float, follower: float, rate: float) -> dict[str, Any]:
    return {"scenario": "b", "nodes": nodes, "leader": leader, "follower": follower, "rate": rate, "p50_ms": None}


def test_a_clusters_figures_stand_beside_those_of_one_node_in_the_same_round() -> None:
    """And beside a quorum queue's, by what all three nodes take together."""
    flows = [cluster_flow(1, 4.0, 0.0, 1000.0), cluster_flow(2, 5.0, 2.0, 900.0), cluster_flow(3, 6.0, 3.0, 800.0)]
    flows += [cluster_flow(1, 8.0, 0.0, 500.0), cluster_flow(2, 10.0, 4.0, 450.0), cluster_flow(3, 12.0, 6.0, 400.0)]
    figures: dict[str, Any] = {
        "ttl": 3.0,
        "ack_timeout": 1.0,
        "flows": flows,
        "gaps": {"leader killed": [0.2, 0.4, 0.3], "follower silent": [1.1]},
        "backlog": {"megabytes": 2048.0, "seconds": [0.5]},
        "catch_up": {"megabytes": 512.0, "per_second": 120.0},
        "rabbitmq": {"cpu": [100.0], "gaps": [2.5]},
    }
    page = "\n".join(report.cluster(figures, {"date": "today", "cpu": "one", "cores": 2}, Path()))
    assert "| `b`, 2 nodes | 5.00 / **7.50** / 10.00 | 1.25 | 0.40 / **0.40** / 0.40 | 0.90 |" in page
    assert "| leader killed | 3 | 0.30 | 0.40 | 1 |" in page and "| follower silent | 1 | 1.10 | 1.10 | 1.2 |" in page
    assert "Warren 12.0 / **18.0** / 24.0, a quorum queue of RabbitMQ 100.0 / **100.0** / 100.0" in page
    for flow in flows:
        flow["leader"] = 0.0  # too little for the clock of the system
    assert "| `b`, 2 nodes |" in "\n".join(report.cluster(figures, {"date": "today", "cpu": "one", "cores": 2}, Path()))


def pipeline_line(what: str, events: int, seconds: float, cores: int = 2) -> dict[str, Any]:
    return {"what": what, "cores": cores, "events": events, "seconds": [seconds], "share": 0.5, "goal": None} | {
        "cost": None,
        "octets": 5.0,
        "shuffled": 20.0,
    }


BOUNDS = {"seconds_a_file": 0.001, "octets_a_message": 600.0, "written_a_second": 1_000_000.0}


def test_a_day_of_ten_billion_messages_is_arithmetic_from_what_was_measured() -> None:
    """A million events a second and two cores: 500 million of each of a hundred cores take a thousand seconds."""
    figures = {"lines": [pipeline_line("audit, raw files", 10_000_000, 10.0)], "bounds": BOUNDS}
    task, writer, audit, driver = day.needs(figures)
    assert audit.share == pytest.approx(1000 / 86_400) and "500,000 a second and core" in audit.arithmetic
    assert driver.share == pytest.approx(10**10 * 1024 / (64 << 20) * 0.001 / 86_400)
    assert writer.share == pytest.approx(5 * 10**10 / 86_400 / 1e6)
    assert task.share == pytest.approx(10**8 * 600 / (4 << 30))
    said = "\n".join(day.told(figures))
    assert "So what breaks first is the one task of `whatif`" in said and "would do for 715,827,883 messages" in said


def test_a_rate_that_fell_with_the_size_goes_on_falling_until_a_day_of_it() -> None:
    """Half of it is left of ten times as many events; a core has ten times as many in a day as were measured."""
    small, large = (pipeline_line("audit, raw files", n, s) for n, s in ((10_000_000, 5.0), (100_000_000, 100.0)))
    (audit,) = day.needs({"lines": [large, small, pipeline_line("audit, raw files", 1_000_000, 9.0, cores=1)]})
    assert "500,000 a second and core with 100,000,000 of them, 250,000 if" in audit.arithmetic
    assert audit.share == pytest.approx(2000 / 86_400)


def test_the_pipelines_figures_are_drawn_from_the_fewest_events_to_the_most(tmp_path: Path) -> None:
    results = tmp_path / "results"
    results.mkdir()
    lines = [pipeline_line("what if", 10**n, 1.0, cores) for n in (6, 7) for cores in (1, 2)]
    figures = {"lines": lines, "bounds": BOUNDS, "spark": "4"}
    (results / "pipeline.json").write_text(
        json.dumps({"date": "2026-01-01", "cpu": "", "cores": 2, "figures": figures})
    )
    report.write(tmp_path, results)
    page = (tmp_path / "benchmarks.md").read_text()
    assert "](pipeline.png)" in page and (tmp_path / "pipeline.png").read_bytes().startswith(b"\x89PNG")
    assert "### Ten billion messages a day on a hundred cores" in page
    report.write(tmp_path, results)  # and of a part of them
    figures["lines"] = []
    del figures["bounds"]
    (results / "pipeline.json").write_text(
        json.dumps({"date": "2026-01-01", "cpu": "", "cores": 2, "figures": figures})
    )
    report.write(tmp_path, results)
    assert "Ten billion" not in (tmp_path / "benchmarks.md").read_text()


@pytest.mark.soak
def test_a_cluster_is_measured() -> None:
    if shutil.which("etcd") is None:
        pytest.skip("etcd is not installed (Debian: etcd-server)")
    found = cluster.measure(0.003, 1, False)
    assert {(one["scenario"], one["nodes"]) for one in found["flows"]} == {
        (name, n) for name in "bc" for n in (1, 2, 3)
    }
    assert all(seconds and min(seconds) > 0 for seconds in found["gaps"].values())
    assert found["catch_up"]["megabytes"] > 0 and len(found["backlog"]["seconds"]) == 3


@pytest.mark.soak
def test_the_pipeline_is_measured_and_its_parts_join(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="PySpark is not installed")
    monkeypatch.setattr(bench, "RESULTS", tmp_path)
    from bench import pipeline

    bench.keep("pipeline", pipeline.measure(0.001, 1, ["usual", "bounds"]), partial=True)
    bench.keep("pipeline", pipeline.measure(0.0005, 1, ["many"]), partial=True)
    figures = json.loads((tmp_path / "pipeline.json").read_text())["figures"]
    whats = {(one["what"], one["cores"]) for one in figures["lines"]}
    assert whats == {(what, cores) for what in (*pipeline.GOALS, "audit, all tables") for cores in (1, 2)}
    assert {one["events"] for one in figures["lines"]} == {1000, 10_000, 50_000}
    assert all(one["shuffled"] > 0 for one in figures["lines"] if one["what"] == "audit, raw files")
    assert all(value > 0 for value in figures["bounds"].values())
    assert len(day.needs(figures)) == 6


def test_every_attack_runs_beside_an_honest_client_who_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A little of each kind; how long it took is for `make bench` to say."""
    monkeypatch.setattr(stalls, "QUIET", 0.0)
    more = [one.__name__ for one in (bulk_attacks.delayed_deleted, http_attacks.runs, http_attacks.requests)]
    for name in ("metrics", "nack", "commit", "lease_ack", "alarm", "lengthened_body", *more):
        found = stalls.one(name, 0.001)
        assert found["what"] == stalls.ATTACKS[name][0]
        assert found["longest_round_trip_ms"] >= 0 and found["stalls"] >= 0


def test_ten_consoles_are_told_figures_while_an_honest_client_is_answered(tmp_path: Path) -> None:
    """A little of it, without RabbitMQ; how long anybody waits is for `make bench` to say."""
    found = consoles.measure(0.002, False, 0.5)
    one = found["brokers"]["Warren"]
    assert one["with"]["round_trips"] > 0 and one["without"]["round_trips"] > 0
    (tmp_path / "results").mkdir()
    record = {"date": "2026-01-01", "cpu": "", "cores": 2, "figures": found}
    (tmp_path / "results" / "consoles.json").write_text(json.dumps(record))
    report.write(tmp_path, tmp_path / "results")
    assert "Warren, with consoles" in (tmp_path / "benchmarks.md").read_text()
