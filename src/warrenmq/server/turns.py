"""The loop's side of a turn: when one begins, when it ends, and the one loop timer for the earliest of the broker's.

Duty: what runs for every input of every client, which is why it is compiled (``setup.py`` names it). What a turn does
at its end is in ``broker/services/turn.py``; who is fed is in ``transport.py``. The log's threads post here, and are
let go at the end of a turn, when the loop is about to wait: before that they could only wait for Python's lock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, final

from mypy_extensions import i64

from warrenmq.broker.broker import Broker
from warrenmq.broker.services.timers import Timer
from warrenmq.log.runner import ThreadRunner
from warrenmq.server.background import Background
from warrenmq.server.watchdog import Watchdog

TURN_BYTES: Final = 1 << 20  # a turn ends after this much input at the latest
TIMERS: Final = 1000  # that fire in one turn


@final
class Turns:
    """The turns of one broker on one event loop."""

    def __init__(self, broker: Broker, loop: Any, background: Background, watchdog: Watchdog, virtual: bool) -> None:
        self.broker: Final = broker
        self.background: Final = background
        self.watchdog: Final = watchdog
        self.number: i64 = 0  # of the turn that is under way, or was last
        self.under_way: bool = False
        self.stopped: bool = False  # timers fire no more
        self._loop: Final = loop
        self._virtual: Final = virtual  # somebody else fires the timers of the rules
        self._octets: i64 = 0  # taken in this turn
        self._timer: Any = None
        self._timer_due: i64 = -1
        self.committer: Final = ThreadRunner(self._post, "warren-commit")
        self.worker: Final = ThreadRunner(self._post, "warren-maintain")

    def begin(self) -> None:
        """Something came in: the clock is read once a turn, and the turn will end."""
        if not self.under_way:
            self._begin()
            self._loop.call_soon(self.end)

    def _begin(self) -> None:
        self.under_way = True
        self.number += 1
        self.committer.hold()
        self.worker.hold()
        self.watchdog.begin_turn()
        self.broker.begin_turn()

    def fed(self, size: i64) -> None:
        """Input was taken; a turn is bounded, so that nobody waits behind a flood."""
        self._octets += size
        if self._octets >= TURN_BYTES:
            self._octets = 0
            self._settle()

    def end(self) -> None:
        self.under_way = False
        self._octets = 0
        try:
            self._settle()
        except Exception:
            self.background.failed("the end of a turn")
        self._arm()
        self.watchdog.end_turn()

    def _settle(self) -> None:
        """The end of the broker's turn; then what it gave the log's threads begins."""
        try:
            self.broker.end_turn()
        finally:
            self.committer.let_go()
            self.worker.let_go()

    def between(self, work: Callable[[], object]) -> None:
        """What the log hears of finished tasks and of other nodes, it hears between turns only."""
        if self.under_way:
            self._settle()
        self.begin()
        work()

    # -- the log's threads -------------------------------------------------------------------------------------

    def _post(self, number: int) -> None:
        """A log thread finished a task; called on that thread."""
        try:
            self._loop.call_soon_threadsafe(self._task_done, number)
        except RuntimeError:
            pass  # the loop is closed: nobody waits any more

    def _task_done(self, number: int) -> None:
        try:
            alone = not self.under_way
            if alone:
                self._begin()
            else:
                self._settle()
            self.broker.services.log.done(number)
            self.watchdog.lap("a finished task of the log")
            if alone:
                self.end()  # confirms need not wait for the loop to come round
        except Exception:
            self.background.failed("a finished task of the log")

    # -- time --------------------------------------------------------------------------------------------------

    def _arm(self) -> None:
        """One loop timer for the earliest of the broker's."""
        services = self.broker.services
        due = services.io_timers.next_due()
        if not self._virtual and not self.broker.connections.starting:
            other = services.timers.next_due()
            if other >= 0 and (due < 0 or other < due):
                due = other
        armed = self._timer_due
        if due == armed or (armed >= 0 and (due < 0 or armed < due)):
            return  # the timer that is armed fires first, finds nothing, and arms the next
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_due = due
        if due >= 0 and not self.stopped:
            wait = (due - services.io_now()) / 1000
            self._timer = self.background.later(max(0.0, wait), "timers", self._fire)

    def _fire(self) -> None:
        self._timer = None
        self._timer_due = -1
        self.begin()
        self.broker.begin_turn()
        now = self.broker.services.io_now()  # what becomes due while others fire, a slow job say, waits for its turn
        for _ in range(TIMERS):  # a bounded slice; the rest in the next turn
            fired = self._run_timer(now)
            if fired is not None:
                self.watchdog.lap(fired)
            turn = self.broker.services.turn
            if fired is None or self.broker.delay.slice_full or turn.expiries_left <= 0 or turn.work_left <= 0:
                break  # with more of what this turn has done enough of, the end of it arms the timer again
        else:
            self.background.later(0, "timers", self._fire)

    def _run_timer(self, now: i64) -> Timer | None:
        services = self.broker.services
        rules = not self._virtual and not self.broker.connections.starting
        if rules and services.timers.run_next(services.turn.now):
            return services.timers.fired
        return services.io_timers.fired if services.io_timers.run_next(now) else None

    def stop(self) -> None:
        """No timer fires any more."""
        self.stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
