"""Whether a client is read, and whether what it has sent is looked at.

Alarms, credit, work that takes several turns and answers that it does not take decide together. Duty: that decision,
and the credit that messages on the way to the disk use up. Not here: what has come (``connection/input.py``), and who
tells the client of an alarm (``connection.py``).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.channel.sink import Sink
from warrenmq.broker.durability.durability import Charged, Durability
from warrenmq.broker.durability.flow import SHOWN_FOR, Credit
from warrenmq.broker.services.turn import Turn


@final
class InputGate(Charged):
    """The gate of what one client sends: open, closed, and why."""

    def __init__(self, sink: Sink, turn: Turn, durability: Durability) -> None:
        self._sink: Final = sink
        self._turn: Final = turn
        self._durability: Final = durability
        self._credit: Final = Credit(durability.allowance)
        self._charged: bool = False  # is credit outstanding?
        self.blocked: bool = False  # an alarm holds it
        self.held: bool = False  # nothing more is taken from it: it does not read, or its login waits
        self.in_flow: bool = False  # the log is behind: credit is used up
        self.flow_until: i64 = 0  # when "flow" is shown no longer
        self.stopped: bool = False  # what has come is kept and not looked at: it is blocked, or held
        self.paused: bool = False  # nothing is read from its socket

    def block(self) -> None:
        self.blocked = True
        self._decide()

    def unblock(self) -> None:
        self.blocked = False
        self._decide()

    def hold(self) -> None:
        self.held = True
        self._decide()

    def release(self) -> None:
        """It is held no longer."""
        self.held = False
        self._decide()

    def charge(self, batch: i64, size: i64) -> None:
        """A message of this client goes to the log: that uses credit."""
        if not self._charged:
            self._charged = True
            self._durability.charged(self)
        if not self._credit.take(batch, size, self._turn.now) and not self.in_flow:
            self.in_flow = True
            self._decide()

    def out_of_credit(self) -> bool:
        return self.in_flow

    def give_credit(self, batch: i64) -> bool:
        settled = self._credit.give_back(batch)
        if self.in_flow and self._credit.enough():
            self.in_flow = False
            self.flow_until = self._turn.now + SHOWN_FOR
            self._decide()
        if settled:
            self._charged = False
        return settled

    def _decide(self) -> None:
        self.stopped = self.blocked or self.held
        pause = self.stopped or self.in_flow
        if pause and not self.paused:
            self.paused = True
            self._sink.pause_reading()
        elif not pause and self.paused:
            self.paused = False
            self._sink.resume_reading()
