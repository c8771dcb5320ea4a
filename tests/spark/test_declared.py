"""The audit as a declarative pipeline: ``spark-pipelines`` makes the tables that ``warren pipeline audit`` makes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from bench.planted import plant
from typer.testing import CliRunner, Result

from tests.spark.support import QUICK_JVM, ROOT

pytest.importorskip("pyspark.pipelines", reason="Spark's declarative pipelines are not installed")

from warrenmq.spark.auditing import audit
from warrenmq.spark.auditing.expectations import NAMES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.timeout(900)]
COMPARED = ("messages", "unaccounted", "ledger", "latency", "publishes", "doubled", "redelivered", "rates")


def command(*given: object) -> Result:
    from warrenmq.cli.main import build_app

    return CliRunner().invoke(build_app("pipeline"), ["pipeline", "project", *map(str, given)])


def run(project: Path, *settings: str) -> subprocess.CompletedProcess[str]:
    """As the user runs it, in the folder of the project."""
    folder = Path(sys.executable).parent
    given = [
        part
        for one in ("spark.ui.enabled=false", "spark.sql.shuffle.partitions=2", *settings)
        for part in ("--conf", one)
    ]
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_"))},
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]),
        "JDK_JAVA_OPTIONS": QUICK_JVM,
    }
    return subprocess.run(
        ["spark-pipelines", "--remote", "local[2]", *given, "--conf", "spark.sql.warehouse.dir=tables", "run"],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=800,
    )


def same(one: DataFrame, other: DataFrame) -> bool:
    other = other.select(one.columns)
    return one.exceptAll(other).isEmpty() and other.exceptAll(one).isEmpty()


def expectations(spark: SparkSession, project: Path) -> dict[str, int]:
    rows = spark.read.parquet(str(project / "tables" / "expectations")).collect()
    return {row["expectation"]: row["broken"] for row in rows}


def test_the_pipeline_makes_the_tables_of_the_audit_and_fails_where_something_is_missing(
    spark: SparkSession, tmp_path: Path
) -> None:
    planted = plant(tmp_path / "journal", 1000, 250, 4)
    project = tmp_path / "project"
    done = command(project, planted.folder)
    assert done.exit_code == 0 and f"cd {project} && spark-pipelines " in done.stdout, done.output
    ran = run(project)
    assert ran.returncode != 0, ran.stderr[-3000:]
    assert "every message is accounted for: 12 rows of the table unaccounted break it" in ran.stderr + ran.stdout
    found = audit(spark, str(planted.folder), only=COMPARED)
    for name in COMPARED:
        assert same(spark.read.parquet(str(project / "tables" / name)), found.tables[name]), name
    broken = expectations(spark, project)
    assert broken == dict.fromkeys(NAMES, 0) | {
        "every message is accounted for": 12,
        "nothing leaves a queue twice": 4,
        "nothing enters a queue twice": 4,
        "every publish is routed": 1,
        "what has confirms is confirmed": 1,
    }
    found.close()


@pytest.mark.soak
def test_a_project_is_run_again_and_takes_what_is_new(spark: SparkSession, tmp_path: Path) -> None:
    """With a catalogue that lasts; and what was only counted fails where it is required."""
    journal = tmp_path / "journal"
    plant(journal, 400, 100, 0)
    files = sorted(journal.glob("*.parquet"))
    later = {path: path.rename(tmp_path / path.name) for path in files[2:]}
    project = tmp_path / "project"
    done = command(project, journal, "--require", "what has confirms is confirmed", "--json")
    assert done.exit_code == 0 and json.loads(done.stdout)["folder"] == str(project)
    lasting = ("spark.sql.catalogImplementation=hive",)
    for count in (2, 4):
        ran = run(project, *lasting)
        assert ran.returncode == 0, ran.stderr[-3000:]
        assert expectations(spark, project) == dict.fromkeys(NAMES, 0)
        ledger = spark.read.parquet(str(project / "tables" / "ledger")).where("outcome <> 'waiting'")
        assert {row["queue"] for row in ledger.collect()} == {"work"}, count
        for path, kept in later.items():
            kept.rename(path)
        later = {}
    files[1].unlink()
    ran = run(project, *lasting)
    assert ran.returncode != 0 and "no file is missing: 1 rows of the table holes break it" in ran.stderr + ran.stdout


def test_a_project_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    done = command(tmp_path / "full", tmp_path)
    assert done.exit_code == 2 and f"{tmp_path / 'full'} is not empty: name a folder" in done.stderr
    done = command(tmp_path / "new", tmp_path, "--require", "luck")
    assert done.exit_code == 2 and "there is no expectation 'luck'; there are: no file is missing, " in done.stderr
    assert not (tmp_path / "new").exists()
