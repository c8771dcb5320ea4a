"""Delta and Iceberg tables take every batch once, whatever step the driver dies at."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")
pytest.importorskip("deltalake", reason="deltalake is not installed")
pytest.importorskip("pyiceberg", reason="pyiceberg is not installed")

import warrenmq.spark
from tests.spark.support import channel, publish, reading
from tests.support.brokers import RunningBroker
from warrenmq.spark.jobs.ingest import lakehouse
from warrenmq.spark.lakehouse import BatchWriter, File, Lakehouse, query_id
from warrenmq.spark.options import OptionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


class Table:
    """One table under test: how ``ingest`` names it, and what is in it."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.folder = folder
        self.lake = "shop.messages" if kind == "iceberg" else str(folder / "lake")
        self.checkpoint = str(folder / "checkpoint")
        (folder / "warehouse").mkdir()
        self.catalog = {
            "type": "sql",
            "uri": f"sqlite:///{folder}/catalog.db",
            "warehouse": f"file://{folder}/warehouse",
        }

    def ingest(self, spark: SparkSession, options: dict[str, str]) -> int:
        more: dict[str, Any] = {"catalog": self.catalog} if self.kind == "iceberg" else {}
        done = warrenmq.spark.ingest(spark, options, self.lake, checkpoint=self.checkpoint, table=self.kind, **more)
        return int(done.rows)

    def open(self) -> Lakehouse:
        return lakehouse(self.kind, self.lake, self.catalog, self.checkpoint)

    def bodies(self) -> list[int]:
        import pyarrow as pa

        table: pa.Table
        if self.kind == "delta":
            from deltalake import DeltaTable

            table = DeltaTable(self.lake).to_pyarrow_table()
        else:
            from pyiceberg.catalog import load_catalog

            table = load_catalog("default", **self.catalog).load_table(self.lake).scan().to_arrow()
        return sorted(int(body) for body in table.column("body").to_pylist())


@pytest.fixture(params=["delta", "iceberg"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    return Table(request.param, tmp_path)


@pytest.fixture
def options(warren: RunningBroker, name: str) -> dict[str, str]:
    with channel(warren) as declaring:
        declaring.queue_declare(name, durable=True, arguments={"x-queue-type": "stream"})
    publish(warren, name, [b"%d" % number for number in range(30)])
    return {**reading(warren), "stream": name, "startingOffsets": "earliest"}


def test_ingest_into_a_table_brings_each_message_once(
    spark: SparkSession, warren: RunningBroker, options: dict[str, str], table: Table
) -> None:
    assert table.ingest(spark, options) == 30
    publish(warren, options["stream"], [b"%d" % number for number in range(30, 40)])
    assert table.ingest(spark, options) == 10
    assert table.bodies() == list(range(40))


class Dying:
    """A table whose driver dies at a step."""

    def __init__(self, table: Lakehouse, step: str) -> None:
        self.table = table
        self.step = step

    def at(self, step: str) -> None:
        if step == self.step:
            raise KeyboardInterrupt(step)

    def open(self, schema: Any) -> str:
        folder = self.table.open(schema)
        self.at("opened")
        return folder

    def has(self, query: str, batch: int) -> bool:
        self.at("asked")
        return self.table.has(query, batch)

    def commit(self, files: list[File], schema: Any, query: str, batch: int) -> None:
        self.at("written")
        self.table.commit(files, schema, query, batch)
        self.at("committed")


EFFECTIVE = ("written", "committed", "done")
DEATHS = [("opened", "done"), ("asked", "done"), *((first, second) for first in EFFECTIVE for second in EFFECTIVE)]


@pytest.mark.parametrize(("first", "second"), DEATHS)
def test_a_batch_is_in_the_table_once_whatever_steps_the_driver_dies_at(
    spark: SparkSession, table: Table, first: str, second: str
) -> None:
    Path(table.checkpoint).mkdir()
    (Path(table.checkpoint) / "metadata").write_text('{"id":"0123-query"}')
    batches = [
        spark.createDataFrame([(b"%d" % number,) for number in range(start, start + 5)], "body binary").repartition(2)
        for start in (0, 5)
    ]
    for number, batch in enumerate(batches):
        for step in (first, second, "done"):  # Spark runs the batch again until it has written down that it is done
            try:
                BatchWriter(Dying(table.open(), step), table.checkpoint)(batch, number)
            except KeyboardInterrupt:
                continue
    assert Counter(table.bodies()) == Counter(range(10))


def test_another_query_may_write_its_own_batches_to_the_same_table(spark: SparkSession, table: Table) -> None:
    rows = spark.createDataFrame([(b"1",)], "body binary")
    for name in ("one", "two"):
        checkpoint = table.folder / name
        checkpoint.mkdir()
        (checkpoint / "metadata").write_text(f'{{"id":"query-{name}"}}')
        assert query_id(str(checkpoint)) == f"query-{name}"
        for _ in range(2):
            BatchWriter(table.open(), str(checkpoint))(rows, 0)
    assert table.bodies() == [1, 1]


def test_a_table_that_cannot_be_is_told_in_one_line() -> None:
    with pytest.raises(OptionError, match="table 'hudi' is not known; there are: parquet, delta, iceberg"):
        lakehouse("hudi", "x", None, None)
    with pytest.raises(OptionError, match="needs a folder for the checkpoint"):
        lakehouse("iceberg", "a.b", None, None)
    with pytest.raises(OptionError, match="is named namespace.table, not 'b'"):
        lakehouse("iceberg", "b", None, "checkpoint")
