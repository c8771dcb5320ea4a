"""Columns to bodies.

Duty: the fields of a body out of the columns that are no part of a message's envelope, or of those that are named, as
one binary column. A row that cannot be written fails its task with the row's values named: a body nobody can read is
not published. Not here: formats (``formats.py``) and publishing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from warrenmq.spark.bodies.decode import FORMATS, as_json
from warrenmq.spark.bodies.formats import Avro, Format, Json, Protobuf
from warrenmq.spark.compat import arrow_schema
from warrenmq.spark.options import OptionError
from warrenmq.spark.schema import WRITE_COLUMNS

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

ENVELOPE = frozenset(name for name, _ in WRITE_COLUMNS)
SHOWN = 200  # characters of a row in an error


class RowNotWritten(ValueError):
    """A row cannot be said in the format; one line."""


def encode_bodies(
    df: DataFrame,
    format: str,
    columns: Sequence[str] | None = None,
    *,
    avro: str | None = None,
    registry_url: str | None = None,
    subject: str | None = None,
    descriptors: bytes | None = None,
    message: str | None = None,
    into: str = "body",
) -> DataFrame:
    """Write ``columns`` (default: all that are not format("amqp")'s own) as the binary column ``into``.

    The other columns stay, those that went into the body do not. ``avro``, ``registry_url`` with ``subject``,
    ``descriptors`` and ``message`` are as for ``decode_bodies``; with a registry a body begins with the number of its
    schema.
    """
    from pyspark.sql import types as T

    chosen = [name for name in df.columns if name not in ENVELOPE] if columns is None else list(columns)
    missing = [name for name in chosen if name not in df.columns]
    if missing or not chosen:
        raise OptionError(f"no columns to write: {', '.join(missing) or 'all belong to the message'}")
    kept = [field for field in df.schema.fields if field.name not in chosen]
    if any(field.name == into for field in kept):
        raise OptionError(f"there is a column '{into}' already: drop it, or name another with into=")
    result = T.StructType([*kept, T.StructField(into, T.BinaryType(), False)])
    writer = writer_of(format, avro, registry_url, subject, descriptors, message)
    return df.mapInArrow(Encoding(writer, chosen, result), result)


def writer_of(
    format: str,
    avro: str | None,
    registry_url: str | None,
    subject: str | None,
    descriptors: bytes | None,
    message: str | None,
) -> Format:
    if format not in FORMATS:
        raise OptionError(f"format '{format}' is not known; there are: {', '.join(FORMATS)}")
    if format == "json":
        return Json()
    if format == "avro":
        return Avro(avro, registry_url, subject)
    if descriptors is None or message is None:
        raise OptionError("Protobuf bodies need 'descriptors' (a descriptor set's octets) and 'message' (a full name)")
    return Protobuf(descriptors, message)


class Encoding:
    """A function that makes the body of every row of batch after batch; pickled to the workers."""

    def __init__(self, writer: Format, columns: list[str], result: StructType) -> None:
        self.writer = writer
        self.columns = columns
        self.result = result

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        schema = arrow_schema(self.result)
        for batch in batches:
            rows = batch.select(self.columns).to_pylist(maps_as_pydicts="strict")
            bodies = pa.array([self._body(row) for row in rows], pa.binary())
            kept = [batch.column(name) for name in self.result.names[:-1]]
            yield pa.RecordBatch.from_arrays([*kept, bodies], schema=schema)

    def _body(self, row: dict[str, Any]) -> bytes:
        try:
            return self.writer.encode(row)
        except ValueError as error:
            raise RowNotWritten(f"{error}; the row is {as_json(row)[:SHOWN]}") from None
