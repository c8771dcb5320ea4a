"""The driver's consumers on queues of plain RabbitMQ.

Duty: one connection with a channel for each queue, opened again when it is lost, kept logged in while a batch takes its
time, and what was handed out and is not acknowledged. What was not when a connection was lost is in its queue again,
and comes again. Not here: batches and Spark's offsets (``plain.py``).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from warrenmq.client import Channel, ChannelClosed, ClientError, Connection, ConnectionClosed, Message, Timeout
from warrenmq.spark.connect import BrokerLost, connect
from warrenmq.spark.httpapi import HttpApi
from warrenmq.spark.looking import IDLE
from warrenmq.spark.options import OptionError, Options
from warrenmq.spark.patience import Patience
from warrenmq.spark.secret import Login

FIRST = 1.0  # seconds to wait for the first message of a batch

log = logging.getLogger("warrenmq.spark")
Answer = TypeVar("Answer")


class QueueChannel:
    """One queue, consumed: what was delivered and is not handed out yet."""

    def __init__(self, connection: Connection, queue: str, prefetch: int) -> None:
        self.queue = queue
        self.channel: Channel = connection.channel()
        try:
            self.waiting = self.channel.queue_declare(queue, passive=True).int("message_count")
            self.channel.basic_qos(min(prefetch, 65_535))
            self.channel.basic_consume(queue)
        except ChannelClosed as closed:
            raise OptionError(f"queue '{queue}' cannot be read: {closed.text}") from None
        self._left: list[Message] = []

    def take(self, rows: int, size: int) -> list[Message]:
        """Up to so many messages or bytes, waiting a moment for the first."""
        taken: list[Message] = []
        held = 0
        while len(taken) < rows and held < size:
            if not self._left:
                self._left = self.channel.receive(IDLE if taken else FIRST)
                if not self._left:
                    break
            count = 0
            for message in self._left:
                if len(taken) >= rows or held >= size:
                    break
                taken.append(message)
                held += len(message.body)
                count += 1
            self._left = self._left[count:]
        return taken

    def put_back(self, messages: list[Message]) -> None:
        """They come first the next time."""
        self._left = messages + self._left


@dataclass(eq=False)
class Held:
    """Messages of one queue that are handed out, up to a delivery tag of its channel."""

    source: QueueChannel
    tag: int
    count: int


class Consuming:
    """A consumer, used by one thread at a time; pickled, it is a new one that holds nothing."""

    def __init__(self, options: Options, prefetch: int) -> None:
        self._options = options
        self._prefetch = prefetch
        self._names: list[str] | None = None
        self._connection: Connection | None = None
        self._login: Login | None = None
        self._queues: list[QueueChannel] = []
        self._held: list[Held] = []
        self._reopened = False
        self._using = threading.RLock()
        self._over = threading.Event()

    def __reduce__(self) -> tuple[type[Consuming], tuple[Options, int]]:
        return Consuming, (self._options, self._prefetch)

    @property
    def names(self) -> list[str]:
        return self._names or []

    def waiting(self) -> dict[str, int]:
        """How many messages each queue had when it was first consumed."""
        return self._asking(lambda queues: {queue.queue: queue.waiting for queue in queues})

    def take(self, rows: int, size: int, most: dict[str, int] | None) -> list[tuple[QueueChannel, list[Message]]]:
        """Up to so many messages and bytes of all queues, and of each no more than ``most`` says.

        After a lost connection ``most`` is what the queues have then: what went back is to be had once more.
        """

        def take(queues: list[QueueChannel]) -> list[tuple[QueueChannel, list[Message]]]:
            taken = []
            if most is not None and self._reopened:
                most.update((queue.queue, queue.waiting) for queue in queues)
            self._reopened = False
            for queue in queues:
                wanted = max(1, rows // len(queues))
                if most is not None:
                    wanted = min(wanted, most.get(queue.queue, 0))
                taken.append((queue, queue.take(wanted, max(1, size // len(queues))) if wanted else []))
            return taken

        return self._asking(take)

    def hold(self, source: QueueChannel, messages: list[Message]) -> Held:
        """These are handed out now."""
        held = Held(source, int(messages[-1].delivery_tag), len(messages))
        self._held.append(held)
        return held

    def acknowledge(self, settled: list[Held]) -> None:
        """What went back with a lost connection cannot be: it comes again."""
        with self._using:
            mine = [held for held in settled if held in self._held]
            try:
                for held in mine:
                    held.source.channel.basic_ack(held.tag, multiple=True)
                if self._connection is not None:
                    self._connection.flush()
                self._held = [held for held in self._held if held not in mine]
            except (ChannelClosed, ConnectionClosed, Timeout) as lost:
                self._lose(lost)

    def stop(self) -> None:
        self._over.set()
        with self._using:
            if self._connection is not None:
                self._connection.close()

    # --- the connection

    def _asking(self, ask: Callable[[list[QueueChannel]], Answer]) -> Answer:
        patience = Patience(self._options)
        while True:
            try:
                with self._using:
                    return ask(self._open())
            except (ChannelClosed, ConnectionClosed, Timeout) as lost:
                with self._using:
                    self._lose(lost)
                if not patience.again():
                    raise BrokerLost(f"the connection to {self._options.address} was lost: {lost}") from None

    def _open(self) -> list[QueueChannel]:
        if self._names is None:
            self._names = HttpApi(self._options).names(stream=False)
        if self._connection is None:
            connection = connect(self._options, "queue source")
            self._connection = connection
            self._queues = [QueueChannel(connection, name, self._prefetch) for name in self._names]
            first, self._login = self._login is None, Login(self._options, connection)
            if first and self._login.runs_out:
                threading.Thread(target=self._stay, daemon=True, name="refresh token").start()
        if self._login is not None:
            self._login.refresh()
        return self._queues

    def _lose(self, lost: ClientError) -> None:
        if self._connection is not None:
            self._connection.abort()
        self._connection, self._queues = None, []
        count = sum(held.count for held in self._held)
        self._held = []
        self._reopened = True
        if count:
            where = self._options.address
            log.warning("the connection to %s was lost (%s): %d messages will come again", where, lost, count)

    def _stay(self) -> None:
        """A batch may take longer than the token lives, and nobody uses the connection meanwhile."""
        while not self._over.wait(1.0):
            with self._using, suppress(ClientError):  # whoever uses the connection next finds out
                if self._login is not None and self._connection is not None:
                    self._login.refresh()
