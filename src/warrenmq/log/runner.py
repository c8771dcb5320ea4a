"""Who does the log's disk work: a thread of its own, or the caller.

Duty: run one task at a time and say when it is over. A thread holds nothing of the broker: it gets finished buffers,
and posts one integer through the callable it was made with
(``lambda number: loop.call_soon_threadsafe(log.done, number)``). Not here: what the tasks do.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Final, final

from mypy_extensions import i64, mypyc_attr


class Task:
    """A piece of disk work. ``error`` is empty when all of it was done."""

    def __init__(self, number: i64) -> None:
        self.number: Final = number
        self.error: str = ""

    def work(self) -> None:
        """Do it; raises OSError."""

    def run(self) -> None:
        """Do it; never raises. May be run again."""
        self.error = ""
        try:
            self.work()
        except OSError as error:
            self.error = error.strerror or str(error) or "input/output error"
        except Exception as defect:  # must not leave publishers waiting for ever
            self.error = f"internal error: {defect!r}"


@mypyc_attr(allow_interpreted_subclasses=True)
class Runner:
    """A runner of tasks on the caller's thread, at once: for tests and the virtual clock."""

    def submit(self, task: Task) -> bool:
        """Run it. True: it is done already; False: its number will be posted."""
        task.run()
        return True

    def wait(self) -> None:
        """Return when nothing is running (the number may still be on its way)."""

    def stop(self) -> None:
        """No further tasks will come."""


@final
class ThreadRunner(Runner):
    """One thread, one task at a time. It begins when it is submitted, or, while it is held, when it is let go: whoever
    submits from an event loop holds Python's lock to the end of its turn, and a thread that is woken before could only
    wait for that."""

    def __init__(self, post: Callable[[int], object], name: str) -> None:
        self.post: Final = post
        self.tasks: Final[SimpleQueue[Task | None]] = SimpleQueue()
        self.idle: Final = threading.Lock()  # held while a task is under way
        self.holding: bool = False
        self.held: Task | None = None  # submitted, and not let go yet
        self.thread: Final = threading.Thread(target=self.loop, name=name, daemon=True)
        self.thread.start()

    def submit(self, task: Task) -> bool:
        self.idle.acquire()
        self.held = task
        if not self.holding:
            self.let_go()
        return False

    def hold(self) -> None:
        """Begin nothing until it is let go."""
        self.holding = True

    def let_go(self) -> None:
        """Begin what was submitted, and what will be."""
        self.holding = False
        task = self.held
        if task is not None:
            self.held = None
            self.tasks.put(task)

    def loop(self) -> None:
        while True:
            task = self.tasks.get()
            if task is None:
                return
            number = int(task.number)
            task.run()
            task = None
            self.idle.release()
            try:
                self.post(number)
            except RuntimeError:
                return  # the loop is closed: nobody is left to tell

    def wait(self) -> None:
        self.let_go()
        self.idle.acquire()
        self.idle.release()

    def stop(self) -> None:
        self.wait()
        self.tasks.put(None)
        self.thread.join()
