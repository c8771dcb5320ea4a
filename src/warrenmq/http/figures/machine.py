"""What the process takes of its machine: memory, descriptors, disk. Nothing else is imported here."""

from __future__ import annotations

import os
import resource
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warrenmq.server.app import Server

PAGE_SIZE = os.sysconf("SC_PAGE_SIZE")


def resident_memory() -> int:
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_SIZE
    except (OSError, ValueError, IndexError):  # not Linux
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if os.uname().sysname == "Darwin" else 1024)


def open_files() -> int:
    for folder in ("/proc/self/fd", "/dev/fd"):
        try:
            return len(os.listdir(folder))
        except OSError:
            continue
    return 0


def free_disk(server: Server) -> int:
    try:
        found = os.statvfs(server.settings.data_dir)
    except OSError:
        return 0
    return found.f_bavail * found.f_frsize
