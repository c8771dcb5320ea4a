"""One Spark session for the whole test run, and names on the brokers that all tests share."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.spark.support import INTERPRETED, QUICK_JVM, ROOT
from warrenmq.spark.requirements import RequirementMissing, check
from warrenmq.spark.sessions import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/spark" in str(item.path) and "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session", autouse=True)
def python_path() -> None:
    """What Spark's Python workers import from, those of the programs we start too."""
    folders = [str(ROOT), str(ROOT / "tests" / "spark" / "workers"), os.environ.get("PYTHONPATH")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, folders))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    try:
        check()
    except RequirementMissing as missing:
        pytest.skip(str(missing))
    warehouse = tmp_path_factory.mktemp("warehouse")
    running = session(
        "local[2]",
        "warren tests",
        {
            "spark.sql.warehouse.dir": str(warehouse),
            "spark.sql.streaming.pollingDelay": "50ms",
            "spark.driver.memory": "1g",
            "spark.driver.extraJavaOptions": QUICK_JVM,
            **({} if "soak" in request.config.option.markexpr.replace("not soak", "") else INTERPRETED),
            "spark.python.daemon.module": "tests.spark.daemon",
            "spark.python.authenticate.socketTimeout": "300s",  # a busy machine is no reason to fail
        },
    )
    yield running
    running.stop()


@pytest.fixture
def name() -> str:
    """A queue name nobody else has: the brokers are shared by the whole test run."""
    return f"spark-{uuid.uuid4().hex[:12]}"
