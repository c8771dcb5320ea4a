"""Settings of the whole process: malloc, descriptors, the event loop. Only `warren serve` calls it.

The embedded broker lives in somebody's test process and must change nothing there, so nothing in this module runs at
import and nothing else in the package does what it does, but for ``garbage.py``.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import sys
from collections.abc import Callable

from warrenmq.broker.services.tally import Tally
from warrenmq.server.background import Background

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3
_MIB = 1024 * 1024
_ROOM = 4 * _MIB
_BUSY = 10_000  # messages, until a broker is no idle one
_SOON = 1.0
_MADV_DONTNEED = 4
_SMALL = bytes(448)  # close to the largest that Python's own allocator takes
_kept: list[bytes] = []


def settle_malloc() -> bool:
    """Keep freed memory for the next message instead of giving it back page by page (a quarter of the CPU at 1 KiB).

    Resident memory then stays high after a drain: the memory alarm calls `malloc_trim` when it matters. What is given
    back goes 48 MiB at a time, which takes less than ten milliseconds: with a threshold of 256 MiB it was 240 at once.
    Ordinary traffic reaches neither. 32 MiB is the most that glibc takes for the mmap threshold. Without glibc (macOS,
    musl) nothing happens.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return False
    return all(
        mallopt(option, size) == 1
        for option, size in ((_M_MMAP_THRESHOLD, 32 * _MIB), (_M_TRIM_THRESHOLD, 64 * _MIB), (_M_TOP_PAD, 16 * _MIB))
    )


def keep_room_when_busy(background: Background, tally: Tally) -> None:
    """Once messages come in numbers: a broker that idles is as small as it can be."""

    def look() -> None:
        if tally.published >= _BUSY:
            keep_room()
        else:
            background.later(_SOON, "room for small objects", look)

    look()


def keep_room() -> None:
    """Have Python keep some room for small objects.

    Its allocator takes memory from the system a MiB at a time and gives each back when nothing is left in it. The small
    objects of a turn are a MiB or two, so every turn had its pages given and taken: a tenth of the CPU at 16 octets and
    more. A small object in each of them keeps them.
    """
    small = [_SMALL[1:] for _ in range(_ROOM // len(_SMALL))]
    _kept.extend(small[:: _MIB // 2 // len(_SMALL)])


def let_go_of_code() -> None:
    """After start-up: what of the libraries' code ran once, to make hundreds of modules, need not stay in memory.

    What is needed again comes back by itself from the system's cache of the file. Nothing is lost by it: code is never
    written to, unlike data of a library that can only be read once it is set up, so of all mappings of files only those
    are let go that may be executed and not written.
    """
    if not sys.platform.startswith("linux"):
        return
    try:
        madvise = ctypes.CDLL("libc.so.6").madvise
        with open("/proc/self/maps") as maps:
            lines = maps.read().splitlines()
    except (OSError, AttributeError):
        return
    for line in lines:
        place, rights, _, _, _, *path = line.split(maxsplit=5)
        if rights == "r-xp" and path and path[0].startswith("/"):
            first, end = (int(one, 16) for one in place.split("-"))
            madvise(ctypes.c_void_p(first), ctypes.c_size_t(end - first), _MADV_DONTNEED)


def raise_descriptor_limit() -> None:
    """One descriptor a connection: take all that the system lets this process have."""
    try:
        import resource
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 1_048_576 if hard == resource.RLIM_INFINITY else hard
    if soft < wanted:
        with contextlib.suppress(ValueError, OSError):  # macOS names a hard limit that it then refuses
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """uvloop where it is installed, plain asyncio otherwise."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop
