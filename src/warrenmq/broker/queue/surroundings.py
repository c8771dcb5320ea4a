"""The services as queues have them.

Duty: what only queues need beside what every part works with. So queues know nothing of channels and connections;
who takes what they give up is in ``office.py``.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from warrenmq.broker.queue.damaged import DamagedMessages
from warrenmq.broker.services.clock import Clock
from warrenmq.broker.services.notes import Notes
from warrenmq.broker.services.randomness import Randomness
from warrenmq.broker.services.services import Services
from warrenmq.log.log import Log
from warrenmq.log.transient import TransientStore


class Surroundings(Services):
    """The services, and what only queues need."""

    def __init__(
        self,
        log: Log,
        transient: TransientStore,
        clock: Clock,
        io_clock: Clock,
        randomness: Randomness,
        notes: Notes,
    ) -> None:
        super().__init__(log, transient, clock, io_clock, randomness, notes)
        self.damaged: Final = DamagedMessages(log, notes)
        self.windowed: i64 = 0  # entries that queues hold in memory with their content
