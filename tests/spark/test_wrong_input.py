"""Whatever is wrong with what a job is given, it says so in one line, and leaves with 2."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from bench.planted import plant
from typer.testing import CliRunner

from tests.spark.jobs_anywhere import PLANTED

pytest.importorskip("pyspark", reason="PySpark is not installed")

from warrenmq.spark.sessions import silence

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROGRESS = re.compile(r" … [0-9]+ s$| \[[█·]{20}\] |^[0-9,]+ files, [0-9,]+ of them new, ")
DEFINITIONS = ("--before", "{made}/definitions.json", "--after", "{made}/definitions.json")
REPLAY = ("--host", "localhost", "--port", "1")

#: a job with its arguments, what is wrong, and what it says
WRONG: dict[str, tuple[tuple[str, ...], str]] = {
    # no journal
    "audit of nothing": (("audit", "{made}/none", "--out", "{out}"), "there is no {made}/none"),
    "audit of no journal": (
        ("audit", "{made}/table", "--out", "{out}"),
        "{made}/table has no journal: no file",
    ),
    "whatif over nothing": (("whatif", "{made}/none", *DEFINITIONS), "there is no {made}/none"),
    "whatif over no journal": (
        ("whatif", "{made}/table", *DEFINITIONS),
        "{made}/table has no journal: no file",
    ),
    "lake of nothing": (("lake", "{made}/none", "--out", "{out}"), "there is no {made}/none"),
    "lake of no journal": (("lake", "{made}/table", "--out", "{out}"), "{made}/table has no journal: no file"),
    "watch over nothing": (("watch", "{made}/none", "--out", "{out}", "--once"), "there is no {made}/none"),
    "watch over no journal": (
        ("watch", "{made}/table", "--out", "{out}", "--once"),
        "{made}/table has no journal: no file",
    ),
    "replay of nothing": (("replay", "{made}/none", *REPLAY), "there is no {made}/none"),
    "replay of a table without bodies": (("replay", "{made}/table", *REPLAY), "no column 'body'"),
    "report of nothing": (("report", "{made}/none"), "{made}/none has no table "),
    "report of no audit": (("report", "{made}/table"), "{made}/table has no table "),
    # other schema version
    "audit of a later version": (("audit", "{made}/later", "--out", "{out}"), "has version 99 of the journal's schema"),
    "whatif over a later version": (("whatif", "{made}/later", *DEFINITIONS), "has version 99 of the journal's schema"),
    "lake of a later version": (("lake", "{made}/later", "--out", "{out}"), "has version 99 of the journal's schema"),
    "watch over a later version": (
        ("watch", "{made}/later", "--out", "{out}", "--once"),
        "has version 99 of the journal's schema",
    ),
    "replay of a later version": (("replay", "{made}/later", *REPLAY), "has version 99 of the journal's schema"),
    # unreadable file
    "audit of a broken file": (("audit", "{made}/broken", "--out", "{out}"), "cannot be read"),
    "whatif over a broken file": (("whatif", "{made}/broken", *DEFINITIONS), "cannot be read"),
    "lake of a broken file": (("lake", "{made}/broken", "--out", "{out}"), "cannot be read"),
    "watch over a broken file": (("watch", "{made}/broken", "--out", "{out}", "--once"), "cannot be read"),
    "replay of a broken file": (("replay", "{made}/broken", *REPLAY), "cannot be read"),
    # unknown key
    "an unknown table": (
        ("audit", "{made}/journal", "--out", "{out}", "--only", "luck"),
        "there is no table luck",
    ),
    "a window that is none": (
        ("audit", "{made}/journal", "--out", "{out}", "--window", "luck"),
        "the window is 'luck'; expected a length of time such as '1 minute'",
    ),
    "fewer deliveries than none": (
        ("audit", "{made}/journal", "--out", "{out}", "--redeliveries", "-1"),
        "redeliveries is -1; expected 0 or more",
    ),
    "a project with a window that is none": (
        ("project", "{out}", "{made}/journal", "--window", "1 parsec"),
        "the window is '1 parsec'; expected a length of time",
    ),
    "a condition that is none": (("replay", "{made}/journal", *REPLAY, "--where", "luck ="), "PARSE_SYNTAX_ERROR"),
    "a condition on nothing": (("replay", "{made}/journal", *REPLAY, "--where", "luck = 1"), "`luck` cannot be"),
    "a folder that cannot be": (("audit", "{made}/journal", "--out", "/proc/none"), "Mkdirs failed to create"),
    "an unknown option": (("replay", "{made}/journal", *REPLAY, "-o", "colour=red"), "unknown option 'colour'"),
    "an option that is not for replays": (
        ("replay", "{made}/journal", *REPLAY, "-o", "deduplicate=true"),
        "option 'deduplicate' is not for a replay",
    ),
    "no definitions": (
        ("whatif", "{made}/journal", "--before", "{made}/none", "--after", "{made}/none"),
        "definitions file {made}/none cannot be read",
    ),
    "definitions that are none": (
        ("whatif", "{made}/journal", "--before", "{made}/other.json", "--after", "{made}/other.json"),
        "the definitions have no 'exchanges', 'queues' or 'bindings'",
    ),
    "definitions with a policy that makes no sense": (
        ("whatif", "{made}/journal", "--before", "{made}/definitions.json", "--after", "{made}/policy.json"),
        "policy 'p' has no valid pattern",
    ),
    "two tables": (
        ("whatif", "{made}/table", "{made}/table", *DEFINITIONS, "--format", "parquet"),
        "with --format one table is read",
    ),
    "a table of something else": (
        ("whatif", "{made}/table", *DEFINITIONS, "--format", "parquet"),
        "the table has no column 'exchange'",
    ),
    "a time that is none": (("replay", "{made}/journal", *REPLAY, "--since", "soon"), "soon"),
    "a pace that is none": (
        ("replay", "{made}/journal", *REPLAY, "--pace", "0"),
        "the pace is 0 times the recorded one; expected more than 0",
    ),
    "nothing to replay": (("replay", *REPLAY), "say what is replayed"),
    "a project of an unknown expectation": (
        ("project", "{out}", "{made}/journal", "--require", "luck"),
        "no expectation",
    ),
}


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    silence(spark)  # as the command does with a session of its own
    folder = tmp_path_factory.mktemp("wrong")
    plant(folder / "journal", 100, 20, 0)
    table = pq.read_table(next((folder / "journal").glob("*.parquet")), columns=["size"])
    (folder / "table").mkdir()
    pq.write_table(table, folder / "table" / "rows.parquet")
    changed(folder, "broken", lambda path: path.write_bytes(b"PAR1 no more of it"))
    changed(folder, "later", later)
    (folder / "definitions.json").write_text(json.dumps(PLANTED))
    (folder / "other.json").write_text("{}")
    policy = {"vhost": "/", "name": "p", "pattern": "(", "definition": {"max-length": 1}}
    (folder / "policy.json").write_text(json.dumps(PLANTED | {"policies": [policy]}))
    return folder


def changed(folder: Path, name: str, change: Callable[[Path], object]) -> None:
    (folder / name).mkdir()
    for number, path in enumerate(sorted((folder / "journal").glob("*.parquet"))):
        copy = folder / name / path.name
        copy.write_bytes(path.read_bytes())
        if number:
            change(copy)


def later(path: Path) -> None:
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({"warren.journal": "99"}), path)


def test_it_is_one_line_where_spark_is_started_for_it_too(spark: SparkSession, tmp_path: Path) -> None:
    """Nothing that the JVM or Spark's log says is on the terminal."""
    arguments = ["audit", str(tmp_path / "none"), "--out", str(tmp_path / "out")]
    done = subprocess.run(
        [sys.executable, "-m", "warrenmq", "pipeline", *arguments], capture_output=True, text=True, check=False
    )
    assert done.stderr.splitlines() == ["starting Spark …", f"warren pipeline: there is no {tmp_path / 'none'}"]
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_is_one_line(spark: SparkSession, made: Path, tmp_path: Path, case: str) -> None:
    from warrenmq.cli.main import build_app

    given, said = WRONG[case]
    arguments = [part.format(made=made, out=tmp_path / "out") for part in given]
    done = CliRunner().invoke(build_app("pipeline"), ["pipeline", *arguments])
    *before, last = done.stderr.strip().splitlines()
    assert done.exit_code == 2, done.output
    assert all(PROGRESS.search(line) for line in before) and last.startswith("warren pipeline: "), done.stderr
    assert said.format(made=made) in last, last
