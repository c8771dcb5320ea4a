"""Where a dead letter was first published.

Duty: of dead letters the exchange and keys of their first death, as ``warren redrive`` finds them. Called by Spark with
batches in Arrow. Not here: which rows (``slices``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from warrenmq.broker.delivering.deaths import first_death
from warrenmq.spark.recorded import rewrite_headers
from warrenmq.wire.fields import Field, Table

if TYPE_CHECKING:
    import pyarrow as pa


class FirstPublished:
    """Dead letters get the exchange and the keys that they were published with; pickled to workers."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield self._first(batch)

    def _first(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        import pyarrow as pa

        names = ("exchange", "routing_key", "headers", "header_types")
        columns = {name: batch.column(name) for name in names}
        exchanges, keys = columns["exchange"].to_pylist(), columns["routing_key"].to_pylist()

        def change(row: int, table: Table) -> Table | None:
            death = first_death(table)
            if death is None:
                return None
            found = death.get("exchange"), death.get("routing-keys")
            if any(field is None for field in found):
                return None
            exchanges[row] = str(found[0].value) if found[0] is not None else ""
            listed: Any = found[1].value if found[1] is not None else []
            texts = [str(each.value) for each in listed] if isinstance(listed, list) else []
            keys[row] = texts[0] if texts else ""
            more = [Field("S", key) for key in texts[1:]]
            return {**table, "CC": Field("A", more)} if more else None

        dead = [row for row, some in enumerate(columns["headers"].to_pylist()) if some and "x-death" in dict(some)]
        if not dead:
            return batch
        rewrite_headers(columns, dead, change)
        columns["exchange"], columns["routing_key"] = pa.array(exchanges, pa.string()), pa.array(keys, pa.string())
        arrays = [columns.get(name, batch.column(name)) for name in batch.schema.names]
        return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)
