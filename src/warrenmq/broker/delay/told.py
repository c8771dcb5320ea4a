"""What the journal is told of what waits at one delayed exchange.

Duty: how much that is, as the exchange's policy says, else its vhost; and to tell it of what waits at an exchange that
is not durable, which the log does not hold: all of it at the level ``all``, else how it ended badly. Not here: what
waits (``schedule.py``); of a durable exchange the log tells by itself, as of a queue.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from warrenmq.broker.message import NOTE_SHIFT, Message
from warrenmq.broker.records import AS_QUEUE, Exchange
from warrenmq.log.causes import FIRED, MOVED
from warrenmq.log.events import NOBODY, Named
from warrenmq.log.fates import MOST_A_SECOND
from warrenmq.log.format import StoredMessage
from warrenmq.log.layout import WITHOUT_RECORD
from warrenmq.log.levels import ALL, BODIES, NONE, OFF, OUTCOMES, is_sampled, level_of

if TYPE_CHECKING:
    from warrenmq.broker.queue.surroundings import Surroundings
    from warrenmq.broker.vhost.vhost import VHost


@final
class Told:
    """The level at which one delayed exchange is told of, and its teller."""

    def __init__(self, broker: Surroundings, vhost: VHost, exchange: Exchange, id: i64) -> None:
        self._broker: Final = broker
        self._vhost: Final = vhost
        self._exchange: Final = exchange
        names: dict[str, object] = {"id": int(id), "vhost": vhost.name, "name": AS_QUEUE + exchange.name.name}
        self._named: Final = Named(id, json.dumps(names).encode())
        self._sample: i64 = 1
        self._has_level: bool = False  # is one told that is not the default?
        self._tells_all: bool = False  # of what the log does not hold
        self.level: i64 = OUTCOMES
        self.set_level()

    def set_level(self) -> None:
        """A policy or the vhost changed."""
        vhost = self._vhost
        level = level_of(self._exchange.policy.definition.get("journal"))
        if level == NONE:
            level = vhost.journal.level
        sample = vhost.journal.sample
        levels = self._broker.log.levels
        if not self._exchange.durable:
            self._tell_all(level >= ALL)
        elif level == OFF or level == BODIES or sample > 1:  # whoever reads the log has to know
            if not self._has_level or level != self.level or sample != self._sample:
                levels.put(self._named, vhost.name, level, sample)
            self._has_level = True
        elif self._has_level:
            self._has_level = False
            levels.forget(self._named, vhost.name)
        self.level = level
        self._sample = sample

    def _tell_all(self, wanted: bool) -> None:
        if wanted != self._tells_all:
            self._tells_all = wanted
            self._vhost.journal.telling_all += 1 if wanted else -1

    def exchange_gone(self) -> None:
        """Nothing comes any more; what waited is told as it is let go."""
        if self._tells_all:
            self._vhost.journal.telling_all -= 1
        self._broker.log.levels.queue_gone(self._named, self._vhost.name)

    def entered(self, message: Message) -> None:
        """It waits from now on, and the log does not hold it."""
        log = self._broker.log
        if not self._is_told(message.id):
            if self._tells_all or self.level == OFF:
                log.events.sampled_out(1)
                if self._tells_all:
                    log.unlogged.untold(message.id)
            return
        if self.level == BODIES and not message.absent:
            log.told_bodies.tell(message.id, message.size, message.pieces())
        origin = message.origin
        log.unlogged.message(message.id, message.header(), origin.exchange, origin.packed_keys)
        log.unlogged.entered(self._named, 0, WITHOUT_RECORD | message.id)

    def again(self, message: Message) -> None:
        """It waits by the broker's own doing: for another time, or once more."""
        unlogged = self._broker.log.unlogged
        outer = unlogged.within(NOBODY)
        self.entered(message)
        unlogged.back(outer)

    def left(self, stored: StoredMessage, cause: i64) -> None:
        """It waits no more, and the log did not hold it."""
        log = self._broker.log
        if self._is_told(stored.message_id):
            log.unlogged.left(self._named, WITHOUT_RECORD | stored.message_id, cause)
        elif cause == FIRED or cause == MOVED:
            log.events.sampled_out(1)
        elif not self._tells_all or log.fates.allows(log.time):
            keys = stored.routing_keys[: len(stored.routing_keys) - (stored.flags >> NOTE_SHIFT)]
            id = stored.message_id
            log.fates.tell(cause, NOBODY, self._named, id, 0, 0, 0, "", stored.header, stored.exchange, keys)

    def asks(self, cause: i64) -> bool:
        """Has it to be known what it was that leaves for this cause? Whoever is asked then says that it ``left``."""
        if self._tells_all:
            return True
        log = self._broker.log
        return self.level > OFF and cause != FIRED and cause != MOVED and log.fates.allows(log.time)

    def most(self) -> i64:
        """Of so many it is told at once that they are forgotten."""
        return MOST_A_SECOND if self.level > OFF else 0

    def left_out(self, count: i64) -> None:
        """So many more were forgotten."""
        if self.level > OFF:
            self._broker.log.fates.left_out(count)

    def _is_told(self, id: i64) -> bool:
        return self._tells_all and id != 0 and is_sampled(id, self._sample)
