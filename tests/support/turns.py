"""Look at a broker before each end of a turn.

The turns are compiled and have no method that a test could put its own in the place of; but every turn asks the event
loop to end it, and the loop is Python's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from warrenmq.server.app import Server


def before_each_end(server: Server, monkeypatch: pytest.MonkeyPatch, look: Callable[[], object]) -> None:
    """Call ``look`` before the end of every turn that begins from now on; on the broker's thread."""
    call_soon = server.loop.call_soon

    def soon(callback: Callable[..., Any], *given: Any, **named: Any) -> Any:
        if callback == server.turns.end:
            return call_soon(seen, *given, **named)
        return call_soon(callback, *given, **named)

    def seen() -> None:
        look()
        server.turns.end()

    monkeypatch.setattr(server.loop, "call_soon", soon)
