"""What buckets wait for, kept by Spark from batch to batch.

Duty: one value a bucket, its memory as octets; Spark keeps it with RocksDB in the checkpoint, of every batch as it was,
so that a batch that is run again begins from where it began before. Not here: judging.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from warrenmq.spark.watching.judging import Bucket, Memory, Rules, in_order
from warrenmq.spark.watching.rows import FIELDS

if TYPE_CHECKING:
    import pandas
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

TOLD = "seq bigint, told string"  # JSON: nothing is rounded, nothing is null
COLUMNS = [name for name in FIELDS if name not in ("log", "bucket")]


class Watching(StatefulProcessor):
    """Rows of a bucket in, findings out."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._memory = handle.getValueState("memory", "octets binary")

    def handleInputRows(
        self,
        key: Any,
        rows: Iterator[pandas.DataFrame],
        timerValues: Any,  # noqa: ARG002  (Spark's)
    ) -> Iterator[pandas.DataFrame]:
        import pandas

        log, number = key
        kept = self._memory.get()
        before = zlib.decompress(bytes(kept[0])) if kept else None
        memory = Memory.load(before)
        parts = [list(zip(*(part[name].tolist() for name in COLUMNS), strict=True)) for part in rows]
        told = Bucket(log, int(number), self.rules, memory).judge(in_order(parts))
        after = memory.dump()
        if after != before:
            self._memory.update((zlib.compress(after, 1),))
        if told:
            lines = [json.dumps(one, sort_keys=True) for one in told]
            yield pandas.DataFrame({"seq": range(len(lines)), "told": lines})

    def close(self) -> None:
        """Nothing is open."""
