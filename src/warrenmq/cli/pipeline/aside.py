"""What Spark's processes write to standard error, which is ours to speak on.

Duty: the JVM, and the Python workers that write through it, get a pipe instead; its last lines are kept, as one of them
may say why Spark did not start. Not here: what went wrong in a job, which Spark tells as exceptions.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

MOST = 100  # lines
SAYS_WHY = re.compile(r"^(?!WARN)(?:\S+ )?(?:Error|Exception|Invalid|Unrecognized|Too small)\b")


class Aside:
    """The last lines that were written."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=MOST)
        self._thread: threading.Thread | None = None

    def take(self, pipe: int) -> None:
        self._thread = threading.Thread(target=self._read, args=(pipe,), daemon=True)
        self._thread.start()

    def why(self) -> str:
        """The line that says why a process ended, when it has; "" when none does."""
        if self._thread is not None:
            self._thread.join(5)
        return next((line for line in self._lines if SAYS_WHY.match(line)), "")

    def _read(self, pipe: int) -> None:
        with open(pipe, encoding="utf-8", errors="replace") as lines:
            self._lines.extend(line.rstrip() for line in lines)


@contextmanager
def set_aside() -> Iterator[Aside]:
    """Processes that are started inside write there as long as they live."""
    aside = Aside()
    sys.stderr.flush()
    ours = os.dup(2)
    reading, writing = os.pipe()
    os.dup2(writing, 2)
    os.close(writing)
    aside.take(reading)
    try:
        yield aside
    finally:
        sys.stderr.flush()
        os.dup2(ours, 2)
        os.close(ours)
