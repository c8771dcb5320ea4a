"""An audit in a few lines, for a terminal.

Duty: the sums, and what is missing, by name. Not here: finding it (``job``).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from warrenmq.spark.auditing.holes import FILE_MISSING
from warrenmq.spark.auditing.tables import MISSING
from warrenmq.spark.moments import collected

if TYPE_CHECKING:
    from warrenmq.spark.auditing.job import Audit

MOST = 10  # examples


def text(found: Audit) -> str:
    """What was found, with the worst last: it is what stays on the screen."""
    lines = [f"{found.files:,} files, {found.new_files:,} of them new, with {found.new_rows:,} events"]
    publishers: Counter[str] = Counter()
    for row in found.tables["publishes"].groupBy("publisher").sum("messages").collect():
        publishers[row[0]] += row[1]
    lines += _sum("publishes", publishers)
    outcomes: Counter[str] = Counter()
    for row in found.tables["ledger"].groupBy("outcome").sum("messages").collect():
        outcomes[row[0]] += row[1]
    lines += _sum("messages in queues", outcomes)
    for hole in found.holes:
        if hole.because != FILE_MISSING:
            lines.append(f"not told ({hole.because}): {hole.says}")
    explained = {key: count for key, count in found.unaccounted.items() if key[1] not in MISSING}
    for (what, because), count in sorted(explained.items()):
        lines.append(f"  {count:,} messages: {what} ({because})")
    if found.complete:
        return "\n".join([*lines, "nothing is missing"])
    for says in found.missing_files:
        lines.append(f"MISSING: {says}: there is no file that tells of it")
    for (what, because), count in sorted(found.unaccounted.items()):
        if because in MISSING:
            lines.append(f"MISSING: {count:,} messages: {what} ({because})")
    lines += _examples(found)
    return "\n".join(lines)


def _sum(title: str, counts: Counter[str]) -> list[str]:
    if not counts:
        return [f"{title}: none"]
    width = max(len(name) for name in counts)
    parts = [f"  {name:<{width}} {count:>14,}" for name, count in counts.most_common()]
    return [f"{title}: {counts.total():,}", *parts]


def _examples(found: Audit) -> list[str]:
    from pyspark.sql import functions as F

    rows = found.tables["unaccounted"].where(F.col("because").isin(*MISSING)).orderBy("log", "record").limit(MOST)
    lines = []
    for row in collected(rows):
        name = f"message_id {row['message_id']}" if row["message_id"] else f"record {row['record']}"
        queue = f" in queue '{row['queue']}'" if row["queue"] else ""
        lines.append(f"  {name}{queue}: {row['what']}, last told {row['last_event']:%Y-%m-%d %H:%M:%S.%f} UTC")
    if found.missing > MOST:
        lines.append(f"  … and {found.missing - MOST:,} more, in the table unaccounted")
    return lines
