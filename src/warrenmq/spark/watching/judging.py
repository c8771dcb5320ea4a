"""What one bucket of a log waits for, and what of it is overdue: by the log's own time.

Duty: rows in the order in which they were told; each finding once, and once that it was mended; a bounded memory, and
what was cut from it is said. What falls into a gap of the journal is no finding, and one that was made becomes
``unknown``. The same rows in the same order make the same findings, so a batch may be judged again. Not here: where the
memory is kept (``state``), where findings go (``findings``).

The memory is JSON: all times are µs.

    pending    key -> [kind of finding, since, until when, found or not, facts]
    consumers  key -> [first delivery, deliveries, how many it has, found, facts]: those that never settled anything
    proven     key -> last event: consumers that did
    exchanges  key -> {"windows": {begin: [published, taken]}, "before": share or null, "open": finding or null}
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from warrenmq.journal.columns import DELIVERED, FETCHED, GAP, PUBLISHED, QUEUE_DELETED, REQUEUED
from warrenmq.spark.watching.rows import BUCKETS, CLOCK, COUNTED, MISSED, OF_PUBLISH

UNCONFIRMED, UNACKED, UNROUTABLE, NEVER_ACKS = "unconfirmed", "unacked", "unroutable", "never acks"
CUT, MISSING = "cut", "missed"
NO_FINDINGS = (CUT, MISSING)  # what the watch itself does not know
FOUND, MENDED, UNKNOWN = "found", "mended", "unknown"
SECOND = 1_000_000
MOST_GAPS = 100

Row = tuple[Any, ...]  # as of rows.FIELDS, without log and bucket
Found = dict[str, Any]


@dataclass(frozen=True)
class Rules:
    """The times after which something is overdue: µs, but for shares and numbers."""

    confirm: int = 30 * SECOND  # published, and not confirmed
    ack: int = 600 * SECOND  # delivered, and not settled
    never: int = 600 * SECOND  # a consumer's first delivery, and it has settled nothing since
    taken: int = 10  # so many it has to have taken
    window: int = 60 * SECOND
    share: float = 0.05  # of a window's publishes, that no queue took
    least: int = 10  # so many of them
    forget: int = 7 * 86400 * SECOND  # a finding that is not mended by then is not waited for any more
    most: int = 200_000  # that is waited for in one log

    def longest(self) -> int:
        return max(self.confirm, self.ack, self.never, 2 * self.window)


@dataclass
class Memory:
    """The state kept from batch to batch."""

    clock: int = 0
    pending: dict[str, list[Any]] = field(default_factory=dict)
    consumers: dict[str, list[Any]] = field(default_factory=dict)
    proven: dict[str, int] = field(default_factory=dict)
    exchanges: dict[str, dict[str, Any]] = field(default_factory=dict)
    gaps: list[list[int]] = field(default_factory=list)

    def dump(self) -> bytes:
        return json.dumps(vars(self), separators=(",", ":")).encode()

    @staticmethod
    def load(text: bytes | None) -> Memory:
        return Memory(**json.loads(text)) if text else Memory()


class Bucket:
    """One bucket of a log, and the rows that have come for it."""

    def __init__(self, log: str, number: int, rules: Rules, memory: Memory) -> None:
        self.log = log
        self.number = number
        self.rules = rules
        self.memory = memory
        self._told: list[Found] = []

    def judge(self, rows: Iterable[Row]) -> list[Found]:
        """All that has come, and what is overdue by then."""
        self._told = []
        clock = self.memory.clock
        for row in rows:
            _, kind, at, _, vhost, queue, *_ = row
            if kind == COUNTED:
                self._count(row)
            elif kind in (GAP, MISSED):
                self._gap(row)
            elif kind == QUEUE_DELETED:
                self._deleted(vhost, queue, at)
            elif kind != CLOCK:
                if kind in OF_PUBLISH:
                    self._publish(row)
                if queue:
                    self._delivery(row)
            if kind != COUNTED:
                clock = max(clock, at)
        self.memory.clock = clock
        self._due()
        self._consumers_due()
        self._windows()
        self._bound()
        return self._told

    # -- what comes

    def _publish(self, row: Row) -> None:
        _, kind, at, record, vhost, _, exchange, key, message_id, user, connection, channel, *_ = row
        if kind == PUBLISHED:
            facts = {"record": record, "vhost": vhost, "exchange": exchange, "routing_key": key}
            facts |= {"message_id": message_id, "user": user, "connection": connection, "channel": channel}
            self.memory.pending[f"p{record}"] = [UNCONFIRMED, at, at + self.rules.confirm, False, facts]
        else:
            self._settle(f"p{record}", at)

    def _delivery(self, row: Row) -> None:
        _, kind, at, record, vhost, queue, _, _, _, user, connection, channel, consumer, *_ = row
        key = f"q{record} {vhost} {queue}"
        if kind not in (DELIVERED, FETCHED):
            self._settle(key, at, kind != REQUEUED)
            return
        facts = {"record": record, "vhost": vhost, "queue": queue, "user": user}
        facts |= {"connection": connection, "channel": channel, "consumer": consumer}
        self._settle(key, at, False)
        self.memory.pending[key] = [UNACKED, at, at + self.rules.ack, False, facts]
        if kind == DELIVERED:
            who = _who(facts)
            if who in self.memory.proven:
                self.memory.proven[who] = at
                return
            facts = {name: value for name, value in facts.items() if name != "record"}
            taken = self.memory.consumers.setdefault(who, [at, 0, 0, False, facts])
            taken[1] += 1
            taken[2] += 1

    def _settle(self, key: str, at: int, settled: bool = True) -> None:
        """It is over: confirmed, settled, or back in its queue. Late, or in time."""
        one = self.memory.pending.pop(key, None)
        if one is None:
            return
        what, since, until, found, facts = one
        if found or (at > until and not self._in_gap(since, at)):
            if not found:
                self._tell(what, FOUND, since, until, facts, key)
            self._tell(what, MENDED, since, at, facts, key)
        if what == UNACKED:
            self._gave(_who(facts), at, settled)

    def _gave(self, who: str, at: int, settled: bool) -> None:
        """A consumer has settled something, or given it back."""
        taken = self.memory.consumers.get(who)
        if taken is None:
            return
        taken[2] -= 1
        if settled:
            self.memory.proven[who] = at
        if settled or not taken[2]:
            del self.memory.consumers[who]
            if taken[3]:
                self._tell(NEVER_ACKS, MENDED, taken[0], at, taken[4], who, count=taken[1])

    def _deleted(self, vhost: str, queue: str, at: int) -> None:
        """What was in the queue went with it."""
        end = f" {vhost} {queue}"
        for key in [key for key in self.memory.pending if key.startswith("q") and key.endswith(end)]:
            self._settle(key, at, False)

    def _count(self, row: Row) -> None:
        _, _, begin, _, vhost, _, exchange, *_, number, taken = row
        kept = self.memory.exchanges.setdefault(
            json.dumps([vhost, exchange]), {"windows": {}, "before": None, "open": None}
        )
        window = kept["windows"].setdefault(str(begin), [0, 0])
        window[0] += number
        window[1] += taken

    def _gap(self, row: Row) -> None:
        """What waited then may have ended untold."""
        kind, at, until = row[1], row[2], max(row[2], row[13])
        self.memory.gaps = [*self.memory.gaps, [at, until]][-MOST_GAPS:]
        if kind == MISSED and self.number == 0:
            segment = row[0] >> 32
            self._tell(MISSING, FOUND, at, until, {}, str(row[0]), says=f"segment {segment}: its files are gone")
        for key, (what, since, _, found, facts) in list(self.memory.pending.items()):
            if since <= until:
                del self.memory.pending[key]
                if found:
                    self._tell(what, UNKNOWN, since, until, facts, key)
        for who, taken in list(self.memory.consumers.items()):
            del self.memory.consumers[who]
            if taken[3]:
                self._tell(NEVER_ACKS, UNKNOWN, taken[0], until, taken[4], who, count=taken[1])

    def _in_gap(self, since: int, until: int) -> bool:
        return any(since <= end and begin <= until for begin, end in self.memory.gaps)

    # -- what is overdue

    def _due(self) -> None:
        clock = self.memory.clock
        for key, one in list(self.memory.pending.items()):
            what, since, until, found, facts = one
            if not found and until < clock and self._in_gap(since, until):
                del self.memory.pending[key]
            elif not found and until < clock:
                one[3] = True
                self._tell(what, FOUND, since, until, facts, key)
            elif found and since + self.rules.forget < clock:
                del self.memory.pending[key]
                self._tell(what, UNKNOWN, since, clock, facts, key, says="not waited for any more")

    def _consumers_due(self) -> None:
        clock, rules = self.memory.clock, self.rules
        for who, taken in list(self.memory.consumers.items()):
            first, count, _, found, facts = taken
            if not found and count >= rules.taken and first + rules.never < clock:
                taken[3] = True
                self._tell(NEVER_ACKS, FOUND, first, first + rules.never, facts, who, count=count)
            elif first + rules.forget < clock:
                del self.memory.consumers[who]
                if found:
                    says = "not waited for any more"
                    self._tell(NEVER_ACKS, UNKNOWN, first, clock, facts, who, count=count, says=says)
        for who, last in list(self.memory.proven.items()):
            if last + rules.forget < clock:
                del self.memory.proven[who]

    def _windows(self) -> None:
        """Those that are over: has the share grown beyond what is allowed, or is it well again?"""
        over = self.memory.clock - self.rules.window
        for name, kept in list(self.memory.exchanges.items()):
            for begin in sorted(int(one) for one in kept["windows"] if int(one) <= over):
                told, taken = kept["windows"].pop(str(begin))
                if told > 0 and not self._in_gap(begin, begin + self.rules.window):
                    self._window(name, kept, begin, told, told - taken)
            if not kept["windows"] and kept["open"] is None and kept.get("last", 0) + self.rules.forget < over:
                del self.memory.exchanges[name]

    def _window(self, name: str, kept: dict[str, Any], begin: int, told: int, lost: int) -> None:
        share, before = lost / told, kept["before"]
        kept["before"], kept["last"] = share, begin
        vhost, exchange = json.loads(name)
        facts = {"vhost": vhost, "exchange": exchange}
        end = begin + self.rules.window
        if kept["open"] is not None and share <= self.rules.share:
            self._tell(UNROUTABLE, MENDED, kept["open"], end, facts, name, count=lost, share=share)
            kept["open"] = None
        elif (
            kept["open"] is None
            and share > max(self.rules.share, before if before is not None else 0.0)
            and lost >= self.rules.least
        ):
            kept["open"] = begin
            self._tell(UNROUTABLE, FOUND, begin, end, facts, name, count=lost, share=share)

    def _bound(self) -> None:
        """Not more than is allowed: what is found already goes first, then what has waited longest."""
        most = max(1, self.rules.most // BUCKETS)
        memory = self.memory
        self._cut("pending", memory.pending, most, lambda one: (not one[3], one[1]))
        self._cut("consumers", memory.consumers, most, lambda one: (not one[3], one[0]))
        self._cut("proven", memory.proven, most, lambda last: last)
        self._cut("exchanges", memory.exchanges, most, lambda one: one.get("last", 0))

    def _cut(self, name: str, kept: dict[str, Any], most: int, by: Callable[[Any], Any]) -> None:
        count = len(kept) - most
        if count <= 0:
            return
        for key in sorted(kept, key=lambda key: (by(kept[key]), key))[:count]:
            del kept[key]
        clock = self.memory.clock
        says = f"more than {self.rules.most:,} are waited for: so many are not looked at any more"
        self._tell(CUT, FOUND, clock, clock, {}, f"{self.number} {name}", count=count, says=says)

    def _tell(self, what: str, state: str, since: int, at: int, facts: Found, key: str, **more: Any) -> None:
        name = f"{what}/{self.log}/{key}/{since}"
        said = {name: value for name, value in facts.items() if value not in ("", -1)}
        self._told.append({"finding": name, "what": what, "state": state, "log": self.log} | said | more)
        self._told[-1] |= {"since": since, "at": at}


def _who(facts: Found) -> str:
    names = ("vhost", "queue", "connection", "channel", "consumer")
    return json.dumps([facts[name] for name in names])


def in_order(parts: Iterable[Sequence[Row]]) -> list[Row]:
    """Rows of several tasks by their times, those of one time as they were told."""
    return sorted((row for part in parts for row in part), key=lambda row: (row[2], row[0]))
