"""The Spark type of an Avro or Protobuf schema, so that nobody has to write it twice.

Duty: schema -> StructType. A union of null and one type is that type; a union of several types is text, and values of
it that are no text are left over. Not here: reading bodies (``formats.py``).
"""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import types as T

from warrenmq.spark.options import OptionError

AVRO = {
    "boolean": T.BooleanType(),
    "int": T.IntegerType(),
    "long": T.LongType(),
    "float": T.FloatType(),
    "double": T.DoubleType(),
    "bytes": T.BinaryType(),
    "string": T.StringType(),
    "enum": T.StringType(),
    "fixed": T.BinaryType(),
    "null": T.StringType(),
}
AVRO_LOGICAL = {
    "date": T.DateType(),
    "timestamp-millis": T.TimestampType(),
    "timestamp-micros": T.TimestampType(),
    "uuid": T.StringType(),
}


def of_avro(text: str) -> T.StructType:
    try:
        found = _avro(json.loads(text), {})
    except (ValueError, KeyError, TypeError) as error:
        raise OptionError(f"this is no Avro schema: {error}") from None
    if not isinstance(found, T.StructType):
        raise OptionError("an Avro schema of bodies has to be a record")
    return found


def _avro(schema: Any, named: dict[str, T.DataType]) -> T.DataType:
    if isinstance(schema, str):
        found = AVRO.get(schema) or named.get(schema) or named.get(schema.rpartition(".")[2])
        if found is None:
            raise ValueError(f"unknown type '{schema}' (a record within itself has no Spark type)")
        return found
    if isinstance(schema, list):
        others = [each for each in schema if each != "null"]
        return _avro(others[0], named) if len(others) == 1 else T.StringType()
    kind = schema["type"]
    if kind == "record":
        fields = [T.StructField(field["name"], _avro(field["type"], named)) for field in schema["fields"]]
        return _named(schema, T.StructType(fields), named)
    if kind == "array":
        return T.ArrayType(_avro(schema["items"], named))
    if kind == "map":
        return T.MapType(T.StringType(), _avro(schema["values"], named))
    logical = schema.get("logicalType")
    if logical == "decimal":
        return T.DecimalType(int(schema["precision"]), int(schema.get("scale", 0)))
    found = AVRO_LOGICAL.get(logical) or _avro(kind, named)
    return _named(schema, found, named) if "name" in schema else found


def _named(schema: dict[str, Any], kind: T.DataType, named: dict[str, T.DataType]) -> T.DataType:
    named[schema["name"]] = kind
    if schema.get("namespace"):
        named[f"{schema['namespace']}.{schema['name']}"] = kind
    return kind


def of_protobuf(descriptor: Any, above: tuple[str, ...] = ()) -> T.StructType:
    if descriptor.full_name in above:
        raise OptionError(f"message '{descriptor.full_name}' contains itself, which has no Spark type: give a schema")
    within = (*above, descriptor.full_name)
    return T.StructType([T.StructField(field.name, _protobuf(field, within)) for field in descriptor.fields])


def _protobuf(field: Any, above: tuple[str, ...]) -> T.DataType:
    kind: T.DataType
    message = field.message_type
    if message is not None and message.GetOptions().map_entry:
        return T.MapType(T.StringType(), _protobuf(message.fields_by_name["value"], above))
    if message is not None:
        stamp = message.full_name == "google.protobuf.Timestamp"
        kind = T.TimestampType() if stamp else of_protobuf(message, above)
    else:
        kind = _protobuf_scalar(field)
    return T.ArrayType(kind) if field.is_repeated else kind


def _protobuf_scalar(field: Any) -> T.DataType:
    kinds = {
        field.CPPTYPE_INT32: T.IntegerType(),
        field.CPPTYPE_INT64: T.LongType(),
        field.CPPTYPE_UINT32: T.LongType(),
        field.CPPTYPE_UINT64: T.DecimalType(20, 0),
        field.CPPTYPE_FLOAT: T.FloatType(),
        field.CPPTYPE_DOUBLE: T.DoubleType(),
        field.CPPTYPE_BOOL: T.BooleanType(),
        field.CPPTYPE_ENUM: T.StringType(),
    }
    if field.cpp_type == field.CPPTYPE_STRING:
        return T.BinaryType() if field.type == field.TYPE_BYTES else T.StringType()
    return kinds[field.cpp_type]
