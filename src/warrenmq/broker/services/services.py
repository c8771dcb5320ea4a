"""What every part of the broker works with, whatever it is for.

Duty: to be handed to those parts in one piece, made before them and knowing none of them. What exists (vhosts, users,
connections) is not here: see ``broker.py``.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from warrenmq.broker.services.clock import Clock
from warrenmq.broker.services.deadlines import Deadlines
from warrenmq.broker.services.freeing import Freeing
from warrenmq.broker.services.held_deliveries import HeldDeliveries
from warrenmq.broker.services.ids import Ids
from warrenmq.broker.services.jobs import Jobs
from warrenmq.broker.services.limits import Limits
from warrenmq.broker.services.notes import Notes
from warrenmq.broker.services.pacing import Pacing
from warrenmq.broker.services.pressure import Pressure
from warrenmq.broker.services.randomness import Randomness
from warrenmq.broker.services.store import DefinitionStore
from warrenmq.broker.services.taking_apart import TakingApart
from warrenmq.broker.services.tally import Tally
from warrenmq.broker.services.timers import Timers
from warrenmq.broker.services.turn import Turn
from warrenmq.log.log import Log
from warrenmq.log.transient import TransientStore


class Services:
    """The log, time, numbers, limits, and whom to tell."""

    def __init__(
        self,
        log: Log,
        transient: TransientStore,
        clock: Clock,
        io_clock: Clock,
        randomness: Randomness,
        notes: Notes,
    ) -> None:
        self.log: Final = log
        self.transient: Final = transient
        self.clock: Final = clock
        self.io_clock: Final = io_clock
        self.randomness: Final = randomness
        self.notes: Final = notes
        self.turn: Final = Turn(clock, log)
        self.ids: Final = Ids(log, randomness)
        self.timers: Final = Timers(notes)  # the rules' time: TTL, expiry, delays
        self.io_timers: Final = Timers(notes)  # the wire's time: heartbeats, handshakes, grace, freeing
        self.deadlines: Final = Deadlines(self.timers, self.turn)
        self.limits: Final = Limits()
        self.held_deliveries: Final = HeldDeliveries(self.turn)
        self.store: Final = DefinitionStore(log)
        self.pressure: Final = Pressure()
        self.jobs: Final = Jobs(log, self.turn, self.pressure, self.io_timers, io_clock)
        self.freeing: Final = Freeing(self.io_timers, io_clock)
        self.taking_apart: Final = TakingApart(self.io_timers, io_clock)
        self.pacing: Final = Pacing(self.turn, self.io_timers, io_clock)
        self.unroutable: i64 = 0  # messages that went nowhere
        self.tally: Final = Tally()

    def io_now(self) -> i64:
        return self.io_clock.now_ms()

    def settle_down(self) -> None:
        self.turn.settle_down()

    def begin_turn(self) -> None:
        self.turn.begin()

    def end_turn(self) -> None:
        self.turn.end()

    def run_timers(self) -> bool:
        """Fire one due timer of either kind; says whether one fired."""
        return self.timers.run_next(self.turn.now) or self.io_timers.run_next(self.io_now())
