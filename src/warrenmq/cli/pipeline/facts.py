"""What a Spark job found, as an object for ``--json``.

Duty: the facts that the lines for a terminal tell, under names. Not here: those lines (beside each job), printing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from warrenmq.cli._output import as_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from warrenmq.spark.auditing.job import Audit
    from warrenmq.spark.jobs.summary import Line
    from warrenmq.spark.laking.job import LakeResult
    from warrenmq.spark.replaying.job import Replayed
    from warrenmq.spark.supposing.job import Supposed

MOST = 1000  # rows of a table


def show(json_wanted: bool, facts: Any, text: str) -> None:
    if json_wanted:
        as_json(facts)
    elif text:
        print(text)


def of_lines(lines: Iterable[Line]) -> list[dict[str, Any]]:
    """A summary: its rows."""
    return [
        {
            "section": one.section,
            "name": one.name,
            "window_start": None if one.window_start is None else one.window_start.isoformat(),
            "messages": one.messages,
            "bytes": one.bytes,
            "share": one.share,
        }
        for one in lines
    ]


def of_audit(found: Audit) -> dict[str, Any]:
    from warrenmq.spark.auditing.tables import MISSING

    return {
        "complete": found.complete,
        "files": found.files,
        "new_files": found.new_files,
        "new_events": found.new_rows,
        "publishes": _sums(found.tables["publishes"], "publisher"),
        "outcomes": _sums(found.tables["ledger"], "outcome"),
        "missing_files": found.missing_files,
        "holes": [{"because": hole.because, "says": hole.says} for hole in found.holes],
        "unaccounted": [
            {"what": what, "because": because, "messages": count, "missing": because in MISSING}
            for (what, because), count in sorted(found.unaccounted.items())
        ],
    }


def _sums(table: DataFrame, column: str) -> dict[str, int]:
    rows = table.groupBy(column).sum("messages").collect()
    return dict(sorted((str(row[0]), int(row[1])) for row in rows))


def of_lake(done: LakeResult) -> dict[str, Any]:
    has = done.manifest
    return {
        "complete": done.complete,
        "files_taken": done.files,
        "events_taken": done.rows,
        "pieces_joined": done.joined,
        "events_removed": done.removed,
        "lake": {"files": len(has.files), "events": has.rows(), "bytes": has.octets()},
        "missing": [str(one) for one in done.missing],
    }


def of_replay(done: Replayed) -> dict[str, Any]:
    return {
        "sent": True,
        "complete": done.complete,
        "key": done.key,
        "messages": done.rows,
        "outcomes": dict(done.outcomes.most_common()),
    }


def of_plan(rows: DataFrame) -> dict[str, Any]:
    """What a replay would send."""
    from pyspark.sql import functions as F

    by = rows.groupBy("exchange", "routing_key").agg(F.count("*").alias("messages"), F.count("why").alias("unsent"))
    kinds = [row.asDict() for row in by.orderBy(F.desc("messages"), "exchange", "routing_key").limit(MOST).collect()]
    why = rows.where("why is not null").select("why").limit(1).collect()
    return {"sent": False, "messages": rows.count(), "items": kinds, "unsent_because": why[0]["why"] if why else None}


def of_whatif(found: Supposed) -> dict[str, Any]:
    from warrenmq.spark.supposing.job import BY

    names = (*BY, "messages", "example")
    return {
        "messages": found.messages,
        "changed": found.changed,
        "worse": found.worse,
        "items": [row.asDict() for row in found.summary.select(*names).limit(MOST).collect()],
        "not_looked_into": [{"vhost": vhost, "queue": queue} for vhost, queue in found.untold],
    }
