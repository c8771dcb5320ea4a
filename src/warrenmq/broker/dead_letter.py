"""Dead letters: what a message becomes when a queue gives it up, and where it goes.

Duty: the new message with its x-death history, cycle detection, publishing it to the dead-letter exchange. It happens
within the turn in which the message leaves its queue, so the move is one batch of the log: never lost, never doubled.
Not here: when a queue gives a message up, letters that take several turns (``delivering/line.py``), and letters that
wait for their targets (``queue/letters.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from warrenmq.broker.delay.delays import Delays
from warrenmq.broker.delivering.deaths import as_dead_letter, death_of, deaths_in, is_cycle
from warrenmq.broker.delivering.delivering import NO_ROUTE, move, twin
from warrenmq.broker.delivering.large_body import LARGE, BodyInLog, SharedBody
from warrenmq.broker.delivering.line import Forwarder, Line, Way, is_logged_first, is_read_first
from warrenmq.broker.delivering.told_route import told_route
from warrenmq.broker.exchange.walk import route as walk
from warrenmq.broker.fates import left
from warrenmq.broker.message import Message
from warrenmq.broker.queue.office import DeadLetterOffice, GivesUp, Posted
from warrenmq.broker.queue.paging import LONG
from warrenmq.broker.queue.queue import Entry, Queue
from warrenmq.broker.records import Content
from warrenmq.broker.services.turn import Letters as TurnLetters
from warrenmq.log.causes import DEAD_LETTER, LETTER_LOST, LETTERED, REASONS, REFUSED
from warrenmq.log.levels import OFF
from warrenmq.wire.fields import Field
from warrenmq.wire.replies import AmqpError

if TYPE_CHECKING:
    from warrenmq.broker.services.services import Services

AT_MOST_ONCE: Final = "at_most_once"
AT_LEAST_ONCE: Final = "at_least_once"
FAR: Final = 2000  # looks at bindings: as far a letter goes in a turn with a thousand others; else it waits in a line
SCHEDULE: Final = ""  # among the names of those that have a letter: a delayed exchange


@final
class DeadLetters(DeadLetterOffice, TurnLetters, Forwarder):
    """Messages given up in this turn, published one after the other so that chains of queues do not recurse."""

    def __init__(self, services: Services, delays: Delays) -> None:
        super().__init__()
        self._services: Final = services
        self._delays: Final = delays
        services.turn.letters = self
        self._pending: list[tuple[Queue, Message, int]] = []  # with the causes
        self._lines: dict[Queue, Line] = {}  # letters that wait for a very long one, or one with a far way
        self._room: i64 = LONG  # octets of bodies that may go to the log at once with the letters of this turn
        self._running: bool = False
        self._letters: list[Posted] = []

    def pending(self) -> bool:
        return len(self._pending) > 0 or len(self._letters) > 0

    def add(self, queue: Queue, keeper: GivesUp, entry: Entry, cause: i64) -> bool:
        message = entry.message
        large = message.size > LARGE and (message.absent or not queue.holds(message))
        if (large or self._lines or self._is_far(queue)) and self._takes_long(queue, keeper, entry, cause):
            return False
        if large:
            self._room -= message.size
        self._pending.append((queue, message, int(cause)))
        return True

    def _takes_long(self, queue: Queue, keeper: GivesUp, entry: Entry, cause: i64) -> bool:
        """Is its body read or logged in turns to come, or does it wait for such a one?"""
        line = self._lines.get(queue)
        if line is not None:
            line.add(entry, cause)
            return True
        message = entry.message
        long = message.absent or message.size > self._room
        if not long and not self._is_far(queue):
            return False
        way = self.way_of(queue, message, REASONS[cause])
        if way is None:
            return False
        waits = long and (is_read_first(way, message) or is_logged_first(way, queue, message))
        if not waits and not self._is_far(queue):  # which is known now
            return False
        line = Line(self, queue, keeper)
        self._lines[queue] = line
        line.add(entry, cause)
        self._services.jobs.add(line)
        return True

    def _is_far(self, queue: Queue) -> bool:
        """Did it take long to find where the last letter went, or is that not known yet?"""
        name = queue.settings.dead_letter_exchange
        exchange = None if name is None else queue.vhost.exchanges.get(name)
        return exchange is not None and (exchange.looks < 0 or exchange.looks > FAR)

    def line_is_over(self, queue: Queue) -> None:
        del self._lines[queue]

    def letters_wait(self, letters: Posted) -> None:
        """A queue has letters that stay with it until they are taken: try them with all others."""
        if letters not in self._letters:
            self._letters.append(letters)

    def publish_all(self) -> None:
        if self._running:
            return
        self._running = True
        done: i64 = 0
        while done < len(self._pending):
            queue, message, cause = self._pending[done]
            done += 1
            self.forward(queue, message, cause, self.way_of(queue, message, REASONS[cause]), None)
        self._pending = []
        self._room = LONG
        while self._letters:
            self._letters.pop(0).send()
        self._running = False

    def forward(self, queue: Queue, message: Message, cause: i64, way: Way | None, body: BodyInLog | None) -> None:
        taken = self._publish(queue, message, way, body)
        if cause != REFUSED:  # else it never was in the queue
            self._count(queue, AT_MOST_ONCE, REASONS[cause])
            if not queue.gone:
                queue.counters.lettered(cause | LETTERED if taken else cause)
            queue.tell_left(message, cause | LETTERED)
        if not taken:  # which the journal has as dead-lettered: that is known only now
            self.lost += 1
            queue.counters.letters_lost += 1
            if cause != REFUSED and queue.holds(message):
                self._services.log.events.letter_lost(queue.id, message.address)
            elif queue.journal.level > OFF:
                left(self._services.log, LETTER_LOST, queue.journal.named(), message)

    def _publish(self, queue: Queue, message: Message, way: Way | None, body: BodyInLog | None) -> bool:
        """At most once: whoever takes it has it, and then it is over. Says whether anybody did."""
        if way is None or not (way.targets or way.routed.scheduled):
            return False
        self.published += 1
        return self._hand_over(queue, message, way, way.targets, body)

    def deliver(self, queue: Queue, letter: Message, reason: str, taken: list[str]) -> bool:
        """At least once: offer it to the targets that are not in ``taken`` yet, where those that take it are noted.
        Says whether all have it. A letter without any target has not arrived."""
        way = self.way_of(queue, letter, reason)
        if way is None or not (way.targets or way.routed.scheduled):
            return False
        accepting: list[Queue] = []
        refused = False
        for target in way.targets:
            if target.name.name in taken:
                continue
            if target.eager and target.refuses(way.dead):
                refused = True
            else:
                accepting.append(target)
        if SCHEDULE in taken:
            way.routed.scheduled.clear()
        elif way.routed.scheduled:
            taken.append(SCHEDULE)
        self._hand_over(queue, letter, way, accepting, None)
        taken.extend([target.name.name for target in accepting])
        if refused:
            return False
        self.published += 1
        self.confirmed += 1
        return True

    def needs_body(self, queue: Queue, letter: Message, reason: str) -> bool:
        way = self.way_of(queue, letter, reason)
        return way is not None and is_read_first(way, letter)

    def buried(self, queue: Queue, reason: str) -> None:
        """A message became a letter that stays with its queue until it is taken."""
        self._count(queue, AT_LEAST_ONCE, reason)

    def _count(self, queue: Queue, strategy: str, reason: str) -> None:
        key = (queue.kind, strategy, reason)
        self.counts[key] = self.counts.get(key, 0) + 1

    def way_of(self, queue: Queue, message: Message, reason: str) -> Way | None:
        vhost = queue.vhost
        name = queue.settings.dead_letter_exchange
        exchange = None if name is None else vhost.exchanges.get(name)
        if exchange is None:
            return None
        dead = dead_message(self._services, queue, message, reason, exchange.name.name)
        record = dead.basic_message(vhost.name)
        try:
            routed = walk(exchange, record, vhost.exchanges, vhost.queues, False, self._services.turn.now, True)
        except AmqpError:  # a delay that is no number, which only a publisher can be told: it does not wait
            routed = walk(exchange, record, vhost.exchanges, vhost.queues, True, self._services.turn.now, True)
        self._services.pacing.looked(record.looks)
        exchange.looks = record.looks
        targets: list[Queue] = []
        deaths = deaths_in(record.content.headers)
        for found in routed.queues:
            target = vhost.queues.get(found.name.name)
            if target is not None and (reason == "rejected" or not is_cycle(found.name.name, deaths)):
                targets.append(target)
        return Way(dead, routed, targets)

    def _hand_over(
        self, queue: Queue, message: Message, way: Way, targets: list[Queue], body: BodyInLog | None
    ) -> bool:
        """Says whether anybody took it."""
        dead = way.dead
        if body is None and message.size > LARGE and queue.holds(message):
            body = SharedBody(self._services.log, message.address, dead.chunks)
        route = told_route(self._services.log, way.routed)
        taken = move(self._services, dead, targets, 0, DEAD_LETTER, body, route)
        if way.routed.scheduled:
            if dead.address:
                body = SharedBody(self._services.log, dead.address, dead.chunks)
            other = twin(dead) if targets else dead
            if self._delays.schedule(None, other, way.routed, False, 0, body) != NO_ROUTE:
                return True
        return taken


def dead_message(services: Services, queue: Queue, message: Message, reason: str, exchange: str) -> Message:
    """The message as it goes to the dead-letter exchange: history added, expiration taken off."""
    properties = Content(message.header(), b"").properties.copy()
    death = death_of(message.origin, queue.name.name, reason, services.turn.now)
    if properties.expiration is not None:
        death["original-expiration"] = Field("S", properties.expiration)
    properties.expiration = None
    key = queue.settings.dead_letter_routing_key
    return as_dead_letter(message, properties, exchange, key, death)
