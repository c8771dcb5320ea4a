"""Starting a Spark session for the pipeline: local by default, any cluster by its master URL.

Duty: sensible settings for a small session, and one line when Spark cannot start. Settings given by the caller or by
spark-submit win. Not here: the checks themselves (``requirements.py``) and what runs in the session.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from warrenmq.spark.requirements import RequirementMissing, check

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def session(
    master: str | None = None, name: str = "warren", settings: Mapping[str, str] | None = None, quiet: bool = True
) -> SparkSession:
    """The running session if there is one, else a new one with format("amqp") registered."""
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
    spark.sparkContext.setLogLevel("OFF")


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
