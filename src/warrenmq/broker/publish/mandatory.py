"""Mandatory messages that no queue has accepted yet: the dual index of the mandatory guide.

Primary key: the sequence number. Secondary keys: the queues the message went to. Value: the message.
A message is forgotten at the first queue that accepts it, and handed back when the last of its queues failed
before any accepted. Messages accepted at once, the usual case, never come here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from mypy_extensions import i64

from warrenmq.broker.message import Message

if TYPE_CHECKING:
    from warrenmq.broker.queue.queue import Queue


@final
class Mandatory:
    """The publishes of one channel that may still have to be returned, by number and by queue."""

    def __init__(self) -> None:
        self._messages: dict[int, Message] = {}
        self._queues: dict[int, list[Queue]] = {}  # sequence number -> queues that may still accept
        self._numbers: dict[Queue, dict[int, bool]] = {}  # queue -> sequence numbers, in order

    def __len__(self) -> int:
        return len(self._messages)

    def tracks(self, seq: i64) -> bool:
        return seq in self._messages

    def open_queues(self, seq: i64) -> i64:
        """How many queues may still accept it."""
        return len(self._queues[seq]) if seq in self._queues else 0

    def track(self, seq: i64, queues: list[Queue], message: Message) -> None:
        self._messages[seq] = message
        self._queues[seq] = list(queues)
        for queue in queues:
            numbers = self._numbers.get(queue)
            if numbers is None:
                numbers = {}
                self._numbers[queue] = numbers
            numbers[seq] = True

    def forget(self, seq: i64) -> Message | None:
        """A queue accepted it (or it was returned): no longer tracked."""
        message = self._messages.pop(seq, None)
        if message is None:
            return None
        for queue in self._queues.pop(seq):
            numbers = self._numbers[queue]
            numbers.pop(seq, None)
            if not numbers:
                del self._numbers[queue]
        return message

    def queue_gone(self, queue: Queue) -> list[tuple[int, Message]]:
        """The queue will not accept any more: the messages that have no queue left, in order, forgotten."""
        lost: list[tuple[int, Message]] = []
        for seq in self._numbers.pop(queue, {}):
            queues = self._queues[seq]
            queues.remove(queue)
            if not queues:
                lost.append((seq, self._messages.pop(seq)))
                del self._queues[seq]
        return lost
