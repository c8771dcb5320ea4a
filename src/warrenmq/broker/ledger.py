"""The ledger: sums that must come out even, over everything that passes the broker, whatever any journal is told.

    entries       what came into queues = what left them, by cause, + what is there
    streams       the same for streams, which keep what is read
    order         what queues count as waiting = what stands in their order
    routing       every publish = what became of it
    answers       publishes on confirming channels = what their publishers were told + what they are still owed
    transactions  publishes in transactions = committed, rolled back or refused + open
    delayed       what was scheduled = what became of it + what waits

Duty: to put the sums together from counters that others keep, and to look at all queues a slice at a time. Nothing is
changed here, and nothing is decided by it. What a line means, and what a difference means, is in ``docs/ledger.md``.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.broker import Broker
from warrenmq.broker.channel.committing import Commit
from warrenmq.broker.queue.accounts import LEASED, PLACE_NAMES, PLACES, RETAINED, RETRY_WAITING, Accounts
from warrenmq.broker.queue.arguments import STREAM
from warrenmq.broker.queue.queue import Queue
from warrenmq.log.causes import (
    CAUSE_NAMES,
    DELETED,
    FIRED,
    PUBLISHED,
    RECOVERED,
    REFUSED,
    TRIMMED,
    WAY_NAMES,
    WITHDRAWN,
)

ENTRIES: Final = "entries"
STREAMS: Final = "streams"
ORDER: Final = "order"
ROUTING: Final = "routing"
ANSWERS: Final = "answers"
TRANSACTIONS: Final = "transactions"
DELAYED: Final = "delayed"

MOST_NAMED: Final = 100  # queues that do not add up: as many are named
FEW: Final = 1000  # deliveries of a queue that are looked up one by one


@final
class Sum:
    """One of the sums: what came is to be what left and what is there."""

    def __init__(self, name: str) -> None:
        self.name: Final = name
        self.came: Final[dict[str, int]] = {}
        self.left: Final[dict[str, int]] = {}
        self.here: Final[dict[str, int]] = {}

    def difference(self) -> int:
        """0, or something is lost (more), doubled (less), or counted wrongly."""
        return sum(self.came.values()) - sum(self.left.values()) - sum(self.here.values())

    def sentence(self) -> str:
        """All of it in one line, without what is nothing."""
        sides: list[str] = []
        for side in (self.came, self.left, self.here):
            sides.append(" + ".join([f"{count} {line}" for line, count in side.items() if count]) or "0")
        return f"{self.name}: {sides[0]} = {sides[1]} + {sides[2]} there; off by {self.difference()}"


# -- queues ------------------------------------------------------------------------------------------------------


def entries(accounts: Accounts) -> Sum:
    """Of queues that are emptied."""
    found = Sum(ENTRIES)
    for way, name in WAY_NAMES.items():
        found.came[name] = int(accounts.came_by(way))
    for cause, name in CAUSE_NAMES.items():
        if not TRIMMED <= cause <= REFUSED:  # which are not for queues of this kind
            found.left[name] = int(accounts.left_for(cause))
    for place in range(PLACES):
        if place != RETAINED:  # which is not for queues of this kind
            found.here[PLACE_NAMES[place]] = int(accounts.in_place(place))
    return found


def streams(accounts: Accounts) -> Sum:
    found = Sum(STREAMS)
    for way, name in WAY_NAMES.items():
        found.came["appended" if way == PUBLISHED else name] = int(accounts.came_by(way))
    for cause in (TRIMMED, WITHDRAWN, DELETED):
        found.left[CAUSE_NAMES[cause]] = int(accounts.left_for(cause))
    found.here[PLACE_NAMES[RETAINED]] = int(accounts.in_place(RETAINED))
    return found


def of_queue(queue: Queue) -> list[Sum]:
    """The sums of one queue."""
    accounts = queue.account()
    sums = [streams(accounts) if queue.kind == STREAM else entries(accounts)]
    sums.append(_order(accounts.misplaced))
    return sums


def _order(misplaced: i64) -> Sum:
    found = Sum(ORDER)
    found.came["misplaced"] = int(misplaced)
    return found


# -- publishes ---------------------------------------------------------------------------------------------------


def routing(broker: Broker) -> Sum:
    tally = broker.services.tally
    found = Sum(ROUTING)
    found.came["published"] = int(tally.published)
    found.left["at_least_one_queue"] = int(tally.routed)
    found.left["scheduled"] = int(tally.scheduled)
    found.left["returned"] = int(tally.returned)
    found.left["dropped"] = int(tally.dropped)
    found.left["refused_by_every_queue"] = int(tally.refused_by_queues)
    found.left["duplicate"] = int(tally.duplicates)
    found.left["refused"] = int(tally.refused)
    found.left["rolled_back"] = int(tally.rolled_back)
    found.left["not_committed"] = int(tally.not_committed)
    found.here["uncommitted"] = _uncommitted(broker)
    return found


def transactions(broker: Broker) -> Sum:
    tally = broker.services.tally
    found = Sum(TRANSACTIONS)
    found.came["published"] = int(tally.transacted)
    found.left["committed"] = int(tally.committed)
    found.left["rolled_back"] = int(tally.rolled_back)
    found.left["refused"] = int(tally.not_committed)
    found.here["open"] = _uncommitted(broker)
    return found


def _uncommitted(broker: Broker) -> int:
    """In transactions that are open, and in commits under way."""
    total = 0
    for connection in broker.connections:
        for channel in connection.channels.values():
            uncommitted = channel.publishing.uncommitted
            if uncommitted is not None:
                total += len(uncommitted)
    for job in broker.services.jobs.waiting:
        if isinstance(job, Commit):
            total += int(job.publishes_left())
    return total


def answers(broker: Broker) -> Sum:
    """Of the channels that are open, and those that are over."""
    tally = broker.services.tally
    published, acked, nacked = int(tally.numbered), int(tally.acked), int(tally.nacked)
    refused, waiting = int(tally.refused_numbered), 0
    for connection in broker.connections:
        for channel in connection.channels.values():
            publishing = channel.publishing
            if not publishing.over:
                published += int(publishing.confirmable())
                acked += int(publishing.confirms.acked)
                nacked += int(publishing.confirms.nacked)
                refused += int(publishing.refused_numbered)
                waiting += int(publishing.unanswered())
    found = Sum(ANSWERS)
    found.came["published"] = published
    found.left["acked"] = acked
    found.left["nacked"] = nacked
    found.left["refused"] = refused
    found.left["abandoned"] = int(tally.abandoned)
    found.here["waiting"] = waiting
    return found


def delayed(broker: Broker) -> Sum:
    delay = broker.delay
    found = Sum(DELAYED)
    found.came["scheduled"] = int(delay.scheduled)
    found.came["repeated"] = int(delay.repetitions)
    found.came[WAY_NAMES[RECOVERED]] = int(delay.recovered)
    found.left[CAUSE_NAMES[FIRED]] = int(delay.delivered)
    found.left["undeliverable"] = int(delay.undeliverable)
    found.left["cancelled"] = int(delay.cancelled)
    found.left[CAUSE_NAMES[WITHDRAWN]] = int(delay.withdrawn)
    found.left["damaged"] = int(delay.damaged())
    found.here["waiting"] = int(delay.total())
    found.here["damaged_aside"] = int(delay.damaged_here())
    return found


def quick_check(broker: Broker, queues: list[Queue]) -> str:
    """What does not add up in these queues, in those that are gone, and in what is of no queue; "" when all does.

    For tests: what a queue counts as unacknowledged is looked for where it should be."""
    found: list[str] = []
    for queue in queues:
        accounts = queue.account()
        if accounts.difference() != 0 or accounts.misplaced != 0:
            said = "; ".join([sum.sentence() for sum in of_queue(queue)])
            found.append(f"{queue.name}: {said}")
        if 0 < queue.unacked < FEW and not broker.services.jobs.busy():
            leased = int(accounts.in_place(LEASED) + accounts.in_place(RETRY_WAITING))
            held = len(broker.outstanding(queue)) + leased
            if held != queue.unacked:
                found.append(f"{queue.name}: {queue.unacked} unacknowledged, {held} with channels and leases")
    past = broker.registry.totals.past_difference()
    if past != 0:
        found.append(f"queues that are gone: off by {past}")
    for sum in (routing(broker), answers(broker), transactions(broker), delayed(broker)):
        if sum.difference() != 0:
            found.append(sum.sentence())
    return "; ".join(found)


# -- all of it, a slice at a time --------------------------------------------------------------------------------


@final
class Wrong:
    """A queue that does not add up."""

    def __init__(self, vhost: str, queue: str, sum: str, difference: int) -> None:
        self.vhost: Final = vhost
        self.queue: Final = queue
        self.sum: Final = sum
        self.difference: Final = difference


@final
class Pass:
    """One look at everything. A queue that is deleted meanwhile is left out."""

    def __init__(self, broker: Broker, vhosts: list[str] | None = None) -> None:
        """Of these vhosts alone, or of all, with what is not of any vhost."""
        self._broker: Final = broker
        self._all: Final = vhosts is None
        self._left: list[Queue] = []
        self._entries: Final = Accounts()
        self._streams: Final = Accounts()
        self.wrong: Final[list[Wrong]] = []
        totals = broker.registry.totals
        names = list(broker.vhosts) if vhosts is None else vhosts
        for name in [*names, ""] if vhosts is None else names:
            self._entries.add(totals.past(name, False))
            self._streams.add(totals.past(name, True))
        for name in names:
            vhost = broker.vhosts.get(name)
            if vhost is not None:
                self._left.extend(vhost.queues.values())

    def step(self, most: int) -> bool:
        """Look at so many queues; says whether all have been looked at."""
        left = self._left
        while most > 0 and left:
            most -= 1
            queue = left.pop()
            if not queue.gone:
                self._look(queue)
        return not left

    def _look(self, queue: Queue) -> None:
        accounts = queue.account()
        kept = self._streams if queue.kind == STREAM else self._entries
        kept.add(accounts)
        difference = accounts.difference()
        if difference != 0:
            self._note(queue, STREAMS if queue.kind == STREAM else ENTRIES, difference)
        if accounts.misplaced != 0:
            self._note(queue, ORDER, accounts.misplaced)

    def _note(self, queue: Queue, sum: str, difference: i64) -> None:
        if len(self.wrong) < MOST_NAMED:
            self.wrong.append(Wrong(queue.vhost.name, queue.name.name, sum, int(difference)))

    def sums(self) -> list[Sum]:
        """When all have been looked at."""
        found = [entries(self._entries), streams(self._streams)]
        found.append(_order(self._entries.misplaced + self._streams.misplaced))
        if self._all:
            broker = self._broker
            found.extend([routing(broker), answers(broker), transactions(broker), delayed(broker)])
        return found


@final
class Ledger:
    """The look that never ends: one pass after the other, and what the last whole one found."""

    def __init__(self, broker: Broker) -> None:
        self._broker: Final = broker
        self._pass: Pass | None = None
        self._told: str = ""  # what the operator was told last
        self.passes: int = 0
        self.sums: list[Sum] = []
        self.wrong: list[Wrong] = []

    def step(self, most: int) -> bool:
        """Look at so many more queues; says whether a pass is over."""
        current = self._pass
        if current is None:
            current = Pass(self._broker)
            self._pass = current
        if not current.step(most):
            return False
        self._pass = None
        self.sums = current.sums()
        self.wrong = current.wrong
        self.passes += 1
        self._tell()
        return True

    def problem(self) -> str:
        """What does not add up, "" when all does."""
        found = [sum.sentence() for sum in self.sums if sum.difference() != 0]
        for one in self.wrong:
            found.append(f"queue '{one.queue}' in vhost '{one.vhost}': {one.sum} off by {one.difference}")
        return "; ".join(found)

    def _tell(self) -> None:
        """Once for each new problem, and when there is none any more."""
        problem = self.problem()
        if problem != self._told:
            self._told = problem
            if problem:
                self._broker.services.notes.event("error", "ledger_difference", {"problem": problem})
            else:
                self._broker.services.notes.event("info", "ledger_adds_up", {})
