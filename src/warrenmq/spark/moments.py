"""Times out of Spark as times in UTC.

Duty: rows in this process whose times mean the same wherever it runs. What Spark gives Python for a timestamp has no
zone and is in that of this machine, whatever the session's is. Not here: times into Spark, which knows zones there.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

EPOCH = datetime.fromtimestamp(0, UTC)


def collected(frame: DataFrame) -> list[dict[str, Any]]:
    """All rows, by column."""
    from pyspark.sql import functions as F

    kinds = dict(frame.dtypes)
    times = [name for name, kind in kinds.items() if kind == "timestamp"]
    rows = frame.withColumns({name: F.unix_micros(F.col(name)) for name in times}) if times else frame
    found = [row.asDict() for row in rows.collect()]
    for row in found:
        for name in times:
            if row[name] is not None:
                row[name] = at(row[name])
    return found


def at(micros: int) -> datetime:
    """µs since 1970 as a time."""
    return EPOCH + timedelta(microseconds=micros)
