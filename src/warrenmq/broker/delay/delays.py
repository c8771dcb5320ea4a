"""Delayed messages: what every publish, timer, start and stop does with the schedules.

Duty: the way in (``schedule``), the one timer for the earliest message of all exchanges, the way out in bounded slices,
and what goes with an exchange. Reading headers is ``request.py``, order and storage ``schedule.py``, delivering
``fire.py``, looking around ``browse.py``.

The timer is the original's: a sooner arrival replaces it, a later one does not; what is cancelled re-arms it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from warrenmq.broker.delay.cancelling import LetScheduleGo
from warrenmq.broker.delay.fire import Firing, Kept
from warrenmq.broker.delay.note import CONFIRM, MANDATORY, PERSISTENT, REPEATS, Note, encode, note_of
from warrenmq.broker.delay.request import Request, read, read_due
from warrenmq.broker.delay.schedule import Schedule
from warrenmq.broker.delivering.delivering import KEPT, NO_ROUTE, SCHEDULED
from warrenmq.broker.delivering.large_body import BodyInLog, LoggedAhead
from warrenmq.broker.exchange.delayed import LONGEST
from warrenmq.broker.exchange.walk import Routed
from warrenmq.broker.exchange.walk import route as walk
from warrenmq.broker.message import Message
from warrenmq.broker.queue.read_ahead import BodyReader
from warrenmq.broker.records import Exchange, Resource
from warrenmq.broker.sender import Sender
from warrenmq.broker.services.jobs import Job
from warrenmq.broker.services.timers import Timer
from warrenmq.log.causes import CANCELLED, MOVED, WITHDRAWN
from warrenmq.log.damage import RecordDamaged
from warrenmq.log.events import NOBODY
from warrenmq.log.format import StoredMessage
from warrenmq.log.index import QueueIndex
from warrenmq.log.levels import OFF
from warrenmq.log.recovery import Recovered

if TYPE_CHECKING:
    from warrenmq.broker.queue.surroundings import Surroundings
    from warrenmq.broker.vhost.vhost import VHost

SCRATCH: Final = "delayed"  # where a durable exchange remembers the id of its schedule
SLICE: Final = 256  # messages fired in a turn, at most
GROUP: Final = 32  # messages read from the log at a time, at most
SLICE_BYTES: Final = 4 << 20  # octets of the messages fired in a turn, about
CRON: Final = 500  # microseconds: to find when an expression matches, many a day may be looked at
AT_ONCE: Final = 8 << 20  # octets of a long one that are logged in a turn
LONG_ONE: Final = 256 << 10  # what a long one counts for, whose body stays in the log


@final
class EarliestDue(Timer):
    """The one timer of all schedules, armed for the message that is due next."""

    def __init__(self, delays: Delays) -> None:
        super().__init__()
        self._delays: Final = delays

    def fire(self) -> None:
        self._delays.fire_due()


@final
class Unsynced:
    """A message scheduled in a batch that is not on disk yet: it goes again if that fails."""

    def __init__(self, batch: i64, schedule: Schedule, due: i64, key: i64) -> None:
        self.batch: Final = batch
        self.schedule: Final = schedule
        self.due: Final = due
        self.key: Final = key


@final
class ReadDue(Job):
    """A job: the long body of a message that is due is read, and logged where a queue wants it in the log that does not
    have it; its exchange sends nothing meanwhile."""

    def __init__(self, delays: Delays, schedule: Schedule, due: i64, key: i64) -> None:
        super().__init__(None)
        self._delays: Final = delays
        self._schedule: Final = schedule
        self._due: Final = due
        self._key: Final = key
        self._body: Final = schedule.long_body(key)  # of one at a transient exchange
        self._pieces: list[bytes] | None = None if self._body is None else self._body.chunks
        address: i64 = key if self._body is None else -self._body.handle
        self._reader: Final = BodyReader(schedule.broker, address) if self._pieces is None else None
        self._asked: bool = False
        schedule.read_no_more()
        schedule.reading = key

    def step(self) -> bool:
        schedule = self._schedule
        try:
            if schedule.index.contains(self._due, self._key):
                if not self._is_read() or not self._is_logged():
                    return False
                schedule.body = self._pieces
            else:
                schedule.read_no_more()  # cancelled, or it went with its exchange
        except RecordDamaged:
            schedule.read_no_more()
            if schedule.take(self._due, self._key):
                schedule.set_aside(self._due, self._key)
        self._delays.body_is_read()
        return True

    def _is_read(self) -> bool:
        reader = self._reader
        if self._pieces is None and reader is not None and reader.read_some():
            self._pieces = reader.pieces
        return self._pieces is not None

    def _is_logged(self) -> bool:
        schedule = self._schedule
        if not self._asked:
            self._asked = True
            if self._pieces is not None and self._delays.logs_long(schedule, self._key):
                schedule.ahead = LoggedAhead(schedule.broker.log, self._pieces)
        ahead = schedule.ahead
        return ahead is None or (schedule.broker.jobs.may_log() and ahead.log_some(AT_ONCE))

    def subject(self) -> str:
        return str(self._schedule.exchange.name)


@final
class Delays(Kept):
    """All schedules of the broker: what is kept, cancelled, found again at the start, and sent when due."""

    def __init__(self, broker: Surroundings, vhosts: dict[str, VHost]) -> None:
        self._broker: Final = broker
        self._vhosts: Final = vhosts
        self._schedules: dict[Exchange, Schedule] = {}
        self._timer: Final = EarliestDue(self)
        self._firing: Final = Firing(broker, self)
        self._unsynced: list[Unsynced] = []
        self._sender: str = ""  # the channel that published last, its name in bytes, and its user
        self._sender_name: bytes = b""
        self._publisher_name: bytes = b""
        self.slice_full: bool = False  # more is due: whoever runs the timers should end the turn first
        # counters
        self.scheduled: i64 = 0
        self.delivered: i64 = 0
        self.cancelled: i64 = 0
        self.undeliverable: i64 = 0
        self.recovered: i64 = 0  # found in the log at start
        self.repetitions: i64 = 0  # of messages that repeat
        self.withdrawn: i64 = 0  # the disk could not take them
        self._damaged: i64 = 0  # of exchanges that are gone: dropped by the operator, or gone with the exchange

    # -- looking -----------------------------------------------------------------------------------------------

    def schedule_of(self, exchange: Exchange) -> Schedule | None:
        return self._schedules.get(exchange)

    def schedules(self, vhost: str) -> list[Schedule]:
        return [one for one in self._schedules.values() if one.vhost.name == vhost]

    def waiting(self, exchange: Exchange) -> i64:
        """``messages_delayed`` of an exchange."""
        schedule = self._schedules.get(exchange)
        return 0 if schedule is None else len(schedule)

    def total(self) -> i64:
        total: i64 = 0
        for schedule in self._schedules.values():
            total += len(schedule)
        return total

    def request(self, routed: Routed) -> Request:
        """What a publish that has to wait asks for."""
        if "x-delay-cron" in routed.headers:
            self._broker.pacing.works(CRON)
        return read(routed.headers, self._broker.turn.now)

    def finds(self, exchange: Exchange, id: str) -> bool:
        """Does a message of this id wait there?"""
        schedule = self._schedules.get(exchange)
        return schedule is not None and schedule.find(id) is not None

    def damaged_here(self) -> i64:
        """Damaged on disk, and not dropped yet."""
        total: i64 = 0
        for schedule in self._schedules.values():
            if schedule.damage is not None:
                total += len(schedule.damage.kept)
        return total

    def damaged(self) -> i64:
        """Damaged on disk, and gone."""
        total = self._damaged
        for schedule in self._schedules.values():
            if schedule.damage is not None:
                total += schedule.damage.dropped
        return total

    # -- in ----------------------------------------------------------------------------------------------------

    def check(self, sender: Sender, routed: Routed) -> list[Resource]:
        """A publish that carries more than a delay: 406 when it makes no sense.

        Whoever scheduled a message may replace or cancel it. Returns the exchanges where it would reach somebody
        else's: for those the user needs configure.
        """
        request = self.request(routed)
        name = request.cancel or request.name
        others: list[Resource] = []
        if not name:
            return others
        for exchange in routed.scheduled:
            schedule = self._schedules.get(exchange)
            found = None if schedule is None else schedule.find(name)
            if schedule is not None and found is not None and _owner(schedule, found[1]) != sender.username:
                others.append(exchange.name)
        return others

    def schedule(
        self,
        sender: Sender | None,
        message: Message,
        routed: Routed,
        mandatory: bool,
        seq: i64,
        body: BodyInLog | None = None,
    ) -> i64:
        """Keep a message until it is due at each delayed exchange it reached, or do what it says to what waits there.

        Returns SCHEDULED, KEPT (as SCHEDULED, but a mandatory message has not to be returned) or NO_ROUTE.
        ``message.batch`` is then the log's batch to wait for, 0 for none.
        """
        outcome: i64 = NO_ROUTE
        for exchange in routed.scheduled:
            vhost = self._vhosts.get(exchange.name.virtual_host)
            if vhost is None or vhost.exchanges.get(exchange.name.name) is not exchange:
                continue  # deleted between publish and commit
            now = self._broker.turn.now
            request = read_due(routed.headers, now) if sender is None else self.request(routed)
            if request.cancel:
                if self._cancel_by_name(exchange, request.cancel, message):
                    outcome = KEPT
                continue
            self._keep(sender, message, exchange, request, mandatory, seq, body)
            if not mandatory or self._counts_as_routed(exchange, message):
                outcome = KEPT
            elif outcome == NO_ROUTE:
                outcome = SCHEDULED
        return outcome

    def keep_for(
        self,
        sender: Sender,
        message: Message,
        exchange: Exchange,
        delay: i64,
        mandatory: bool,
        seq: i64,
        body: BodyInLog | None,
    ) -> i64:
        """``schedule`` for a message published straight to a delayed exchange that asks for nothing but a delay."""
        broker = self._broker
        due = broker.turn.now + (delay if delay < LONGEST else LONGEST)
        bits: i64 = PERSISTENT if message.persistent else 0
        if mandatory:
            bits |= MANDATORY
        if sender.confirms:
            bits |= CONFIRM
        if sender.channel_name != self._sender:
            self._sender = sender.channel_name
            self._sender_name = sender.channel_name.encode()
            self._publisher_name = sender.username.encode("utf-8", "surrogateescape")
        schedule = self.open_schedule(exchange, sender, seq)
        note = encode(bits, seq, broker.turn.now, 0, self._publisher_name, b"", self._sender_name)
        key = schedule.store(message, note, 0, due, body)
        schedule.index.add(due, key)
        if schedule.durable:
            self._tell_published(sender, schedule, key, seq)
        self._entered(schedule, message, due, key, False)
        if not mandatory or self._counts_as_routed(exchange, message):
            return KEPT
        return SCHEDULED

    def _keep(
        self,
        sender: Sender | None,
        message: Message,
        exchange: Exchange,
        request: Request,
        mandatory: bool,
        seq: i64,
        body: BodyInLog | None,
    ) -> None:
        broker = self._broker
        note = Note()
        note.scheduled_at = broker.turn.now
        note.name = request.name
        bits: i64 = PERSISTENT if message.persistent else 0
        if request.repeats():
            bits |= REPEATS
            if not note.name:
                note.name = f"repeat-{message.id:x}"
        if sender is not None:
            note.publisher = sender.username
            note.sender = sender.channel_name
            note.sequence_number = seq
            if mandatory:
                bits |= MANDATORY
            if sender.confirms:
                bits |= CONFIRM
        note.bits = bits
        schedule = self.open_schedule(exchange, sender, seq)
        replaced = schedule.find(note.name) if note.name else None
        if replaced is not None:
            schedule.take(replaced[0], replaced[1])
            schedule.release(replaced[1], CANCELLED)
            self.cancelled += 1
        key = schedule.keep(message, note, request.due, body)
        if sender is not None and schedule.durable:
            self._tell_published(sender, schedule, key, seq)
        self._entered(schedule, message, request.due, key, replaced is not None)

    def _tell_published(self, sender: Sender, schedule: Schedule, key: i64, seq: i64) -> None:
        """Where nothing is told of it, nor is that it was confirmed."""
        self._broker.log.events.published(sender.named, key, seq if schedule.told.level > OFF else 0)

    def _entered(self, schedule: Schedule, message: Message, due: i64, key: i64, replaces: bool) -> None:
        """A message waits: count it, remember it until its batch is on disk, look after the timer."""
        self.scheduled += 1
        if not schedule.durable:
            schedule.told.entered(message)
        else:
            batch = self._broker.log.batch
            message.batch = batch
            if not replaces:  # what replaces another message stays even if the disk fails: the other is gone
                self._unsynced.append(Unsynced(batch, schedule, due, key))
        if replaces:
            self._arm()
        else:
            self._kept(due)

    def _counts_as_routed(self, exchange: Exchange, message: Message) -> bool:
        """The honest answer to mandatory, where it is asked for: would the type inside route it now?"""
        field = exchange.arguments.get("x-delayed-mandatory")
        wanted = exchange.policy.definition.get("delayed-mandatory") if field is None else field.value
        if wanted != "honest":
            return False
        vhost = self._vhosts[exchange.name.virtual_host]
        record = message.basic_message(vhost.name)
        routed = walk(exchange, record, vhost.exchanges, vhost.queues, True, self._broker.turn.now)
        self._broker.pacing.looked(record.looks)
        return len(routed.queues) > 0

    def open_schedule(self, exchange: Exchange, sender: Sender | None, seq: i64) -> Schedule:
        """The schedule of an exchange, a new one when nothing has waited there before: then for a message from
        ``sender``, under ``seq`` of its publishes."""
        schedule = self._schedules.get(exchange)
        if schedule is None:
            vhost = self._vhosts[exchange.name.virtual_host]
            telling_all = vhost.journal.telling_all
            schedule = Schedule(self._broker, vhost, exchange, self._broker.ids.queue())
            self._schedules[exchange] = schedule
            if exchange.durable:
                vhost.update_scratch(exchange, SCRATCH, int(schedule.id))
            if telling_all == 0 and vhost.journal.telling_all > 0:  # when it was published nobody had it told
                who = NOBODY if sender is None else sender.named
                self._broker.log.unlogged.publishing(who, seq, NOBODY)
        return schedule

    def repeated(self, due: i64) -> None:
        self.repetitions += 1
        self._kept(due)

    def _kept(self, due: i64) -> None:
        """Something waits until ``due``: a sooner arrival replaces the timer, a later one does not."""
        if self._timer.due < 0 or due < self._timer.due:
            self._broker.timers.arm(self._timer, due)

    # -- cancelling and moving ---------------------------------------------------------------------------------

    def _cancel_by_name(self, exchange: Exchange, name: str, message: Message) -> bool:
        schedule = self._schedules.get(exchange)
        found = None if schedule is None else schedule.find(name)
        if schedule is None or found is None:
            return False
        self.cancel(schedule, found[0], found[1])
        if schedule.durable:
            message.batch = self._broker.log.batch
        return True

    def cancel(self, schedule: Schedule, due: i64, key: i64) -> bool:
        """Take one message out for good; says whether it was there."""
        if not schedule.take(due, key):
            return False
        schedule.release(key, CANCELLED)
        self.cancelled += 1
        self._arm()
        return True

    def reschedule(self, schedule: Schedule, due: i64, key: i64, new_due: i64) -> bool:
        """Another due time, the same message and id. Says whether it was there. RecordDamaged: set aside instead."""
        stored = self._read(schedule, due, key)
        note = note_of(stored)
        note.name = schedule.id_of(due, key)
        if not schedule.take(due, key):
            return False
        message = self._firing.message_of(stored, note)
        schedule.keep(message, note, new_due, self._firing.body_of(schedule, key, message))
        if not schedule.durable:
            schedule.told.again(message)
        schedule.release(key, MOVED)
        self._arm()
        return True

    def deliver_now(self, schedule: Schedule, due: i64, key: i64) -> bool:
        """As if it were due; a repetition goes on from its planned time. Says whether a queue took it. Whoever asks has
        seen that it ``is_ready``.

        RecordDamaged: set aside instead."""
        stored = self._read(schedule, due, key)
        if not schedule.take(due, key):
            return False
        problem = self._fire_one(schedule, due, key, stored, self._body(schedule, key))
        self._arm()
        return problem == 0

    def is_ready(self, schedule: Schedule, due: i64, key: i64) -> bool:
        """Can it be delivered now? Else its body has to be ``read_first``. RecordDamaged: set aside instead."""
        if not schedule.is_long(key) or (schedule.reading == key and schedule.body is not None):
            return True
        return not self._firing.needs_body(schedule, self._read(schedule, due, key))

    def read_first(self, schedule: Schedule, due: i64, key: i64) -> Iterator[None]:
        """In steps: read the body of one that is to be delivered now. Another one's of its exchange comes first."""
        while schedule.reading and schedule.body is None:
            yield
        if not self.is_ready(schedule, due, key):
            reading = ReadDue(self, schedule, due, key)
            while not reading.step():
                yield

    def _read(self, schedule: Schedule, due: i64, key: i64) -> StoredMessage:
        """Of a long one no more than the head."""
        try:
            return schedule.peek(key, 0)
        except RecordDamaged:
            if schedule.take(due, key):
                schedule.set_aside(due, key)
            raise

    def names_of(self, ids: list[int]) -> list[str]:
        """The exchanges that the log knows by these ids."""
        return [str(schedule.exchange.name) for schedule in self._schedules.values() if schedule.id in ids]

    # -- out ---------------------------------------------------------------------------------------------------

    def fire_due(self) -> None:
        """Deliver what is due, in order of due time, a bounded number of messages; the rest in the next turn."""
        now = self._broker.turn.now
        left: i64 = SLICE
        room: i64 = SLICE_BYTES
        while left > 0 and room > 0:
            first = self._earliest()
            if first is None or first.index.first_due() > now:
                break
            until = now
            most: i64 = left if left < GROUP else GROUP
            other = self._next_but(first)
            if other >= 0 and other <= now:
                # up to the next message of another exchange; at the same due time they take turns as they arrived
                if other == first.index.first_due():
                    until = other
                    most = 1
                else:
                    until = other - 1
            most = first.short_ones(most)
            if most == 0:
                left -= 1
                room -= self._fire_long(first)
                continue
            pairs = first.take_due(until, most)
            left -= len(pairs)
            room -= self._fire_all(first, pairs)
            if self._broker.turn.expiries_left <= 0:
                left = 0  # to find where they go took long
        self._arm()
        self.slice_full = left <= 0 or room <= 0

    def _fire_all(self, schedule: Schedule, pairs: list[tuple[int, int]]) -> i64:
        """Fire these; the size of their bodies."""
        size: i64 = 0
        stored = schedule.read_many(pairs)
        i: i64 = 0
        problems: i64 = 0
        for due, key in pairs:
            found = stored[i]
            if found is None:
                schedule.set_aside(due, key)
            else:
                size += len(found.body)
                problems += self._fire_one(schedule, due, key, found)
            i += 1
        if problems:
            self._tell_undeliverable(schedule, problems)
        return size

    def _tell_undeliverable(self, schedule: Schedule, count: i64) -> None:
        fields: dict[str, object] = {
            "vhost": schedule.vhost.name,
            "exchange": schedule.exchange.name.name,
            "messages": int(count),
        }
        self._broker.notes.event("warning", "delayed_undeliverable", fields)

    def _fire_long(self, schedule: Schedule) -> i64:
        """Fire the first, which is long; if its body has to be read, nothing of its exchange goes out meanwhile. What
        that counts for, in octets."""
        due = schedule.index.first_due()
        key = schedule.index.first_key()
        try:
            if not self.is_ready(schedule, due, key):
                self._broker.jobs.add(ReadDue(self, schedule, due, key))
                return SLICE_BYTES  # some of it has been read
            stored = self._read(schedule, due, key)
        except RecordDamaged:
            return 0
        schedule.take(due, key)
        if self._fire_one(schedule, due, key, stored, self._body(schedule, key)):
            self._tell_undeliverable(schedule, 1)
        return LONG_ONE

    def _body(self, schedule: Schedule, key: i64) -> list[bytes] | None:
        """The long body that was read for this one; it is forgotten when the message leaves."""
        return schedule.body if schedule.reading == key else None

    def logs_long(self, schedule: Schedule, key: i64) -> bool:
        """Does the log have to get the body of this one, which is due at a transient exchange?"""
        return not schedule.durable and self._firing.is_logged(schedule, schedule.peek(key, 0))

    def body_is_read(self) -> None:
        self._arm()

    def _fire_one(
        self, schedule: Schedule, due: i64, key: i64, stored: StoredMessage, body: list[bytes] | None = None
    ) -> i64:
        if self._firing.fire(schedule, due, key, stored, body):
            self.undeliverable += 1
            return 1
        self.delivered += 1
        return 0

    def _earliest(self) -> Schedule | None:
        found: Schedule | None = None
        due: i64 = -1
        key: i64 = -1
        for schedule in self._schedules.values():
            first = schedule.index.first_due()
            if first < 0 or (schedule.reading and schedule.body is None):
                continue
            if found is None or first < due or (first == due and schedule.index.first_key() < key):
                found = schedule
                due = first
                key = schedule.index.first_key()
        return found

    def _next_but(self, excluded: Schedule) -> i64:
        """When the first message of all other exchanges is due, -1 when there is none."""
        due: i64 = -1
        for schedule in self._schedules.values():
            first = schedule.index.first_due()
            waits = schedule.reading != 0 and schedule.body is None
            if schedule is not excluded and first >= 0 and not waits and (due < 0 or first < due):
                due = first
        return due

    def _arm(self) -> None:
        first = self._earliest()
        if first is None:
            self._broker.timers.cancel(self._timer)
        else:
            self._broker.timers.arm(self._timer, first.index.first_due())

    # -- exchanges, the log, start and stop --------------------------------------------------------------------

    def exchange_removed(self, exchange: Exchange) -> None:
        """What waits at an exchange goes with it, counted and reported."""
        schedule = self._schedules.pop(exchange, None)
        if schedule is None:
            return
        if schedule.damage is not None:
            self._damaged += schedule.damage.dropped + len(schedule.damage.kept)
        count = len(schedule)
        schedule.told.exchange_gone()
        self._broker.jobs.add(LetScheduleGo(schedule, schedule.take_all()))
        if count:
            self.cancelled += count
            fields: dict[str, object] = {
                "vhost": schedule.vhost.name,
                "exchange": exchange.name.name,
                "messages": int(count),
            }
            self._broker.notes.event("warning", "delayed_cancelled_with_exchange", fields)
        self._arm()

    def refresh(self, exchange: Exchange) -> None:
        """Its policies, or its vhost, may say otherwise now."""
        schedule = self._schedules.get(exchange)
        if schedule is not None:
            schedule.told.set_level()

    def tell_forgotten(self) -> None:
        """The process ends: the journal is told what the next one will not find."""
        for schedule in self._schedules.values():
            schedule.tell_forgotten()

    def synced(self, batch: i64) -> None:
        """Batches up to this one are on disk."""
        waiting = self._unsynced
        n: i64 = 0
        while n < len(waiting) and waiting[n].batch <= batch:
            n += 1
        del waiting[:n]

    def batch_failed(self, batch: i64) -> None:
        """Take back what publishers are told was not accepted. What has moved on to a queue stays there."""
        waiting = self._unsynced
        self._unsynced = []
        for one in waiting:
            if one.batch > batch:
                self._unsynced.append(one)
            elif one.schedule.take(one.due, one.key):
                one.schedule.release(one.key, WITHDRAWN)
                self.withdrawn += 1
        self._arm()

    def recover(self, recovered: Recovered) -> None:
        """Take up what waited when the broker stopped. What became due meanwhile goes out in slices."""
        for vhost in self._vhosts.values():
            for exchange in vhost.exchanges.values():
                id = exchange.scratches.get(SCRATCH)
                if not isinstance(id, int):
                    continue
                self._broker.ids.saw_queue(id)
                schedule = Schedule(self._broker, vhost, exchange, id)
                self._schedules[exchange] = schedule
                found = recovered.queues.get(id)
                if found is not None:
                    self.recovered += len(found)
                    schedule.recover(found)
        self._arm()

    def knows(self, id: int) -> bool:
        """Does a schedule go by this queue number in the log?"""
        for schedule in self._schedules.values():
            if schedule.id == id:
                return True
        return False

    def log_indexes(self) -> dict[int, QueueIndex]:
        """For the log to remember at a clean stop."""
        found: dict[int, QueueIndex] = {}
        for schedule in self._schedules.values():
            if schedule.durable:
                found[int(schedule.id)] = schedule.log_index()
        return found


def _owner(schedule: Schedule, key: i64) -> str:
    """Who scheduled it, "" when that cannot be read any more."""
    try:
        return note_of(schedule.peek(key, 0)).publisher
    except RecordDamaged:
        return ""
