"""The examples for Airflow and dagster: run with a stand-in for the framework, and in the framework itself.

Neither is a dependency. The second way makes a throw-away environment from the package index, so it is part of
`make soak`; a folder with such environments already made (`airflow/bin/python`, `dagster/bin/python`) may be named by
the variable ORCHESTRATORS.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import warrenmq
from tests.spark.support import QUICK_JVM, ROOT, channel, publish
from tests.support.brokers import RunningBroker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = ROOT / "examples"
FILES = {"airflow": EXAMPLES / "airflow" / "amqp_to_lake.py", "dagster": EXAMPLES / "dagster" / "amqp_assets.py"}
PACKAGES = {"airflow": "apache-airflow-task-sdk", "dagster": "dagster"}


def load(path: Path, name: str, stand_in: types.ModuleType, monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    monkeypatch.setitem(sys.modules, name, stand_in)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Base:
    """As much of Airflow's DAG and BaseOperator as the example uses."""

    def __init__(self, *_: Any, task_id: str = "", **__: Any) -> None:
        self.task_id = task_id

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def stream(broker: RunningBroker, name: str) -> dict[str, str]:
    with channel(broker) as declaring:
        declaring.queue_declare(name, durable=True, arguments={"x-queue-type": "stream"})
    publish(broker, name, [b"x"] * 7)
    return {"host": f"{broker.host}:{broker.port}", "stream": name}


def test_the_airflow_operator_takes_what_is_new(
    spark: SparkSession, warren: RunningBroker, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sdk = types.ModuleType("airflow.sdk")
    sdk.DAG = sdk.BaseOperator = Base  # type: ignore[attr-defined]
    module = load(FILES["airflow"], "airflow.sdk", sdk, monkeypatch)
    operator = module.AmqpToLakeOperator(task_id="t", options=stream(warren, name), lake=str(tmp_path / "lake"))
    assert operator.execute({}) == 7
    assert operator.execute({}) == 0
    assert spark.read.parquet(str(tmp_path / "lake")).count() == 7


def test_the_dagster_asset_takes_what_is_new(
    spark: SparkSession, warren: RunningBroker, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dagster = types.ModuleType("dagster")
    dagster.asset = lambda function: function  # type: ignore[attr-defined]
    dagster.MaterializeResult = types.SimpleNamespace  # type: ignore[attr-defined]
    dagster.Definitions = types.SimpleNamespace  # type: ignore[attr-defined]
    module = load(FILES["dagster"], "dagster", dagster, monkeypatch)
    options = stream(warren, name)
    for variable, value in (("AMQP_HOST", options["host"]), ("AMQP_STREAM", name), ("LAKE", str(tmp_path / "lake"))):
        monkeypatch.setenv(variable, value)
    assert module.orders().metadata["rows"] == 7
    assert module.orders().metadata["rows"] == 0


DRIVERS = {
    # Airflow's own scheduler is not started: the DAG file is loaded, and its operator executed as a worker would.
    "airflow": """
operator = module.AmqpToLakeOperator(task_id="t", options={"host": host, "stream": stream}, lake=lake)
rows = operator.execute({})
""",
    "dagster": """
import dagster
done = dagster.materialize([module.orders])
assert done.success
rows = done.asset_materializations_for_node("orders")[0].metadata["rows"].value
""",
}
DRIVER = """
import importlib.util, os, sys
path, host, stream, lake = sys.argv[1:]
os.environ.update(AMQP_HOST=host, AMQP_STREAM=stream, LAKE=lake)
spec = importlib.util.spec_from_file_location("example", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
{how}
print("rows", rows)
"""


def environment_of(framework: str, folder: Path) -> Path:
    """A Python that has the framework; skips where there is none to be had."""
    ready = Path(os.environ.get("ORCHESTRATORS", "/none")) / framework / "bin" / "python"
    if ready.exists():
        return ready
    subprocess.run([sys.executable, "-m", "venv", str(folder / framework)], check=True)
    python = folder / framework / "bin" / "python"
    command = [str(python), "-m", "pip", "install", "-q", PACKAGES[framework]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=800)
    if done.returncode:
        pytest.skip(f"{PACKAGES[framework]} cannot be installed here: {done.stderr.strip().splitlines()[-1:]}")
    return python


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.timeout(600)
@pytest.mark.parametrize("framework", ["airflow", "dagster"])
def test_the_framework_itself_runs_the_example(
    warren: RunningBroker, name: str, tmp_path: Path, framework: str
) -> None:
    import pyspark

    options = stream(warren, name)
    python = environment_of(framework, tmp_path)
    # Behind the framework's own packages come those that the tests run with, for Spark and this package.
    package, ours = Path(warrenmq.__file__).parents[1], Path(pyspark.__file__).parents[1]
    driver = tmp_path / "driver.py"
    driver.write_text(
        f"import sys; sys.path[1:1] = [{str(package)!r}]; sys.path.append({str(ours)!r})\n"
        + DRIVER.format(how=DRIVERS[framework])
    )
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "AIRFLOW_HOME": str(tmp_path / "airflow-home"),
        "JAVA_TOOL_OPTIONS": QUICK_JVM,
        "PYSPARK_SUBMIT_ARGS": "--conf spark.ui.enabled=false pyspark-shell",
    }
    done = subprocess.run(
        [str(python), str(driver), str(FILES[framework]), options["host"], name, str(tmp_path / "lake")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=800,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "rows 7" in done.stdout.splitlines()  # among what the framework says
