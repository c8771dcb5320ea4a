"""The consumers of one channel: who they are, and whether anything may be delivered to them now.

Duty: consumers by tag, the prefetch that they share, waking and cancelling them. Not here: one consumer
(``consumer.py``), what is outstanding (``outstanding.py``), whose turn it is (``queue/dispatch.py``).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.channel.session import Session
from warrenmq.broker.channel.states import CHANNEL_OPEN, Standing
from warrenmq.broker.queue.queue import Consumer


@final
class Consumers:
    """The subscriptions of one channel, in the order they came."""

    def __init__(self, session: Session, standing: Standing) -> None:
        self._session: Final = session
        self._output: Final = session.output
        self._standing: Final = standing
        self.by_tag: Final[dict[str, Consumer]] = {}
        self.prefetch: i64 = 0  # for consumers started from now on
        self.global_prefetch: i64 = 0
        self.unacked: i64 = 0  # deliveries that a global prefetch counts: to consumers, not by basic.get
        self.behind_answers: bool = False  # an answer waits for the log: no delivery overtakes it

    def __len__(self) -> int:
        return len(self.by_tag)

    def can_deliver(self) -> bool:
        return not self.behind_answers and self.wait()

    def wait(self) -> bool:
        """Would they take something as soon as no answer is before it?"""
        if not self._output.writable or self._standing.state != CHANNEL_OPEN:
            return False
        # a full channel holds all its consumers, those without acknowledgements too
        return self.global_prefetch == 0 or self.unacked < self.global_prefetch

    def released(self, consumer: Consumer) -> None:
        """A delivery of this consumer is settled or goes back: it, or everybody, may be able to take another."""
        was_full = self.global_prefetch > 0 and self.unacked >= self.global_prefetch
        consumer.unacked -= 1
        self.unacked -= 1
        if was_full:
            self.wake()
        elif not consumer.in_turn and not consumer.cancelled:
            consumer.queue.wake(consumer)

    def wake(self) -> None:
        """All may be able to take messages again: first whoever waits longest for one, so that nobody starves."""
        consumers = list(self.by_tag.values())
        if len(consumers) > 1:
            consumers.sort(key=_last_served)
        for consumer in consumers:
            consumer.queue.wake(consumer)

    def answered(self) -> None:
        """No answer waits any more: deliveries go on."""
        self.behind_answers = False
        self.wake()

    def queue_deleted(self, consumer: Consumer) -> None:
        """The consumer's queue is gone: the client is told if it understands."""
        consumer.queue.pass_over(consumer)
        consumer.cancelled = True
        self.by_tag.pop(consumer.tag, None)
        self._session.services.turn.cancelled.append(consumer)

    def wants_cancels(self) -> bool:
        """Does the client want to hear of consumers that end?"""
        return self._session.peer.consumer_cancel_notify and self._standing.state == CHANNEL_OPEN

    def leave(self) -> list[Consumer]:
        """The channel is over. Returns those that were there."""
        consumers = list(self.by_tag.values())
        self.by_tag.clear()
        return consumers


def _last_served(consumer: Consumer) -> int:
    return consumer.last_tag
