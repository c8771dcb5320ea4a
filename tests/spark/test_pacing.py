"""Rows are read and written no faster than a rate allows."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.spark.support import address, drain, publish
from tests.spark.test_limits import KINDS, declare, options
from tests.support.brokers import RunningBroker
from warrenmq.spark.options import OptionError, parse
from warrenmq.spark.pacing import Pace, paced

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytest.importorskip("pyspark", reason="PySpark is not installed")


def table(rows: int) -> Any:
    return pa.record_batch({"body": pa.array([b"%d" % row for row in range(rows)], pa.binary())})


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_rows_go_in_small_groups_each_when_its_time_has_come() -> None:
    clock = Clock()
    went: list[tuple[float, int]] = []
    for batch in paced([table(25), table(3), table(12)], Pace(100, clock), clock.sleep):
        went.append((round(clock.now - 100, 6), batch.num_rows))
    assert went == [(0.0, 10), (0.1, 10), (0.2, 5), (0.25, 3), (0.28, 10), (0.38, 2)]


def test_a_pause_of_the_reader_is_not_made_up_for() -> None:
    clock = Clock()
    went: list[float] = []
    for batch in paced([table(20)] * 3, Pace(200, clock), clock.sleep):
        assert batch.num_rows == 20
        went.append(round(clock.now - 100, 6))
        clock.now += 5 if len(went) == 1 else 0
    assert went == [0.0, 5.0, 5.1]


def test_a_rate_below_one_row_a_second_lets_one_row_go_at_a_time() -> None:
    clock = Clock()
    pieces = [batch.num_rows for batch in paced([table(3)], Pace(0.5, clock), clock.sleep)]
    assert pieces == [1, 1, 1] and clock.now == 104


@pytest.mark.parametrize("kind", [*KINDS, pytest.param("looked at", marks=pytest.mark.warren_only)])
@pytest.mark.parametrize("parts", [1, 3])
def test_the_tasks_of_a_read_share_its_rate(broker: RunningBroker, name: str, kind: str, parts: int) -> None:
    from pyspark.sql.types import BinaryType, StructField, StructType

    from warrenmq.spark.source import AmqpDataSource

    given = options(broker, "leased queue" if kind == "looked at" else kind, name, maxRowsPerSecond="200")
    if kind == "looked at":
        given["leases"] = "auto"
    declare(broker, kind, name)
    publish(broker, name, [b"%d" % number for number in range(150)])
    schema = StructType([StructField("body", BinaryType())])
    reader: Any = AmqpDataSource({**given, "minPartitions": str(parts)}).reader(schema)
    partitions = list(reader.partitions())
    assert len(partitions) == (1 if kind == "plain queue" else parts)
    assert sum(partition.rate for partition in partitions) == pytest.approx(200)
    began = time.monotonic()
    rows = [row for part in partitions for batch in reader.read(part) for row in batch.column("body").to_pylist()]
    assert sorted(map(int, rows)) == list(range(150))
    # One after another, each at its share, and the last group of each is not waited for.
    assert time.monotonic() - began > 150 / 200 * len(partitions) - 0.1 * len(partitions)


@pytest.mark.parametrize("kind", KINDS)
def test_a_streaming_read_keeps_to_its_rate_too(broker: RunningBroker, name: str, kind: str) -> None:
    from tests.spark.test_limits import batches

    declare(broker, kind, name)
    publish(broker, name, [b"%d" % number for number in range(60)])
    began = time.monotonic()
    (taken,) = batches(options(broker, kind, name, maxRowsPerSecond="40"))
    assert sorted(int(body) for _, body in taken) == list(range(60))
    assert time.monotonic() - began > 60 / 40 - 0.1


@pytest.mark.parametrize("kind", KINDS)
def test_a_read_whose_rows_are_taken_slowly_loses_none(
    broker: RunningBroker, name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.sql.types import BinaryType, StructField, StructType

    from warrenmq.spark import lease_reading, plain, stream_reading
    from warrenmq.spark.source import AmqpDataSource

    for module in (lease_reading, plain, stream_reading):
        monkeypatch.setattr(module, "BATCH_ROWS", 10)
    declare(broker, kind, name)
    publish(broker, name, [b"%d" % number + b" " * 60_000 for number in range(100)])
    given = {**options(broker, kind, name), "prefetchCount": "10"}
    reader: Any = AmqpDataSource(given).reader(StructType([StructField("body", BinaryType())]))
    real, later = time.monotonic, [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: real() + later[0])
    rows: list[bytes] = []
    for partition in reader.partitions():
        for batch in reader.read(partition):
            rows += batch.column("body").to_pylist()
            later[0] += 1000  # as if the rows had taken so long
    assert sorted(map(int, rows)) == list(range(100))


def test_a_task_of_a_write_publishes_no_faster_than_its_rate(broker: RunningBroker, name: str) -> None:
    from warrenmq.spark.publisher import Publisher

    declare(broker, "plain queue", name)
    given = {**address(broker), "exchange": "", "routingKey": name, "maxRowsPerSecondPerTask": "40"}
    began = time.monotonic()
    chunks = list(Publisher(parse(given, writing=True), "job-").run([table(50), table(20)]))
    assert time.monotonic() - began > 70 / 40 - 0.1
    assert {outcome for chunk in chunks for outcome in chunk.outcomes} == {"confirmed"}
    messages = drain(broker, name)
    assert [message.properties.message_id for message in messages] == [f"job-{row}" for row in range(70)]


@pytest.mark.parametrize(
    ("given", "writing", "said"),
    [
        ({"stream": "s", "maxRowsPerSecond": "0"}, False, "option 'maxRowsPerSecond' is 0; expected 1 or more"),
        ({"stream": "s", "maxRowsPerSecond": "few"}, False, "option 'maxRowsPerSecond' is 'few'; expected a whole"),
        ({"exchange": "", "maxRowsPerSecond": "5"}, True, "unknown option 'maxRowsPerSecond'.*maxRowsPerSecondPerTask"),
        ({"exchange": "", "maxRowsPerSecondPerTask": "-1"}, True, "'maxRowsPerSecondPerTask' is -1; expected 1"),
    ],
)
def test_a_rate_that_is_none_is_refused_in_one_line(given: dict[str, str], writing: bool, said: str) -> None:
    with pytest.raises(OptionError, match=said) as refused:
        parse(given, writing=writing)
    assert "\n" not in str(refused.value)
