"""Of which queues a channel's outstanding deliveries may be.

Duty: to say so without a look at each delivery: a channel may hold a million of them, and such a look takes longer than
a turn should. What is said of many may name a queue too many, of which nothing is outstanding any more. Not here: the
deliveries (``acks.py``), and what is exact for few (``settling.queues_of``).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.queue.queue import Queue

FEW: Final = 64  # queues that are kept, gone or not


@final
class Sources:
    """The queues that a channel has consumed or got messages from which it is to acknowledge."""

    def __init__(self) -> None:
        # the tag of the one consumer that got all of them; None: there were several, or it was basic.get
        self._known: dict[Queue, str | None] = {}
        self._most: i64 = FEW

    def add(self, queue: Queue, consumer_tag: str | None) -> None:
        """Deliveries of this queue may be outstanding from now on."""
        known = self._known
        if queue not in known:
            known[queue] = consumer_tag
            if len(known) > self._most:
                self._thin_out()
        elif known[queue] != consumer_tag:
            known[queue] = None

    def in_order(self) -> list[Queue]:
        """All of them, by their names."""
        return sorted(self._known, key=_name)

    def mix_consumers(self) -> bool:
        """Is there a queue that knows consumers apart, with deliveries of several?"""
        for queue, consumer_tag in self._known.items():
            if consumer_tag is None and queue.tells_consumers_apart():
                return True
        return False

    def are_one(self) -> bool:
        """One consumer of one queue got all there is."""
        if len(self._known) != 1:
            return False
        for consumer_tag in self._known.values():
            return consumer_tag is not None
        return False

    def refuse(self, method: str) -> bool:
        """Is there a queue that takes nothing back?"""
        for queue in self._known:
            if queue.refusal_problem(method):
                return True
        return False

    def _thin_out(self) -> None:
        """Nothing goes back to queues that are gone; but whoever gives something back to a stream hears of it still."""
        self._known = {
            queue: consumer_tag
            for queue, consumer_tag in self._known.items()
            if not queue.gone or queue.refusal_problem("")
        }
        self._most = 2 * len(self._known) + FEW


def _name(queue: Queue) -> str:
    return queue.name.name
