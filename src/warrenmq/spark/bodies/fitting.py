"""Fitting plain values to a Spark type, and keeping what does not fit.

Duty: a value as JSON, Avro or Protobuf gave it -> the value that the type can hold, and the rest by its path, such as
``lines[2].price``. Nothing is converted that could lose something: text is no number, a number is no text, a number too
large for its type is left over. A field the type has and the value has not is null.
Not here: how bodies are read (``formats.py``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from pyspark.sql import types as T

INTEGERS = {"byte": 8, "short": 16, "integer": 32, "long": 64}
LARGEST_FLOAT = 3.4028234663852886e38


def fit(value: Any, kind: T.DataType, path: str, left: dict[str, Any]) -> Any:
    """The value as ``kind`` holds it; what does not fit is put into ``left`` under its path, and None stands for it."""
    if value is None:
        return None
    if isinstance(kind, T.StructType):
        return _fit_struct(value, kind, path, left)
    if isinstance(kind, T.ArrayType):
        if not isinstance(value, (list, tuple)):
            return _leave(value, path, left)
        return [fit(each, kind.elementType, f"{path}[{n}]", left) for n, each in enumerate(value)]
    if isinstance(kind, T.MapType):
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            return _leave(value, path, left)
        return [(key, fit(each, kind.valueType, _below(path, key), left)) for key, each in value.items()]
    fitted = _fit_scalar(value, kind)
    return _leave(value, path, left) if fitted is None else fitted


def _fit_struct(value: Any, kind: T.StructType, path: str, left: dict[str, Any]) -> Any:
    if not isinstance(value, Mapping):
        return _leave(value, path, left)
    known = set(kind.names)
    for name, each in value.items():
        if name not in known:
            left[_below(path, str(name))] = each
    return {field.name: fit(value.get(field.name), field.dataType, _below(path, field.name), left) for field in kind}


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _leave(value: Any, path: str, left: dict[str, Any]) -> None:
    left[path] = value


def _fit_scalar(value: Any, kind: T.DataType) -> Any:
    """None when it does not fit."""
    name = kind.typeName()
    if name in INTEGERS:
        if isinstance(value, bool) or not isinstance(value, int):
            return None
        limit = 1 << (INTEGERS[name] - 1)
        return value if -limit <= value < limit else None
    if name in ("float", "double"):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return None
        if isinstance(value, int) and int(float(value)) != value:
            return None
        return float(value) if name == "double" or not _too_large(float(value)) else None
    if name in ("string", "varchar", "char"):
        return value if isinstance(value, str) else None
    if name == "boolean":
        return value if isinstance(value, bool) else None
    if name == "binary":
        return bytes(value) if isinstance(value, (bytes, bytearray)) else None
    if isinstance(kind, T.DecimalType):
        return _decimal(value, kind)
    if name == "timestamp":
        return _timestamp(value)
    if name == "date":
        return _date(value)
    return None


def _too_large(value: float) -> bool:
    return math.isfinite(value) and abs(value) > LARGEST_FLOAT


def _decimal(value: Any, kind: T.DecimalType) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        return None
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not exact.is_finite():
        return None
    unit = Decimal(1).scaleb(-kind.scale)
    if exact != exact.quantize(unit) or abs(exact) >= Decimal(10) ** (kind.precision - kind.scale):
        return None
    return exact.quantize(unit)


def _timestamp(value: Any) -> datetime | None:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if not isinstance(value, datetime):
        return None
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value


def _date(value: Any) -> date | None:
    if isinstance(value, str):
        try:
            return date.fromisoformat(value)
        except ValueError:
            return None
    return value if isinstance(value, date) and not isinstance(value, datetime) else None
