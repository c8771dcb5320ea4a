"""The data folder itself: who may look into it, and whether it is still the one the broker opened.

Duty: a word at the start about its permissions, and the watch over it: a broker whose folder was removed or replaced
goes on writing to files that no later start will find. Not here: what stands in it (``log``), free room (``app.py``).
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from warrenmq.server.logging import events

OTHERS = 0o077


class DataFolder:
    """The folder as it was when the broker opened it, looked at again now and then."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._inode = self._identity()
        self.problem = ""  # why what is written is not where a start would look; "" while all is well

    def warn_if_open(self) -> None:
        """A new folder is its owner's alone. One that others may enter stays so, as somebody may have meant it, a group
        that makes backups, say; but it is said."""
        mode = stat.S_IMODE(self._path.stat().st_mode)
        if mode & OTHERS:
            hint = f"messages and password hashes are in it: chmod 700 {self._path}"
            events("server").warning("folder.open_to_others", folder=self._path, mode=f"{mode:04o}", hint=hint)

    def _identity(self) -> tuple[int, int]:
        """Of the lock file, which is there as long as the folder is the same."""
        found = os.stat(self._path / "lock")
        return found.st_dev, found.st_ino

    def look(self) -> None:
        problem = ""
        try:
            if self._identity() != self._inode:
                problem = f"{self._path} was replaced: this broker writes to a folder that has no name any more"
        except OSError as error:
            problem = f"{self._path} is gone ({error.strerror}): this broker writes to files that nobody will find"
        if problem != self.problem:
            self.problem = problem
            if problem:
                events("server").error("folder.gone", folder=self._path, reason=problem)
            else:
                events("server").info("folder.back", folder=self._path)
