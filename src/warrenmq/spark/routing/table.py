"""``route``: the broker's publish path over a DataFrame of messages, without a broker.

Duty: the Spark side, for rows that come from anywhere. Most messages repeat what others said, so the path is walked
once for every *distinct* set of the facts that can change a verdict (exchange and key; headers only where an exchange
looks at them; a size, user-id or expiration only where it is not plainly valid) and the verdicts are joined back. Not
here: the verdict itself (``path.py``), which is the broker's own code, and tables that lie in files (``files.py``).

Columns read, all but ``exchange`` and ``routing_key`` optional: ``vhost``, ``user`` (who publishes), ``headers`` and
``header_types``, ``user_id``, ``expiration``, ``reply_to``, ``message_id``, ``correlation_id``, ``timestamp``,
``body`` or ``body_size``, ``mandatory``, ``published_at`` (a timestamp; what ``scheduled_until`` counts from).

Columns added: ``outcome`` (confirmed, returned, refused, scheduled), ``queues``, ``reply_code``, ``reply_text``,
``scheduled_until``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from warrenmq.broker.publish import DIRECT_REPLY
from warrenmq.spark.headers import from_maps
from warrenmq.spark.routing.definitions import InputError, Plan
from warrenmq.spark.routing.judge import OPTIONAL, arrays, judge_rows
from warrenmq.spark.routing.outcome import VERDICT, VERDICT_NAMES, check_columns, told
from warrenmq.spark.routing.path import DEFAULT_MAX_SIZE
from warrenmq.spark.routing.relevance import PLAIN_EXPIRATION, SALTS, Relevance
from warrenmq.spark.sessions import parallelism
from warrenmq.wire.fields import Table

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import Column, DataFrame

FEW_NAMES = 12
NEVER_NULL = ("__exchange", "__routing_key", "__headers")  # plain equality is one comparison where null-safe is two


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
    from pyspark.sql import functions as F

    plan = Plan.of(definitions, vhost, user, max_message_size, interceptors)
    check_columns(df.columns)
    facts = _facts(df, plan.path().relevance(), user, max_message_size)
    keyed = df.select("*", *[column.alias(f"__{name}") for name, column in facts.items()])
    names = [f"__{name}" for name in facts]
    distinct = keyed.select(*names).distinct().repartition(parallelism(df.sparkSession))
    schema = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in distinct.schema.fields)
    verdicts = distinct.mapInArrow(Judge(plan, tuple(facts)), f"{schema}, {VERDICT}")
    verdicts = verdicts.select(*[F.col(name).alias(f"{name}_") for name in names], *VERDICT_NAMES)

    same: Column = F.lit(True)
    for name in names:
        mine, judged = F.col(name), F.col(f"{name}_")
        same = same & (mine == judged if name in NEVER_NULL else mine.eqNullSafe(judged))
    joined = keyed.join(F.broadcast(verdicts), same, "left")

    return told(joined, df.columns, mandatory)


def _facts(df: DataFrame, relevance: Relevance, user: str | None, max_message_size: int) -> dict[str, Column]:
    """The columns a verdict can depend on, each reduced to null where it cannot matter."""
    from pyspark.sql import functions as F

    have = set(df.columns)
    facts: dict[str, Column] = {"exchange": F.coalesce(F.col("exchange"), F.lit(""))}
    key = F.coalesce(F.col("routing_key"), F.lit(""))
    if relevance.key_ignored and "vhost" not in have:
        # A fanout's unique keys would make every message distinct for nothing.
        key = F.when(F.col("exchange").isin(*relevance.key_ignored), "").otherwise(key)
    facts["routing_key"] = key
    if "vhost" in have:
        facts["vhost"] = F.col("vhost")
    if "user" in have:
        facts["user"] = F.col("user")
    if "headers" in have:
        facts["headers"] = _fingerprint(df, relevance)
    if "user_id" in have and ("user" in have or user is not None):
        publisher = F.coalesce(F.col("user"), F.lit(user)) if "user" in have else F.lit(user)
        facts["user_id"] = F.when(F.col("user_id") != publisher, F.col("user_id"))
    if "expiration" in have:
        facts["expiration"] = F.when(~F.col("expiration").rlike(PLAIN_EXPIRATION), F.col("expiration"))
    if "body_size" in have or "body" in have:
        size = F.col("body_size").cast("bigint") if "body_size" in have else F.octet_length("body").cast("bigint")
        facts["body_size"] = F.when(size > max_message_size, size)
    if "reply_to" in have:
        facts["reply_to"] = F.when(F.col("reply_to") == DIRECT_REPLY, F.col("reply_to"))
    if relevance.random:
        plain = [F.col(f"`{field.name}`") for field in df.schema.fields if "map<" not in field.dataType.simpleString()]
        facts["salt"] = F.when(_reaches(relevance, relevance.random), F.pmod(F.xxhash64(*plain), F.lit(SALTS)))
    for name in ("message_id", "correlation_id", "timestamp"):
        exchanges = relevance.hashed_by.get(name, ())
        if name in have and exchanges:
            value = F.unix_seconds("timestamp").cast("string") if name == "timestamp" else F.col(name)
            facts[name] = F.when(_reaches(relevance, exchanges), value)
    return facts


def _reaches(relevance: Relevance, exchanges: tuple[str, ...]) -> Column:
    """Whether a message begins at one of these, as far as its exchange column tells."""
    from pyspark.sql import functions as F

    return F.lit(True) if relevance.rerouted else F.col("exchange").isin(*exchanges)


def _fingerprint(df: DataFrame, relevance: Relevance) -> Column:
    """The headers a verdict can depend on, as one canonical text (JSON); empty for nearly every message."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import MapType

    kind = df.schema["headers"].dataType
    if not isinstance(kind, MapType) or kind.keyType.simpleString() != "string":
        raise InputError(f"column 'headers' is {kind.simpleString()}; expected a map from string")
    headers = F.col("headers")
    names = relevance.header_names
    types = F.col("header_types") if "header_types" in df.columns else None

    def letter(name: Column | str) -> Column:
        """Of a header that is there; null without one, whatever its type is said to be."""
        own = F.lit(_wire_kind(kind) or "")
        return F.when(F.map_contains_key(headers, name), own if types is None else F.coalesce(types[name], own))

    if len(names) <= FEW_NAMES:
        # Lookups by name, a value and a letter each. Larger and the JVM would not compile the code that Spark makes of
        # it; with higher-order functions Spark would make none, for the whole scan.
        text = F.to_json(F.array(*[part for name in names for part in (headers[name].cast("string"), letter(name))]))
    else:
        found = F.array_sort(F.filter(F.map_keys(headers), lambda name: name.isin(*names)))
        text = F.to_json(F.transform(found, lambda name: F.array(name, headers[name].cast("string"), letter(name))))
    present = F.lit(False)
    for name in relevance.always:
        present = present | F.map_contains_key(headers, name)
    if relevance.header_exchanges:
        present = present | _reaches(relevance, relevance.header_exchanges)
    return F.when(headers.isNotNull() & present, text).otherwise("")


def unpack(text: str, names: tuple[str, ...]) -> Table:
    """The headers of a fingerprint: value and letter for each name in turn, or triples with the name."""
    found: list[Any] = json.loads(text)
    if len(names) <= FEW_NAMES:
        found = [(name, *found[2 * at : 2 * at + 2]) for at, name in enumerate(names)]
    there = [(name, value, letter) for name, value, letter in found if letter is not None]
    return from_maps({name: value for name, value, _ in there}, {name: letter for name, _, letter in there if letter})


def _wire_kind(kind: Any) -> str | None:
    """The wire letter for a map whose values are not text."""
    letters = {"string": None, "int": "I", "bigint": "l", "boolean": "t", "double": "d", "float": "f", "smallint": "s"}
    return letters.get(kind.valueType.simpleString())


class Judge:
    """Judges batches of distinct facts, in a worker."""

    def __init__(self, plan: Plan, names: tuple[str, ...]) -> None:
        self.plan = plan
        self.names = names

    def __call__(self, batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        import pyarrow as pa

        headers = self.plan.path().relevance().header_names
        for batch in batches:
            columns = {name: batch.column(index).to_pylist() for index, name in enumerate(self.names)}
            if "headers" in columns:
                columns["headers"] = [unpack(text, headers) if text else None for text in columns["headers"]]
            nothing = [None] * batch.num_rows
            facts = [columns.get(name, nothing) for name in ("exchange", "routing_key", *OPTIONAL)]
            verdicts = judge_rows(self.plan, zip(*facts, strict=True))
            names = [*batch.schema.names, *VERDICT_NAMES]
            yield pa.RecordBatch.from_arrays([*batch.columns, *arrays(verdicts)], names=names)
