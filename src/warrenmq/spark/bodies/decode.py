"""Bodies to columns.

Duty: a DataFrame with ``body`` -> the same rows with a struct column of the body's fields, and a text column with what
did not fit it: JSON, by path, null where everything did. A body that cannot be read gives a null struct and
``{"_error": why, "_body": the body}``; no row is lost and no query stops because of one.
Not here: formats and fitting, which know nothing of Spark's batches.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from warrenmq.spark.bodies import registry, shapes
from warrenmq.spark.bodies.fitting import fit
from warrenmq.spark.bodies.formats import Avro, Format, Json, Protobuf
from warrenmq.spark.compat import arrow_schema
from warrenmq.spark.options import OptionError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

FORMATS = ("json", "avro", "protobuf")


def decode_bodies(
    df: DataFrame,
    format: str,
    schema: str | StructType | None = None,
    *,
    avro: str | None = None,
    registry_url: str | None = None,
    subject: str | None = None,
    descriptors: bytes | None = None,
    message: str | None = None,
    body: str = "body",
    into: str = "value",
    rescued: str = "rescued",
) -> DataFrame:
    """Read the bodies of ``df`` as ``format`` into the struct column ``into``; what does not fit goes to ``rescued``.

    ``schema``: the columns, as DDL or StructType; JSON needs it, the others' is made of their own schema.
    ``avro``: the reader's schema, as JSON text. ``registry_url``: bodies begin with a schema's number in that registry;
    ``subject``: whose newest schema gives the columns, where neither ``avro`` nor ``schema`` does.
    ``descriptors`` and ``message``: a Protobuf descriptor set, as octets, and the full name of the bodies' message.
    """
    from pyspark.sql import types as T

    reader, columns = reader_of(format, schema, avro, registry_url, subject, descriptors, message)
    names = df.columns
    if body not in names:
        raise OptionError(f"there is no column '{body}' to decode; there are: {', '.join(names)}")
    for made in (into, rescued):
        if made in names:
            raise OptionError(f"there is a column '{made}' already: name another with into= or rescued=")
    result = T.StructType([*df.schema.fields, T.StructField(into, columns), T.StructField(rescued, T.StringType())])
    return df.mapInArrow(Decoding(reader, columns, body, result), result)


def reader_of(
    format: str,
    schema: str | StructType | None,
    avro: str | None,
    registry_url: str | None,
    subject: str | None,
    descriptors: bytes | None,
    message: str | None,
) -> tuple[Format, StructType]:
    """What reads the bodies, and the type of the columns they become."""
    from pyspark.sql import types as T

    if format not in FORMATS:
        raise OptionError(f"format '{format}' is not known; there are: {', '.join(FORMATS)}")
    given: Any = T.StructType.fromDDL(schema) if isinstance(schema, str) else schema
    if format == "json":
        if given is None:
            raise OptionError("JSON bodies need a schema: the columns they become, such as 'id bigint, name string'")
        return Json(), given
    if format == "avro":
        reader = Avro(avro, registry_url, subject)
        if given is None and avro is None:
            if registry_url is None or subject is None:
                raise OptionError("Avro bodies need 'avro', 'schema', or 'subject' to know their columns beforehand")
            given = shapes.of_avro(registry.latest(registry_url, subject)[1])
        return reader, shapes.of_avro(avro or "") if given is None else given
    if descriptors is None or message is None:
        raise OptionError("Protobuf bodies need 'descriptors' (a descriptor set's octets) and 'message' (a full name)")
    protobuf = Protobuf(descriptors, message, registry_url is not None)
    return protobuf, shapes.of_protobuf(protobuf.descriptor()) if given is None else given


class Decoding:
    """A function that adds two columns to batch after batch; pickled to the workers."""

    def __init__(self, reader: Format, columns: StructType, body: str, result: StructType) -> None:
        self.reader = reader
        self.columns = columns
        self.body = body
        self.result = result

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        schema = arrow_schema(self.result)
        value_type = schema.field(len(schema) - 2).type
        for batch in batches:
            values: list[Any] = []
            rescued: list[str | None] = []
            for octets in batch.column(self.body).to_pylist():
                value, left = decode_one(self.reader, self.columns, octets)
                values.append(value)
                rescued.append(left)
            arrays = [*batch.columns, pa.array(values, value_type), pa.array(rescued, pa.string())]
            yield pa.RecordBatch.from_arrays(
                [array.cast(field.type) for array, field in zip(arrays, schema, strict=True)], schema=schema
            )


def decode_one(reader: Format, columns: StructType, body: bytes | str | None) -> tuple[Any, str | None]:
    """A body's fields, and what did not fit as JSON text."""
    if body is None:
        return None, None
    octets = body.encode() if isinstance(body, str) else body
    try:
        value = reader.decode(octets)
    except ValueError as error:
        return None, as_json({"_error": str(error), "_body": octets})
    left: dict[str, Any] = {}
    fitted = fit(value, columns, "", left)
    if fitted is None:
        return None, as_json({"_error": "the body is no object", "_body": octets})
    return fitted, as_json(left) if left else None


def as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=_other)


def _other(value: Any) -> str:
    """Octets as the text they are, else as base64; times and decimals as text."""
    if isinstance(value, (bytes, bytearray)):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            return base64.b64encode(value).decode("ascii")
    return str(value)
