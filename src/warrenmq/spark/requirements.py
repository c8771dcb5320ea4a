"""What the pipeline needs from outside (Java, PySpark, pyarrow), checked before Spark gets to fail at length.

Duty: find what is missing and say it in one line with the way to get it. Not here: starting Spark (``sessions.py``).
Nothing here imports pyspark or pyarrow, so the checks work where they are missing.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

MINIMUM_JAVA = 17
MINIMUM_PYSPARK = (4, 0)


class RequirementMissing(RuntimeError):
    """Something outside Warren is missing or too old; the text is one line that says what and how to get it."""


def java_command(environment: Mapping[str, str]) -> str | None:
    """The java that Spark will start: JAVA_HOME's, else the one on the path."""
    home = environment.get("JAVA_HOME", "")
    if home:
        command = os.path.join(home, "bin", "java")
        return command if os.access(command, os.X_OK) else None
    return shutil.which("java", path=environment.get("PATH"))


def java_major(banner: str) -> int | None:
    """The major version in what ``java -version`` printed: 17 of "17.0.15", 8 of "1.8.0_402"."""
    match = re.search(r'version "(\d+)(?:\.(\d+))?', banner)
    if match is None:
        return None
    first = int(match.group(1))
    return int(match.group(2)) if first == 1 and match.group(2) else first


def check_java(environment: Mapping[str, str] | None = None) -> None:
    environment = os.environ if environment is None else environment
    how = f"install Java {MINIMUM_JAVA} or newer (Debian: apt install openjdk-17-jre-headless) or set JAVA_HOME to one"
    command = java_command(environment)
    if command is None:
        raise RequirementMissing(f"Spark needs Java {MINIMUM_JAVA} or newer and none was found: {how}")
    try:
        run = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=60, check=False)
        banner = run.stderr + run.stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RequirementMissing(f"Spark needs Java and {command} does not run ({error}): {how}") from None
    major = java_major(banner)
    if major is None:
        raise RequirementMissing(
            f"Spark needs Java {MINIMUM_JAVA} or newer and {command} does not say its version: {how}"
        )
    if major < MINIMUM_JAVA:
        raise RequirementMissing(f"Spark needs Java {MINIMUM_JAVA} or newer and {command} is Java {major}: {how}")


def needed(module: str, what: str, how: str = "pip install 'warrenmq[spark,lakehouse]'") -> None:
    """Raise RequirementMissing unless the module, which only ``what`` needs, can be imported."""
    try:
        found = importlib.util.find_spec(module)
    except ModuleNotFoundError:  # of the package above it
        found = None
    if found is None:
        raise RequirementMissing(f"{what} need {module} and it is not installed: {how}")


def check_python_packages() -> None:
    how = "pip install 'warrenmq[spark]'"
    for package in ("pyspark", "pyarrow", "pandas"):
        if importlib.util.find_spec(package) is None:
            raise RequirementMissing(f"the pipeline needs {package} and it is not installed: {how}")
    try:
        found = version("pyspark")
    except PackageNotFoundError:  # a Spark distribution on PYTHONPATH carries no package metadata
        return
    parts = tuple(int(part) for part in re.findall(r"\d+", found)[:2])
    if parts < MINIMUM_PYSPARK:
        raise RequirementMissing(f"the pipeline needs pyspark 4.0 or newer and {found} is installed: {how}")


def check(environment: Mapping[str, str] | None = None) -> None:
    """Raise RequirementMissing with one line when Spark cannot be started here."""
    check_python_packages()
    check_java(environment)
