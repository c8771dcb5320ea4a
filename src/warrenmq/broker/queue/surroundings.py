"""What a queue finds around it: its vhost, as far as it knows one, and whoever takes what it gives up.

Duty: small interfaces, and the services that are for queues. The broker is what implements them; so queues know
nothing of channels and connections, and of exchanges only that their vhost has some.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64, trait

from warrenmq.broker.message import Message
from warrenmq.broker.queue.aside import DamagedMessages
from warrenmq.broker.queue.leftovers import Leftovers
from warrenmq.broker.records import Exchange
from warrenmq.broker.services.clock import Clock
from warrenmq.broker.services.notes import Notes
from warrenmq.broker.services.randomness import Randomness
from warrenmq.broker.services.services import Services
from warrenmq.log.log import Log
from warrenmq.log.transient import TransientStore

if TYPE_CHECKING:
    from warrenmq.broker.queue.entry import Entry
    from warrenmq.broker.queue.queue import Queue


@trait
class Owner:
    """The connection whose an exclusive queue is."""

    def owns(self, queue: Queue) -> None:
        raise NotImplementedError

    def owns_no_more(self, queue: Queue) -> None:
        raise NotImplementedError


@trait
class Posted:
    """Letters that wait to be sent with all others of the turn."""

    def send(self) -> None:
        raise NotImplementedError


class DeadLetterOffice:
    """Takes what queues give up."""

    def __init__(self) -> None:
        self.published: i64 = 0
        self.dropped: i64 = 0
        self.confirmed: i64 = 0  # letters that stayed until all targets had them
        self.counts: dict[tuple[str, str, str], int] = {}  # by kind of queue, strategy and reason

    def add(self, queue: Queue, entry: Entry, reason: str) -> None:
        """At most once: it leaves the queue now, and is published before the turn ends."""
        raise NotImplementedError

    def letters_wait(self, letters: Posted) -> None:
        """A queue has letters that stay with it until they are taken: try them with all others."""
        raise NotImplementedError

    def deliver(self, queue: Queue, letter: Message, reason: str, taken: list[str]) -> bool:
        """At least once: offer it to the targets that are not in ``taken`` yet, where those that take it are noted.
        Says whether all have it. A letter without any target has not arrived."""
        raise NotImplementedError

    def buried(self, queue: Queue, reason: str) -> None:
        """A message became a letter that stays with its queue until it is taken."""
        raise NotImplementedError


class Surroundings(Services):
    """The services, and what only queues need."""

    dead_letters: DeadLetterOffice

    def __init__(
        self,
        log: Log,
        transient: TransientStore,
        clock: Clock,
        io_clock: Clock,
        randomness: Randomness,
        notes: Notes,
    ) -> None:
        super().__init__(log, transient, clock, io_clock, randomness, notes)
        self.damaged: Final = DamagedMessages(log, notes)
        self.leftovers: Final = Leftovers(self.io_timers, io_clock)
        self.windowed: i64 = 0  # entries that queues hold in memory with their content

    def pieces_with(self, queue: Queue) -> list[list[Entry | None]]:
        """What is with consumers, or on its way back from them, among others' and gaps."""
        raise NotImplementedError

    def outstanding(self, queue: Queue) -> list[Entry]:
        """What is with consumers, or on its way back from them."""
        found: list[Entry] = []
        for some in self.pieces_with(queue):
            found.extend([entry for entry in some if entry is not None and entry.queue is queue])
        return found

    def update_alarms(self) -> None:
        """Measure; block publishers while an alarm is on, unblock them when the last one clears."""
        raise NotImplementedError

    def drop_from_log(self, queue: Queue) -> None:
        """A durable queue goes: everything it still holds, waiting or with consumers."""
        raise NotImplementedError


class Realm:
    """A vhost as its queues know it."""

    def __init__(self, name: str, broker: Surroundings) -> None:
        self.name: Final = name
        self.broker: Final = broker
        self.exchanges: dict[str, Exchange] = {}
        self.queues: dict[str, Queue] = {}
        self.tracing: bool = False

    def remove_queue(self, queue: Queue) -> i64:
        """Take a queue away, with its bindings. Returns how many messages waited in it."""
        raise NotImplementedError
