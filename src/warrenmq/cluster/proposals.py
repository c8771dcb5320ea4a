"""Writes to etcd of which nobody knows yet whether they happened.

Duty: the value that stood there for certain, and every write on top of it that was sent and not answered. A write can
be lost, be carried out long after it was sent, be overtaken by a later one, or be carried out and its answer lost. So a
write is in doubt until it was answered itself, or until the value has moved on; **reading the old value proves
nothing**, as the request may still be under way. A doubt is ended by sending the write again: whichever copy comes
first, the others are refused, and say what stands there.

A request is carried out at most once: whoever sends it must not repeat it by itself, as copies are counted here.
"""

from __future__ import annotations

from warrenmq.cluster.config import Config
from warrenmq.cluster.effects import Effect, Propose

MOST = 3
"""Writes in doubt at a time; each may have been sent any number of times."""


class Proposals:
    """The base, which is certain, and the writes on it that are not."""

    def __init__(self, base: Config) -> None:
        self.base = base
        self.doubts: list[Config] = []
        self.copies: list[int] = []
        self.ours = False  # whether the base is a write of ours that was in doubt

    def full(self) -> bool:
        return len(self.doubts) >= MOST

    def send(self, value: Config, effects: list[Effect]) -> None:
        self.doubts.append(value)
        self.copies.append(1)
        effects.append(Propose(self.base, value))

    def send_again(self, effects: list[Effect]) -> None:
        if self.doubts:
            self.copies[-1] += 1
            effects.append(Propose(self.base, self.doubts[-1]))

    def answered(self, value: Config, accepted: bool, current: Config | None) -> None:
        """The answer to a write; ``current`` is what stood there if that can be true."""
        for i in range(len(self.doubts)):
            if self.doubts[i].same(value):
                break
        else:
            return
        if accepted:
            self.learned(value)
            return
        self.copies[i] -= 1
        if not self.copies[i]:
            self.doubts.pop(i)
            self.copies.pop(i)
        if current is not None:
            self.learned(current)

    def learned(self, config: Config) -> None:
        """A value that was read. When it is a newer one, all doubts are over."""
        if config.version <= self.base.version:
            self.read_again(config)
            return
        self.ours = any(value.same(config) for value in self.doubts)
        self.base = config
        self.forget()

    def forget(self) -> None:
        self.doubts.clear()
        self.copies.clear()

    def read_again(self, config: Config) -> None:
        """The value on which the doubts rest was read once more. It proves nothing."""

    def unanswered(self) -> None:
        """The time for an answer has passed. It proves nothing."""
