"""The journal as the broker knows it: a process beside it, which is told how far the log is synced.

Duty: start that process when there is something to tell, start it again when it ended, tell it positions without ever
waiting for it, hear how far it is, hand on questions and answers, and end it. What the process does is
``warrenmq.journal``'s. Nothing here imports pyarrow; where it is missing no process is started, and that is said.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import AsyncGenerator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import warrenmq
from warrenmq.journal.files import FOLDER, files_of, position
from warrenmq.log.log import Log
from warrenmq.server.background import Background, Periodic
from warrenmq.server.config import Settings
from warrenmq.server.logging import events

FIRST = 2.0  # seconds until the process is started: who ends earlier has no need of it
TELL = 1.0  # seconds between two positions that it is told
PATIENCE = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)  # seconds until it is started again
LAST = 5.0  # seconds that it may take for the rest when the broker stops
LONGEST_LINE = 64 << 20  # that it may say
LONGEST_QUESTION = 4000  # octets: what a pipe takes whole or not at all
MOST_TOLD = 100  # positions remembered until they are done
INSTALL = 'pip install "warrenmq[journal]"'

Position = tuple[int, int]


class Journal:
    """One for each server, from its start to its end."""

    def __init__(self, settings: Settings, log: Log, background: Background) -> None:
        self.settings = settings
        self.problem = ""  # why the journal is not written; "" while all is well
        self.events = 0  # written since the broker started
        self.gaps = 0
        self.removed = 0
        self.bytes = 0  # that its files take
        self._log = log
        self._background = background
        self._folder = Path(settings.data_dir)
        # up to where everything is in its files
        self.done: Position = position(files_of(self._folder / FOLDER, int(log.maintenance.manifest.log_id)))
        self._process: subprocess.Popen[bytes] | None = None
        self._task: asyncio.Task[None] | None = None
        self._telling: Periodic | None = None
        self._told: Position = (0, 0)
        self._since: deque[tuple[Position, float]] = deque()  # what is not done yet, and since when it could be
        self._stopping = False
        self._failures = 0
        self._counted = (0, 0, 0)  # events, gaps and removed events of processes that have ended
        self._last_words = ""  # of a process that ended
        self._pipes: list[asyncio.ReadTransport] = []
        self._questions: dict[int, asyncio.Queue[dict[str, Any]]] = {}
        self._asked = 0

    # -- life

    def begin(self) -> None:
        if self.settings.journal == "off":
            return
        if find_spec("pyarrow") is None:
            self.problem = f"the journal is not written: it needs pyarrow ({INSTALL})"
            events("journal").warning("journal.not_written", reason="it needs pyarrow", hint=INSTALL)
            return
        self._log.maintenance.journalled(self.done[0])
        self._task = self._background.forever("the journal's process", self._keep)

    @property
    def running(self) -> bool:
        return self._process is not None

    async def _keep(self) -> None:
        """A process, and another one whenever it ends, each time a little later if it does so at once."""
        await asyncio.sleep(FIRST if self._telling is None else PATIENCE[0])
        if self._telling is None:
            self._telling = self._background.every("the journal's positions", self._tell)
        while not self._stopping:
            try:
                await self._live()
            except OSError as error:  # no memory, no descriptors: another time
                self._last_words = str(error)
            if not self._stopping:
                self._trouble("the journal's process ended", process=self._last_words)
                await asyncio.sleep(PATIENCE[min(self._failures, len(PATIENCE) - 1)])
                self._failures += 1

    async def _live(self) -> None:
        """One process, from its start to its end."""
        process = await asyncio.to_thread(self._start)
        self._process = process
        try:
            assert process.stdin is not None and process.stdout is not None and process.stderr is not None
            os.set_blocking(process.stdin.fileno(), False)
            self._told = (0, 0)
            self._send({"settings": self._for_process()})
            self._tell()
            said = await self._reader(process.stdout)
            last = self._background.task("what the journal's process complains of", self._hear_last(process.stderr))
            while line := await said.readline():
                self._heard(json.loads(line))
            await last
        finally:
            self._process = None
            self._end(process)
            self._counted = (self.events, self.gaps, self.removed)
            for one in self._questions.values():
                one.put_nowait({"error": "the journal's process ended"})

    async def _hear_last(self, stderr: Any) -> None:
        """The last line of a traceback says why it ended."""
        said = await self._reader(stderr)
        self._last_words = ""
        while line := await said.readline():
            if line.strip():
                self._last_words = line.decode("utf-8", "replace").strip()

    async def _reader(self, pipe: Any) -> asyncio.StreamReader:
        reader = asyncio.StreamReader(limit=LONGEST_LINE)
        protocol = asyncio.StreamReaderProtocol(reader)
        transport, _ = await self._background.loop.connect_read_pipe(lambda: protocol, pipe)
        self._pipes.append(transport)
        return reader

    def _start(self) -> subprocess.Popen[bytes]:
        """On a thread of its own: a process with much memory takes a while to begin another."""
        source = str(Path(warrenmq.__file__).parents[1])
        path = os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH", "")]))
        return subprocess.Popen(
            [sys.executable, "-m", "warrenmq.journal", str(self._folder.absolute())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
            cwd="/",
            bufsize=0,
        )

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """It said its last, or has had its time."""
        if process.stdin is not None:
            process.stdin.close()
        for pipe in self._pipes:
            pipe.close()
        self._pipes.clear()
        process.kill()
        process.wait()

    async def stop(self) -> None:
        """The log is closed: the rest is written, if that does not take long; else the next start does it."""
        self._stopping = True
        if self._telling is not None:
            self._telling.cancel()
        process = self._process
        if self._task is None:
            return
        if process is not None and process.stdin is not None:
            self._told = (0, 0)
            self._tell()
            process.stdin.close()
            await asyncio.wait({self._task}, timeout=LAST)
        self._task.cancel()
        await asyncio.wait({self._task})

    # -- what it is told

    def _for_process(self) -> dict[str, object]:
        settings = self.settings
        return {
            "interval": settings.journal_interval,
            "max_age": settings.journal_max_age,
            "max_bytes": settings.journal_max_bytes,
            "index_headers": settings.journal_index_headers,
            "disk_free_limit": settings.disk_free_limit,
            "last": LAST,
        }

    def settings_changed(self) -> None:
        """Those that may change while the broker runs; a pipe that is full gets them with the next process."""
        self._send({"settings": self._for_process()})

    def _tell(self) -> float:
        committed = self._log.maintenance.committed_position()
        if committed > self.done and (not self._since or self._since[-1][0] < committed):
            if len(self._since) >= MOST_TOLD:
                self._since.pop()
            self._since.append((committed, time.monotonic()))
        if self._process is not None and committed != self._told and self._send({"synced": committed}):
            self._told = committed
        return TELL

    def _send(self, what: dict[str, object]) -> bool:
        """Never waits: when the pipe is full it has enough to do. False: not sent."""
        process = self._process
        if process is None or process.stdin is None or process.stdin.closed:
            return False
        try:
            return os.write(process.stdin.fileno(), json.dumps(what).encode() + b"\n") > 0
        except (BlockingIOError, BrokenPipeError):
            return False

    # -- what it says

    def _heard(self, line: dict[str, Any]) -> None:
        if "number" in line:
            waiting = self._questions.get(line["number"])
            if waiting is not None:
                waiting.put_nowait(line)
        elif "trouble" in line:
            self._trouble(line["trouble"])
        elif "done" in line:
            self.done = (line["done"][0], line["done"][1])
            self._log.maintenance.journalled(self.done[0])
            self.events = self._counted[0] + line["events"]
            self.gaps = self._counted[1] + line["gaps"]
            self.removed = self._counted[2] + line["removed"]
            self.bytes = line["bytes"]
            while self._since and self._since[0][0] <= self.done:
                self._since.popleft()
            self._failures = 0
            if self.problem:
                self.problem = ""
                events("journal").info("journal.written_again")

    def _trouble(self, problem: str, **more: object) -> None:
        """Said when it begins, not as long as it lasts."""
        if not self.problem:
            events("journal").warning("journal.not_written", reason=problem, **more)
        self.problem = problem

    @property
    def seconds_behind(self) -> float:
        """Seconds since the first of what is synced and not in the journal."""
        return time.monotonic() - self._since[0][1] if self._since else 0.0

    # -- questions

    async def ask(self, question: dict[str, object]) -> AsyncGenerator[dict[str, Any], None]:
        """The parts of the answer as they come. Raises LookupError when there is none to be had."""
        self._asked += 1
        number = self._asked
        line = {"ask": question, "number": number}
        if len(json.dumps(line)) > LONGEST_QUESTION:
            raise LookupError(f"the question is longer than {LONGEST_QUESTION} octets")
        if self._process is None:
            raise LookupError(self.problem or "the journal's process is not running")
        answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._questions[number] = answers
        try:
            if not self._send(line):
                raise LookupError("the journal's process is busy: ask again")
            while True:
                answer = await answers.get()
                if "error" in answer:
                    raise LookupError(answer["error"])
                if "end" in answer:
                    return
                yield answer["part"]
        finally:
            del self._questions[number]
            self._send({"stop": number})
