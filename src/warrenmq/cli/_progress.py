"""How far something is that takes long: one line on standard error that is written over, only where somebody looks.

Duty: to ask and to show now and then while the work runs elsewhere, and to leave nothing behind.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

EVERY = 0.5  # seconds
UNITS = ("bytes", "kB", "MB", "GB", "TB")
_OVER = "\r\x1b[K"


@contextmanager
def shown(tell: Callable[[], str]) -> Iterator[None]:
    """While the block runs."""
    if not sys.stderr.isatty():
        yield
        return
    over = threading.Event()
    thread = threading.Thread(target=_show, args=(tell, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        print(_OVER, end="", file=sys.stderr, flush=True)


def _show(tell: Callable[[], str], over: threading.Event) -> None:
    while not over.wait(EVERY):
        text = tell()
        if text and not over.is_set():
            print(f"{_OVER}{text}", end="", file=sys.stderr, flush=True)


def copied(folder: Path) -> str:
    """Of a copy that grows there."""
    size = 0.0
    try:
        for one in folder.iterdir():
            size += one.stat().st_size
    except OSError:
        return ""  # not there yet, or not of this machine
    unit = 0
    while size >= 1000 and unit + 1 < len(UNITS):
        size /= 1000
        unit += 1
    return f"copied {size:.0f} {UNITS[unit]}" if unit == 0 else f"copied {size:.1f} {UNITS[unit]}"
