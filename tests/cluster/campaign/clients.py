"""Clients of a campaign: they go from node to node like any client with several hosts, and write down what they saw.

Duty: publishers that wait for confirms, consumers that settle in transactions (whose end is answered, as an ack's is
not), and definers that declare, delete and look for the same few queues at the same time. Each is one thread.
"""

from __future__ import annotations

import random
import threading
import time

from tests.cluster.campaign.history import DECLARE, DELETE, FOUND, MISSING, History, Key, Operation
from tests.cluster.campaign.machines import AMQP
from warrenmq.client import ChannelClosed, ClientError, Connection, Properties

CALL = 5.0
DURABLE = Properties(delivery_mode=2)


class Client(threading.Thread):
    """Somebody who has all addresses and goes on at the next one when a node does not answer."""

    def __init__(self, name: str, addresses: list[str], history: History) -> None:
        super().__init__(name=name, daemon=True)
        self.addresses = addresses
        self.history = history
        self.over = threading.Event()
        self.sessions = 0
        self.failed = ""  # an error that no dead node explains

    def run(self) -> None:
        at = 0
        while not self.over.is_set():
            at += 1
            try:
                with Connection(host=self.addresses[at % len(self.addresses)], port=AMQP, timeout=CALL) as connection:
                    self.sessions += 1
                    self.work(connection)
            except (OSError, ClientError):
                self.over.wait(0.02)
            except Exception as error:
                self.failed = f"{self.name}: {error!r}"
                return

    def work(self, connection: Connection) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        self.over.set()
        self.join(60)


class Publisher(Client):
    """Numbers in a row, some at a time."""

    def __init__(self, name: str, addresses: list[str], history: History, queue: str, kind: str, most: int) -> None:
        super().__init__(name, addresses, history)
        self.queue, self.kind, self.most = queue, kind, most
        self.next = 0
        self.confirmed = 0
        self.longest = 0.0  # seconds between two answers
        self._last = time.monotonic()

    def work(self, connection: Connection) -> None:
        channel = connection.channel()
        channel.queue_declare(self.queue, durable=True, arguments={"x-queue-type": self.kind})
        channel.confirm_select()
        while not self.over.is_set():
            keys = [(self.name, number) for number in range(self.next, self.next + self.most)]
            self.next += self.most
            for key in keys:
                self.history.published(key)
            bodies = [f"{name}:{number}".encode() for name, number in keys]
            channel.publish_many("", self.queue, bodies, DURABLE)
            refused = channel.wait_for_confirms(CALL)
            if not refused and not channel.unconfirmed:
                for key in keys:
                    self.history.confirmed(key)
                self.confirmed += len(keys)
                now = time.monotonic()
                self.longest = max(self.longest, now - self._last)
                self._last = now
            self.over.wait(0.02)


class Consumer(Client):
    """What comes, settled a few at a time in transactions."""

    def __init__(self, name: str, addresses: list[str], history: History, queue: str) -> None:
        super().__init__(name, addresses, history)
        self.queue = queue
        self.settled = 0

    def work(self, connection: Connection) -> None:
        session = f"{self.name}.{self.sessions}"
        channel = connection.channel()
        channel.tx_select()
        channel.basic_qos(40)
        channel.basic_consume(self.queue)
        while not self.over.is_set():
            messages = channel.receive(0.5)
            keys = [key_of(bytes(message.body)) for message in messages]
            for message, key in zip(messages, keys, strict=True):
                self.history.delivered(session, key, message.redelivered)
            if messages:
                self.history.settling(session, keys)
                channel.basic_ack(messages[-1].delivery_tag, multiple=True)
            channel.tx_commit()  # without messages, to learn whether anybody is there
            self.history.settled(session, keys)
            self.settled += len(keys)


class Definer(Client):
    """Declares, deletes and looks for queues that others change as well."""

    def __init__(self, name: str, addresses: list[str], history: History, names: list[str], seed: int) -> None:
        super().__init__(name, addresses, history)
        self.names = names
        self.chance = random.Random(seed)
        self.proofs = 0

    def work(self, connection: Connection) -> None:
        channel = connection.channel()
        while not self.over.is_set():
            name, what = self.chance.choice(self.names), self.chance.choice((DECLARE, DELETE, FOUND))
            operation = Operation(name, what, time.monotonic())
            if what == FOUND:
                self._look(connection, operation)
            else:
                self.history.definitions.append(operation)
                if what == DECLARE:
                    channel.queue_declare(name, durable=True)
                else:
                    channel.queue_delete(name)
                operation.end = time.monotonic()
            self.over.wait(0.05)

    def _look(self, connection: Connection, operation: Operation) -> None:
        """A look counts when a change was answered behind it: a leader that is one no longer may answer a look."""
        looking = connection.channel()
        try:
            looking.queue_declare(operation.name, passive=True)
        except ChannelClosed:
            operation.what = MISSING
        end = time.monotonic()
        self.proofs += 1
        proof = f"{self.name}-{self.proofs}"
        proving = connection.channel()
        proving.queue_declare(proof, durable=True)
        operation.end = end
        self.history.definitions.append(operation)
        proving.queue_delete(proof)
        proving.close()
        if operation.what == FOUND:
            looking.close()


def key_of(body: bytes) -> Key:
    publisher, number = body.decode().split(":")
    return publisher, int(number)


def drained(address: str, queue: str) -> list[Key]:
    """All that is in the queue, in its order."""
    with Connection(host=address, port=AMQP, timeout=30) as connection:
        channel = connection.channel()
        found = []
        while (message := channel.basic_get(queue, no_ack=True)) is not None:
            found.append(key_of(bytes(message.body)))
        return found
