"""Why publishers are held now, if they are: alarms of memory and disk, a log that cannot be written, too few replicas.

Duty: the one state that the frame loop and the queues ask. What is measured is in ``alarms.py``; who is told and who
is let go again is the broker's business.
"""

from __future__ import annotations

from typing import Final, final

from warrenmq.broker.services.alarms import Alarms

TOO_FEW: Final = "too few replicas"


@final
class Pressure:
    """The shortages, as they were found last."""

    def __init__(self) -> None:
        self.alarms: Alarms | None = None  # set by whoever can measure memory and disk
        self.log_failing: bool = False
        self.too_few: bool = False  # in a cluster: fewer nodes are in sync than confirms wait for
        self.reason: str = ""  # as connection.blocked says it, "" while publishers are not held
        self.short: bool = False  # of memory or disk: no message with a body gets in; else the first of each does
        self.memory_half_full: bool = False  # queues move what they hold to disk before an alarm comes

    def look(self) -> bool:
        """Measure; says whether ``reason`` is another one than before."""
        alarms = self.alarms
        if alarms is None:
            reason = "low on disk" if self.log_failing else ""
            self.short = False
        else:
            alarms.set_log_failed(self.log_failing)
            alarms.check()
            reason = alarms.reason
            self.short = alarms.memory or alarms.disk
            self.memory_half_full = alarms.memory_used > alarms.memory_limit // 2
        if self.too_few:
            reason = f"{reason}, {TOO_FEW}" if reason else TOO_FEW
        changed = reason != self.reason
        self.reason = reason
        return changed
