"""Memory and disk alarms: when publishing must stop, and why.

Duty: compare measures with limits and say which alarms are on. What is measured is handed in; limits may change at
run time. Not here: blocking connections (``connection.py``), timers that call ``check`` (``server``).

RabbitMQ 3.10's rules: memory alarm while used > limit, disk alarm while free < limit, no hysteresis.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from mypy_extensions import i64

DEFAULT_WATERMARK: Final = 0.4
DEFAULT_DISK_LIMIT: Final = 50_000_000

MEMORY: Final = "memory"
DISK: Final = "disk"


@final
class Alarms:
    """The alarms that are on. ``check`` re-measures; everything else only reads."""

    def __init__(self, memory_used: Callable[[], int], disk_free: Callable[[], int], memory_total: int) -> None:
        self._memory_used: Final = memory_used
        self._disk_free: Final = disk_free
        self.memory_total: Final = memory_total
        self.watermark: float = DEFAULT_WATERMARK  # fraction of memory_total; 0 while an absolute limit is set
        self.memory_limit: i64 = int(memory_total * DEFAULT_WATERMARK)
        self.disk_limit: i64 = DEFAULT_DISK_LIMIT
        self.memory: bool = False
        self.disk: bool = False
        self.log_failed: bool = False  # a failed write counts as "low on disk" until the log recovers

    def check(self) -> bool:
        """Measure; True when what ``reason`` says has changed."""
        before = self.reason
        self.memory = self._memory_used() > self.memory_limit
        self.disk = self._disk_free() < self.disk_limit
        return self.reason != before

    @property
    def memory_used(self) -> int:
        return self._memory_used()

    @property
    def disk_free(self) -> int:
        return self._disk_free()

    @property
    def active(self) -> bool:
        return self.memory or self.disk or self.log_failed

    @property
    def names(self) -> list[str]:
        """The alarms that are on, as connection.blocked orders them (measured on 3.10: disk before memory)."""
        names: list[str] = []
        if self.disk or self.log_failed:
            names.append(DISK)
        if self.memory:
            names.append(MEMORY)
        return names

    @property
    def reason(self) -> str:
        """The reason in connection.blocked; "" while nothing is wrong."""
        return "low on " + " & ".join(self.names) if self.active else ""

    def set_memory_watermark(self, fraction: float) -> bool:
        """A fraction of the machine's memory; answers like ``check``."""
        if not 0 <= fraction <= 1:
            raise ValueError("the memory watermark is a fraction between 0 and 1")
        self.watermark = fraction
        self.memory_limit = int(self.memory_total * fraction)
        return self.check()

    def set_memory_limit(self, limit: int) -> bool:
        """An absolute number of bytes; answers like ``check``."""
        self.watermark = 0.0
        self.memory_limit = limit
        return self.check()

    def set_disk_limit(self, limit: int) -> bool:
        self.disk_limit = limit
        return self.check()

    def set_log_failed(self, failed: bool) -> bool:
        before = self.reason
        self.log_failed = failed
        return self.reason != before
