"""Small batches wait for more messages.

Duty: whether there are enough for a batch: options ``minOffsetsPerTrigger`` and ``maxTriggerDelay``, with the meaning
they have in Spark's Kafka source. The first batch of a run waits for nothing. Not here: triggers that take what
there is whatever the limits (AvailableNow, once): readers do not ask then.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from warrenmq.spark.options import Options


class Gathering:
    """The decision of one stream whether to wait for a larger batch."""

    def __init__(self, options: Options, clock: Callable[[], float] = time.monotonic) -> None:
        self.least = options.min_offsets_per_trigger
        self._delay = options.max_trigger_delay
        self._clock = clock
        self._last: float | None = None  # when messages were last let through

    def waits(self, messages: int, most: int | None = None) -> bool:
        """Whether so many are too few for a batch now; ``most`` is as many as a batch can have."""
        if not self.least or not messages:
            return False
        now = self._clock()
        least = self.least if most is None else min(self.least, most)
        if messages < least and self._last is not None and now - self._last < self._delay:
            return True
        self._last = now
        return False
