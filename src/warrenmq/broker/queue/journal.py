"""How much the journal is told of a vhost and of each of its queues, and the name that a queue has there.

Duty: the level in force, as the queue's policy says, else its vhost; what the log has to know of it; how many queues
of a vhost are told all or nothing of, so that a publish looks at one number; and how much was not told where the level
leaves it out: of what the log does not have, which only the queue counts anyway, so that no message pays for it. Not
here: what each level means (``log/levels.py``), telling (``publish/outcomes.py``, ``classic.py``,
``log/unlogged.py``), and what the log has and nobody is told, which whoever reads it counts (``journal/hiding.py``).
"""

from __future__ import annotations

import json
from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.message import Message
from warrenmq.broker.queue.arguments import QueueSettings
from warrenmq.broker.queue.counters import QueueCounters
from warrenmq.broker.records import Resource
from warrenmq.log.events import Named
from warrenmq.log.levels import ALL, BODIES, OFF, OUTCOMES, is_sampled
from warrenmq.log.log import Log


@final
class VhostJournal:
    """The levels at which the journal is told of a vhost."""

    def __init__(self) -> None:
        self.level: i64 = OUTCOMES  # of what has no level of its own
        self.sample: i64 = 1  # of 1 in so many transient messages, where it tells of them
        self.telling_all: i64 = 0  # queues there of which all is told
        self.telling_nothing: i64 = 0  # queues there of which nothing is told
        self._not_told: i64 = 0  # events that the level left out, and since when; the log is told now and then
        self._since: i64 = 0

    def leave_out(self, count: i64, since: i64) -> None:
        """So many were not told since then (µs)."""
        if self._not_told == 0 or since < self._since:
            self._since = since
        self._not_told += count

    def tell_not_told(self, log: Log) -> None:
        if self._not_told > 0:
            log.events.not_told(self._not_told, self._since)
            self._not_told = 0


@final
class QueueJournal:
    """The level at which the journal is told of one queue."""

    def __init__(
        self,
        log: Log,
        vhost: VhostJournal,
        name: Resource,
        id: i64,
        is_stream: bool,
        durable: bool,
        counters: QueueCounters,
    ) -> None:
        self._log: Final = log
        self._vhost: Final = vhost
        self._name: Final = name
        self._id: Final = id
        self._is_stream: Final = is_stream
        self._durable: Final = durable
        self._counters: Final = counters
        self._named: Named | None = None
        self._in_log: bool = False  # does the log know its level?
        self._quiet: bool = False  # is nothing told of it?
        self._counts: bool = True  # is not told of what only memory has?
        self._counted: i64 = 0  # of those: that came before ``_since``
        self._since: i64 = log.time
        self.level: i64 = OUTCOMES
        self._sample: i64 = 1
        self.all: bool = False  # is also told what only memory has?
        self.bodies: bool = False

    def named(self) -> Named:
        """The queue as the log's events know it."""
        found = self._named
        if found is None:
            names: dict[str, object] = {"id": int(self._id), "vhost": self._name.virtual_host, "name": self._name.name}
            if self._is_stream:
                names["stream"] = True  # what is read there is told by offset
            found = Named(self._id, json.dumps(names).encode())
            self._named = found
        return found

    def tells(self, message: Message) -> bool:
        """Is all that happens in the queue told of a message that only memory has?"""
        return self.all and message.id != 0 and is_sampled(message.id, self._sample)

    def told(self, message: Message) -> bool:
        """Was it, when the queue is gone?"""
        return self.level >= ALL and message.id != 0 and is_sampled(message.id, self._sample)

    def settings_changed(self, settings: QueueSettings) -> None:
        """The queue's policy, or the level of its vhost, is another one."""
        levels = self._log.levels
        level, sample = settings.journal, settings.journal_sample
        own = level >= 0 or sample > 0
        if level < 0:
            level = self._vhost.level
        if sample <= 0:
            sample = self._vhost.sample
        # whoever reads the log leaves out what it has of such a queue, or tells more of it, so it has to know each
        if own or ((level == OFF or level == BODIES or sample > 1) and self._durable):
            if not self._in_log or level != self.level or sample != self._sample:
                levels.put(self.named(), self._name.virtual_host, level, sample)
            self._in_log = True
        elif self._in_log:
            self._in_log = False
            levels.forget(self.named(), self._name.virtual_host)
        if level != self.level:
            self.count_not_told()
        self.level = level
        self._sample = sample
        self.bodies = level == BODIES
        self._counts = level < ALL
        self._tell_all(level >= ALL)
        self._tell_nothing(level == OFF)

    def _tell_all(self, wanted: bool) -> None:
        if wanted != self.all:
            self.all = wanted
            self._vhost.telling_all += 1 if wanted else -1

    def _tell_nothing(self, wanted: bool) -> None:
        if wanted != self._quiet:
            self._quiet = wanted
            self._vhost.telling_nothing += 1 if wanted else -1

    def count_not_told(self) -> None:
        """Its vhost is told how many messages came since it last was that the log does not have: one each, whatever
        became of them, though a bad end may be told all the same. Nothing is counted where all of them are told."""
        came = self._counters.unrecorded()
        if self._counts and came > self._counted:
            self._vhost.leave_out(came - self._counted, self._since)
        self._counted = came
        self._since = self._log.time

    def queue_gone(self) -> None:
        """There is nothing more to tell."""
        if self._in_log:
            self._log.levels.queue_gone(self.named(), self._name.virtual_host)
        self.count_not_told()
        self._tell_all(False)
        self._tell_nothing(False)
