"""A very long transient body on disk is read some a turn before its message leaves a lease for its queue.

Duty: to spread the reading. Whoever gives slots back asks again until it is over. Not here: which slots go when
(``leases.py``), and what a consumer of the lease reads (``replay.py``).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.queue.read_ahead import BodyReader
from warrenmq.broker.services.jobs import Job
from warrenmq.broker.services.services import Services
from warrenmq.log.damage import RecordDamaged


@final
class SlotReader(Job):
    """The reading of one body."""

    def __init__(self, services: Services, address: i64, subject: str) -> None:
        super().__init__(None)
        self._reader: Final = BodyReader(services, address)
        self._subject: Final = subject
        self.wanted: bool = True  # is the message in its lease still?
        self.over: bool = False
        self.damaged: bool = False

    def step(self) -> bool:
        try:
            if self.wanted and not self._reader.read_some():
                return False
        except RecordDamaged:
            self.damaged = True
        self.over = True
        return True

    def pieces(self) -> list[bytes]:
        return self._reader.pieces

    def subject(self) -> str:
        return self._subject
