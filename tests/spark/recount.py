"""What a journal's files say, counted with numpy and pyarrow: independently of the audit, and without Spark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy
import pyarrow as pa
import pyarrow.parquet as pq


@dataclass
class Recount:
    """What the files of a folder say, by the log's number of a message and its queue."""

    rows: int
    no_beginning: set[int]
    open: dict[int, int]  # by when the last of it was told
    outcomes: dict[tuple[str, str], int]  # queue, how it ended or `open`


def recount(folder: Path) -> Recount:
    """All rows of one message in one queue beside each other, then a look at each such run."""
    paths = sorted(folder.glob("*.parquet"))
    tables = [pq.ParquetFile(path).read(["time", "event", "message", "queue"]) for path in paths]
    whole = pa.concat_tables(tables).unify_dictionaries()
    rows = len(whole)
    whole = whole.drop_null().combine_chunks()  # what is of a message in a queue
    events, queues = (whole.column(name).chunk(0) for name in ("event", "queue"))
    names, places = events.dictionary.to_pylist(), queues.dictionary.to_pylist()
    message, queue = whole.column("message").to_numpy(), queues.indices.to_numpy()
    order = numpy.lexsort((message, queue))
    message, queue, event = message[order], queue[order], events.indices.to_numpy()[order]
    time = whole.column("time").cast(pa.int64()).to_numpy()[order]
    starts = numpy.flatnonzero(numpy.r_[True, (message[1:] != message[:-1]) | (queue[1:] != queue[:-1])])
    entered = numpy.logical_or.reduceat(event == names.index("enqueued"), starts)
    passing = [at for at, name in enumerate(names) if name in ("enqueued", "delivered", "requeued")]
    end = numpy.maximum.reduceat(numpy.where(numpy.isin(event, passing), -1, event), starts)
    last = numpy.maximum.reduceat(time, starts)
    message, queue = message[starts], queue[starts]
    here = entered & (end < 0)
    outcomes: dict[tuple[str, str], int] = {}
    for of_queue, name in enumerate(places):
        for code in numpy.unique(end[queue == of_queue]):
            chosen = (queue == of_queue) & (end == code)
            counts = {"open": chosen & entered, "unseen": chosen & ~entered} if code < 0 else {names[code]: chosen}
            outcomes |= {(name, what): int(some.sum()) for what, some in counts.items() if some.any()}
    waits = dict(zip(message[here].tolist(), last[here].tolist(), strict=True))
    return Recount(rows, set(message[~entered].tolist()), waits, outcomes)
