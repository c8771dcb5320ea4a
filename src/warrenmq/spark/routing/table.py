"""``route``: the broker's publish path over a DataFrame of messages, without a broker.

Duty: the Spark side, for rows that come from anywhere. The columns a verdict can depend on, and no others, go to Python
in Arrow and verdicts come back beside the rows: one pass, no join and no shuffle, so that it takes no memory for
distinct keys and works for a streaming DataFrame too. Not here: the verdicts (``blocks.py``), and tables that lie in
files (``files.py``).

Columns read, all but ``exchange`` and ``routing_key`` optional: ``vhost``, ``user`` (who publishes), ``headers`` and
``header_types``, ``user_id``, ``expiration``, ``reply_to``, ``message_id``, ``correlation_id``, ``timestamp``,
``delivery_mode``, ``body`` or ``body_size``, ``mandatory``, ``published_at`` (a timestamp; what ``scheduled_until``
counts from).

Columns added: ``outcome`` (confirmed, returned, refused, scheduled), ``queues``, ``reply_code``, ``reply_text``,
``scheduled_until``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from warrenmq.spark.routing.definitions import InputError, Plan
from warrenmq.spark.routing.judge import OPTIONAL
from warrenmq.spark.routing.outcome import VERDICT, VERDICT_NAMES, VERDICT_TYPES, check_columns, told
from warrenmq.supposing.path import DEFAULT_MAX_SIZE
from warrenmq.supposing.relevance import Relevance

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def route(
    df: DataFrame,
    definitions: str | os.PathLike[str] | Mapping[str, Any],
    *,
    vhost: str = "/",
    user: str | None = None,
    mandatory: bool = True,
    max_message_size: int = DEFAULT_MAX_SIZE,
    interceptors: Sequence[str] = (),
) -> DataFrame:
    """Every row of ``df`` with what the broker would have made of publishing it.

    ``vhost``, ``user`` and ``mandatory`` stand in for missing columns; without any user nothing is refused for lack of
    permission. ``interceptors`` are named as in the broker's configuration and looked up where the work is done; they
    see the exchange, the key, and those headers and properties that routing looks at.
    """
    plan = Plan.of(definitions, vhost, user, max_message_size, interceptors)
    check_columns(df.columns)
    facts = _facts(df, plan.path().relevance(), user)
    return told(_judged(df, plan, facts), df.columns, mandatory)


def _facts(df: DataFrame, relevance: Relevance, user: str | None) -> dict[str, Column]:
    """The columns a verdict can depend on, by their names in ``facts.py``."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import MapType

    have = set(df.columns)
    facts: dict[str, Column] = {name: F.col(name) for name in ("exchange", "routing_key")}
    for name in OPTIONAL:
        if name in have:
            facts[name] = F.col(name)
    if "headers" in have:
        kind = df.schema["headers"].dataType
        if not isinstance(kind, MapType) or kind.keyType.simpleString() != "string":
            raise InputError(f"column 'headers' is {kind.simpleString()}; expected a map from string")
        if "header_types" in have:
            facts["header_types"] = F.col("header_types")
    if user is None and "user" not in have:
        facts.pop("user_id", None)
    if "body_size" in have or "body" in have:
        facts["body_size"] = (F.col("body_size") if "body_size" in have else F.octet_length("body")).cast("bigint")
    for name in ("message_id", "correlation_id", "timestamp"):
        if name in facts and name not in relevance.hashed_by:
            del facts[name]
    if "timestamp" in facts and df.schema["timestamp"].dataType.typeName().startswith("timestamp"):
        facts["timestamp"] = F.unix_seconds("timestamp")
    return facts


def _judged(df: DataFrame, plan: Plan, facts: Mapping[str, Column]) -> DataFrame:
    """``df`` with the columns of ``outcome.VERDICT``."""
    from pyspark.sql import functions as F

    arrow_udf = getattr(F, "arrow_udf", None)
    if arrow_udf is None:  # Spark before 4.1
        return _judged_whole(df, plan, facts)
    from warrenmq.spark.routing.batches import Judge

    # A function for each column, so that Spark leaves out those that nobody asks for; it sends the facts only once.
    functions = [arrow_udf(Judge(plan, tuple(facts), at).column, kind) for at, kind in enumerate(VERDICT_TYPES)]
    if plan.path().relevance().random:  # then Spark must not ask twice
        functions = [function.asNondeterministic() for function in functions]
    judged = [function(*facts.values()) for function in functions]
    return df.select("*", *[column.alias(name) for column, name in zip(judged, VERDICT_NAMES, strict=True)])


def _judged_whole(df: DataFrame, plan: Plan, facts: Mapping[str, Column]) -> DataFrame:
    """The verdicts where Spark has no functions over Arrow: all columns go to Python and back."""
    from warrenmq.spark.routing.batches import JudgeWhole

    with_facts = df.select("*", *[column.alias(f"__{name}") for name, column in facts.items()])
    schema = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in df.schema.fields)
    return with_facts.mapInArrow(JudgeWhole(plan, len(df.columns), tuple(facts)), f"{schema}, {VERDICT}")
