"""What would settle very many messages at once is done a slice a turn: acks, rejections, giving back.

Duty: order, and who waits meanwhile. The client's further input does, so that whatever it sends behind the method finds
it done; so does a queue that gets messages back: nothing goes out of it, and whoever asks it something is answered when
it is whole. The messages are the client's no longer: they are settled even if it goes meanwhile, and before a broker
stops (``jobs.py``). What a transaction does is in ``committing.py``.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64, trait

from warrenmq.broker.queue.office import Unsettled
from warrenmq.broker.queue.queue import Consumer, Entry, Queue
from warrenmq.broker.services.jobs import Waiting
from warrenmq.broker.services.turn import Turn

FEW: Final = 256  # so many at once are not worth a job
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

    def __init__(self, entries: list[Entry]) -> None:
        """The list is nobody else's any more."""
        entries.reverse()
        self.left: Final = entries  # the next one last

    def take(self, count: i64) -> list[Entry]:
        """So many, or all there are."""
        left = self.left
        start: i64 = max(0, len(left) - count)
        part = left[start:]
        del left[start:]
        part.reverse()
        return part


@final
class Settle(Unsettled):
    """A job: deliveries acknowledged, or rejected for good."""

    def __init__(self, channel: Settler, client: Waiting, turn: Turn, entries: list[Entry], rejected: bool) -> None:
        super().__init__(client)
        self._channel: Final = channel
        self._turn: Final = turn
        self._pile: Final = Pile(entries)
        self._rejected: Final = rejected

    def step(self) -> bool:
        part = self._pile.take(max(0, self._turn.settles_left))
        self._turn.settles_left -= len(part)
        if self._rejected:
            self._channel.discard(part)
        else:
            self._channel.settle(part)
        return not self._pile.left

    def entries_left(self) -> list[Entry]:
        return self._pile.left


@final
class GiveBack(Unsettled):
    """A job: deliveries back to their queues, which deliver nothing until all are there, else one would overtake an
    older one."""

    def __init__(
        self,
        channel: Settler,
        client: Waiting | None,
        turn: Turn,
        entries: list[Entry],
        queues: list[Queue],
    ) -> None:
        super().__init__(client)
        self._channel: Final = channel
        self._turn: Final = turn
        self._abandoned: Final = client is None  # nobody waits: the channel is over
        self._queues: Final = queues  # theirs, by their names, and maybe more
        self._pile: Final = Pile(entries)
        self._holds: bool = False  # are the queues busy with it?

    def step(self) -> bool:
        left = self._pile.left
        count: i64 = 0
        while count < len(left) and self._turn.settles_left > 0:
            count += 1
            message = left[len(left) - count].message
            self._turn.settles_left -= READ + (message.size >> 12) if message.absent else 1
        if not self._holds and count < len(left):
            self._holds = True
            for queue in self._queues:
                queue.hold_back()
        part = self._pile.take(count)
        if part:
            self._channel.give_back(part, self._abandoned)
        if left:
            return False
        if self._holds:
            self._let_go()
        return True

    def _let_go(self) -> None:
        for queue in self._queues:
            if queue.go_on() and len(self._queues) > 1 and not self._abandoned:
                self._turn.settle_down()  # one queue after the other serves its consumers

    def entries_left(self) -> list[Entry]:
        return self._pile.left


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


def grouped(entries: list[Entry]) -> list[list[Entry]]:
    """As RabbitMQ refuses them: one (queue, consumer) after the other, by their names."""
    groups: dict[tuple[str, str], list[Entry]] = {}
    queue: Queue | None = None
    consumer: Consumer | None = None
    group: list[Entry] = []
    for entry in entries:
        if entry.queue is not queue or entry.consumer is not consumer:  # seldom: a look-up for each would take long
            queue, consumer = entry.queue, entry.consumer
            group = groups.setdefault((queue.name.name, "" if consumer is None else consumer.tag), [])
        group.append(entry)
    return [groups[key] for key in sorted(groups)]


def in_groups(entries: list[Entry]) -> list[Entry]:
    """All of them in that order. The list is used up."""
    groups = grouped(entries)
    if len(groups) < 2:
        return entries
    entries.clear()
    for group in groups:
        entries.extend(group)
    return entries


def _name(queue: Queue) -> str:
    return queue.name.name
