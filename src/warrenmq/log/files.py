"""The file layer: every call of the log that touches a disk goes through one object of this class.

Duty: plain, synchronous file operations with their durability (``sync`` means "on the medium"). Not here: formats,
retries, threads. Errors are ``OSError`` and always mean "not done". Tests replace the object by a simulated disk
(``tests/log/disk.py``), which is why interpreted subclasses are allowed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sys
from typing import Final, final

from mypy_extensions import i64, mypyc_attr

# macOS has no fdatasync, and its fsync stops at the drive's cache
FULL_SYNC: Final[int] = 51  # fcntl.F_FULLFSYNC, which Linux's module does not know
RWF_DSYNC: Final[int] = 2  # os.RWF_DSYNC, which other systems' modules do not know
MOST_PARTS: Final = 1024  # that one system call takes (IOV_MAX)


@mypyc_attr(allow_interpreted_subclasses=True)
class Files:
    """The real disk."""

    def make_folder(self, folder: str) -> None:
        """For its owner alone: messages and the hashes of passwords will be in it. One that is there stays as it is."""
        os.makedirs(folder, 0o700, exist_ok=True)

    def lock(self, path: str) -> int:
        """Take the folder's lock; raises BlockingIOError when another process has it."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    def create(self, path: str) -> int:
        """A new empty file, whatever stood there before: a fresh inode, so that no old cached page lives on."""
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)

    def open(self, path: str, writing: bool) -> int:
        flags = os.O_RDWR | os.O_CREAT if writing else os.O_RDONLY
        return os.open(path, flags | os.O_CLOEXEC, 0o600)

    def write(self, descriptor: int, parts: list[bytes], offset: i64) -> None:
        """Write the parts one behind the other from ``offset``; goes on after a short write until all is written."""
        written = 0
        if sys.platform != "darwin" and len(parts) <= MOST_PARTS:
            written = os.pwritev(descriptor, parts, offset)
        total = 0
        for part in parts:
            total += len(part)
        if written == total:
            return
        rest = b"".join(parts)[written:]
        at = int(offset) + written
        while rest:
            count = os.pwrite(descriptor, rest, at)
            if count == 0:
                raise OSError(errno.ENOSPC, "nothing could be written")
            at += count
            rest = rest[count:]

    def write_through(self, descriptor: int, parts: list[bytes], offset: i64) -> bool:  # noqa: ARG002
        """Write the parts and sync them in one call. False: nobody could here, and nothing is promised of them."""
        return False

    def read(self, descriptor: int, length: i64, offset: i64) -> bytes:
        """Up to ``length`` bytes; fewer only at the end of the file."""
        data = os.pread(descriptor, length, offset)
        if len(data) == length or not data:
            return data
        parts = [data]
        have = len(data)
        while have < length:
            data = os.pread(descriptor, length - have, offset + have)
            if not data:
                break
            parts.append(data)
            have += len(data)
        return b"".join(parts)

    def sync(self, descriptor: int) -> None:
        """Everything written to this file is on the medium when this returns."""
        if sys.platform == "darwin":
            try:
                fcntl.fcntl(descriptor, FULL_SYNC)
            except OSError as error:
                if error.errno not in (errno.EINVAL, errno.ENOTSUP):
                    raise
                os.fsync(descriptor)  # not every file system there knows F_FULLFSYNC
        else:
            os.fdatasync(descriptor)

    def sync_folder(self, folder: str) -> None:
        """Names made, renamed or removed in the folder are on the medium when this returns."""
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def truncate(self, descriptor: int, length: i64) -> None:
        os.ftruncate(descriptor, length)

    def size(self, descriptor: int) -> i64:
        return os.fstat(descriptor).st_size

    def close(self, descriptor: int) -> None:
        os.close(descriptor)

    def rename(self, old: str, new: str) -> None:
        os.replace(old, new)

    def unlink(self, path: str) -> None:
        """Remove the file; one that is not there is fine."""
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass

    def names(self, folder: str) -> list[str]:
        return sorted(os.listdir(folder))

    def random_id(self) -> i64:
        """63 random bits: the identity of a new log."""
        return int.from_bytes(os.urandom(8), "big") >> 1


@final
class RealDisk(Files):
    """The disk of a broker: what is small goes there in one call where the system has one, which Python's lock then is
    let go for once instead of twice."""

    def __init__(self) -> None:
        self._through: bool = sys.platform == "linux"

    def write_through(self, descriptor: int, parts: list[bytes], offset: i64) -> bool:
        if not self._through or len(parts) > MOST_PARTS:
            return False
        total = 0
        for part in parts:
            total += len(part)
        try:
            return os.pwritev(descriptor, parts, offset, RWF_DSYNC) == total
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
                raise
            self._through = False  # not every file system and kernel knows it
            return False
