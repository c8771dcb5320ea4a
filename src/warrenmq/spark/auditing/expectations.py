"""What must hold of an audit's tables, each as a count of rows that break it.

Duty: the expectations, by name, and the table of them. Open-source Spark's declarative pipelines have no expectations
of their own (none that fail, drop or count), so they are a table like any other, and a second one that cannot be made
while one that is required is broken. Not here: the tables (``graph``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from warrenmq.spark.auditing.holes import FILE_MISSING
from warrenmq.spark.auditing.listing import JournalError
from warrenmq.spark.auditing.tables import MISSING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Expectation:
    """A promise of one table: ``broken`` are the rows that break it."""

    name: str
    table: str
    broken: Callable[[DataFrame], DataFrame]
    required: bool  # else it is counted, and nothing fails


def _where(condition: str) -> Callable[[DataFrame], DataFrame]:
    return lambda rows: rows.where(condition)


def _twice(rows: DataFrame) -> DataFrame:
    return rows.where("id is not null").groupBy("log", "id").count().where("count > 1")


_LISTED = ", ".join(f"'{one}'" for one in MISSING)
EXPECTATIONS = (
    Expectation("no file is missing", "holes", _where(f"because = '{FILE_MISSING}'"), True),
    Expectation("every message is accounted for", "unaccounted", _where(f"because in ({_LISTED})"), True),
    Expectation("a message has one row", "messages", _twice, True),
    Expectation("nothing leaves a queue twice", "doubled", _where("what = 'left twice'"), False),
    Expectation("nothing enters a queue twice", "doubled", _where("what = 'entered twice'"), False),
    Expectation("no letter is lost", "dead_lettered", _where("letters_lost > 0"), False),
    Expectation("every publish is routed", "unroutable", _where("true"), False),
    Expectation("what has confirms is confirmed", "publishes", _where("publisher = 'unconfirmed'"), False),
)
NAMES = tuple(one.name for one in EXPECTATIONS)


def check(names: Collection[str]) -> None:
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise JournalError(f"there is no expectation '{unknown[0]}'; there are: {', '.join(NAMES)}")


def counted(tables: Mapping[str, DataFrame]) -> DataFrame:
    """One row for each expectation, with how many rows of its table break it."""
    from pyspark.sql import functions as F

    counts = [
        one.broken(tables[one.table]).agg(
            F.lit(one.name).alias("expectation"),
            F.lit(one.table).alias("table"),
            F.lit(one.required).alias("required"),
            F.count("*").alias("broken"),
        )
        for one in EXPECTATIONS
    ]
    return reduce(lambda some, more: some.unionByName(more), counts)


def kept(expectations: DataFrame, also: Collection[str] = ()) -> DataFrame:
    """The same rows; it fails, and says which, where one that is required is broken. ``also``: required too."""
    from pyspark.sql import functions as F

    required = F.col("required") | F.col("expectation").isin(list(also))
    text = F.format_string("%s: %d rows of the table %s break it", "expectation", "broken", "table")
    fails = F.when(required & (F.col("broken") > 0), F.raise_error(text).cast("bigint")).otherwise(F.col("broken"))
    return expectations.select("expectation", "table", required.alias("required"), fails.alias("broken"))
