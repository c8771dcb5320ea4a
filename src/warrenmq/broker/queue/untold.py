"""How much came to a queue of which the journal is told nothing, beyond what the log has anyway.

Duty: to tell it, from when to when, out of what the queue counts for others, so that no message pays for it. Not here:
when (``queue.py``, ``start/stopping.py``), and what the log has, which whoever reads it counts (``journal/hiding.py``).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.log.log import Log


@final
class Untold:
    """The time since when nothing is told of a queue, or since it was last said how much that was."""

    def __init__(self, log: Log, came: i64) -> None:
        """``came``: how many messages have come that the log does not have."""
        self._log: Final = log
        self._came: i64 = came
        self._since: i64 = log.time

    def tell(self, came: i64) -> None:
        """So many have come by now."""
        if came > self._came:
            self._log.events.not_told(came - self._came, self._since)
        self._came = came
        self._since = self._log.time
