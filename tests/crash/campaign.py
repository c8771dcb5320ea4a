"""Work, kill, start, check; again and again on one folder."""

from __future__ import annotations

import random
import time
from pathlib import Path

from tests.crash.clients import (
    MARKERS,
    MOVES,
    PERSISTENT,
    QUEUES,
    Definitions,
    Numbers,
    Transactions,
    Worker,
    consumer,
    publisher,
    topology,
)
from tests.crash.faults import Fault
from tests.crash.ledger import Ledger
from tests.crash.process import BrokerProcess
from warrenmq.client import Connection


class Campaign:
    def __init__(self, folder: Path, seed: int, fault: Fault | None = None) -> None:
        self.random = random.Random(seed)
        self.broker = BrokerProcess(folder, fault)
        self.ledger = Ledger()
        self.ledger.moves = dict(MOVES)
        self.numbers = {b"p1": Numbers(), b"p2": Numbers()}
        self.transactions = Transactions()
        self.definitions = Definitions()
        self.kills = 0

    def run(self, kills: int, seconds: float, check_every: int = 2) -> None:
        """Until so many kills or so much time, or until something is broken; a last check at the end."""
        until = time.monotonic() + seconds
        self.broker.start()
        try:
            topology(self.broker.url)
            while not self.ledger.broken and self.kills < kills and time.monotonic() < until:
                self.work_and_kill()
                self.broker.start()
                self.broker.check_ledger()
                # what is left in the queues every other time has lived through several crashes when it is read
                if self.kills % check_every == 0 or self.kills == kills:
                    self.check()
            if not self.ledger.broken:
                self.check()
                self.broker.check_ledger()
                self.broker.stop()
        finally:
            self.broker.end()

    def work_and_kill(self) -> None:
        url, ledger, rng = self.broker.url, self.ledger, self.random
        jobs = [publisher(name, numbers) for name, numbers in self.numbers.items()]
        jobs += [consumer(queue) for queue in (*QUEUES, "rejecting") if rng.random() < 0.8]
        jobs += [self.transactions.work, self.definitions.work]
        workers = [Worker(url, ledger, rng.randrange(1 << 30), job) for job in jobs]
        for worker in workers:
            worker.start()
        time.sleep(rng.uniform(0.2, 1.2))
        for worker in workers:
            worker.killed = True
        self.broker.kill()
        self.kills += 1
        for worker in workers:
            worker.join(60)
            assert not worker.is_alive(), "a client did not notice that its broker is gone"
            if worker.error is not None:
                self.ledger.fail(f"a client failed: {worker.error!r}")

    def check(self) -> None:
        """Read everything that is there, judge it, and take it away with acks that are known to be on disk."""
        ledger = self.ledger
        with Connection(self.broker.url) as connection:
            self.definitions.check(ledger, connection)
            found: dict[str, list[tuple[bytes, bool]]] = {}
            # what expires while it is read moves on, so sources are read before their dead-letter queues
            for queue in (*QUEUES, *MOVES, *MOVES.values(), "tx-a", "tx-b", "tx-in"):
                found[queue] = self._drain(connection, queue)
            for source, target in MOVES.items():
                if source == "expiring":  # moves by itself, so whatever came in may be at either place
                    for body, _ in found[target]:
                        ledger.copies.setdefault((target, body), ledger.copies[(source, body)].__class__())
                ledger.holds_pair([b for b, _ in found[source]], [b for b, _ in found[target]], source)
            for queue in (*QUEUES, *MOVES, *MOVES.values()):
                ledger.holds(queue, found[queue], as_published=queue != "rejected")  # there: as rejected
                for body, _ in found[queue]:
                    ledger.settling(queue, body)
                    ledger.settled(queue, body)
            for source, target in MOVES.items():
                for body, _ in found[target]:
                    ledger.settled(source, body)
                for body, _ in found[source]:
                    ledger.copies.setdefault((target, body), ledger.copies[(source, body)].__class__()).settled = True
            self.transactions.check(ledger, *([b for b, _ in found[q]] for q in ("tx-a", "tx-b", "tx-in")))
            ledger.counts["read back"] += sum(len(messages) for messages in found.values())
            ledger.forget([*QUEUES, *MOVES, *MOVES.values()])

    def _drain(self, connection: Connection, queue: str) -> list[tuple[bytes, bool]]:
        channel = connection.channel()
        channel.confirm_select()
        tag = channel.basic_consume(queue)
        found: list[tuple[bytes, bool]] = []
        while True:
            messages = channel.receive(0.02)
            if messages:
                found.extend((message.body, message.redelivered) for message in messages)
            elif channel.queue_declare(queue, passive=True).int("message_count") == 0:
                messages = channel.receive(0.0)  # what came with the answer
                found.extend((message.body, message.redelivered) for message in messages)
                break
        if found:
            channel.basic_ack(0, multiple=True)
            channel.basic_publish("", MARKERS, b"marker", PERSISTENT)
            assert channel.wait_for_confirms(60) == []
        channel.basic_cancel(tag)
        channel.close()
        return found

    def summary(self) -> str:
        counts = self.ledger.counts
        return (
            f"{self.kills} kills; {counts['confirmed']} copies confirmed, {counts['delivered']} delivered "
            f"({counts['redelivered']} again), {counts['settled']} acks and {counts['dead-lettered']} rejections known "
            f"to be on disk, {counts['transactions']} transactions, {counts['definitions']} definitions, "
            f"{counts['read back']} read back; broken promises: {len(self.ledger.broken)}"
        )
