"""replay: messages that were, published again, and a table of what became of each.

Duty: look at what is chosen (``preview``), or plan it, send it step by step with confirms and mandatory, and note what
became of it. Whoever dies is called again with the same folder: what is done is not sent again, and what is in doubt is
sent under the same ids, which an exchange with a deduplication window does not take twice. Not here: each of these.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from warrenmq.spark.acting import settle
from warrenmq.spark.auditing.listing import JournalError, counted
from warrenmq.spark.auditing.reading import check, counts, find
from warrenmq.spark.chunk import CONFIRMED, INVALID
from warrenmq.spark.deduplicated import now_ms
from warrenmq.spark.following import following
from warrenmq.spark.jobs.publish import COLUMNS, published
from warrenmq.spark.options import OptionError, Options, parse
from warrenmq.spark.pacing import RecordedPace
from warrenmq.spark.replaying import slices
from warrenmq.spark.replaying.choosing import Choice
from warrenmq.spark.replaying.folder import Folder, Replay
from warrenmq.spark.routing.definitions import InputError
from warrenmq.spark.sessions import parallelism

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

STEP = 100_000
REPLAYED, FROM, WAS_ID, WAS_USER = "x-replayed", "x-replayed-from", "x-replayed-message-id", "x-replayed-user-id"
CARRIED = ("origin", "at", "was_message_id")


@dataclass(frozen=True)
class Target:
    """The place where messages go, and how. Unless given: exchange and key that they were published with."""

    exchange: str | None = None
    routing_key: str | None = None
    pace: float | None = None  # times as fast as they came; None: as fast as confirms allow
    keep_ids: bool = False  # those that messages had; else each gets one of this replay
    at_least_once: bool = False  # also to exchanges that remember no ids


@dataclass
class Replayed:
    """The outcome for all rows."""

    key: str
    rows: int
    outcomes: Counter[str] = field(default_factory=Counter)
    table: DataFrame | None = None

    @property
    def complete(self) -> bool:
        return self.outcomes[CONFIRMED] == self.rows


def preview(
    spark: SparkSession,
    source: str | Sequence[str] | None,
    options: Mapping[str, str] | None = None,
    *,
    choice: Choice | None = None,
    target: Target | None = None,
    from_queue: str | None = None,
) -> DataFrame:
    """What would be sent, in the shape of ``slices`` with ``was_message_id``; nothing is sent, taken or written."""
    if options:
        _check(options, target or Target())  # what would be said before the first is sent is said now
    rows = _chosen(spark, source, options or {}, choice or Choice(), from_queue, lease=False)[0]
    return _aimed(rows, target or Target(), "preview")


def replay(
    spark: SparkSession,
    source: str | Sequence[str] | None,
    options: Mapping[str, str],
    out: str,
    *,
    choice: Choice | None = None,
    target: Target | None = None,
    from_queue: str | None = None,
    step: int = STEP,
    progress: Callable[[str], None] | None = None,
) -> Replayed:
    """Publish again what is chosen of ``source``, the folders of journals or of a lake, or of the queue ``from_queue``.

    ``options``: of the broker, as of ``format("amqp")``. ``out``: a folder for what is to be sent and what became of
    it; called again with it, the replay goes on. A message of a queue leaves it when it has arrived; what is not chosen
    or does not arrive stays. ``step``: so many rows are noted together.
    """
    choice, target, tell = choice or Choice(), target or Target(), progress or (lambda _line: None)
    _check(options, target)
    asked = {
        "source": [source] if isinstance(source, str) else list(source or []),
        "from_queue": from_queue,
        **{f"choice {name}": value for name, value in choice.said().items()},
        **{name: value for name, value in asdict(target).items() if name not in ("pace", "at_least_once")},
    }
    folder = Folder(spark, out)
    plan = folder.replay(asked)
    if plan is None:
        with following(spark, "choosing", extent(spark, source), tell):
            plan = _plan(spark, folder, source, options, choice, target, from_queue, step, asked)
        tell(f"{plan.rows:,} messages in {plan.steps} steps, as replay {plan.key}")
    done = folder.done()
    sent = Replayed(plan.key, plan.rows)
    sending = _options(options, target, plan)
    pace = None
    for number in range(plan.steps):
        if number not in done:
            rows = folder.step(number)
            if target.pace is not None and pace is None:
                pace = _pace(rows, target.pace)
            with following(spark, f"step {number + 1} of {plan.steps}", min(step, plan.rows), tell):
                told = folder.write_outcomes(number, _sent(rows, sending, plan.key, pace, parallelism(spark)))
            if from_queue is not None:
                _acknowledge(rows, told, from_queue, options)
            counts = {row["outcome"]: row["count"] for row in told.groupBy("outcome").count().collect()}
            folder.finish(number, counts)
            done[number] = Counter(counts)
            tell(f"step {number + 1} of {plan.steps}: {_counted(done[number])}")
        sent.outcomes += done[number]
    sent.table = folder.outcomes() if plan.rows else None
    return sent


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(counts.items())) or "nothing"


def _check(options: Mapping[str, str], target: Target) -> None:
    if target.pace is not None and not target.pace > 0:
        raise InputError(f"the pace is {target.pace:g} times the recorded one; expected more than 0")
    own = {name.lower() for name in ("exchange", "routingKey", "batchKey", "batchBegan", "deduplicate", "messageIds")}
    for name in options:
        if name.lower() in own:
            raise OptionError(f"option '{name}' is not for a replay, which says itself where rows go and what ids are")
    parse({**options, "exchange": ""}, writing=True)


def _plan(
    spark: SparkSession,
    folder: Folder,
    source: str | Sequence[str] | None,
    options: Mapping[str, str],
    choice: Choice,
    target: Target,
    from_queue: str | None,
    step: int,
    asked: dict[str, Any],
) -> Replay:
    """Which rows, in which steps, under which ids: written down before the first is sent."""
    from pyspark.sql import functions as F

    key = uuid.uuid4().hex[:12]
    rows, leased = _chosen(spark, source, options, choice, from_queue, lease=True)
    aimed = _aimed(rows, target, key)
    sums = aimed.agg(F.count("*").alias("rows"), F.count("at").alias("timed")).collect()[0]
    count = sums["rows"]
    if target.pace is not None and sums["timed"] < count:
        raise InputError("some rows do not say when they were published: they have no pace")
    steps = -(-count // step)
    cut = aimed.repartitionByRange(max(1, steps), "at", "origin").withColumn("step", F.spark_partition_id())
    numbered = F.concat(F.lit(f"{key}-"), F.monotonically_increasing_id().cast("string"))
    cut = cut.sortWithinPartitions("at", "origin").withColumn("number", numbered)
    own = F.col("message_id") if target.keep_ids else F.lit(None)
    planned = folder.plan(cut.withColumn("message_id", F.coalesce(own, "number")).drop("number"))
    if leased is not None and from_queue is not None:
        others = leased.join(planned.select("lease", "slot"), ["lease", "slot"], "left_anti")
        back = others.select(F.lit(from_queue).alias("queue"), "lease", "slot", F.lit("requeue").alias("action"))
        settle(back, slices.connecting(options))
    replay = Replay(key, now_ms(), count, steps, asked)
    folder.begin(replay)
    return replay


def one_source(source: str | Sequence[str] | None, from_queue: str | None) -> None:
    """A folder or a queue: either."""
    if (source is None) == (from_queue is None):
        raise InputError("say what is replayed: the folder of a journal or of a lake, or a queue; one of them")


def extent(spark: SparkSession, source: str | Sequence[str] | None) -> int:
    """How many rows are looked at: of journals events, of a lake messages; of a queue nobody knows yet."""
    paths = [source] if isinstance(source, str) else list(source or [])
    if not paths:
        return 0
    try:
        files = find(spark, paths)
    except JournalError:
        return spark.read.parquet(*paths).count()
    check(spark, files)
    return sum(counts(spark, counted(files)).values())


def _chosen(
    spark: SparkSession,
    source: str | Sequence[str] | None,
    options: Mapping[str, str],
    choice: Choice,
    from_queue: str | None,
    lease: bool,
) -> tuple[DataFrame, DataFrame | None]:
    """The rows; and all that is under the lease that was taken for them."""
    one_source(source, from_queue)
    if from_queue is not None:
        return slices.queue(spark, options, from_queue, choice, lease)
    paths = [source] if isinstance(source, str) else list(source or [])
    try:
        find(spark, paths)
    except JournalError:
        return slices.lake(spark, paths, choice), None
    return slices.journal(spark, paths, choice), None


def _aimed(rows: DataFrame, target: Target, key: str) -> DataFrame:
    """With exchange, key and headers as they will be sent."""
    from pyspark.sql import functions as F

    if target.exchange is None or target.routing_key is None:
        rows = slices.first_published(rows)
    ours = (REPLAYED, FROM, WAS_ID, WAS_USER)

    def without(name: str) -> Column:
        empty = F.map_from_arrays(F.array().cast("array<string>"), F.array().cast("array<string>"))
        return F.map_filter(F.coalesce(F.col(name), empty), lambda each, _: ~each.isin(*ours))

    said = F.create_map(*_pairs(((REPLAYED, F.lit(key)), (FROM, F.col("origin")))))
    for name, column in ((WAS_ID, "message_id"), (WAS_USER, "user_id")):
        more = F.create_map(F.lit(name), F.col(column))
        said = F.when(F.col(column).isNull(), said).otherwise(F.map_concat(said, more))
    changed = {
        "was_message_id": F.col("message_id"),
        "headers": F.map_concat(without("headers"), said),
        "header_types": without("header_types"),
        "user_id": F.lit(None).cast("string"),  # a broker takes no other user's
    }
    if target.exchange is not None:
        changed["exchange"] = F.lit(target.exchange)
    if target.routing_key is not None:
        changed["routing_key"] = F.lit(target.routing_key)
    return rows.withColumns(changed)


def _pairs(entries: Sequence[tuple[str, Column]]) -> list[Column]:
    from pyspark.sql import functions as F

    return [column for name, value in entries for column in (F.lit(name), value)]


def _options(options: Mapping[str, str], target: Target, plan: Replay) -> Options:
    more = {} if target.at_least_once else {"deduplicate": "true"}
    return parse({**options, **more, "batchKey": plan.key, "batchBegan": str(plan.began)}, writing=True)


def _pace(rows: DataFrame, factor: float) -> RecordedPace:
    """From now on, counted from the first row that is still to be sent."""
    from pyspark.sql import functions as F

    first = rows.agg(F.min(F.unix_micros("at"))).collect()[0][0]
    return RecordedPace(int(first), time.time(), factor)


def _sent(rows: DataFrame, options: Options, key: str, pace: RecordedPace | None, tasks: int) -> DataFrame:
    """The outcomes of one step's rows; those that cannot be sent among them."""
    from pyspark.sql import functions as F

    whole = rows.where("why is null")
    if pace is None:
        whole = whole.repartition(tasks, "origin")
    else:  # one after the other
        whole = whole.repartition(1).sortWithinPartitions("at", "origin")
    told = published(whole, options, key, CARRIED, pace)
    unsaid = rows.where("why is not null").select(
        *CARRIED,
        *("message_id", "exchange", "routing_key"),
        F.lit(0).cast("bigint").alias("body_size"),
        F.lit(INVALID).alias("outcome"),
        F.lit(None).cast("int").alias("reply_code"),
        F.col("why").alias("reply_text"),
        F.lit(None).cast("timestamp").alias("published_at"),
    )
    return told.unionByName(unsaid).select(*CARRIED, *COLUMNS)


def _acknowledge(rows: DataFrame, told: DataFrame, queue: str, options: Mapping[str, str]) -> None:
    """What has arrived leaves the queue that it came from; the rest goes back there."""
    from pyspark.sql import functions as F

    arrived = F.when(F.col("outcome") == CONFIRMED, "ack").otherwise("requeue")
    at = slices.connecting(options)
    leased = rows.select("origin", "lease", "slot").join(told.select("origin", "outcome"), "origin")
    settle(leased.select(F.lit(queue).alias("queue"), "lease", "slot", arrived.alias("action")), at)
