"""The clients of the crash test: each works until its connection dies, and reports to the ledger what it knows.

Nobody here judges: a client that is cut off in the middle of something has simply not been told.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

from tests.crash.ledger import Ledger
from warrenmq.client import Acked, ChannelClosed, ConnectError, Connection, ConnectionClosed
from warrenmq.client.channel import Channel
from warrenmq.client.errors import Timeout
from warrenmq.wire.content import Properties

PERSISTENT = Properties(delivery_mode=2)
GONE = (ConnectionClosed, ConnectError, Timeout, OSError)

#: exchange, routing key and the queues a message published there enters
ROUTES = (
    ("", "work", ("work",)),
    ("crash.fan", "", ("fan-1", "fan-2")),
    ("", "rejecting", ("rejecting",)),
    ("", "expiring", ("expiring",)),
)
QUEUES = ("work", "fan-1", "fan-2")
MOVES = {"rejecting": "rejected", "expiring": "expired"}
MARKERS = "markers"


def topology(url: str) -> None:
    with Connection(url) as connection:
        channel = connection.channel()
        for queue in (*QUEUES, *MOVES.values(), "tx-a", "tx-b", "tx-in"):
            channel.queue_declare(queue, durable=True)
        for queue, target in MOVES.items():
            arguments: dict[str, object] = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": target}
            if queue == "expiring":
                arguments["x-message-ttl"] = 60
            channel.queue_declare(queue, durable=True, arguments=arguments)
        channel.queue_declare(MARKERS, durable=True, arguments={"x-max-length": 5})
        channel.exchange_declare("crash.fan", "fanout", durable=True)
        for queue in ("fan-1", "fan-2"):
            channel.queue_bind(queue, "crash.fan", "")


class Worker(threading.Thread):
    def __init__(self, url: str, ledger: Ledger, seed: int, work: Callable[[Worker, Connection], None]) -> None:
        super().__init__(daemon=True)
        self.url = url
        self.ledger = ledger
        self.random = random.Random(seed)
        self.work = work
        self.killed = False  # the broker, from now on
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            connection = Connection(self.url, timeout=60)
            self.work(self, connection)
        except GONE as error:
            if not self.killed:
                self.error = error
        except BaseException as error:
            self.error = error


class Numbers:
    """Numbers that never come twice, over all rounds."""

    def __init__(self) -> None:
        self.next = 0

    def take(self) -> int:
        self.next += 1
        return self.next


def padding(rng: random.Random) -> bytes:
    """Mostly small; now and then larger than a frame, or than a chunk of the log."""
    size = 700_000 if rng.random() < 0.001 else 200_000 if rng.random() < 0.002 else rng.choice((0, 20, 200, 2000))
    return b"." * size


def publisher(name: bytes, numbers: Numbers) -> Callable[[Worker, Connection], None]:
    """Publishes with confirms to every route, some hundreds unconfirmed at a time."""

    def work(self: Worker, connection: Connection) -> None:
        channel = connection.channel()
        channel.confirm_select()
        while True:
            sent: list[tuple[int, tuple[str, ...], bytes]] = []
            for _ in range(self.random.randint(1, 120)):
                exchange, key, queues = self.random.choice(ROUTES)
                body = b"%s:%d:%s" % (name, numbers.take(), padding(self.random))
                for queue in queues:
                    self.ledger.published(queue, body)
                number = channel.basic_publish(exchange, key, body, PERSISTENT)
                sent.append((number, queues, body))
            nacked = settle_confirms(channel, sent, self.ledger)
            assert not nacked, f"nacked although no disk failed: {nacked}"

    return work


def settle_confirms(channel: Channel, sent: list[tuple[int, tuple[str, ...], bytes]], ledger: Ledger) -> list[int]:
    """Wait for every confirm; what was confirmed is reported even when the connection dies before the rest."""
    nacked: list[int] = []
    try:
        nacked = channel.wait_for_confirms(60)
    finally:
        acked: set[int] = set()
        low = 0
        for event in channel.take_events():
            if isinstance(event, Acked):
                tag = int(event.tag)
                acked.update(range(low + 1, tag + 1) if event.multiple else (tag,))
                if event.multiple:
                    low = tag
        for number, queues, body in sent:
            if number in acked and number not in nacked:
                for queue in queues:
                    ledger.confirmed(queue, body)
    return nacked


def consumer(queue: str) -> Callable[[Worker, Connection], None]:
    """Acks most, requeues some, rejects what is to be dead-lettered, and learns what is on disk by markers."""

    def work(self: Worker, connection: Connection) -> None:
        ledger = self.ledger
        channel = connection.channel()
        channel.confirm_select()
        channel.basic_qos(self.random.choice((1, 20, 200)))
        channel.basic_consume(queue)
        pending: list[bytes] = []
        requeued: set[bytes] = set()
        while True:
            messages = channel.receive(0.05)
            for message in messages:
                ledger.delivered(queue, message.body, message.redelivered)
            for message in messages:
                chance = self.random.random()
                if chance < 0.1 and message.body not in requeued:
                    requeued.add(message.body)
                    channel.basic_nack(message.delivery_tag, requeue=True)
                elif chance < 0.15:
                    continue  # never settled: it goes back when the connection does
                elif queue in MOVES:
                    ledger.rejecting(queue, message.body)
                    pending.append(message.body)
                    channel.basic_reject(message.delivery_tag, requeue=False)
                else:
                    ledger.settling(queue, message.body)
                    pending.append(message.body)
                    channel.basic_ack(message.delivery_tag)
            if pending:
                channel.basic_publish("", MARKERS, b"marker", PERSISTENT)
                channel.wait_for_confirms(60)
                for body in pending:
                    if queue in MOVES:
                        ledger.rejected(queue, body)
                    else:
                        ledger.settled(queue, body)
                pending = []

    return work


class Transactions:
    """What became of each: its messages are in both queues, or in none, with its token taken exactly then."""

    def __init__(self) -> None:
        self.numbers = Numbers()
        self.begun: dict[int, tuple[list[bytes], bytes]] = {}
        self.committed: set[int] = set()
        self.rolled_back: set[int] = set()

    def work(self, worker: Worker, connection: Connection) -> None:
        feed = connection.channel()
        feed.confirm_select()
        channel = connection.channel()
        channel.tx_select()
        while True:
            number = self.numbers.take()
            token = b"token:%d:" % number
            feed.basic_publish("", "tx-in", token, PERSISTENT)
            feed.wait_for_confirms(60)
            message = channel.basic_get("tx-in")
            while message is not None and message.body != token:  # of an earlier life: not ours any more
                channel.basic_ack(message.delivery_tag)
                message = channel.basic_get("tx-in")
            assert message is not None, "a confirmed token is not in its queue"
            bodies = [b"tx:%d:%d" % (number, part) for part in range(worker.random.randint(1, 4))]
            self.begun[number] = (bodies, token)
            for body in bodies:
                for queue in ("tx-a", "tx-b"):
                    channel.basic_publish("", queue, body, PERSISTENT)
            channel.basic_ack(message.delivery_tag)
            if worker.random.random() < 0.1:
                channel.tx_rollback()
                self.rolled_back.add(number)
                channel.basic_ack(message.delivery_tag)
                channel.tx_commit()
            else:
                channel.tx_commit()
                self.committed.add(number)

    def check(self, ledger: Ledger, a: list[bytes], b: list[bytes], tokens: list[bytes]) -> None:
        """After all three queues were read to the end."""
        for number, (bodies, token) in self.begun.items():
            in_a = [body for body in bodies if body in a]
            in_b = [body for body in bodies if body in b]
            whole = in_a == bodies and in_b == bodies
            if not whole and (in_a or in_b):
                ledger.fail(f"transaction {number} is half there: {in_a} and {in_b} of {bodies}")
            if number in self.committed and not whole:
                ledger.fail(f"transaction {number} was answered with commit-ok and is not there")
            if number in self.rolled_back and (in_a or in_b):
                ledger.fail(f"transaction {number} was rolled back and is there")
            if whole and token in tokens:
                ledger.fail(f"transaction {number} is there, but not what it acknowledged")
        ledger.counts["transactions"] += len(self.committed)
        self.begun.clear()
        self.committed.clear()
        self.rolled_back.clear()


class Definitions:
    """Queues declared, bound and deleted; what was answered is so."""

    def __init__(self) -> None:
        self.numbers = Numbers()
        self.declared: set[str] = set()
        self.deleted: set[str] = set()
        self.doubtful: set[str] = set()

    def work(self, worker: Worker, connection: Connection) -> None:
        channel = connection.channel()
        while True:
            name = f"defined-{self.numbers.take()}"
            self.doubtful.add(name)
            channel.queue_declare(name, durable=True, arguments={"x-max-length": 7})
            channel.queue_bind(name, "amq.topic", name)
            self.doubtful.discard(name)
            self.declared.add(name)
            if len(self.declared) > 20:
                name = worker.random.choice(sorted(self.declared))
                self.declared.discard(name)
                self.doubtful.add(name)
                channel.queue_delete(name)
                self.doubtful.discard(name)
                self.deleted.add(name)

    def check(self, ledger: Ledger, connection: Connection) -> None:
        channel = connection.channel()
        channel.confirm_select()
        for name in sorted(self.declared):
            try:
                channel.queue_declare(name, durable=True, arguments={"x-max-length": 7}, passive=True)
            except ChannelClosed as closed:
                ledger.fail(f"queue {name} was declared with -ok and is gone: {closed}")
                return
            channel.basic_publish("amq.topic", name, b"bound", PERSISTENT, mandatory=True)
        channel.wait_for_confirms(60)
        returned = [event for event in channel.take_events() if type(event).__name__ == "Returned"]
        if returned:
            ledger.fail(f"{len(returned)} bindings answered with -ok are gone")
        for name in sorted(self.deleted):
            try:
                channel.queue_declare(name, passive=True)
                ledger.fail(f"queue {name} was deleted with -ok and is back")
            except ChannelClosed:
                channel = connection.channel()
        ledger.counts["definitions"] += len(self.declared) + len(self.deleted)
        self.deleted.clear()
