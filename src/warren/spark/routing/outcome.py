"""From a verdict to what a user sees: ``outcome``, ``queues``, ``reply_code``, ``reply_text``, ``scheduled_until``.

Duty: the part of a verdict that depends on the row alone (whether it was mandatory, when it was published), in Spark's
own expressions, and the checks of a table's columns. Not here: the verdicts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from warren.spark.routing.definitions import InputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ADDED = ("outcome", "queues", "reply_code", "reply_text", "scheduled_until")
# Marked, because a table of messages may well have a column "code" or "text" of its own.
VERDICT_NAMES = ("__verdict", "__queues", "__code", "__text", "__delay_ms", "__due_ms")
VERDICT = (
    "`__verdict` string, `__queues` array<string>, `__code` int, `__text` string, `__delay_ms` bigint, "
    "`__due_ms` bigint"
)


def check_columns(columns: Sequence[str]) -> None:
    for needed in ("exchange", "routing_key"):
        if needed not in columns:
            raise InputError(f"the table has no column '{needed}'; it has: {', '.join(columns)}")
    clash = [name for name in ADDED if name in columns]
    if clash:
        raise InputError(f"the table already has the column '{clash[0]}', which route adds: drop or rename it")


def told(judged: DataFrame, columns: Sequence[str], mandatory: bool) -> DataFrame:
    """``columns`` of rows that have their verdict beside them, and what the publisher would have been told."""
    from pyspark.sql import functions as F

    wanted = F.coalesce(F.col("mandatory"), F.lit(mandatory)) if "mandatory" in columns else F.lit(mandatory)
    verdict, queues, code, text, delay_ms, due_ms = [F.col(name) for name in VERDICT_NAMES]
    returned = (verdict == "unroutable") & wanted
    no_route = returned | ((verdict == "scheduled") & wanted & (code == 312))
    published = F.current_timestamp()
    for name in ("published_at", "timestamp"):
        if name in columns:
            published = F.coalesce(F.col(name), published)
            break
    until = F.coalesce(F.timestamp_millis(due_ms), F.timestamp_millis(F.unix_millis(published) + delay_ms))
    return judged.select(
        *[F.col(f"`{name}`") for name in columns],
        F.when(returned, "returned").when(verdict == "unroutable", "confirmed").otherwise(verdict).alias("outcome"),
        queues.alias("queues"),
        F.when(no_route, 312).when(verdict == "refused", code).alias("reply_code"),
        F.when(no_route, "NO_ROUTE").when(verdict == "refused", text).alias("reply_text"),
        until.alias("scheduled_until"),
    )
