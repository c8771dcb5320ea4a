"""How far a job is: what is told of it while Spark works."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from bench.planted import plant
from typer.testing import CliRunner

from tests.spark.jobs_anywhere import PLANTED
from tests.spark.support import channel, reading
from tests.support.brokers import RunningBroker

pytest.importorskip("pyspark", reason="PySpark is not installed")

import warrenmq.spark.following as following
from warrenmq.cli.main import build_app
from warrenmq.spark import audit, lake, replay, whatif
from warrenmq.spark.replaying import Target

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_line_has_rows_rate_and_the_time_that_is_left() -> None:
    assert following.line("reading", 1000, 0.25, 5.0) == (
        "reading [█████···············]  25% 250 of 1,000 rows, 50 rows/s, 5 s, about 15 s left"
    )
    assert following.line("reading", 0, 0.5, 4.0) == "reading [██████████··········]  50% 4 s, about 4 s left"
    assert following.line("reading", 1000, 0.0, 4.0) == "reading [····················]   0% 4 s"


class Scripted(following.Tasks):
    """Tasks as they are told, one look after the other."""

    def __init__(self, *looks: tuple[int, int]) -> None:
        self.looks = list(looks)

    def done(self) -> tuple[int, int]:
        return self.looks.pop(0)

    def forget(self) -> None:
        pass


def test_a_share_counts_steps_and_never_falls() -> None:
    progress = following.JobProgress(Scripted((0, 0), (1, 2), (2, 2), (2, 4), (0, 0), (1, 2)), 4)
    assert [progress.share() for _ in range(4)] == [0, 0.125, 0.2475, 0.2475]  # a stage more is no step back
    progress.step()
    assert [progress.share() for _ in range(2)] == [0.25, 0.375]


def test_a_running_job_is_followed_until_it_is_over(spark: SparkSession) -> None:
    told: list[str] = []
    heard = threading.Event()

    def tell(said: str) -> None:
        told.append(said)
        heard.set()

    with following.following(spark, "counting", 100, tell, interval=0.01):
        assert spark.range(100).count() == 100
        assert heard.wait(600)
    after = len(told)
    assert told[0].startswith("counting [")
    assert spark.range(100).count() == 100 and len(told) == after


def test_every_job_over_a_journal_tells_how_far_it_is(
    spark: SparkSession, warren: RunningBroker, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "INTERVAL", 0.001)
    rows: dict[str, int] = {}  # of which is said how many there are
    usual = following.line

    def line(word: str, count: int, share: float, seconds: float) -> str:
        rows[word] = count
        return usual(word, count, share, seconds)

    monkeypatch.setattr(following, "line", line)
    plant(tmp_path / "journal", 100, 50, 1)
    journal = str(tmp_path / "journal")
    told: list[str] = []
    audit(spark, journal, str(tmp_path / "audit"), progress=told.append).close()
    whatif(spark, journal, PLANTED, PLANTED, progress=told.append).close()
    with channel(warren) as declaring:
        declaring.queue_declare(name)
    spark.range(3).selectExpr("cast('x' as binary) as body").write.parquet(str(tmp_path / "lake"))
    target = Target("", name, at_least_once=True)
    out = str(tmp_path / "again")
    replay(spark, str(tmp_path / "lake"), reading(warren), out, target=target, progress=told.append)
    html = str(tmp_path / "page.html")
    page = CliRunner().invoke(build_app("pipeline"), ["pipeline", "report", str(tmp_path / "audit"), "--html", html])
    assert page.exit_code == 0, page.output
    lake(spark, journal, str(tmp_path / "laked"), progress=told.append)
    words = {one.partition(" [")[0] for one in [*told, *page.stderr.splitlines()] if " [" in one}
    assert words == {
        *("reading", "making the tables"),
        *("routing", "comparing"),
        *("choosing", "step 1 of 1"),
        *("gathering", "taking"),
    }
    assert rows.keys() == words and all(rows.values()), rows
