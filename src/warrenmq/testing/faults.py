"""Faults on demand: objects that stand in for real parts and fail when told to.

Compiled code cannot be patched, so a fault is an object that is handed in: `Broker(disk=FaultyDisk())`. What a broker
does about a failing disk is real; only the failure is made.
"""

from __future__ import annotations

import errno
import os
import threading
import time

from warrenmq.log.files import Files

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


class SlowDisk(Files):
    """A disk that takes so many bytes a second, and has nothing of a file before that file's sync is over.

    What was written and not synced lives in this process only: kill it, and the write is gone, as in a power cut.
    """

    def __init__(self, bytes_per_second: float) -> None:
        super().__init__()
        self.bytes_per_second = bytes_per_second
        self.written = 0  # bytes that have arrived
        self._lock = threading.Lock()
        self._pending: dict[int, list[tuple[int, bytes]]] = {}  # by inode, in the order written

    def write(self, descriptor: int, parts: list[bytes], offset: int) -> None:
        data = b"".join(parts)
        with self._lock:
            self._pending.setdefault(os.fstat(descriptor).st_ino, []).append((offset, data))

    def read(self, descriptor: int, length: int, offset: int) -> bytes:
        with self._lock:
            data = super().read(descriptor, length, offset)
            image = bytearray(data)
            for at, piece in self._pending.get(os.fstat(descriptor).st_ino, ()):
                start, end = max(at, offset), min(at + len(piece), offset + length)
                if start >= end:
                    continue
                if len(image) < end - offset:
                    image.extend(bytes(end - offset - len(image)))
                image[start - offset : end - offset] = piece[start - at : end - at]
            return bytes(image)

    def size(self, descriptor: int) -> int:
        with self._lock:
            status = os.fstat(descriptor)
            ends = [at + len(piece) for at, piece in self._pending.get(status.st_ino, ())]
            return max([status.st_size, *ends])

    def sync(self, descriptor: int) -> None:
        inode = os.fstat(descriptor).st_ino
        with self._lock:
            pieces = list(self._pending.get(inode, ()))
        total = sum(len(piece) for _, piece in pieces)
        time.sleep(total / self.bytes_per_second)
        with self._lock:
            self._arrive(descriptor, inode, pieces)
            self.written += total
        super().sync(descriptor)

    def truncate(self, descriptor: int, length: int) -> None:
        with self._lock:
            inode = os.fstat(descriptor).st_ino
            self._arrive(descriptor, inode, self._pending.get(inode, []))
            super().truncate(descriptor, length)

    def unlink(self, path: str) -> None:
        with self._lock:
            try:
                self._pending.pop(os.stat(path).st_ino, None)
            except FileNotFoundError:
                return
            super().unlink(path)

    def _arrive(self, descriptor: int, inode: int, pieces: list[tuple[int, bytes]]) -> None:
        for offset, piece in pieces:
            super().write(descriptor, [piece], offset)
        left = self._pending.get(inode, [])[len(pieces) :]
        if left:
            self._pending[inode] = left
        else:
            self._pending.pop(inode, None)
