"""Whom a queue turns to: who takes what it gives up, and who knows what of it is with consumers.

Duty: small interfaces. The broker is what implements them (``dead_letter.py``, ``connections.py``).
"""

from __future__ import annotations

from mypy_extensions import i64, trait

from warrenmq.broker.message import Message
from warrenmq.broker.queue.queue import Entry, Queue
from warrenmq.broker.services.jobs import Job


@trait
class Posted:
    """Letters that wait to be sent with all others of the turn."""

    def send(self) -> None:
        raise NotImplementedError


class DeadLetterOffice:
    """The place that takes what queues give up."""

    def __init__(self) -> None:
        self.published: i64 = 0
        self.lost: i64 = 0  # nobody took them
        self.confirmed: i64 = 0  # letters that stayed until all targets had them
        self.counts: dict[tuple[str, str, str], int] = {}  # by kind of queue, strategy and reason

    def add(self, queue: Queue, keeper: GivesUp, entry: Entry, cause: i64) -> bool:
        """At most once: it is published before the turn ends, and so leaves the queue now. False: it takes longer, and
        ``keeper`` is told when it is ``handed_over``."""
        raise NotImplementedError

    def letters_wait(self, letters: Posted) -> None:
        """A queue has letters that stay with it until they are taken: try them with all others."""
        raise NotImplementedError

    def deliver(self, queue: Queue, letter: Message, reason: str, taken: list[str]) -> bool:
        """At least once: offer it to the targets that are not in ``taken`` yet, where those that take it are noted.
        Says whether all have it. A letter without any target has not arrived."""
        raise NotImplementedError

    def needs_body(self, queue: Queue, letter: Message, reason: str) -> bool:
        """Would somebody get this letter who cannot share the body that the log has?"""
        raise NotImplementedError

    def buried(self, queue: Queue, reason: str) -> None:
        """A message became a letter that stays with its queue until it is taken."""
        raise NotImplementedError


@trait
class Outstanding:
    """The entries with consumers, or on their way back from them."""

    def pieces_with(self, queue: Queue) -> list[list[Entry | None]]:
        """A queue's deliveries, among others' and gaps."""
        raise NotImplementedError

    def outstanding(self, queue: Queue) -> list[Entry]:
        """A queue's deliveries."""
        found: list[Entry] = []
        for some in self.pieces_with(queue):
            found.extend([entry for entry in some if entry is not None and entry.queue is queue])
        return found


@trait
class GivesUp:
    """A queue as its limits and its expiry know it."""

    def give_up(self, entry: Entry, cause: i64) -> None:
        """It leaves the queue for this cause: dead-lettered if there is where to, else gone."""
        raise NotImplementedError

    def handed_over(self, entry: Entry, cause: i64) -> None:
        """What was given up, and took several turns, has reached its targets or has none."""
        raise NotImplementedError


class Unsettled(Job):
    """A job that holds messages which are in no queue and with no channel any more, and which the log still has there
    as they were."""

    def entries_left(self) -> list[Entry]:
        """Those that are not settled yet, in whatever order."""
        raise NotImplementedError
