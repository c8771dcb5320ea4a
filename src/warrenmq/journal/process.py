"""The journal's process: beside the broker, at low priority, it writes the journal and answers questions about it.

Duty: the conversation with the broker, JSON lines over stdin and stdout; when files are written; one process a journal.
It ends when its stdin does, so it does not outlive the broker by more than what it takes to write the rest. Not here:
the writing (``writer``), the answers (``asking``), who starts it (``server/journal.py``).

    from the broker    {"settings": {...}} first, and when they change; {"synced": [segment, offset]};
                       {"ask": question, "number": n}; {"stop": n}
    to the broker      {"done": [segment, offset], "bytes": n, "events": n, "gaps": n, "removed": n} once files are
                       durable; {"trouble": text}; {"number": n, "part": ...}, then {"number": n, "end": true} or
                       {"number": n, "error": text}
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from warrenmq.journal.asking import Asking
from warrenmq.journal.files import FOLDER, LOCK
from warrenmq.journal.retention import trim
from warrenmq.journal.writer import Writer
from warrenmq.log.format import LogError

NICE = 10
IDLE = 60.0  # seconds between two looks at what is too old
AGAIN = 1.0  # seconds until something that failed is tried again


class NoRoom(Exception):
    """The disk has less room than the broker wants to keep."""


class Process:
    """One conversation, from the first line to the end of stdin."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.target = folder / FOLDER
        self.lines: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        self.settings: dict[str, Any] = {}
        self.counts = {"events": 0, "gaps": 0, "removed": 0}  # so far
        self.synced = (0, 0)
        self.ended = False
        self.deadline = float("inf")
        self._due = 0.0
        self._speaking = threading.Lock()
        self._writer: Writer | None = None
        self._asking = Asking(self.target, self.say)

    # -- the conversation

    def run(self) -> None:
        threading.Thread(target=self._listen, name="stdin", daemon=True).start()
        while not self.ended:
            self._hear()
            if self.settings and time.monotonic() >= self._due:
                self._write()
        if self.settings:
            self._write()

    def _listen(self) -> None:
        for line in sys.stdin:
            said = json.loads(line)
            if "ask" in said:  # at once, however long a file is being written
                self._asking.ask(said["number"], said["ask"])
            elif "stop" in said:
                self._asking.stop(said["stop"])
            else:
                self.lines.put(said)
        self.deadline = time.monotonic() + self.settings.get("last", 0.0)  # for the rest
        self.lines.put(None)

    def _hear(self) -> None:
        """Everything that was said, or what is said until there is something to write."""
        behind = self._writer is None or (self._writer.segment, self._writer.offset) < self.synced
        wait = max(0.0, self._due - time.monotonic()) if behind else IDLE
        with suppress(Empty):
            self._take(self.lines.get(timeout=wait))
            while True:
                self._take(self.lines.get_nowait())

    def _take(self, line: dict[str, Any] | None) -> None:
        if line is None:
            self.ended = True
        elif "settings" in line:
            self.settings |= line["settings"]
            self._due = min(self._due, time.monotonic() + self.settings["interval"])  # not when the old one says so
        elif "synced" in line:
            self.synced = (line["synced"][0], line["synced"][1])

    def say(self, **what: object) -> None:
        with self._speaking, suppress(BrokenPipeError):
            sys.stdout.write(json.dumps(what) + "\n")
            sys.stdout.flush()

    # -- writing

    def _write(self) -> None:
        """As far as is synced. What goes wrong is said, and tried again with what the files say then."""
        self._due = time.monotonic() + self.settings["interval"]
        try:
            if self._writer is None:
                self._writer = Writer(self.folder, self.target)
                self._writer.wanted = self._wanted
            self._writer.headers = self.settings["index_headers"]
            self._trim(self._writer)
            synced = self.synced
            if self._writer.advance(*synced):
                self._count(self._writer)
                used = sum(path.stat().st_size for path in self.target.iterdir())
                self.say(done=synced, bytes=used, **self.counts)
        except NoRoom as full:
            self.say(trouble=str(full))
        except (OSError, LogError) as error:
            self._due = time.monotonic() + AGAIN
            self.say(trouble=f"the journal cannot be written: {error}")
            if self._writer is not None:
                self._count(self._writer)
                self._writer = None

    def _trim(self, writer: Writer) -> None:
        """As time passes files become too old, also when nothing happens."""
        max_age = int(self.settings["max_age"] * 1_000_000)
        self.counts["removed"] += trim(writer, time.time_ns() // 1000, max_age, self.settings["max_bytes"])

    def _count(self, writer: Writer) -> None:
        self.counts["events"] += writer.events
        self.counts["gaps"] += writer.gaps
        writer.events = writer.gaps = 0

    def _wanted(self) -> bool:
        limit = self.settings["disk_free_limit"]
        free = shutil.disk_usage(self.target).free
        if free < limit:
            raise NoRoom(f"the journal pauses: {free} octets are free on its disk, disk_free_limit is {limit}")
        return time.monotonic() < self.deadline


@contextmanager
def alone(target: Path) -> Iterator[None]:
    """The only process that writes this journal: one that is still writing the rest of its broker's is waited for."""
    target.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(target / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def main(folder: Path) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # meant for the broker: it ends us when it is done
    with suppress(OSError):
        os.nice(NICE)
    with alone(folder / FOLDER):
        Process(folder).run()
