"""Moving virtual time: everything clients have sent first, then one due timer after the other.

Runs on the broker's own loop. The invariant that tests count on: while anything is left to read, to write or to
commit, no time passes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from warrenmq.broker.services.clock import VirtualClock

if TYPE_CHECKING:
    from selectors import BaseSelector

    from warrenmq.broker.broker import Broker
    from warrenmq.server.app import Server

COMMIT_POLL = 0.0002


class QuietLoop(asyncio.SelectorEventLoop):
    """An event loop that can say whether it has anything left to do now."""

    _selector: BaseSelector
    _ready: deque[asyncio.Handle]

    def quiet(self) -> bool:
        """No callback is ready, and no socket that the loop watches can be read or written."""
        return not self._ready and not self._selector.select(0)


async def settle(broker: Broker) -> None:
    """Read every readable socket until none is, wait for pending commits, flush output."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, QuietLoop)
    while True:
        while not loop.quiet():
            await asyncio.sleep(0)
        if (broker.services.log.in_flight is None or broker.services.log.failing) and not broker.services.jobs.busy():
            return
        await asyncio.sleep(COMMIT_POLL)


async def advance(server: Server, clock: VirtualClock, milliseconds: int) -> None:
    """Move the clock by so much, stopping at every timer that is due on the way."""
    broker = server.broker
    await settle(broker)
    target = clock.now_ms() + milliseconds
    while 0 <= (due := next_due(broker)) <= target:
        if due > clock.now_ms():
            clock.set_ms(due)
        broker.begin_turn()
        broker.run_timers()
        server.end_turn()
        await settle(broker)
    clock.set_ms(target)
    broker.begin_turn()
    server.end_turn()
    await settle(broker)


def next_due(broker: Broker) -> int:
    """When the next timer on the virtual clock is due, -1 when none is; the wire's timers count if they are on it."""
    due = broker.services.timers.next_due()
    if broker.services.io_clock is broker.services.clock:
        wire = broker.services.io_timers.next_due()
        if due < 0 or 0 <= wire < due:
            return wire
    return due
