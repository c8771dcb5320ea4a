"""How long a broker that does not answer is asked again.

Duty: pauses that grow, until option ``patience`` is used up (or after ``retries`` further attempts, where that is
given); where the broker has several addresses, the next one is asked next. Whatever asks a broker, asks so: planning,
tasks, HTTP. Not here: asking.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from warrenmq.spark.addresses import failed
from warrenmq.spark.options import Options

FIRST_PAUSE = 0.2
LONGEST_PAUSE = 10.0


class Patience:
    """One thing that may fail and is tried again."""

    def __init__(
        self,
        options: Options,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.failures = 0
        self._addresses = (options.hosts, options.http_hosts)
        self._retries = options.retries
        self._seconds = options.patience
        self._sleep = sleep
        self._clock = clock
        self._since = 0.0
        self._pause = FIRST_PAUSE

    def again(self) -> bool:
        """After a failure: False when it was the last, else True after a pause."""
        now = self._clock()
        if not self.failures:
            self._since = now
        self.failures += 1
        for addresses in self._addresses:
            failed(addresses)
        pause = self._pause
        if self._retries is None:
            left = self._seconds - (now - self._since)
            if left <= 0:
                return False
            pause = min(pause, left)
        elif self.failures > self._retries:
            return False
        self._sleep(pause)
        self._pause = min(self._pause * 2, LONGEST_PAUSE)
        return True

    def progressed(self) -> None:
        """It went well meanwhile: what fails now fails anew."""
        self.failures = 0
        self._pause = FIRST_PAUSE

    @property
    def tried(self) -> str:
        return f"after {self.failures} attempts" if self.failures > 1 else "at the first attempt"
