"""What the server does without being asked: timers, periodic work and tasks that nobody waits for. Started only here.

Duty: nothing that was started here ends because of an exception. It is logged with the name of what failed, periodic
work comes again, and a task that is to run for ever is started again. Not here: what the work is, and the broker's own
timers, whose failures ``broker/services/timers.py`` treats in the same way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from warrenmq.server.logging import events

AGAIN = 1.0  # seconds until work that failed is tried again


class Periodic:
    """Work that comes again and again. It says itself in how many seconds; ``AGAIN`` when it failed."""

    def __init__(self, background: Background, what: str, work: Callable[[], float]) -> None:
        self._background = background
        self._what = what
        self._work = work
        self._timer: asyncio.TimerHandle | None = None
        self._cancelled = False
        self.run()

    def run(self) -> None:
        seconds = AGAIN
        try:
            seconds = self._work()
        except Exception:
            self._background.failed(self._what)
        if not self._cancelled:
            self._timer = self._background.loop.call_later(seconds, self.run)

    def cancel(self) -> None:
        self._cancelled = True
        if self._timer is not None:
            self._timer.cancel()


class Background:
    """One for each event loop that a server runs on."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._tasks: set[asyncio.Task[None]] = set()  # asyncio itself does not keep a task alive

    def later(self, seconds: float, what: str, work: Callable[[], object]) -> asyncio.TimerHandle:
        """Once, after so many seconds."""
        return self.loop.call_later(seconds, self._run, what, work)

    def every(self, what: str, work: Callable[[], float]) -> Periodic:
        """Now, and again as many seconds later as the work says each time."""
        return Periodic(self, what, work)

    def task(self, what: str, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Once, to its end."""
        return self._start(self._guarded(what, coroutine))

    def forever(self, what: str, make: Callable[[], Coroutine[Any, Any, None]]) -> asyncio.Task[None]:
        """Until it returns or is cancelled; made anew when it failed."""
        return self._start(self._repeated(what, make))

    def failed(self, what: str) -> None:
        """The exception being handled ended a piece of work."""
        events("server").exception("background.failed", what=what)

    def _run(self, what: str, work: Callable[[], object]) -> None:
        try:
            work()
        except Exception:
            self.failed(what)

    def _start(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self.loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _guarded(self, what: str, coroutine: Coroutine[Any, Any, None]) -> None:
        try:
            await coroutine
        except Exception:
            self.failed(what)

    async def _repeated(self, what: str, make: Callable[[], Coroutine[Any, Any, None]]) -> None:
        while True:
            try:
                await make()
                return
            except Exception:
                self.failed(what)
            await asyncio.sleep(AGAIN)
