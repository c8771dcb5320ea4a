"""From a verdict to what a user sees: ``outcome``, ``queues``, ``reply_code``, ``reply_text``, ``scheduled_until``.

Duty: the part of a verdict that depends on the row alone (whether it was mandatory, when it was published), in Spark's
own expressions, and the checks of a table's columns. Not here: the verdicts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from warrenmq.spark.routing.definitions import InputError
from warrenmq.supposing.path import CONFIRMED, REFUSED, SCHEDULED, UNROUTABLE
from warrenmq.wire.replies import NO_ROUTE, reply_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ADDED = ("outcome", "queues", "reply_code", "reply_text", "scheduled_until")
# Marked, because a table of messages may well have a column "code" or "text" of its own.
VERDICT_NAMES = ("__verdict", "__queues", "__code", "__text", "__delay_ms", "__due_ms")
VERDICT_TYPES = ("tinyint", "array<string>", "int", "string", "bigint", "bigint")
KINDS = (CONFIRMED, UNROUTABLE, REFUSED, SCHEDULED)  # a number travels in less time than a text
VERDICT = ", ".join(f"`{name}` {kind}" for name, kind in zip(VERDICT_NAMES, VERDICT_TYPES, strict=True))


def check_columns(columns: Sequence[str]) -> None:
    for needed in ("exchange", "routing_key"):
        if needed not in columns:
            raise InputError(f"the table has no column '{needed}'; it has: {', '.join(columns)}")
    clash = [name for name in ADDED if name in columns]
    if clash:
        raise InputError(f"the table already has the column '{clash[0]}', which route adds: drop or rename it")


def told(judged: DataFrame, columns: Sequence[str], mandatory: bool, wanted: Sequence[str] | None = None) -> DataFrame:
    """What the publisher would have been told, beside rows that have ``columns`` and their verdict.

    ``wanted``: which of the columns and of those that are added; all unless given.
    """
    must = f"coalesce(mandatory, {mandatory})" if "mandatory" in columns else str(mandatory)
    verdict, queues, code, text, delay_ms, due_ms = VERDICT_NAMES
    confirmed, unroutable, refused, scheduled = [f"{verdict} = {number}" for number in range(len(KINDS))]
    returned = f"{unroutable} and {must}"
    no_route = f"{returned} or {scheduled} and {must} and {code} = {NO_ROUTE}"
    published = f"coalesce({', '.join([*times(columns), 'current_timestamp()'])})"
    added = {
        "outcome": f"case when {returned} then 'returned' when {confirmed} or {unroutable} then '{CONFIRMED}' "
        f"when {refused} then '{REFUSED}' when {scheduled} then '{SCHEDULED}' end",
        "queues": queues,
        "reply_code": f"case when {no_route} then {NO_ROUTE} when {refused} then {code} end",
        "reply_text": f"case when {no_route} then '{reply_name(NO_ROUTE)}' when {refused} then {text} end",
        "scheduled_until": f"coalesce(timestamp_millis({due_ms}), "
        f"timestamp_millis(unix_millis({published}) + {delay_ms}))",
    }
    names = [*columns, *ADDED] if wanted is None else wanted
    # As texts: every function that is called in Python is a few calls to Spark's JVM, and half a millisecond.
    return judged.selectExpr(*[f"{added[name]} as {name}" if name in added else _quoted(name) for name in names])


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def times(columns: Sequence[str]) -> list[str]:
    """The column that says when a message was published."""
    return [name for name in ("published_at", "timestamp") if name in columns][:1]


def needed(columns: Sequence[str], wanted: Sequence[str]) -> tuple[list[str], list[str]]:
    """Of the table and of the verdict, the columns without which ``told`` cannot make those that are wanted."""
    unknown = [name for name in wanted if name not in columns and name not in ADDED]
    if unknown:
        known = ", ".join([*columns, *ADDED])
        raise InputError(f"there is no column '{unknown[0]}' in the table or among those route adds: {known}")
    verdict, queues, code, text, delay_ms, due_ms = VERDICT_NAMES
    parts = {
        "outcome": ["mandatory", verdict],
        "queues": [queues],
        "reply_code": ["mandatory", verdict, code],
        "reply_text": ["mandatory", verdict, code, text],
        "scheduled_until": [*times(columns), delay_ms, due_ms],
    }
    names = {part for name in wanted for part in parts.get(name, [name])}
    return [name for name in columns if name in names], [name for name in VERDICT_NAMES if name in names]
