"""What the broker costs: CPU seconds and memory of the processes that listen on a port, read from /proc (Linux)."""

from __future__ import annotations

import os
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


def listening(port: int) -> list[int]:
    """The processes with a listening socket on this port, and their children; [] where that cannot be seen."""
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = Path(table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            words = line.split()
            if words[3] == "0A" and int(words[1].rsplit(":", 1)[1], 16) == port:
                inodes.add(f"socket:[{words[9]}]")
    owners = [pid for pid in _pids() if inodes & _sockets(pid)]
    return owners + [pid for pid in _pids() if _ancestors(pid) & set(owners) and pid not in owners]


def _pids() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def _sockets(pid: int) -> set[str]:
    found = set()
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            try:
                found.add(os.readlink(f"/proc/{pid}/fd/{name}"))
            except OSError:
                continue
    except OSError:
        return set()
    return found


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return []


def _ancestors(pid: int) -> set[int]:
    found: set[int] = set()
    while pid > 1:
        words = _stat(pid)
        if not words:
            break
        pid = int(words[1])
        if pid in found:
            break
        found.add(pid)
    return found


def cpu_seconds(pids: list[int]) -> float:
    """User and system time of these processes so far."""
    ticks = 0
    for pid in pids:
        words = _stat(pid)
        if words:
            ticks += int(words[11]) + int(words[12])
    return ticks / TICKS


def ended_seconds(pids: list[int]) -> float:
    """The same of what these processes had started and that has ended since."""
    ticks = 0
    for pid in pids:
        words = _stat(pid)
        if words:
            ticks += int(words[13]) + int(words[14])
    return ticks / TICKS


def thread_seconds(pid: int) -> dict[int, float]:
    """User and system time of each thread of a process so far, by thread id; the main thread's is the process's."""
    found = {}
    for name in os.listdir(f"/proc/{pid}/task"):
        try:
            words = Path(f"/proc/{pid}/task/{name}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        found[int(name)] = (int(words[11]) + int(words[12])) / TICKS
    return found


def resident_bytes(pids: list[int]) -> int:
    total = 0
    for pid in pids:
        try:
            total += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
        except OSError:
            continue
    return total
