"""Files that the connector itself writes, beside what Spark writes.

Duty: a path as a file system and a folder, and files that have their name only when they are whole. Not here: what is
in them (``sink.py``, ``bad_records.py``).
"""

from __future__ import annotations

import os
import re
import uuid
from typing import Any

PATTERNS = re.compile(r"[\\*?\[\]{}]")


def literal(path: str) -> str:
    """For Spark to read: it takes some characters of a path for patterns, which here are its names."""
    return PATTERNS.sub(r"\\\g<0>", path)


def named(path: str) -> str:
    """For Spark to read what somebody named: a folder of this machine as it is, anything else may be a pattern."""
    return literal(path) if os.path.exists(path) else path


def filesystem_of(path: str) -> tuple[Any, str]:
    """Any address that Arrow knows, or a path of this machine."""
    from pyarrow import fs

    if "://" in path or path.startswith("file:"):
        filesystem, folder = fs.FileSystem.from_uri(path)
        return filesystem, folder
    return fs.LocalFileSystem(), os.path.abspath(path)


class Hidden:
    """A file in the making: Spark does not read what begins with a dot. Shown, it replaces one of the same name."""

    def __init__(self, filesystem: Any, folder: str, name: str) -> None:
        filesystem.create_dir(folder, recursive=True)
        self.path = f"{folder}/.{name}.{uuid.uuid4().hex[:8]}.tmp"
        self.target = f"{folder}/{name}"
        self._filesystem = filesystem

    def show(self) -> str:
        self._filesystem.move(self.path, self.target)
        return self.target

    def delete(self) -> None:
        self._filesystem.delete_file(self.path)
