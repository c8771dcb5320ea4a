"""The journal's process: beside the broker, at low priority, it writes the journal and answers questions about it.

Duty: the conversation with the broker, JSON lines over stdin and stdout; when files are written; one process a journal.
It ends when its stdin does, so it does not outlive the broker by more than what it takes to write the rest. Not here:
the writing (``writer``), the answers (``lookup``), who starts it (``server/journal.py``).

    from the broker    {"settings": {...}} first; {"synced": [segment, offset]}; {"ask": question, "number": n};
                       {"stop": n}
    to the broker      {"done": [segment, offset], "events": n, "gaps": n, "bytes": n} once files are durable;
                       {"trouble": text}; {"number": n, "part": ...}, then {"number": n, "end": true} or
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

from warrenmq.journal.files import FOLDER
from warrenmq.journal.writer import Writer
from warrenmq.log.format import LogError

NICE = 10
LAST = 5.0  # seconds that the rest may take once the broker is gone
AGAIN = 1.0  # seconds until something that failed is tried again


class NoRoom(Exception):
    """The disk has less room than the broker wants to keep."""


class Process:
    """One conversation, from the first line to the end of stdin."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.target = folder / FOLDER
        self.lines: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        self.settings: dict[str, Any] = {"interval": 3.0, "disk_free_limit": 0}
        self.synced = (0, 0)
        self.ended = False
        self.deadline = float("inf")
        self._due = 0.0
        self._speaking = threading.Lock()
        self._writer: Writer | None = None

    # -- the conversation

    def run(self) -> None:
        threading.Thread(target=self._listen, name="stdin", daemon=True).start()
        while not self.ended:
            self._hear()
            if time.monotonic() >= self._due:
                self._write()
        self._write()

    def _listen(self) -> None:
        for line in sys.stdin:
            self.lines.put(json.loads(line))
        self.deadline = time.monotonic() + LAST
        self.lines.put(None)

    def _hear(self) -> None:
        """Everything that was said, or what is said until there is something to write."""
        behind = self._writer is None or (self._writer.segment, self._writer.offset) < self.synced
        wait = max(0.0, self._due - time.monotonic()) if behind else None
        with suppress(Empty):
            self._take(self.lines.get(timeout=wait))
            while True:
                self._take(self.lines.get_nowait())

    def _take(self, line: dict[str, Any] | None) -> None:
        if line is None:
            self.ended = True
        elif "settings" in line:
            self.settings |= line["settings"]
        elif "synced" in line:
            self.synced = (line["synced"][0], line["synced"][1])

    def say(self, **what: object) -> None:
        with self._speaking, suppress(BrokenPipeError):
            sys.stdout.write(json.dumps(what) + "\n")
            sys.stdout.flush()

    # -- writing

    def _write(self) -> None:
        """As far as is synced. What goes wrong is said, and tried again."""
        self._due = time.monotonic() + self.settings["interval"]
        try:
            if self._writer is None:
                self._writer = Writer(self.folder, self.target)
                self._writer.wanted = self._wanted
            if self._writer.advance(*self.synced):
                self.say(
                    done=self.synced,
                    events=self._writer.events,
                    gaps=self._writer.gaps,
                    bytes=sum(path.stat().st_size for path in self.target.iterdir()),
                )
        except NoRoom as full:
            self.say(trouble=str(full))
        except (OSError, LogError) as error:
            self._due = time.monotonic() + AGAIN
            self.say(trouble=f"the journal cannot be written: {error}")

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
    descriptor = os.open(target / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
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
