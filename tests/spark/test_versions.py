"""The lowest Spark that is supported passes the connector's tests too. (The newest is the one all others run on.)"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

LOWEST = "4.0.0"
ROOT = Path(__file__).parents[2]
FILES = (
    "test_route.py",
    "test_sink.py",
    "test_stream_source.py",
    "test_leased_source.py",
    "test_queue_source.py",
    "test_triggers.py",
    "test_requirements.py",
    "test_connection.py",
)


@pytest.mark.soak
@pytest.mark.spark
def test_the_lowest_supported_spark_passes_too(tmp_path: Path) -> None:
    target = tmp_path / "spark"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(target), f"pyspark=={LOWEST}"]
    if subprocess.run(pip).returncode != 0:
        pytest.skip(f"pyspark {LOWEST} cannot be installed here")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(target), str(ROOT / "src")])}
    environment.pop("SPARK_HOME", None)
    files = [str(ROOT / "tests" / "spark" / name) for name in FILES]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "--timeout", "0", *files],
        env=environment,
        cwd=ROOT,
    )
    assert done.returncode == 0
