"""What differs between Spark 4.0 and 4.2.

Read limits and AvailableNow for Python sources came with 4.2. With an older Spark the classes below stand in: a source
then gets no limit from Spark (it applies its own) and AvailableNow takes everything in one batch. And a function of
Spark's that Python sources need was given other parameters.
"""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
    from pyspark.sql.types import StructType
else:
    try:
        from pyspark.sql.streaming.datasource import (
            ReadAllAvailable,
            ReadLimit,
            ReadMaxRows,
            SupportsTriggerAvailableNow,
        )
    except ImportError:

        class ReadLimit:
            """The stand-in for Spark's class where Spark has none."""

        @dataclass
        class ReadAllAvailable(ReadLimit):
            """The stand-in for "no limit"."""

        @dataclass
        class ReadMaxRows(ReadLimit):
            """The stand-in for a limit of rows."""

            max_rows: int

        class SupportsTriggerAvailableNow(ABC):  # noqa: B024  (stands in for an interface)
            """The stand-in for the mark of readers that know where "now" ends."""


def arrow_schema(schema: StructType) -> pa.Schema:
    """Exactly what Spark checks record batches against; timestamps are in UTC."""
    from pyspark.sql.pandas.types import to_arrow_schema

    try:
        return to_arrow_schema(schema, timezone="UTC")
    except TypeError:  # Spark before 4.2
        return to_arrow_schema(schema)


__all__ = ["arrow_schema", "ReadAllAvailable", "ReadLimit", "ReadMaxRows", "SupportsTriggerAvailableNow"]
