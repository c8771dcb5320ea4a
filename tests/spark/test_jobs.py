"""The jobs of the pipeline, as functions and as commands: ingest, publish, route, summary."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner, Result

import warrenmq.spark
from tests.spark.support import QUICK_JVM, address, channel, depth, drain, finished, publish, reading
from tests.spark.test_route import DEFINITIONS
from tests.support.brokers import RunningBroker
from warrenmq.spark.jobs.summary import lines_of, plot, text
from warrenmq.spark.requirements import RequirementMissing, check

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def command(*arguments: object) -> Result:
    from warrenmq.cli.main import build_app

    return CliRunner().invoke(build_app("pipeline"), ["pipeline", *map(str, arguments)])


@pytest.fixture
def queue(broker: RunningBroker, name: str) -> str:
    with channel(broker) as declaring:
        declaring.queue_declare(name, durable=True)
    return name


def test_ingest_brings_each_message_into_the_lake_once(
    spark: SparkSession, broker: RunningBroker, queue: str, tmp_path: Path
) -> None:
    lake = str(tmp_path / "lake")
    options = {**reading(broker), "queue": queue, "leases": "false"}
    publish(broker, queue, [b"%d" % number for number in range(50)])
    told: list[str] = []
    done = warrenmq.spark.ingest(spark, options, lake, progress=told.append)
    assert done.rows == 50 and told and "50 rows" in told[0]
    publish(broker, queue, [b"%d" % number for number in range(50, 60)])
    assert warrenmq.spark.ingest(spark, options, lake).rows == 10
    assert sorted(int(row.body) for row in spark.read.parquet(lake).collect()) == list(range(60))
    assert depth(broker, queue) == 0


def test_publish_tells_what_became_of_every_row(
    spark: SparkSession, broker: RunningBroker, queue: str, tmp_path: Path
) -> None:
    rows = [(f"m-{number}", queue if number % 10 else f"{queue}-nobody", "x") for number in range(100)]
    df = spark.createDataFrame(rows, "message_id string, routing_key string, body string").repartition(2)
    outcomes = str(tmp_path / "outcomes")
    counts = warrenmq.spark.publish(df, {**address(broker), "exchange": ""}, outcomes)
    assert counts == {"confirmed": 90, "returned": 10}
    table = {row.message_id: (row.outcome, row.reply_code) for row in spark.read.parquet(outcomes).collect()}
    assert len(table) == 100 and table["m-0"] == ("returned", 312) and table["m-1"] == ("confirmed", None)
    assert len(drain(broker, queue)) == 90


def test_a_streaming_publish_counts_every_outcome_in_the_querys_progress(
    spark: SparkSession, broker: RunningBroker, queue: str, tmp_path: Path
) -> None:
    rows, outcomes = str(tmp_path / "rows"), str(tmp_path / "outcomes")
    key = f"if(id % 10 = 0, '{queue}-nobody', '{queue}') as routing_key"
    spark.range(50).selectExpr("cast(id as string) as body", key).write.json(rows)
    df = spark.readStream.schema("body string, routing_key string").json(rows)
    published = warrenmq.spark.publish_stream(df, {**address(broker), "exchange": ""})
    query = finished(
        published.where("outcome <> 'confirmed'")
        .writeStream.format("parquet")
        .option("path", outcomes)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    counts = [step["observedMetrics"]["amqp"].asDict() for step in query.recentProgress if step["observedMetrics"]]
    assert counts == [{"confirmed": 45, "returned": 5, "nacked": 0, "refused": 0, "invalid": 0}]
    assert [(row.outcome, row.reply_code) for row in spark.read.parquet(outcomes).collect()] == [("returned", 312)] * 5
    ids = {message.properties.message_id or "" for message in drain(broker, queue)}
    assert len(ids) == 45 and all(each.startswith(f"{query.id}-0-") for each in ids)
    with pytest.raises(ValueError, match="publish_stream is for streaming tables"):
        warrenmq.spark.publish_stream(spark.read.json(rows), {**address(broker), "exchange": ""})


def test_what_was_ingested_can_be_published_again_unchanged(
    spark: SparkSession, broker: RunningBroker, queue: str, tmp_path: Path
) -> None:
    from warrenmq.client import Field, Properties

    headers = {
        "n": Field("I", -5),
        "when": Field("T", 1_700_000_000),
        "list": Field("A", [Field("S", "a"), Field("u", 7)]),
        "inner": Field("F", {"deep": Field("t", True)}),
        "raw": Field("x", b"\x00\xff"),
        "void": Field("V", None),
        "ratio": Field("d", 0.5),
        "text": Field("S", "päivää"),
    }
    original = Properties(
        headers=headers, content_type="a/b", delivery_mode=2, message_id="one", timestamp=1_700_000_001
    )
    publish(broker, queue, [b"payload"], original)
    lake, outcomes = str(tmp_path / "lake"), str(tmp_path / "outcomes")
    options = {**reading(broker), "queue": queue, "leases": "false"}
    assert warrenmq.spark.ingest(spark, options, lake).rows == 1
    assert warrenmq.spark.publish(spark.read.parquet(lake), address(broker), outcomes) == {"confirmed": 1}
    (again,) = drain(broker, queue)
    assert again.properties == original and again.body == b"payload"


def test_summary_counts_a_routed_table(spark: SparkSession, tmp_path: Path) -> None:
    rows = [("orders", "new", "2026-01-01 12:00:10")] * 6 + [("orders", "old", "2026-01-01 12:01:10")] * 3
    rows += [("nowhere", "k", "2026-01-01 12:01:50")]
    df = spark.createDataFrame(rows, "exchange string, routing_key string, at string")
    df = df.selectExpr("exchange", "routing_key", "to_timestamp(at) as published_at")
    lines = lines_of(warrenmq.spark.summary(warrenmq.spark.route(df, DEFINITIONS)))
    found = {(line.section, line.name): line.messages for line in lines if line.section != "rate"}
    assert found[("total", "messages")] == 10
    assert found[("exchange", "orders")] == 9 and found[("routing_key", "new")] == 6
    assert found[("queue", "audit")] == 6 and found[("queue", "orders")] == 6
    outcomes = {name: count for (section, name), count in found.items() if section == "outcome"}
    assert outcomes == {"confirmed": 6, "returned 312": 3, "refused 404": 1}
    assert [(f"{line.window_start:%M}", line.name, line.messages) for line in lines if line.section == "rate"] == [
        ("00", "confirmed", 6),
        ("01", "refused 404", 1),
        ("01", "returned 312", 3),
    ]
    shown = text(lines)
    assert "refused 404" in shown and "60.0%" in shown
    plot(lines, str(tmp_path / "rates.png"))
    assert (tmp_path / "rates.png").read_bytes().startswith(b"\x89PNG")


def test_summary_tells_dead_letters_by_reason_and_redeliveries(spark: SparkSession) -> None:
    death = {"x-first-death-reason": "expired", "x-first-death-queue": "work"}
    rows = [("q", "", "k", None, False, b"12")] * 2 + [("dead", "dlx", "k", death, True, b"123")]
    df = spark.createDataFrame(
        rows,
        "queue string, exchange string, routing_key string, headers map<string,string>, redelivered boolean, "
        "body binary",
    )
    found = {(line.section, line.name): (line.messages, line.bytes) for line in lines_of(warrenmq.spark.summary(df))}
    assert found[("dead_letter", "expired from work")] == (1, 3)
    assert found[("redelivered", "redelivered")] == (1, 3) and found[("redelivered", "first delivery")] == (2, 4)
    assert found[("exchange", "(default)")] == (2, 4)


def test_the_commands_do_what_the_functions_do(
    spark: SparkSession, broker: RunningBroker, queue: str, tmp_path: Path
) -> None:
    where = ["--host", broker.host, "--port", broker.port]
    table, lake = tmp_path / "table", tmp_path / "lake"
    spark.range(20).selectExpr("cast(id as string) as body", "'' as exchange", f"'{queue}' as routing_key").write.json(
        str(table)
    )
    done = command("publish", table, "--format", "json", "--outcomes", tmp_path / "outcomes", *where, "--json")
    assert done.exit_code == 0 and "20 rows" in done.stderr and "20 confirmed" in done.stderr
    assert json.loads(done.stdout)["outcomes"] == {"confirmed": 20}
    done = command("ingest", lake, "--queue", queue, *where, "-o", "leases=false", "--json")
    assert done.exit_code == 0 and "20 messages in 1 batches" in done.stderr
    found = json.loads(done.stdout)
    assert (found["messages"], found["batches"], found["lake"]) == (20, 1, str(lake))
    (tmp_path / "definitions.json").write_text(
        json.dumps(
            {"vhosts": [{"name": "/"}], "queues": [{"name": queue, "vhost": "/"}], "exchanges": [], "bindings": []}
        )
    )
    routed = ("--definitions", tmp_path / "definitions.json", "--output", tmp_path / "routed")
    done = command("route", lake, *routed, "--json")
    told = {(one["section"], one["name"]): one["messages"] for one in json.loads(done.stdout)}
    assert done.exit_code == 0 and told["outcome", "confirmed"] == 20, told
    done = command("summary", tmp_path / "routed", "--png", tmp_path / "plot.png", "--output", tmp_path / "summary")
    assert done.exit_code == 0 and "100.0%" in done.output
    assert (tmp_path / "plot.png").exists() and spark.read.parquet(str(tmp_path / "summary")).count() > 4


def test_wrong_input_ends_a_command_with_one_line(spark: SparkSession, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    cases: list[tuple[list[object], str]] = [
        (["route", "table", "--definitions", tmp_path / "none.json"], "definitions file"),
        (["ingest", lake], "give exactly one of the options 'queue' and 'stream'"),
        (["ingest", lake, "--queue", "q", "--port", "9", "--host", "127.0.0.1", "-o", "retries=0"], "no connection"),
        (["publish", tmp_path / "none", "--outcomes", "o", "--exchange", ""], "there is no"),
        (["summary", tmp_path / "none"], "there is no"),
        (["ingest", lake, "--queue", "q", "-o", "colour=red"], "unknown option 'colour'"),
    ]
    for arguments, words in cases:
        done = command(*arguments)
        assert done.exit_code == 2, done.output
        lines = [line for line in done.output.splitlines() if line.startswith("warren pipeline:")]
        assert len(lines) == 1 and words in lines[0] and "Traceback" not in done.output


@pytest.mark.slow
def test_a_command_of_its_own_tells_what_went_wrong_without_a_stack_trace_before_it(tmp_path: Path) -> None:
    try:
        check()
    except RequirementMissing as missing:
        pytest.skip(str(missing))
    where = ["--host", "127.0.0.1", "--port", "9", "-o", "retries=0"]
    quick = ["--conf", f"spark.driver.extraJavaOptions={QUICK_JVM}"]
    done = subprocess.run(
        [sys.executable, "-m", "warrenmq", "pipeline", "ingest", tmp_path / "lake", "--stream", "s", *where, *quick],
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert done.returncode == 2 and "no connection to the broker at 127.0.0.1:9" in done.stderr.splitlines()[-1]
    assert "ERROR" not in done.stderr and "\tat " not in done.stderr and "Traceback" not in done.stderr
