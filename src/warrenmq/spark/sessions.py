"""Starting a Spark session for the pipeline: local by default, any cluster by its master URL.

Duty: sensible settings for a small session, and one line when Spark cannot start. Settings given by the caller or by
spark-submit win. Not here: the checks themselves (``requirements.py``) and what runs in the session.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from warrenmq.spark.requirements import RequirementMissing, check, check_python_packages, needed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


CONNECT = "sc://"
MOST_GUESSED = 16


def session(
    master: str | None = None, name: str = "warren", settings: Mapping[str, str] | None = None, quiet: bool = True
) -> SparkSession:
    """The running session if there is one, else a new one with format("amqp") registered.

    ``master``: ``local[2]`` unless given, a cluster's URL, or ``sc://host:15002`` for a Spark Connect server, which
    must have this package and needs no Java here.
    """
    if master is not None and master.startswith(CONNECT):
        return _connected(master, settings)
    check()
    # Workers must run this Python: on a cluster the driver's path may not exist there, so only local mode gets it.
    local = master is None or master.startswith("local")
    if local:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        _share_import_path()
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name)
    if master is not None:
        builder = builder.master(master)
    elif not _submitted():
        builder = builder.master("local[2]")
    defaults = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.python.filterPushdown.enabled": "true",
    }
    if local:
        defaults["spark.driver.bindAddress"] = "127.0.0.1"
        defaults["spark.driver.host"] = "127.0.0.1"
    for key, value in {**defaults, **(settings or {})}.items():
        builder = builder.config(key, value)
    try:
        spark = builder.getOrCreate()
    except Exception as error:
        text = str(error).strip().splitlines()
        raise RequirementMissing(f"Spark did not start: {text[0] if text else type(error).__name__}") from error
    if quiet:
        spark.sparkContext.setLogLevel("ERROR")
    register(spark)
    return spark


def silence(spark: SparkSession) -> None:
    """Spark logs nothing more, not even the stack traces of what fails: for programs that tell errors themselves."""
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):  # PySpark's own, which write to the terminal
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    if not is_connected(spark):  # there the log is the server's
        spark.sparkContext.setLogLevel("OFF")


def _connected(url: str, settings: Mapping[str, str] | None) -> SparkSession:
    check_python_packages()
    needed("grpc", "Spark Connect sessions", "pip install 'pyspark[connect]'")
    _check_listening(url)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.remote(url)
    for key, value in (settings or {}).items():
        builder = builder.config(key, value)
    try:
        spark = builder.getOrCreate()
        register(spark)
    except Exception as error:
        text = str(error).strip().splitlines()
        raise RequirementMissing(f"no session at {url}: {text[0] if text else type(error).__name__}") from error
    return spark


def _check_listening(url: str) -> None:
    """Spark itself would ask for ten minutes."""
    parts = urlsplit(url)
    host, port = parts.hostname or "localhost", parts.port or 15002
    try:
        socket.create_connection((host, port), timeout=10).close()
    except OSError as error:
        raise RequirementMissing(f"no Spark Connect server at {host}:{port}: {error}") from None


def parallelism(spark: SparkSession) -> int:
    """How many tasks run at a time, or a guess: a Connect session does not say how many cores there are."""
    if not is_connected(spark):
        return int(spark.sparkContext.defaultParallelism)
    for setting in ("spark.sql.leafNodeDefaultParallelism", "spark.default.parallelism"):
        value = spark.conf.get(setting, None)
        if value:
            return int(value)
    return min(MOST_GUESSED, int(spark.conf.get("spark.sql.shuffle.partitions") or MOST_GUESSED))


def is_connected(spark: SparkSession) -> bool:
    """Is it a session of Spark Connect, so without a JVM in this process?"""
    return ".connect." in type(spark).__module__


def running_session() -> SparkSession | None:
    """The session of this process, when there is one: it belongs to whoever started it."""
    check()
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


def register(spark: SparkSession) -> None:
    """Make format("amqp") known to this session; needed only where the package is shipped and not installed."""
    from pyspark.errors import AnalysisException

    from warrenmq.spark.source import AmqpDataSource

    try:
        spark.dataSource.register(AmqpDataSource)
    except AnalysisException as error:
        # Spark 4.0 refuses what it has found by itself already.
        if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):
            raise


def _submitted() -> bool:
    """True under spark-submit, which has already chosen the master."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _share_import_path() -> None:
    """Local workers are new processes: they must find warren where we found it, installed or in a source tree."""
    import warrenmq

    root = os.path.dirname(os.path.dirname(os.path.abspath(warrenmq.__file__)))
    parts = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    if root not in parts:
        os.environ["PYTHONPATH"] = os.pathsep.join([root, *parts])
