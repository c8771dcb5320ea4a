"""``route``: the broker's publish path over a table of messages, without a broker.

Duty: the Spark side. Most messages repeat what others said, so the path is walked once for every *distinct* set of the
facts that can change a verdict (exchange and key; headers only where an exchange looks at them; a size, user-id or
expiration only where it is not plainly valid) and the verdicts are joined back. Not here: the verdict itself
(``path.py``), which is the broker's own code.

Columns read, all but ``exchange`` and ``routing_key`` optional: ``vhost``, ``user`` (who publishes), ``headers`` and
``header_types``, ``user_id``, ``expiration``, ``reply_to``, ``message_id``, ``correlation_id``, ``timestamp``,
``body`` or ``body_size``, ``mandatory``, ``published_at`` (a timestamp; what ``scheduled_until`` counts from).

Columns added: ``outcome`` (confirmed, returned, refused, scheduled), ``queues``, ``reply_code``, ``reply_text``,
``scheduled_until``.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warren.broker.extensions import ExtensionError
from warren.spark.headers import from_maps
from warren.spark.path import Facts, PublishPath
from warren.spark.relevance import Relevance
from warren.wire.fields import Table

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import Column, DataFrame

ADDED = ("outcome", "queues", "reply_code", "reply_text", "scheduled_until")
VERDICT = "`verdict` string, `queues` array<string>, `code` int, `text` string, `delay_ms` bigint, `due_ms` bigint"
# 11 digits are always below the longest expiration the broker takes, so these need no second look.
PLAIN_EXPIRATION = "^[0-9]{1,11}$"
FEW_NAMES = 12
SALTS = 1009  # how many different throws of the dice equal messages to an x-random exchange get
REPLY_TO = "amq.rabbitmq.reply-to"


class InputError(ValueError):
    """The table or the definitions cannot be routed; the text is one line."""


def load_definitions(source: str | os.PathLike[str] | Mapping[str, Any]) -> dict[str, Any]:
    """Definitions in RabbitMQ's export format, from a file, its text or the parsed JSON."""
    if isinstance(source, Mapping):
        return dict(source)
    text = str(source)
    if not text.lstrip().startswith("{"):
        try:
            text = Path(text).read_text(encoding="utf-8")
        except OSError as error:
            raise InputError(f"definitions file {source} cannot be read: {error.strerror}") from None
    try:
        loaded = json.loads(text)
    except ValueError as error:
        raise InputError(f"the definitions are not JSON: {error}") from None
    if not isinstance(loaded, dict) or not any(key in loaded for key in ("exchanges", "queues", "bindings")):
        raise InputError("the definitions have no 'exchanges', 'queues' or 'bindings': not an export of RabbitMQ's")
    return loaded


def route(
    df: DataFrame,
    definitions: str | os.PathLike[str] | Mapping[str, Any],
    *,
    vhost: str = "/",
    user: str | None = None,
    mandatory: bool = True,
    max_message_size: int = 134_217_728,
    interceptors: Sequence[str] = (),
) -> DataFrame:
    """Every row of ``df`` with what the broker would have made of publishing it.

    ``vhost``, ``user`` and ``mandatory`` stand in for missing columns; without any user nothing is refused for lack of
    permission. ``interceptors`` are named as in the broker's configuration and looked up where the work is done; they
    see the exchange, the key, and those headers and properties that routing looks at.
    """
    from pyspark.sql import functions as F

    loaded = load_definitions(definitions)
    # Built here once too: faults in the definitions are the caller's, not a failed task.
    try:
        path = PublishPath(loaded, max_message_size=max_message_size, interceptors=interceptors)
    except (ValueError, ExtensionError) as error:
        raise InputError(str(error)) from None
    relevance = path.relevance()
    for needed in ("exchange", "routing_key"):
        if needed not in df.columns:
            raise InputError(f"the table has no column '{needed}'; it has: {', '.join(df.columns)}")
    clash = [name for name in ADDED if name in df.columns]
    if clash:
        raise InputError(f"the table already has the column '{clash[0]}', which route adds: drop or rename it")

    facts = _facts(df, relevance, user, max_message_size)
    keyed = df.select("*", *[column.alias(f"__{name}") for name, column in facts.items()])
    names = [f"__{name}" for name in facts]
    parallel = df.sparkSession.sparkContext.defaultParallelism
    distinct = keyed.select(*names).distinct().repartition(parallel)
    judge = Judge(json.dumps(loaded, sort_keys=True), tuple(facts), vhost, user, max_message_size, tuple(interceptors))
    schema = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in distinct.schema.fields)
    verdicts = distinct.mapInArrow(judge, f"{schema}, {VERDICT}")
    verdicts = verdicts.select(*[F.col(name).alias(f"{name}_") for name in names], *VERDICT_NAMES)

    same: Column = F.lit(True)
    for name in names:
        mine, judged = F.col(name), F.col(f"{name}_")
        same = same & (mine == judged if name in NEVER_NULL else mine.eqNullSafe(judged))
    joined = keyed.join(F.broadcast(verdicts), same, "left")

    wanted = F.coalesce(F.col("mandatory"), F.lit(mandatory)) if "mandatory" in df.columns else F.lit(mandatory)
    verdict = F.col("verdict")
    returned = (verdict == "unroutable") & wanted
    scheduled_return = (verdict == "scheduled") & wanted & (F.col("code") == 312)
    if "published_at" in df.columns:
        published = F.coalesce(F.col("published_at"), F.current_timestamp())
    elif "timestamp" in df.columns:
        published = F.coalesce(F.col("timestamp"), F.current_timestamp())
    else:
        published = F.current_timestamp()
    until = F.coalesce(
        F.timestamp_millis(F.col("due_ms")), F.timestamp_millis(F.unix_millis(published) + F.col("delay_ms"))
    )
    return joined.select(
        *[F.col(f"`{name}`") for name in df.columns],
        F.when(returned, "returned").when(verdict == "unroutable", "confirmed").otherwise(verdict).alias("outcome"),
        F.col("queues"),
        F.when(returned | scheduled_return, 312).when(verdict == "refused", F.col("code")).alias("reply_code"),
        F.when(returned | scheduled_return, "NO_ROUTE").when(verdict == "refused", F.col("text")).alias("reply_text"),
        until.alias("scheduled_until"),
    )


NEVER_NULL = ("__exchange", "__routing_key", "__headers")  # plain equality is one comparison where null-safe is two
VERDICT_NAMES = ("verdict", "queues", "code", "text", "delay_ms", "due_ms")


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
        facts["reply_to"] = F.when(F.col("reply_to") == REPLY_TO, F.col("reply_to"))
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
    names = fingerprint_names(relevance)
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


def fingerprint_names(relevance: Relevance) -> tuple[str, ...]:
    return (*relevance.always, *sorted(relevance.headers.difference(relevance.always)))


def unpack(text: str, names: tuple[str, ...]) -> Table:
    """The headers of a fingerprint: value and letter for each name in turn, or triples with the name."""
    found: list[Any] = json.loads(text)
    if len(names) <= FEW_NAMES:
        found = [(name, *found[2 * at : 2 * at + 2]) for at, name in enumerate(names)]
    there = [(name, value, letter) for name, value, letter in found if letter is not None]
    return from_maps(
        {name: value for name, value, _ in there}, {name: letter for name, _, letter in there if letter}
    )


def _wire_kind(kind: Any) -> str | None:
    """The wire letter for a map whose values are not text."""
    letters = {"string": None, "int": "I", "bigint": "l", "boolean": "t", "double": "d", "float": "f", "smallint": "s"}
    return letters.get(kind.valueType.simpleString())


class Judge:
    """Walks the publish path for batches of distinct facts; pickled to the workers as definitions, built there."""

    def __init__(
        self,
        definitions: str,
        names: tuple[str, ...],
        vhost: str,
        user: str | None,
        max_message_size: int,
        interceptors: tuple[str, ...],
    ) -> None:
        self.definitions = definitions
        self.names = names
        self.vhost = vhost
        self.user = user
        self.max_message_size = max_message_size
        self.interceptors = interceptors

    def __call__(self, batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        import pyarrow as pa

        path = _path(self.definitions, self.max_message_size, self.interceptors)
        names = fingerprint_names(path.relevance())
        for batch in batches:
            columns = {name: batch.column(index).to_pylist() for index, name in enumerate(self.names)}
            verdicts: list[str] = []
            queues: list[list[str]] = []
            codes: list[int | None] = []
            texts: list[str | None] = []
            delays: list[int | None] = []
            dues: list[int | None] = []
            nothing = [None] * batch.num_rows
            plain = not path.interceptors.of_methods and not path.interceptors.of_messages
            others = [columns.get(name, nothing) for name in OPTIONAL]
            for exchange, key, *rest in zip(columns["exchange"], columns["routing_key"], *others, strict=True):
                vhost = self.vhost if rest[0] is None else rest[0]
                user = self.user if rest[1] is None else rest[1]
                if rest[2] == "":
                    rest[2] = None
                if plain and rest[2:] == NOTHING and "\n" not in exchange and "\r" not in exchange:
                    verdict = path.judge_plain(vhost, user, exchange, key)
                else:
                    packed, user_id, expiration, size, *properties = rest[2:]
                    headers = None if packed is None else unpack(packed, names)
                    verdict = path.judge(
                        Facts(vhost, user, exchange, key, headers, user_id, expiration, size or 0, *properties)
                    )
                verdicts.append(verdict.outcome)
                queues.append(verdict.queues)
                codes.append(verdict.code)
                texts.append(verdict.text)
                delays.append(verdict.delay_ms)
                dues.append(verdict.due_ms)
            arrays = [
                *batch.columns,
                pa.array(verdicts, pa.string()),
                pa.array(queues, pa.list_(pa.string())),
                pa.array(codes, pa.int32()),
                pa.array(texts, pa.string()),
                pa.array(delays, pa.int64()),
                pa.array(dues, pa.int64()),
            ]
            yield pa.RecordBatch.from_arrays(arrays, names=[*batch.schema.names, *VERDICT_NAMES])


OPTIONAL = (
    "vhost", "user", "headers", "user_id", "expiration", "body_size", "reply_to", "message_id", "correlation_id",
    "timestamp",
)  # fmt: skip

NOTHING = [None] * (len(OPTIONAL) - 2)

# One router per worker process, not per task: building one costs more than routing a small batch.
_paths: dict[str, PublishPath] = {}


def _path(definitions: str, max_message_size: int, interceptors: tuple[str, ...]) -> PublishPath:
    digest = hashlib.sha256(f"{max_message_size} {interceptors} {definitions}".encode()).hexdigest()
    path = _paths.get(digest)
    if path is None:
        if len(_paths) >= 4:
            _paths.clear()
        path = PublishPath(json.loads(definitions), max_message_size=max_message_size, interceptors=interceptors)
        _paths[digest] = path
    return path
