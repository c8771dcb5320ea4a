"""What a process holds in memory now, and the most it has held since it was last asked (Linux)."""

from __future__ import annotations

from pathlib import Path


def _field(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise LookupError(name)


def resident(pid: int) -> int:
    return _field(pid, "VmRSS")


def peak(pid: int) -> int:
    return _field(pid, "VmHWM")


def forget_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def can_measure() -> bool:
    return Path("/proc/self/clear_refs").exists()
