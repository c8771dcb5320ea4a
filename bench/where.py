"""How long it takes to find one message in a large journal: ``python -m bench.where FOLDER --events 100000000``.

Duty: make a journal of so many events (what is there already stays), each message published, enqueued, delivered and
acknowledged, with a random message_id, correlation_id and header, and ask for messages here and there, by each of what
they are found by: in a process that has the indexes mapped, and in a fresh one. Says how long each took, by the clock
and in CPU time (of a machine that others use too), and how many files were opened. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy
import pyarrow as pa

from warrenmq.journal import parquet
from warrenmq.journal.files import index_of
from warrenmq.journal.lookup import answer
from warrenmq.wire.content import Properties, encode_header
from warrenmq.wire.fields import from_python

KINDS = {field.name: field.type for field in parquet.BUT_BODIES}
LOG = "00000000000000be"
MESSAGES = 62_500  # of a file, which is a segment of the log with messages of 1 KiB
EVENTS = ["published", "enqueued", "delivered", "acked"]
TURN = 50  # messages that go through together
ASKED = 20
DISTINCT = 32  # files
KEPT = 8  # of them, the oldest: those that are asked about
HEADER = "order"
PLACE = "0" * 32  # in an encoded header, where the value stands
ENCODED = encode_header(Properties(delivery_mode=2, headers=from_python({HEADER: PLACE})), 1024)


def texts(segment: int, kind: int) -> list[str]:
    """As random as UUIDs, and the same each time."""
    octets = random.Random(segment * 3 + kind).randbytes(16 * MESSAGES).hex()
    return [octets[at : at + 32] for at in range(0, len(octets), 32)]


def headers(segment: int) -> list[bytes]:
    before, _, behind = ENCODED.partition(PLACE.encode())
    return [before + text.encode() + behind for text in texts(segment, 2)]


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
        "header": pa.array(headers(segment), pa.binary()).take(of_message),
    }
    for name, value in constant.items():
        where = at_queue if name == "queue" else pa.array(numpy.zeros(rows, numpy.int32))
        columns[name] = pa.array([value]).take(where)
    filled = [columns.get(name, pa.nulls(rows, kind)).cast(kind) for name, kind in KINDS.items()]
    return pa.Table.from_arrays(filled, schema=parquet.BUT_BODIES)


def make(folder: Path, events: int, distinct: int) -> int:
    """How many files there are. Beyond so many distinct ones they are copies of those that nobody asks about: an index
    of as many other random keys."""
    count = max(1, events // (MESSAGES * len(EVENTS)))
    for segment in range(1, count + 1):
        path = file_of(folder, segment)
        if path.exists():
            continue
        if segment <= distinct:
            parquet.write(path, table(segment), [HEADER])
        else:
            other = file_of(folder, KEPT + 1 + segment % (distinct - KEPT))
            shutil.copyfile(index_of(other), index_of(path))
            shutil.copyfile(other, path)
    return count


def file_of(folder: Path, segment: int) -> Path:
    return folder / f"journal-{LOG}-{segment:010d}-{0:010d}-{1 << 26:010d}.parquet"


class Times:
    """Of one way of asking: seconds by the clock, seconds of CPU, files that were opened."""

    def __init__(self) -> None:
        self.clock: list[float] = []
        self.cpu: list[float] = []
        self.opened: list[int] = []

    def ask(self, folder: Path, question: dict[str, object]) -> None:
        begin, busy = time.perf_counter(), time.process_time()
        parts: list[dict[str, Any]] = list(answer(folder, question))
        self.clock.append(time.perf_counter() - begin)
        self.cpu.append(time.process_time() - busy)
        self.opened += [part["looked"]["opened"] for part in parts if "looked" in part]
        assert sum("life" in part for part in parts) == 1, question

    def ask_fresh(self, folder: Path, id: str) -> None:
        begin, busy = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "warrenmq", "where", id, "--journal", str(folder)]
        subprocess.run(command, check=True, capture_output=True)
        self.clock.append(time.perf_counter() - begin)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.cpu.append(after.ru_utime + after.ru_stime - busy.ru_utime - busy.ru_stime)

    def told(self) -> dict[str, object]:
        found: dict[str, object] = {
            name: {"median": round(statistics.median(some), 4), "most": round(max(some), 4)}
            for name, some in (("seconds", self.clock), ("CPU seconds", self.cpu))
        }
        return found | ({"files opened": max(self.opened)} if self.opened else {})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--events", type=int, default=100_000_000)
    parser.add_argument("--distinct", type=int, default=DISTINCT)
    parser.add_argument("--asked", type=int, default=ASKED)
    options = parser.parse_args()
    files = make(options.folder, options.events, options.distinct)
    segments = range(1, min(files, KEPT) + 1)
    order = random.Random(4711)
    times = {name: Times() for name in ("the first", "id", "message_id", "correlation_id", "header", "a fresh process")}
    times["the first"].ask(options.folder, {"message_id": texts(segments[0], 0)[0]})
    for _ in range(options.asked):
        segment, number = order.choice(segments), order.randrange(MESSAGES)
        message_id, correlation_id, value = (texts(segment, kind)[number] for kind in range(3))
        times["id"].ask(options.folder, {"id": segment * MESSAGES + number})
        times["message_id"].ask(options.folder, {"message_id": message_id})
        times["correlation_id"].ask(options.folder, {"correlation_id": correlation_id})
        times["header"].ask(options.folder, {"header": HEADER, "value": value})
        times["a fresh process"].ask_fresh(options.folder, message_id)
    sizes = [sum(path.stat().st_size for path in options.folder.glob(f"*.{kind}")) for kind in ("parquet", "index")]
    events = files * MESSAGES * len(EVENTS)
    figures: dict[str, Any] = {"events": events, "files": files, "octets an event": round(sizes[0] / events, 1)}
    figures["index octets a message"] = round(sizes[1] / (files * MESSAGES), 1)
    print(json.dumps(figures | {name: some.told() for name, some in times.items()}, indent=2))


if __name__ == "__main__":
    main()
