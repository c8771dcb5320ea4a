"""Who held the event loop, and for how long: every pass over the limit is counted, and logged with what ran in it.

A pass begins with a turn or a stretch of an HTTP request and ends when the loop is free to look at its sockets again.
The clocks are read per callback, never per message. Wall time says how long everybody waited; CPU time of the loop's
own thread says whether it worked or was kept waiting, by a slow disk or by a machine that is busy with others: then
what ran is not to blame. Nor is it when Python collected garbage meanwhile for most of the time. Not here: keeping
passes short; whoever has much to do does it in slices.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from warrenmq.server.logging import events

LIMIT = 0.1  # seconds
FRESH = 0.01  # seconds for which what was read of the thread's CPU time is good enough: that clock is a system call
WORKED = "cpu"
WAITED = "waiting"
GENERATIONS = 3  # of Python's garbage collection


class Durations:
    """The durations of what happened of one kind, since the start."""

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0
        self.longest = 0.0

    def add(self, seconds: float) -> None:
        self.count += 1
        self.seconds += seconds
        self.longest = max(self.longest, seconds)


class Collections:
    """The garbage collections of the process, by generation. Python is told of it by ``warren serve`` alone
    (``garbage.py``): elsewhere the process is somebody else's, and nothing is counted."""

    def __init__(self, wall: Callable[[], float] = time.perf_counter) -> None:
        self._wall = wall
        self._began = 0.0
        self.seconds = 0.0  # of all of them
        self.of = [Durations() for _ in range(GENERATIONS)]

    def happened(self, phase: str, about: Mapping[str, int]) -> None:
        """Called by Python when a collection begins, and when it is over."""
        if phase == "start":
            self._began = self._wall()
            return
        took = self._wall() - self._began
        self.seconds += took
        self.of[about["generation"]].add(took)


class Watchdog:
    """The clock of one pass of the event loop, lap by lap."""

    def __init__(
        self, wall: Callable[[], float] = time.perf_counter, cpu: Callable[[], float] = time.thread_time
    ) -> None:
        self._wall = wall
        self._cpu = cpu
        self._open = False
        self._in_turn = False
        self._began = 0.0
        self._read_cpu = 0.0  # no longer than ``FRESH`` before the pass began
        self._read_at = -FRESH
        self._last = 0.0
        self._pieces = 0
        self._longest = 0.0
        self._ran: object = None
        self._collected = 0.0  # seconds in which garbage was collected, before this pass
        self.collections = Collections(wall)
        self.stalls = {WORKED: Durations(), WAITED: Durations()}

    def begin_turn(self) -> None:
        self._in_turn = True
        self.enter()

    def end_turn(self) -> None:
        self.lap("the end of the turn")
        self._in_turn = False
        self.leave()

    def enter(self) -> None:
        """Something begins to run; a pass that is under way goes on."""
        if not self._open:
            self._open = True
            self._pieces = 0
            self._longest = 0.0
            self._collected = self.collections.seconds
            self._began = self._last = self._wall()
            if self._began - self._read_at >= FRESH:
                self._read_at = self._began
                self._read_cpu = self._cpu()

    def lap(self, ran: object) -> None:
        """A piece of the pass is over; ``ran`` is asked for its name only when it held everybody up."""
        now = self._wall()
        took = now - self._last
        self._last = now
        self._pieces += 1
        if took > self._longest:
            self._longest = took
            self._ran = ran

    def leave(self) -> None:
        """The loop is free again, unless a turn is still to be ended."""
        if self._in_turn or not self._open:
            return
        self._open = False
        took = self._last - self._began
        if took > LIMIT:
            self._stalled(took, min(took, self._cpu() - self._read_cpu))
        self._ran = None

    def _stalled(self, took: float, cpu: float) -> None:
        spent = WORKED if 2 * cpu >= took else WAITED
        self.stalls[spent].add(took)
        ran, of_it = str(self._ran), self._longest
        collected = self.collections.seconds - self._collected
        if 2 * collected >= took:
            ran, of_it = "a collection of garbage", collected
        told = events("server").warning if spent == WORKED else events("server").info
        told(
            "loop.stalled",
            seconds=round(took, 3),
            cpu_seconds=round(cpu, 3),
            spent=spent,
            ran=ran,
            of_it_seconds=round(of_it, 3),
            pieces=self._pieces,
        )
