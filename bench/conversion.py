"""`python -m bench.conversion [MESSAGES]`: how fast the journal turns events into Parquet, how large they are there.

A log is made of durable messages of 1 KiB, published, delivered and acknowledged a hundred a turn, four events each;
then it is written as a journal. What counts is the CPU time of that, so that a busy machine changes little; all that is
needed is loaded before.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from librt.vecs import append, vec
from mypy_extensions import i64

import warrenmq
from warrenmq.journal.files import files_of
from warrenmq.journal.writer import Writer
from warrenmq.log.files import Files
from warrenmq.log.log import Log
from warrenmq.log.settings import LogSettings
from warrenmq.wire.content import Properties, encode_header

TURN = 100  # messages
EVENTS = 4  # of each
BODY = b"x" * 1024
CHANNEL = b'{"user": "guest", "vhost": "/", "connection": "127.0.0.1:40000 -> 127.0.0.1:5672", "channel": 1'


def make_log(folder: Path, messages: int) -> tuple[int, int]:
    """Where it ends."""
    log, _ = Log.open(str(folder), Files(), LogSettings(held_bytes=1 << 60))
    log.maintenance.journalled(0)
    log.define("queue", "/\0orders", b'{"id": 1, "vhost": "/", "name": "orders"}')
    publisher, consumer = log.events.name(CHANNEL + b"}"), log.events.name(CHANNEL + b', "consumer": "ctag1"}')
    for first in range(1, messages + 1, TURN):
        log.time = time.time_ns() // 1000
        addresses = vec[i64]()
        for number in range(first, first + TURN):
            id = f"order-{number * 2_654_435_761 % 2**32:010d}"
            header = encode_header(Properties(delivery_mode=2, message_id=id), len(BODY))
            address = log.append(number, header, BODY, "shop", b"\x06orders", 0, holders=1)
            log.hold(address, 1, number, 0, 0)
            log.events.published(publisher, address, number)
            addresses = append(addresses, address)
        log.end_turn(True)
        for number, address in enumerate(addresses, first):
            log.events.delivered(consumer, 1, number, address, number, 0)
        log.end_turn(False)
        log.settle_many(1, addresses)
        log.end_turn(False)
    log.flush()
    end = log.maintenance.committed_position()
    log.close()
    return end


def measure(messages: int = 200_000) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="warren-bench-") as name:
        folder = Path(name)
        end = make_log(folder / "first", TURN)
        Writer(folder / "first", folder / "journal").advance(*end)  # loads all that is needed
        end = make_log(folder / "data", messages)
        writer = Writer(folder / "data", folder / "journal")
        began = time.process_time()
        writer.advance(*end)
        took = time.process_time() - began
        assert writer.events == EVENTS * messages and writer.gaps == 0, (writer.events, writer.gaps)
        files = files_of(folder / "journal", writer.log_id)
        table = sum(one.path.stat().st_size for one in files)
        index = sum(one.index.stat().st_size for one in files)
    events = writer.events
    print(f"  {events:,} events in {took:.2f} s of CPU: {events / took / 1e6:.2f} M events/s and core", flush=True)
    print(f"  {table / events:.2f} octets an event, and {index / events:.2f} of index", flush=True)
    return {"events": events, "rate": events / took, "octets": table / events, "index": index / events}


if __name__ == "__main__":
    print(warrenmq.build_info())
    measure(*map(int, sys.argv[1:2]))
