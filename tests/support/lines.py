"""What a call costs, counted: lines of Python executed. The same on every machine, however fast and however busy.

Only uncompiled code can be counted, so tests that count are marked ``uncompiled`` and ``pure``: the second run of
`make test`, with WARREN_PURE=1, has them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def lines(call: Callable[[], object]) -> int:
    """How many lines ran until the call returned."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        if event == "line":
            count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count
