"""What would change, in words.

Duty: a few lines for a terminal. Not here: the tables (``job``).
"""

from __future__ import annotations

from warrenmq.spark.supposing.job import Supposed

MOST = 30


def text(found: Supposed) -> str:
    lines = [f"{found.messages:,} messages: {found.changed:,} would fare otherwise, {found.worse:,} of them worse"]
    rows = found.summary.limit(MOST + 1).collect()
    for row in rows[:MOST]:
        exchange = f"exchange '{row['exchange']}'" if row["exchange"] else "the default exchange"
        where = f"in queue '{row['queue']}'" if row["queue"] is not None else "to the publisher"
        vhost = "" if row["vhost"] == "/" else f", vhost '{row['vhost']}'"
        lines.append(
            f"  {row['messages']:>12,} to {exchange} with key '{row['routing_key']}'{vhost}: {where} {row['before']} → "
            f"{row['after']}, such as {row['example']}"
        )
    if len(rows) > MOST:
        lines.append("  … and more, in the table summary")
    for vhost, queue in found.untold:
        lines.append(f"not looked into: queue '{queue}' in vhost '{vhost}' is a stream")
    return "\n".join(lines)
