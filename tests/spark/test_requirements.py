"""Whoever lacks Java or PySpark is told so in one line that names what is needed and how to get it."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from tests.spark.support import QUICK_JVM, ROOT
from warrenmq.spark import requirements
from warrenmq.spark.errors import one_line
from warrenmq.spark.requirements import RequirementMissing, check, check_java, check_python_packages, java_major


def fake_java(folder: Path, banner: str) -> dict[str, str]:
    command = folder / "bin" / "java"
    command.parent.mkdir()
    command.write_text(f"#!/bin/sh\necho '{banner}' >&2\n")
    command.chmod(0o755)
    return {"JAVA_HOME": str(folder), "PATH": ""}


@pytest.mark.parametrize(
    ("banner", "major"),
    [('openjdk version "17.0.15" 2025-04-15', 17), ('java version "1.8.0_402"', 8), ('openjdk version "21"', 21)],
)
def test_the_java_version_is_read_from_its_banner(banner: str, major: int) -> None:
    assert java_major(banner) == major


def test_a_missing_java_is_named_with_the_way_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(RequirementMissing) as raised:
        check_java({"PATH": str(tmp_path)})
    text = str(raised.value)
    assert "Java 17" in text and "install" in text and "\n" not in text


def test_a_java_below_17_is_named_with_its_version(tmp_path: Path) -> None:
    with pytest.raises(RequirementMissing, match="is Java 11: install Java 17"):
        check_java(fake_java(tmp_path, 'openjdk version "11.0.2" 2019-01-15'))


def test_a_java_of_17_is_enough(tmp_path: Path) -> None:
    check_java(fake_java(tmp_path, 'openjdk version "17.0.1" 2021-10-19'))


def test_a_missing_pyspark_is_named_with_the_way_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> ModuleSpec | None:
        return None

    monkeypatch.setattr(importlib.util, "find_spec", nothing)
    with pytest.raises(
        RequirementMissing, match=r"needs pyspark and it is not installed: pip install 'warrenmq\[spark\]'"
    ):
        check_python_packages()


def test_a_pyspark_below_4_is_named_with_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def old(package: str) -> str:
        return "3.5.1"

    monkeypatch.setattr(requirements, "version", old)
    pytest.importorskip("pyspark", reason="PySpark is not installed")
    with pytest.raises(RequirementMissing, match=r"needs pyspark 4.0 or newer and 3.5.1 is installed"):
        check_python_packages()


@pytest.mark.parametrize(
    ("said", "line"),
    [
        (
            "PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.12 than that in "
            "driver: 3.11.",
            "the workers run Python 3.12 and the driver 3.11: set PYSPARK_PYTHON",
        ),
        ("ModuleNotFoundError: No module named 'warrenmq'", "the workers have no package warrenmq: install it there"),
        ("warrenmq.spark.connect.BrokerLost: no connection to h:1", "no connection to h:1"),
    ],
)
def test_a_cluster_unlike_ours_is_told_in_one_line(said: str, line: str) -> None:
    told = one_line(RuntimeError(f"Job aborted.\nTraceback (most recent call last):\n{said}\n\tat org.apache.spark"))
    assert told.startswith(line) and "\n" not in told


def test_the_words_for_another_python_are_sparks_own() -> None:
    errors = pytest.importorskip("pyspark.errors", reason="PySpark is not installed")
    versions = {"worker_version": "3.12", "driver_version": "3.11"}
    raised = errors.PySparkRuntimeError(errorClass="PYTHON_VERSION_MISMATCH", messageParameters=versions)
    assert one_line(raised).startswith("the workers run Python 3.12 and the driver 3.11: set PYSPARK_PYTHON")


# The next minor version is what Spark's workers see; to all others this Python tells the truth, so that all else works.
UNLIKE = """
import sys

class Version(tuple):
    major, minor, micro, releaselevel, serial = sys.version_info

    def __getitem__(self, at):
        asks = sys._getframe(1).f_globals.get("__name__", "")
        found = super().__getitem__(at)
        return (self.major, self.minor + 1) if asks.startswith("pyspark") and at == slice(2) else found

sys.version_info = Version(sys.version_info)
"""


@pytest.mark.spark
@pytest.mark.slow
def test_a_command_on_a_cluster_with_another_python_ends_with_the_line_that_says_so(tmp_path: Path) -> None:
    try:
        check()
    except RequirementMissing as missing:
        pytest.skip(str(missing))
    (tmp_path / "sitecustomize.py").write_text(UNLIKE)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path}:$PYTHONPATH" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    (tmp_path / "table.json").write_text('{"body": "x"}')
    path = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "warrenmq",
            "pipeline",
            "publish",
            str(tmp_path / "table.json"),
            "--format",
            "json",
            "--exchange",
            "",
            "--outcomes",
            str(tmp_path / "outcomes"),
            "--conf",
            f"spark.driver.extraJavaOptions={QUICK_JVM}",
        ],
        env={**os.environ, "PYSPARK_PYTHON": str(python), "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=800,
    )
    major, minor = sys.version_info[:2]
    assert done.returncode == 2, done.stderr
    assert done.stderr.splitlines()[-1] == (
        f"warren pipeline: the workers run Python {major}.{minor + 1} and the driver {major}.{minor}: "
        "set PYSPARK_PYTHON to the same version on both, or ship one with --archives"
    )
