"""Faults on demand: objects that stand in for real parts and fail when told to.

Compiled code cannot be patched, so a fault is an object that is handed in: `Broker(disk=FaultyDisk())`. What a broker
does about a failing disk is real; only the failure is made.
"""

from __future__ import annotations

import errno
import os
import threading

from warren.log.files import Files

OPERATIONS = ("write", "sync")


class FaultyDisk(Files):
    """The real disk until `fail` or `hold` is called. May be told from any thread."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._failing: dict[str, tuple[int, int]] = {}
        self._free = threading.Event()
        self._free.set()
        self._waiting = threading.Event()
        self.failures = 0

    def fail(self, operation: str = "sync", error: int = errno.EIO, times: int = -1) -> None:
        """From now on every `write` or `sync` fails with this error: `times` times, or until `repair`."""
        if operation not in OPERATIONS:
            raise ValueError(f"operation: {operation!r}; allowed: {', '.join(OPERATIONS)}")
        with self._lock:
            self._failing[operation] = (error, times)

    def repair(self) -> None:
        """The disk works again."""
        with self._lock:
            self._failing.clear()

    def hold(self) -> None:
        """Syncs wait from now on, as on a disk that is busy, until `release`."""
        self._waiting.clear()
        self._free.clear()

    def release(self) -> None:
        self._free.set()

    def wait_until_held(self, timeout: float = 10.0) -> bool:
        """Until a sync is waiting: whatever it covers has been written and not been confirmed."""
        return self._waiting.wait(timeout)

    def write(self, descriptor: int, parts: list[bytes], offset: int) -> None:
        self._strike("write")
        super().write(descriptor, parts, offset)

    def sync(self, descriptor: int) -> None:
        if not self._free.is_set():
            self._waiting.set()
            self._free.wait()
        self._strike("sync")
        super().sync(descriptor)

    def _strike(self, operation: str) -> None:
        with self._lock:
            error, times = self._failing.get(operation, (0, 0))
            if not error:
                return
            if times == 1:
                del self._failing[operation]
            elif times > 1:
                self._failing[operation] = (error, times - 1)
            self.failures += 1
        raise OSError(error, os.strerror(error))
