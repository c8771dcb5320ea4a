"""The examples run, as they stand, and say what their first lines promise."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from bench.planted import plant

from tests.spark.support import channel, drain, publish
from tests.support.brokers import RunningBroker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = Path(__file__).parents[2] / "examples" / "spark"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_if_tells_what_a_narrower_binding_would_do(spark: SparkSession) -> None:
    assert example("what_if").main(spark) == [("order.sent.abroad", "confirmed", "returned", 200)]


def test_stream_to_lake_takes_what_is_new_each_time(
    spark: SparkSession, rabbitmq: RunningBroker, name: str, tmp_path: Path
) -> None:
    with channel(rabbitmq) as declaring:
        declaring.queue_declare(name, durable=True, arguments={"x-queue-type": "stream"})
    run = example("stream_to_lake").main
    readings = [json.dumps({"sensor": f"s{n % 3}", "celsius": n / 10}).encode() for n in range(30)]
    publish(rabbitmq, name, readings)
    lake = str(tmp_path / "lake")
    assert run(rabbitmq.host, rabbitmq.port, lake, name, spark) == 30
    publish(rabbitmq, name, readings[:5])
    assert run(rabbitmq.host, rabbitmq.port, lake, name, spark) == 5
    assert spark.read.parquet(lake).count() == 35


def test_replay_publishes_the_slice_and_counts_what_became_of_it(
    spark: SparkSession, broker: RunningBroker, name: str, tmp_path: Path
) -> None:
    with channel(broker) as declaring:
        declaring.queue_declare(name, durable=True)
    lake = str(tmp_path / "lake")
    spark.range(10).selectExpr(
        "'' as exchange",
        f"if(id < 8, '{name}', '{name}-nobody') as routing_key",
        "concat('id-', id) as message_id",
        "cast(cast(id as string) as binary) as body",
        "id",
    ).write.parquet(lake)
    counts = example("replay").main(broker.host, broker.port, lake, str(tmp_path / "outcomes"), "id >= 4", spark)
    assert counts == {"confirmed": 4, "returned": 2}
    assert {message.properties.message_id for message in drain(broker, name)} == {f"id-{n}" for n in range(4, 8)}


def test_the_notebook_reads_audits_and_draws_a_journal(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Cell by cell in one namespace, as Jupyter does it; it needs no Jupyter."""
    import matplotlib

    plant(tmp_path / "journal", 400, 100, 2)
    monkeypatch.setenv("WARREN_JOURNAL", str(tmp_path / "journal"))
    matplotlib.use("agg")
    notebook = json.loads((EXAMPLES.parent / "journal.ipynb").read_text())
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert not any(cell.get("outputs") for cell in notebook["cells"])
    namespace: dict[str, Any] = {}
    for cell in cells:
        exec(compile(cell, "journal.ipynb", "exec"), namespace)
    said = capsys.readouterr().out
    assert "6 messages are missing; files: []" in said and "dead-lettered" not in said
    assert "|enqueued" in said and "rejected_dead_lettered" in said
    assert not namespace["found"].complete and list(namespace["latency"]["queue"].unique()) == ["work"]
    assert [line.get_label() for line in namespace["above"].lines] == ["confirmed", "consumed", "delivered", "gone"] + [
        "unconfirmed",
        "unroutable",
    ]
