"""What would settle very many messages at once is done a slice a turn: acks, rejections, giving back.

Duty: order, and who waits meanwhile. The client's further input does, so that whatever it sends behind the method finds
it done; so does a queue that gets messages back: nothing goes out of it, and whoever asks it something is answered when
it is whole. The messages are the client's no longer: they are settled even if it goes meanwhile, and before a broker
stops (``jobs.py``). What a transaction does is in ``committing.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64, trait

from warrenmq.broker.queue.entry import Entry
from warrenmq.broker.services.jobs import Job, Waiting
from warrenmq.broker.services.turn import Turn

if TYPE_CHECKING:
    from warrenmq.broker.queue.queue import Queue

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


class Unsettled(Job):
    """A job that holds unacknowledged deliveries which no channel has any more."""

    def entries_left(self) -> list[Entry]:
        """Those that are not settled yet."""
        raise NotImplementedError


@final
class Settle(Unsettled):
    """Acknowledged, or rejected for good."""

    def __init__(self, channel: Settler, client: Waiting, turn: Turn, entries: list[Entry], rejected: bool) -> None:
        super().__init__(client)
        self._channel: Final = channel
        self._turn: Final = turn
        self._entries: Final = entries
        self._rejected: Final = rejected
        self._done: i64 = 0

    def step(self) -> bool:
        end: i64 = self._done + max(0, self._turn.settles_left)
        if end > len(self._entries):
            end = len(self._entries)
        part = self._entries[self._done : end]
        self._turn.settles_left -= len(part)
        self._done = end
        if self._rejected:
            self._channel.discard(part)
        else:
            self._channel.settle(part)
        return end == len(self._entries)

    def entries_left(self) -> list[Entry]:
        return self._entries[self._done :]


@final
class GiveBack(Unsettled):
    """Back to their queues, which deliver nothing until all are there: each would overtake an older one."""

    def __init__(
        self,
        channel: Settler,
        client: Waiting | None,
        turn: Turn,
        entries: list[Entry],
        queues: list[Queue] | None = None,
    ) -> None:
        super().__init__(client)
        self._channel: Final = channel
        self._turn: Final = turn
        self._entries: Final = entries
        self._abandoned: Final = client is None  # nobody waits: the channel is over
        self._queues: Final = queues_of(entries) if queues is None else queues  # theirs, if the caller knows
        self._done: i64 = 0
        self._holds: bool = False  # are the queues busy with it?

    def step(self) -> bool:
        entries = self._entries
        end: i64 = self._done
        while end < len(entries) and self._turn.settles_left > 0:
            message = entries[end].message
            self._turn.settles_left -= READ + (message.size >> 12) if message.absent else 1
            end += 1
        if not self._holds and end < len(entries):
            self._holds = True
            for queue in self._queues:
                queue.busy += 1
        part = entries[self._done : end]
        self._done = end
        if part:
            self._channel.give_back(part, self._abandoned)
        if end < len(entries):
            return False
        if self._holds:
            self._let_go()
        return True

    def _let_go(self) -> None:
        for queue in self._queues:
            queue.busy -= 1
            if queue.busy == 0 and not queue.gone:
                queue.came_back()
                if len(self._queues) > 1 and not self._abandoned:
                    self._turn.settle_down()  # one queue after the other serves its consumers

    def entries_left(self) -> list[Entry]:
        return self._entries[self._done :]


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


def in_groups(entries: list[Entry]) -> list[Entry]:
    """In the order in which RabbitMQ refuses them: one (queue, consumer) after the other."""
    groups: dict[tuple[str, str], list[Entry]] = {}
    for entry in entries:
        consumer = entry.consumer
        groups.setdefault((entry.queue.name.name, "" if consumer is None else consumer.tag), []).append(entry)
    return [entry for key in sorted(groups) for entry in groups[key]]


def _name(queue: Queue) -> str:
    return str(queue.name)
