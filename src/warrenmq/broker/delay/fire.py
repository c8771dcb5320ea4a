"""A message is due: from the schedule into its queues.

Duty: what happens to one message at its due time: bindings are evaluated now, it enters its queues and leaves the
schedule within one turn, so within one batch of the log; a repeating one is scheduled again in the same batch. What no
queue takes goes to the alternate exchange (the walk does that) or the exchange's dead-letter exchange, else it is
counted and gone. Not here: which messages are due (``delays.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64, trait

from warrenmq.broker.delay.note import PERSISTENT, REPEATS, Note, note_of
from warrenmq.broker.delay.request import CATCH_UP, Request, read
from warrenmq.broker.delay.schedule import Schedule
from warrenmq.broker.delivering.deaths import as_dead_letter, death_of
from warrenmq.broker.delivering.delivering import move, queues_of, turn_to, undeliverable
from warrenmq.broker.delivering.large_body import LARGE, BodyInLog, SharedBody
from warrenmq.broker.delivering.told_route import told_route
from warrenmq.broker.exchange.delayed import LONGEST, delay_of
from warrenmq.broker.exchange.walk import route as walk
from warrenmq.broker.expiration import read_expiration
from warrenmq.broker.message import Message, message_from, with_properties
from warrenmq.broker.queue.queue import Queue
from warrenmq.broker.records import Content
from warrenmq.broker.stored import Origins, message_of
from warrenmq.log.causes import DEAD_LETTER, DUE, FIRED, UNDELIVERABLE
from warrenmq.log.events import Named
from warrenmq.log.format import StoredMessage
from warrenmq.wire.content import body_size
from warrenmq.wire.fields import Field, Table
from warrenmq.wire.peek import peek_properties
from warrenmq.wire.replies import AmqpError

if TYPE_CHECKING:
    from warrenmq.broker.services.services import Services

REPEATED: Final = 16  # of the letters that a turn takes: to find when it is due again, many a day may be looked at
UNROUTABLE: Final = "unroutable"
REFUSED: Final = "rejected"


@trait
class Kept:
    """Whoever wants to know what waits from now on."""

    def repeated(self, due: i64) -> None:
        """It waits once more, until then."""
        raise NotImplementedError


@final
class Letter:
    """A dead letter and who gets it."""

    def __init__(self, dead: Message, targets: list[Queue], route: Named) -> None:
        self.dead: Final = dead
        self.targets: Final = targets
        self.route: Final = route


@final
class Firing:
    """The way of a message that is due: out of its schedule, to its queues."""

    def __init__(self, services: Services, delays: Kept) -> None:
        self._services: Final = services
        self._delays: Final = delays
        self._origins: Final = Origins()

    def message_of(self, stored: StoredMessage, note: Note, body: list[bytes] | None = None) -> Message:
        """The message as it was published. What was read of a long one is its head; ``body``: the rest, if anybody
        needs it in memory."""
        message = message_of(stored, self._origins.of(stored), 0, note.has(PERSISTENT))
        size = body_size(stored.header)
        if size != message.size:
            chunks = [] if body is None else body
            message = message_from(message.origin, message.id, stored.header, chunks, size, message.persistent)
            message.absent = body is None
        peeked = peek_properties(stored.header)
        message.priority = peeked.priority if peeked.priority > 0 else 0
        if peeked.expiration is not None:
            try:
                message.expiration = read_expiration(peeked.expiration)
            except AmqpError:
                message.expiration = -1  # an interceptor wrote nonsense: it does not expire
        return message

    def body_of(self, schedule: Schedule, key: i64, message: Message) -> BodyInLog | None:
        """What the log has of its body, for whoever takes its place."""
        if message.size <= LARGE or not schedule.is_long(key):
            return None
        if not schedule.durable:
            return schedule.long_body(key)
        return SharedBody(self._services.log, key, message.chunks)

    def needs_body(self, schedule: Schedule, stored: StoredMessage) -> bool:
        """Would somebody get this long message now who does not keep it where it is, in the log?"""
        if not schedule.durable or "x-dead-letter-exchange" in schedule.exchange.arguments:
            return True  # it is not in the log; whoever gets it from there
        message = self.message_of(stored, note_of(stored))
        for queue in self._targets(schedule, message):
            if not queue.logs(message):
                return True
        return False

    def is_logged(self, schedule: Schedule, stored: StoredMessage) -> bool:
        """Would somebody get it now who keeps it in the log, be it as a dead letter?"""
        message = self.message_of(stored, note_of(stored))
        taken = False
        for queue in self._targets(schedule, message):
            if queue.logs(message):
                return True
            taken = taken or not (queue.eager and queue.refuses(message))
        letter = None if taken else self._letter(schedule, message, REFUSED)
        if letter is not None:
            for queue in letter.targets:
                if queue.logs(letter.dead):
                    return True
        return False

    def _targets(self, schedule: Schedule, message: Message) -> list[Queue]:
        vhost = schedule.vhost
        record = message.basic_message(vhost.name)
        routed = walk(schedule.exchange, record, vhost.exchanges, vhost.queues, True, self._services.turn.now)
        return queues_of(routed)

    def fire(
        self, schedule: Schedule, due: i64, key: i64, stored: StoredMessage, body: list[bytes] | None = None
    ) -> str:
        """Deliver one message that was taken out of the index. "" or why no queue has it. ``body``: of a long one that
        somebody needs in memory."""
        services = self._services
        exchange = schedule.exchange
        vhost = schedule.vhost
        note = note_of(stored)
        message = self.message_of(stored, note, body)
        record = message.basic_message(vhost.name)
        address: i64 = key if schedule.durable else 0
        sent = message
        if _negates(schedule):
            sent = negated(message, record.content)
            address = 0
        sent.moved = True
        routed = walk(exchange, record, vhost.exchanges, vhost.queues, True, services.turn.now, True)
        services.pacing.looked(record.looks)
        queues = queues_of(routed)
        exchange.messages_out += len(queues)
        turn_to(exchange, queues)
        problem = ""
        if not queues:
            problem = UNROUTABLE
        else:
            body_in_log = schedule.ahead or self.body_of(schedule, key, sent)
            if not move(services, sent, queues, address, DUE, body_in_log, told_route(services.log, routed)):
                problem = REFUSED
        if problem:
            undeliverable(services, exchange)
            letter = self._letter(schedule, message, problem)
            if letter is not None:
                body_in_log = schedule.ahead or self.body_of(schedule, key, letter.dead)
                move(services, letter.dead, letter.targets, 0, DEAD_LETTER, body_in_log, letter.route)
        if note.has(REPEATS):
            self._repeat(schedule, key, message, note, record.content.headers, due)
        schedule.release(key, UNDELIVERABLE if problem else FIRED)
        return problem

    def _repeat(self, schedule: Schedule, key: i64, message: Message, note: Note, headers: Table, due: i64) -> None:
        services = self._services
        services.turn.expiries_left -= REPEATED
        try:
            request = read(headers, services.turn.now)
        except AmqpError as error:  # a time zone that is gone since
            fields: dict[str, object] = {"exchange": schedule.exchange.name.name, "reason": error.explanation}
            services.notes.event("error", "delayed_repetition_ended", fields)
            return
        note.deliveries += 1
        if request.count and note.deliveries >= request.count:
            return
        following = request.next_due(due, services.turn.now, catches_up(schedule, request))
        if following < 0 or schedule.named(note.name) is not None:
            return
        again = message_from(
            message.origin, services.ids.message(), message.header(), message.pieces(), message.size, message.persistent
        )
        again.absent = message.absent
        schedule.keep(again, note, following, self.body_of(schedule, key, again))
        if not schedule.durable:
            schedule.told.again(again)
        self._delays.repeated(following)

    def _letter(self, schedule: Schedule, message: Message, reason: str) -> Letter | None:
        """What it becomes for the exchange's x-dead-letter-exchange, if it has one. There it does not wait again."""
        arguments = schedule.exchange.arguments
        name = arguments.get("x-dead-letter-exchange")
        vhost = schedule.vhost
        if name is None or not isinstance(name.value, str):
            return None
        target = vhost.exchanges.get(name.value)
        if target is None:
            return None
        now = self._services.turn.now
        other = arguments.get("x-dead-letter-routing-key")
        routing_key = other.value if other is not None and isinstance(other.value, str) else None
        death = death_of(message.origin, "", reason, now)  # it never was in a queue
        properties = message.basic_message(vhost.name).content.properties.copy()
        dead = as_dead_letter(message, properties, target.name.name, routing_key, death)
        record = dead.basic_message(vhost.name)
        routed = walk(target, record, vhost.exchanges, vhost.queues, True, now, True)
        self._services.pacing.looked(record.looks)
        return Letter(dead, queues_of(routed), told_route(self._services.log, routed))


def catches_up(schedule: Schedule, request: Request) -> bool:
    """The message says what happens to missed repetitions, else the exchange, else they are skipped."""
    if request.missed:
        return request.missed == CATCH_UP
    field = schedule.exchange.arguments.get("x-delayed-missed")
    return field is not None and field.value == CATCH_UP


def _negates(schedule: Schedule) -> bool:
    field = schedule.exchange.arguments.get("x-delayed-header")
    return field is not None and field.value == "negate"


def negated(message: Message, content: Content) -> Message:
    """As newer versions of the plugin deliver it: x-delay with its sign turned, as a long."""
    headers: Table = dict(content.headers)
    field = headers.get("x-delay")
    if field is None:
        return message
    value = 0
    if isinstance(field.value, (int, float)):
        value = int(field.value)
    elif isinstance(field.value, str):
        value = delay_of(headers)  # however long the text is
    headers["x-delay"] = Field("l", -min(value, LONGEST))
    properties = content.properties.copy()
    properties.headers = headers
    new = with_properties(message, properties)
    new.absent = message.absent
    return new
