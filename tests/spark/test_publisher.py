"""Every published row ends with its own outcome, whatever other rows look like."""

from __future__ import annotations

from typing import Any

import pytest

from tests.spark.support import address, channel
from tests.support.brokers import RunningBroker
from warrenmq.spark.options import OptionError, parse

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytest.importorskip("pyspark", reason="PySpark is not installed")


def test_a_row_without_a_body_is_refused_and_named(broker: RunningBroker, name: str) -> None:
    from warrenmq.spark.publisher import Publisher
    from warrenmq.spark.sink import failed_rows, named

    with channel(broker) as declaring:
        declaring.queue_declare(name, durable=True)
    options = parse({**address(broker), "exchange": "", "routingKey": name, "httpPort": "15672"}, writing=True)
    for bodies in (pa.array([b"a", None, b""]), pa.array(["a", None, ""])):
        (chunk,) = Publisher(options, "job-0-").run([pa.record_batch({"body": bodies})])
        assert chunk.outcomes == ["confirmed", "invalid", "confirmed"]
        assert "message_id=job-0-1 " in named(failed_rows(chunk), options)
        assert "body is null" in named(failed_rows(chunk), options)


def test_overwriting_is_refused() -> None:
    from pyspark.sql.types import BinaryType, StructField, StructType

    from warrenmq.spark.source import AmqpDataSource

    schema = StructType([StructField("body", BinaryType())])
    with pytest.raises(OptionError, match="format amqp cannot overwrite"):
        AmqpDataSource({"exchange": ""}).writer(schema, True)
    AmqpDataSource({"exchange": ""}).writer(schema, False)


def outcomes(broker: RunningBroker, exchange: str, **columns: list[Any]) -> list[str]:
    from warrenmq.spark.publisher import Publisher

    batch = pa.record_batch(columns)
    options = parse({**address(broker), "exchange": exchange}, writing=True)
    return [outcome for chunk in Publisher(options, "").run([batch]) for outcome in chunk.outcomes]


@pytest.mark.parametrize("good_first", [True, False])
def test_of_two_rows_with_one_message_id_the_unroutable_one_is_blamed(
    broker: RunningBroker, name: str, good_first: bool
) -> None:
    with channel(broker) as declaring:
        declaring.queue_declare(name, durable=True)
    keys = [name, "nowhere"] if good_first else ["nowhere", name]
    found = outcomes(broker, "", body=[b"x", b"x"], routing_key=keys, message_id=["same", "same"])
    assert dict(zip(keys, found, strict=True)) == {name: "confirmed", "nowhere": "returned"}


def test_rows_with_one_id_and_one_key_are_told_apart_by_their_headers(broker: RunningBroker, name: str) -> None:
    with channel(broker) as declaring:
        declaring.queue_declare(name, durable=True)
        declaring.exchange_declare(f"{name}-x", "headers")
        declaring.queue_bind(name, f"{name}-x", "", arguments={"wanted": "yes"})
    wanted = [[("wanted", value)] for value in ("yes", "no", "yes")]
    headers = pa.array(wanted, pa.map_(pa.string(), pa.string()))
    found = outcomes(broker, f"{name}-x", body=[b"x"] * 3, headers=headers, message_id=["same"] * 3)
    assert found == ["confirmed", "returned", "confirmed"]


def test_many_rows_with_one_id_are_each_answered_for(broker: RunningBroker, name: str) -> None:
    with channel(broker) as declaring:
        declaring.queue_declare(name, durable=True)
    keys = [name if number % 3 else "nowhere" for number in range(6000)]
    found = outcomes(broker, "", body=[b"x"] * 6000, routing_key=keys, message_id=["same"] * 6000)
    assert found == ["confirmed" if key == name else "returned" for key in keys]
