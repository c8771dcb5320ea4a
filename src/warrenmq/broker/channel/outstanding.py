"""What is outstanding on one channel, and how it is settled: acknowledged, rejected, given back.

Duty: delivery tags, and the order in which queues get back what a client refuses. Very many at once are settled a slice
a turn (``settling.py``). Not here: which tags are outstanding (``acks.py``), what waits for tx.commit
(``transaction.py``), what a queue does with what it gets back.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.channel.acks import METHOD_ACK, Unacked, unknown_tag
from warrenmq.broker.channel.consumers import Consumers
from warrenmq.broker.channel.handed_out import HandedOut
from warrenmq.broker.channel.late_tags import LateTags
from warrenmq.broker.channel.lateness import Watch
from warrenmq.broker.channel.settling import FEW, GiveBack, Pile, Settle, Settler, queues_of
from warrenmq.broker.channel.sorting import Abandoned, Refused, Sorting
from warrenmq.broker.channel.sources import Sources
from warrenmq.broker.channel.transaction import NACK_OR_REJECT
from warrenmq.broker.queue.queue import Entry, Queue
from warrenmq.broker.services.jobs import Jobs, Waiting
from warrenmq.broker.services.turn import SLICE, Turn
from warrenmq.wire.replies import NOT_IMPLEMENTED, AmqpError


@final
class Outstanding(Settler):
    """The deliveries that a channel's client has not settled yet."""

    def __init__(self, client: Waiting, turn: Turn, jobs: Jobs, consumers: Consumers, handed_out: HandedOut) -> None:
        self._client: Final = client
        self._turn: Final = turn
        self._jobs: Final = jobs
        self._consumers: Final = consumers
        self._handed_out: Final = handed_out
        self.unacked: Final = Unacked()
        self.sources: Final = Sources()
        self._watch: Watch | None = None  # while some queue of the broker has a deadline
        self._tag: i64 = 0  # the last one that was given out

    def next_tag(self) -> i64:
        self._tag += 1
        return self._tag

    def coming_tag(self) -> i64:
        """The next one, not used up."""
        return self._tag + 1

    # -- what the client says ------------------------------------------------------------------------------------

    def ack(self, tag: i64, multiple: bool) -> None:
        if not multiple:
            entry = self.unacked.take(tag)
            if entry is None:
                if self.unacked.is_late(tag):
                    return
                raise unknown_tag(tag, METHOD_ACK)
            self._settle_one(entry)
            return
        entries = self._take_up_to(tag, METHOD_ACK)
        if self._few(entries):
            self.settle(entries)
        else:
            self._jobs.add(self.settling(entries, False))

    def nack(self, tag: i64, multiple: bool, requeue: bool, method_id: i64) -> None:
        entries: list[Entry]
        if multiple:
            entries = self._take_up_to(tag, method_id)
        else:
            entry = self.unacked.take(tag)
            if entry is None:
                if self.unacked.is_late(tag):
                    return
                raise unknown_tag(tag, method_id)
            entries = [entry]
        if self._few(entries):
            self.refuse(entries, requeue)
        else:
            self._refuse_many(entries, requeue, NACK_OR_REJECT)

    def recover(self) -> None:
        """Everything outstanding goes back."""
        entries = self.unacked.take_up_to(0)
        if self._few(entries):
            self.refuse(entries, True, "basic.recover")
        else:
            self._refuse_many(entries, True, "basic.recover")

    def abandon(self) -> None:
        """The channel is over: everything outstanding goes back."""
        sorting: Sorting | None = None
        if self.sources.mix_consumers():
            sorting = Abandoned(self.unacked.take_tagged_up_to(0))
            entries = sorting.entries
        else:
            entries = self.unacked.take_up_to(0)
        if not self._few(entries):
            self._jobs.add(self._giving_back(entries, sorting, None))
            return
        if sorting is not None:
            sorting.look_at(len(entries))
            entries = sorting.in_order()
        self.give_back(entries, True)

    def _few(self, entries: list[Entry]) -> bool:
        """May these be settled here and now?"""
        if self._turn.settles_left <= 0 or len(entries) > FEW:
            return False
        self._turn.settles_left -= len(entries)
        return True

    def _take_up_to(self, tag: i64, method_id: i64) -> list[Entry]:
        if tag != 0 and not self.unacked.contains(tag) and not self.unacked.is_late(tag):
            raise unknown_tag(tag, method_id)
        return self.unacked.take_up_to(tag)

    # -- deadlines -----------------------------------------------------------------------------------------------

    def watched(self) -> Watch:
        """The deadlines of what is outstanding, for whoever looks after them."""
        watch = self._watch
        if watch is None:
            watch = Watch(self.unacked)
            self._watch = watch
        return watch

    def give_back_late(self, tags: list[int]) -> None:
        """These missed their deadline: back to their queues, as if the client had given them back."""
        late = self.unacked.late
        if late is None:
            late = LateTags()
            self.unacked.late = late
        entries: list[Entry] = []
        for tag in tags:
            entry = self.unacked.take(tag)
            if entry is not None:
                late.add(tag)
                entries.append(entry)
        self.refuse(entries, True)

    # -- for good ------------------------------------------------------------------------------------------------

    def settle(self, entries: list[Entry]) -> None:
        for entry in entries:
            self._settle_one(entry)

    def _settle_one(self, entry: Entry) -> None:
        queue = entry.queue
        consumer = entry.consumer
        counted = self._handed_out.of(queue) if consumer is None or queue.gone else consumer.counted
        counted.acked += 1
        queue.settle(entry)
        self._no_longer_held(entry)

    def discard(self, entries: list[Entry]) -> None:
        for entry in entries:
            self._no_longer_held(entry)
            entry.queue.reject(entry)

    def _no_longer_held(self, entry: Entry) -> None:
        consumer = entry.consumer
        if consumer is None:
            return
        entry.consumer = None
        self._consumers.released(consumer)

    # -- back to the queues --------------------------------------------------------------------------------------

    def refuse(self, entries: list[Entry], requeue: bool, method: str = NACK_OR_REJECT) -> None:
        """nack or reject: back to their queues, or discarded there; oldest first in the list.

        As in RabbitMQ one (queue, consumer) after the other, each queue serving its consumers before the next comes,
        up to a queue that takes nothing back.
        """
        stop = self._stopping(entries, method)
        refused, rest = _parted(stop, entries)
        groups = [refused] if len(refused) == 1 else _grouped(refused)
        for group in groups:
            self._refuse_group(group, requeue)
            if len(groups) > 1:
                self._turn.settle_down()
        if stop is not None:
            for entry in rest:
                self._refuse_group([entry], True)
            raise _refusal(stop, method)

    def _refuse_group(self, entries: list[Entry], requeue: bool) -> None:
        for entry in entries:
            self._no_longer_held(entry)
        if requeue:
            entries[0].queue.give_back(entries)
        else:
            for entry in entries:
                entry.queue.reject(entry)

    def give_back(self, entries: list[Entry], abandoned: bool) -> None:
        if not abandoned:
            self.refuse(entries, True)
            return
        queues: dict[Queue, list[Entry]] = {}
        for entry in entries:
            if entry.consumer is not None:
                entry.consumer.unacked -= 1
                entry.consumer = None
            queues.setdefault(entry.queue, []).append(entry)
        for queue, held in queues.items():
            queue.abandoned(held)

    # -- very many, a slice a turn -------------------------------------------------------------------------------

    def _refuse_many(self, entries: list[Entry], requeue: bool, method: str) -> None:
        """What ``refuse`` does."""
        stop = self._stopping(entries, method)
        refused, rest = _parted(stop, entries)
        if requeue and refused:
            self._jobs.add(self.giving_back(refused, self._client))
        elif refused:
            self._jobs.add(self.settling(refused, True))
        if stop is not None:
            self._jobs.add(self.giving_back(rest, None))
            raise _refusal(stop, method)

    def giving_back(self, entries: list[Entry], client: Waiting | None) -> GiveBack:
        """A job. Without a client nobody waits: the channel is over."""
        return self._giving_back(entries, None, client)

    def _giving_back(self, entries: list[Entry], sorting: Sorting | None, client: Waiting | None) -> GiveBack:
        many = len(entries) > SLICE
        queues = self.sources.in_order() if many else queues_of(entries)
        return GiveBack(self, client, self._turn, Pile(entries, sorting), queues)

    def settling(self, entries: list[Entry], rejected: bool) -> Settle:
        """A job."""
        sorting = Refused(entries) if rejected and not self.sources.are_one() else None
        return Settle(self, self._client, self._turn, Pile(entries, sorting), rejected)

    def _stopping(self, entries: list[Entry], method: str) -> Queue | None:
        """Of their queues the first, by name, that takes nothing back: there the connection ends, and what is not
        refused by then goes back as at any end."""
        if not self.sources.refuse(method):
            return None
        for queue in queues_of(entries):
            if queue.refusal_problem(method):
                return queue
        return None


def _grouped(entries: list[Entry]) -> list[list[Entry]]:
    sorting = Refused(entries)
    sorting.look_at(len(entries))
    return sorting.groups()


def _parted(stop: Queue | None, entries: list[Entry]) -> tuple[list[Entry], list[Entry]]:
    """Those of queues that come before this one by their names, and the rest."""
    if stop is None:
        return entries, []
    before: list[Entry] = []
    rest: list[Entry] = []
    part = before
    last: Queue | None = None
    for entry in entries:
        if entry.queue is not last:
            last = entry.queue
            part = before if last.name.name < stop.name.name else rest
        part.append(entry)
    return before, rest


def _refusal(stop: Queue, method: str) -> AmqpError:
    return AmqpError(NOT_IMPLEMENTED, stop.refusal_problem(method))
