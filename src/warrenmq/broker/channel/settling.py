"""What would settle very many messages at once is done a slice a turn: acks, rejections, giving back.

Duty: order, and who waits meanwhile. The client's further input does, so that whatever it sends behind the method finds
it done; so does a queue that gets messages back: nothing goes out of it, and whoever asks it something is answered when
it is whole. Where their order has to be found out first (``sorting.py``), that is part of it. The messages are the
client's no longer: they are settled even if it goes meanwhile, and before a broker stops (``jobs.py``). What a
transaction does is in ``committing.py``.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64, trait

from warrenmq.broker.channel.sorting import Sorting
from warrenmq.broker.queue.office import Unsettled
from warrenmq.broker.queue.queue import Entry, Queue
from warrenmq.broker.services.jobs import Waiting
from warrenmq.broker.services.turn import Turn

FEW: Final = 256  # so many at once are not worth a job
LOOK: Final = 2  # for so many that are put in order one might have been settled
READ: Final = 16  # how many in memory a message counts for whose content must be read; every 4 KiB of it is one more


@trait
class Settler:
    """A channel, as far as it settles deliveries."""

    def settle(self, entries: list[Entry]) -> None:
        """Acknowledge: the entries leave their queues for good."""
        raise NotImplementedError

    def discard(self, entries: list[Entry]) -> None:
        """Rejected for good."""
        raise NotImplementedError

    def give_back(self, entries: list[Entry], abandoned: bool) -> None:
        """Some of what goes back; their queues hold still."""
        raise NotImplementedError


@final
class Pile:
    """Deliveries of which the first go first. What was taken is let go: to free a million at the end takes long."""

    def __init__(self, entries: list[Entry], sorting: Sorting | None) -> None:
        """The list is nobody else's any more. These go in their order; or those that are to be put in order first."""
        self._left: list[Entry] = entries  # the next one last
        self._sorting: Sorting | None = sorting
        if sorting is None:
            entries.reverse()

    def sort(self, turn: Turn) -> None:
        """As much as this turn may. What is not in order then has used it up: none of them is settled in it."""
        sorting = self._sorting
        if sorting is None:
            return
        most = LOOK * max(0, turn.settles_left)
        turn.settles_left -= min(most, len(sorting.entries)) // LOOK
        if sorting.look_at(most):
            self._left = sorting.in_order()
            self._left.reverse()
            self._sorting = None

    def count(self) -> i64:
        """How many are left of those in order."""
        return len(self._left)

    def following(self, at: i64) -> Entry:
        """The first is at 0."""
        left = self._left
        return left[len(left) - 1 - at]

    def take(self, count: i64) -> list[Entry]:
        """So many, or all there are."""
        left = self._left
        start: i64 = max(0, len(left) - count)
        part = left[start:]
        del left[start:]
        part.reverse()
        return part

    def entries_left(self) -> list[Entry]:
        """All of them, in whatever order."""
        return self._left if self._sorting is None else self._sorting.entries


@final
class Settle(Unsettled):
    """A job: deliveries acknowledged, or rejected for good."""

    def __init__(self, channel: Settler, client: Waiting, turn: Turn, pile: Pile, rejected: bool) -> None:
        super().__init__(client)
        self._channel: Final = channel
        self._turn: Final = turn
        self._pile: Final = pile
        self._rejected: Final = rejected

    def step(self) -> bool:
        self._pile.sort(self._turn)
        part = self._pile.take(max(0, self._turn.settles_left))
        self._turn.settles_left -= len(part)
        if self._rejected:
            self._channel.discard(part)
        else:
            self._channel.settle(part)
        return self._pile.count() == 0

    def entries_left(self) -> list[Entry]:
        return self._pile.entries_left()


@final
class GiveBack(Unsettled):
    """A job: deliveries back to their queues, which deliver nothing until all are there, else one would overtake an
    older one."""

    def __init__(
        self,
        channel: Settler,
        client: Waiting | None,
        turn: Turn,
        pile: Pile,
        queues: list[Queue],
    ) -> None:
        super().__init__(client)
        self._channel: Final = channel
        self._turn: Final = turn
        self._abandoned: Final = client is None  # nobody waits: the channel is over
        self._queues: Final = queues  # theirs, by their names, and maybe more
        self._pile: Final = pile
        self._holds: bool = False  # are the queues busy with it?

    def step(self) -> bool:
        pile = self._pile
        pile.sort(self._turn)
        count: i64 = 0
        while count < pile.count() and self._turn.settles_left > 0:
            message = pile.following(count).message
            count += 1
            self._turn.settles_left -= READ + (message.size >> 12) if message.absent else 1
        if count < pile.count():
            self._hold_back()
        part = pile.take(count)
        if part:
            self._channel.give_back(part, self._abandoned)
        if pile.count():
            return False
        if self._holds:
            self._let_go()
        return True

    def _hold_back(self) -> None:
        if not self._holds:
            self._holds = True
            for queue in self._queues:
                queue.hold_back()

    def _let_go(self) -> None:
        for queue in self._queues:
            if queue.go_on() and len(self._queues) > 1 and not self._abandoned:
                self._turn.settle_down()  # one queue after the other serves its consumers

    def entries_left(self) -> list[Entry]:
        return self._pile.entries_left()


def queues_of(entries: list[Entry]) -> list[Queue]:
    """In the order of their names."""
    found: dict[Queue, bool] = {}
    last: Queue | None = None
    for entry in entries:
        queue = entry.queue
        if queue is not last:
            found[queue] = True
            last = queue
    return sorted(found, key=_name)


def _name(queue: Queue) -> str:
    return queue.name.name
