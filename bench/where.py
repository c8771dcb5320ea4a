"""How long it takes to find one message in a large journal: ``python -m bench.where FOLDER --events 100000000``.

Duty: make a journal of so many events (what is there already stays), each message published, enqueued, delivered and
acknowledged, with a random message_id and correlation_id, and ask for messages here and there, by each of what they are
found by: in a process that has the indexes mapped, and in a fresh one. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy
import pyarrow as pa

from warrenmq.journal import parquet
from warrenmq.journal.lookup import answer

KINDS = {field.name: field.type for field in parquet.BUT_BODIES}
LOG = "00000000000000be"
MESSAGES = 62_500  # of a file, which is a segment of the log with messages of 1 KiB
EVENTS = ["published", "enqueued", "delivered", "acked"]
TURN = 50  # messages that go through together
ASKED = 20


def texts(segment: int, kind: int) -> list[str]:
    """As random as UUIDs, and the same each time."""
    octets = random.Random(segment * 2 + kind).randbytes(16 * MESSAGES).hex()
    return [octets[at : at + 32] for at in range(0, len(octets), 32)]


def table(segment: int) -> pa.Table:
    rows = MESSAGES * len(EVENTS)
    kinds = numpy.tile(numpy.repeat(numpy.arange(len(EVENTS)), TURN), MESSAGES // TURN)
    numbers = numpy.repeat(numpy.arange(MESSAGES).reshape(-1, TURN), len(EVENTS), axis=0).reshape(-1)
    first = kinds == 0
    of_message = pa.array(numbers, mask=~first)
    at_queue = pa.array(numpy.zeros(rows, numpy.int32), mask=first)
    constant = {"queue": "work", "vhost": "/", "exchange": "orders", "user": "guest", "connection": "a -> b"}
    times = segment * 10**9 + numpy.repeat(numpy.arange(rows // TURN), TURN) * 1000
    columns: dict[str, Any] = {
        "time": pa.array(times).cast(parquet.SCHEMA.field("time").type),
        "event": pa.array(EVENTS).take(pa.array(kinds)),
        "message": pa.array(numbers + (segment << 32)),
        "id": pa.array(numbers + segment * MESSAGES, mask=~first),
        "position": pa.array(numbers + segment * MESSAGES, mask=(kinds == 0) | (kinds == 3)),
        "size": pa.array(numpy.full(rows, 1024), mask=~first),
        "message_id": pa.array(texts(segment, 0)).take(of_message),
        "correlation_id": pa.array(texts(segment, 1)).take(of_message),
    }
    for name, value in constant.items():
        where = at_queue if name == "queue" else pa.array(numpy.zeros(rows, numpy.int32))
        columns[name] = pa.array([value]).take(where)
    filled = [columns.get(name, pa.nulls(rows, kind)).cast(kind) for name, kind in KINDS.items()]
    return pa.Table.from_arrays(filled, schema=parquet.BUT_BODIES)


def make(folder: Path, events: int) -> list[int]:
    """The segments that are there."""
    segments = list(range(1, max(1, events // (MESSAGES * len(EVENTS))) + 1))
    for segment in segments:
        path = folder / f"journal-{LOG}-{segment:010d}-{0:010d}-{1 << 26:010d}.parquet"
        if not path.exists():
            parquet.write(path, table(segment))
    return segments


def asked(folder: Path, question: dict[str, object]) -> float:
    begin = time.perf_counter()
    parts = list(answer(folder, question))
    taken = time.perf_counter() - begin
    assert sum("life" in part for part in parts) == 1, question
    return taken


def fresh(folder: Path, id: str) -> float:
    begin = time.perf_counter()
    command = [sys.executable, "-m", "warrenmq", "where", id, "--journal", str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--events", type=int, default=100_000_000)
    options = parser.parse_args()
    segments = make(options.folder, options.events)
    order = random.Random(4711)
    times: dict[str, list[float]] = {"id": [], "message_id": [], "correlation_id": [], "a fresh process": []}
    for _ in range(ASKED):
        segment, number = order.choice(segments), order.randrange(MESSAGES)
        message_id, correlation_id = texts(segment, 0)[number], texts(segment, 1)[number]
        times["id"].append(asked(options.folder, {"id": segment * MESSAGES + number}))
        times["message_id"].append(asked(options.folder, {"message_id": message_id}))
        times["correlation_id"].append(asked(options.folder, {"correlation_id": correlation_id}))
        times["a fresh process"].append(fresh(options.folder, message_id))
    sizes = [sum(path.stat().st_size for path in options.folder.glob(f"*.{kind}")) for kind in ("parquet", "index")]
    events = len(segments) * MESSAGES * len(EVENTS)
    figures: dict[str, Any] = {"events": events, "files": len(segments), "octets an event": round(sizes[0] / events, 1)}
    figures["index octets a message"] = round(sizes[1] / (len(segments) * MESSAGES), 1)
    figures["seconds"] = {
        name: {"median": round(statistics.median(some), 4), "most": round(max(some), 4)} for name, some in times.items()
    }
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
