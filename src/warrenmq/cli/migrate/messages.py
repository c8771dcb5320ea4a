"""The messages of one queue from a broker to another: confirmed there before they are acknowledged here.

They keep their order, properties and routing keys: they are published to a fanout exchange of this tool that is bound
to the queue alone, so that neither the key nor CC headers send copies elsewhere. Whoever kills the tool loses nothing;
what had been confirmed and not yet acknowledged, at most one batch of the queue, is then sent once more by the next
run. Not here: which queues, and what is told of it (``command.py``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from warrenmq.client import Channel, ChannelClosed, Connection, Message, Returned

DOOR = "warren.migrate."  # and the queue's name, hashed: names have at most 255 octets
STEPS = ("received", "published", "confirmed", "acknowledged")


@dataclass
class Moved:
    """The outcome for one queue."""

    vhost: str
    queue: str
    moved: int = 0
    again: int = 0  # of those, how many had been delivered before, to whomever
    left: int = 0  # that wait at the source
    there: int = 0  # that wait at the target
    checked: str = ""  # "even", or why the counts say nothing
    problem: str = ""


def door(queue: str) -> str:
    """The exchange through which a queue is filled; the same in the next run, should this one end early."""
    return DOOR + hashlib.sha256(queue.encode()).hexdigest()[:16]


class Mover:
    """One queue; ``step`` is told how far each batch is, ``stopping`` asked between two."""

    def __init__(
        self,
        source: Connection,
        target: Connection,
        moved: Moved,
        batch: int,
        idle: float,
        stopping: Callable[[], bool],
        step: Callable[[str], None],
    ) -> None:
        self.moved = moved
        self._taking = source.channel()
        self._giving = target.channel()
        self._batch = batch
        self._idle = idle
        self._stopping = stopping
        self._step = step
        self._door = door(moved.queue)

    def run(self) -> None:
        moved = self.moved
        try:
            before, _ = _count(self._giving, moved.queue)
            if _count(self._taking, moved.queue)[0] == 0:
                moved.there, moved.checked = before, "even"
                return
            self._giving.exchange_declare(self._door, "fanout", auto_delete=True)
            self._giving.queue_bind(moved.queue, self._door, "")
            self._giving.confirm_select()
            self._taking.basic_qos(self._batch)
            tag = self._taking.basic_consume(moved.queue)
            self._drain()
            if tag in self._taking.consumers:
                self._taking.basic_cancel(tag)
            while not moved.problem and (messages := self._taking.receive(0)):  # what was on its way already
                self._hand_over(messages)
            self._taking.close()
            self._giving.exchange_delete(self._door)
            moved.there, consumers = _count(self._giving, moved.queue)
            self._giving.close()
        except ChannelClosed as error:
            moved.problem = moved.problem or _cure(str(error))
            return
        if consumers:
            moved.checked = f"{consumers} consumers at the target take from it"
        elif moved.there - before == moved.moved:
            moved.checked = "even"
        else:
            moved.problem = moved.problem or f"{moved.moved} moved, but {before} became {moved.there} at the target"

    def _drain(self) -> None:
        stuck = False
        while not self._stopping() and not self.moved.problem:
            messages = self._taking.receive(self._idle)
            if messages:
                stuck = False
                self._hand_over(messages)
                continue
            self.moved.left, _ = _count(self._taking, self.moved.queue)
            if self.moved.left == 0 or not self._taking.consumers:
                return
            if stuck:
                self.moved.problem = (
                    f"{self.moved.left} wait at the source, and it gives none (another consumer alone?)"
                )
            stuck = True

    def _hand_over(self, messages: list[Message]) -> None:
        giving, taking = self._giving, self._taking
        self._step("received")
        sent = [
            giving.basic_publish(self._door, one.routing_key, one.body, one.header, mandatory=True) for one in messages
        ]
        self._step("published")
        refused = set(giving.wait_for_confirms(giving.connection.timeout))
        returned = [event for event in giving.take_events() if isinstance(event, Returned)]
        self._step("confirmed")
        if returned:
            self.moved.problem = "the queue went away at the target"
            return
        if refused:
            self.moved.problem = f"the target refused {len(refused)} messages (is the queue full?)"
        for number, one in zip(sent, messages, strict=True):
            if number not in refused:
                taking.basic_ack(one.delivery_tag)
                self.moved.moved += 1
                self.moved.again += one.redelivered
        taking.basic_qos(self._batch)  # answered behind the acknowledgements
        self._step("acknowledged")


def _count(channel: Channel, queue: str) -> tuple[int, int]:
    """Messages that wait, and consumers."""
    said = channel.queue_declare(queue, passive=True)
    return said.int("message_count"), said.int("consumer_count")


def _cure(text: str) -> str:
    if "user_id" in text:
        return f"{text} (messages name their publisher: give the target's user the tag impersonator)"
    return text
