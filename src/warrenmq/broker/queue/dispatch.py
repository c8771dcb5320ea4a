"""Whose turn it is: the consumers of one queue.

The ring holds the consumers that could take a message when last looked at, highest priority first, and within a
priority in turn: the one served goes to the back of its equals, one that becomes able again joins at their back.
With a single active consumer only that one is ever in the ring.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.queue.queue import Consumer


@final
class Dispatch:
    """The consumers of one queue and the ring of those who can take a message.

    ``heirs_by_priority``: who follows a single active consumer? Else whoever waits longest. ``full_leave``: does one
    that holds all it may leave the ring at once? Else when it is its turn.
    """

    def __init__(
        self, consumers: list[Consumer], single_active: bool, heirs_by_priority: bool, full_leave: bool
    ) -> None:
        self._consumers: Final = consumers  # the queue's own list, which is kept here
        self._single_active: Final = single_active
        self._heirs_by_priority: Final = heirs_by_priority
        self._full_leave: Final = full_leave
        self._ring: Final[list[Consumer]] = []
        self.behind_answers: bool = False  # did one leave the ring that waits, for nothing but the log?

    def add(self, consumer: Consumer) -> None:
        if self._single_active:
            consumer.active = len(self._consumers) == 0
        self._consumers.append(consumer)
        self.wake(consumer)

    def remove(self, consumer: Consumer) -> None:
        if consumer in self._consumers:
            self._consumers.remove(consumer)
        if consumer.in_turn:
            consumer.in_turn = False
            self._ring.remove(consumer)
        if self._single_active and consumer.active and self._consumers:
            consumer.active = False
            heir = self._consumers[0]
            for other in self._consumers:
                if other.priority > heir.priority and self._heirs_by_priority:
                    heir = other
            heir.active = True
            self.wake(heir)

    def wake(self, consumer: Consumer) -> None:
        """It may be able to take a message again."""
        if not consumer.in_turn and consumer.active and not consumer.cancelled:
            consumer.in_turn = True
            self._insert(consumer)

    def next(self) -> Consumer | None:
        """The consumer whose turn it is and who can take a message."""
        ring = self._ring
        while ring:
            consumer = ring[0]
            if consumer.can_take():
                return consumer
            consumer.in_turn = False
            del ring[0]
            if consumer.waits():
                self.behind_answers = True
        return None

    def is_eager(self) -> bool:
        """Would the consumer at the front take a message now?"""
        return len(self._ring) > 0 and self._ring[0].can_take()

    def served(self, consumer: Consumer) -> None:
        """The consumer at the front got a message: next among its equals, please."""
        ring = self._ring
        if len(ring) > 1 and ring[0] is consumer and ring[1].priority == consumer.priority:
            del ring[0]
            self._insert(consumer)

    def several(self) -> bool:
        """Would messages go to more than one?"""
        return len(self._ring) > 1

    def _insert(self, consumer: Consumer) -> None:
        ring = self._ring
        if self._full_leave:
            if ring and ring[0].is_full():  # only the last that was served can be
                ring[0].in_turn = False
                del ring[0]
            if consumer.is_full():
                consumer.in_turn = False
                return
        i: i64 = len(ring)
        while i > 0 and ring[i - 1].priority < consumer.priority:
            i -= 1
        ring.insert(i, consumer)
