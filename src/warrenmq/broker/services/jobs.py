"""Work that takes several turns: one job after the other does as much as a turn may.

Duty: whose turn it is, which client's input waits for a job, and the log held for one. What is done is each job's own
affair: settling very many messages (``settling.py``), committing (``committing.py``), dropping heads
(``queue/limits.py``), a connection's many queues, many connections (``connection/jobs.py``). All of it is done before a
broker stops: a slice a turn (``Broker.shut_down_in_steps``), or at once where no loop goes on meanwhile.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64, trait

from warrenmq.broker.services.clock import Clock
from warrenmq.broker.services.pressure import Pressure
from warrenmq.broker.services.timers import Timer, Timers
from warrenmq.broker.services.turn import Turn
from warrenmq.log.log import Log

MOST_UNWRITTEN: Final = 16 << 20  # octets that jobs leave in the log's open batch


@trait
class Waiting:
    """A client whose further input waits for a job: what it sends behind the method finds that done."""

    def wait_for_job(self) -> None:
        raise NotImplementedError

    def job_is_over(self) -> None:
        raise NotImplementedError

    def subject(self) -> str:
        raise NotImplementedError


class Job:
    """A piece of work that takes several turns."""

    def __init__(self, client: Waiting | None) -> None:
        self.client: Final = client

    def step(self) -> bool:
        """Do as much as this turn may; says whether it is over."""
        raise NotImplementedError

    def subject(self) -> str:
        return "" if self.client is None else self.client.subject()


@final
class Jobs(Timer):
    """The jobs that are under way."""

    def __init__(self, log: Log, turn: Turn, pressure: Pressure, io_timers: Timers, io_clock: Clock) -> None:
        super().__init__()
        self._log: Final = log
        self._turn: Final = turn
        self._pressure: Final = pressure
        self._io_timers: Final = io_timers
        self._io_clock: Final = io_clock
        self.waiting: list[Job] = []
        self._finishing: bool = False
        self._log_held: bool = False
        self._held_up_to: i64 = 0  # the last batch of the log that was held

    def add(self, job: Job) -> None:
        """As much of it as this turn may do still, and the rest later."""
        if job.step():
            return
        client = job.client
        if client is not None:
            client.wait_for_job()
        self.waiting.append(job)
        self._wait()

    def busy(self) -> bool:
        return len(self.waiting) > 0

    def fire(self) -> None:
        if not self.waiting:
            return  # the broker stops: all was done meanwhile
        job = self.waiting.pop(0)
        if job.step():
            if job.client is not None:
                job.client.job_is_over()
        else:
            self.waiting.append(job)
        if self.waiting:
            self._wait()

    def finish(self) -> None:
        """The broker stops, and nobody waits for a turn meanwhile: all of it now, in one turn for the log."""
        self._finishing = True
        while self.waiting:
            job = self.waiting.pop(0)
            while not job.step():
                self._turn.begin()
        self._finishing = False

    def hold_log(self) -> bool:
        """All that a job does is to be one batch of the log. Says whether it may begin: not while another one is at
        that, nor before what that did is on disk."""
        if self._finishing:
            return True
        if self._log_held or (self._held_up_to > self._log.committed and not self._pressure.log_failing):
            return False
        self._log_held = True
        self._log.keep_open()
        return True

    def may_log(self) -> bool:
        """May a job write much to the log now? Not while the disk is far behind, unless the broker stops."""
        return self._finishing or self._log.current.size() < MOST_UNWRITTEN

    def release_log(self) -> None:
        self._log_held = False
        self._held_up_to = self._log.batch
        self._turn.owed = True
        self._log.let_close()

    def _wait(self) -> None:
        self._io_timers.arm(self, self._io_clock.now_ms() + 1)

    def subject(self) -> str:
        return self.waiting[0].subject() if self.waiting else ""
