"""What clients know about every message, and what a broker that came back may therefore do with it.

Duty: the rules. Clients report what they sent and what they were told; `Ledger` says of everything a broker does later
whether it may. Rules that are broken are collected as sentences. Not here: clients, processes.

How a client can know that an acknowledgement is on disk: nobody answers an ack, but everything a channel sends is taken
in order, and a batch of the log holds everything up to a moment. So once a publish that was sent behind the ack on the
same channel is confirmed, or a transaction that holds the ack is answered with commit-ok, the ack is on disk as well.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass


@dataclass
class Copy:
    """One message in one queue, as clients know it."""

    confirmed: bool = False
    delivered: bool = False  # some client has had it
    settling: bool = False  # an ack (or a rejection) has been sent
    settled: bool = False  # and is known to be on disk


class Ledger:
    """Keys are (queue, body). A dead-letter pair of queues counts as one place: see `moves`."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.copies: dict[tuple[str, bytes], Copy] = {}
        self.moves: dict[str, str] = {}  # source queue -> the queue its dead letters go to
        self.broken: list[str] = []
        self.counts: Counter[str] = Counter()

    def fail(self, sentence: str) -> None:
        self.broken.append(sentence)

    # -- what clients report

    def published(self, queue: str, body: bytes) -> None:
        with self.lock:
            self.copies[(queue, body)] = Copy()

    def confirmed(self, queue: str, body: bytes) -> None:
        with self.lock:
            self.copies[(queue, body)].confirmed = True
            self.counts["confirmed"] += 1

    def delivered(self, queue: str, body: bytes, redelivered: bool) -> None:
        with self.lock:
            self.counts["delivered"] += 1
            copy = self.copies.get((queue, body))
            if copy is None:
                self.fail(f"{queue} delivered {body[:40]!r}, which nobody published there")
                return
            if copy.settled:
                self.fail(f"{queue} delivered {body[:40]!r} again, although its acknowledgement was on disk")
            if copy.delivered and not redelivered:
                self.fail(f"{queue} delivered {body[:40]!r} again without the redelivered flag")
            if redelivered:
                self.counts["redelivered"] += 1
            copy.delivered = True

    def settling(self, queue: str, body: bytes) -> None:
        with self.lock:
            self.copies[(queue, body)].settling = True

    def settled(self, queue: str, body: bytes) -> None:
        with self.lock:
            self.copies[(queue, body)].settled = True
            self.counts["settled"] += 1

    def rejecting(self, queue: str, body: bytes) -> None:
        """A rejection that dead-letters has been sent: from now on the copy may be in either queue."""
        with self.lock:
            copy = self.copies[(queue, body)]
            copy.settling = True
            self.copies.setdefault((self.moves[queue], body), Copy())

    def rejected(self, queue: str, body: bytes) -> None:
        """It is on disk: from now on the copy is in the dead-letter queue, as surely as if it had been confirmed."""
        with self.lock:
            source = self.copies[(queue, body)]
            source.settled = True
            target = self.copies[(self.moves[queue], body)]
            target.confirmed = target.confirmed or source.confirmed
            self.counts["dead-lettered"] += 1

    # -- what a check finds

    def holds(self, queue: str, found: list[tuple[bytes, bool]], as_published: bool) -> None:
        """A whole queue was read from head to tail: `found` are bodies with their redelivered flags."""
        last: dict[bytes, int] = {}
        seen: set[bytes] = set()
        for body, redelivered in found:
            self.delivered(queue, body, redelivered)
            if body in seen:
                self.fail(f"{queue} holds {body[:40]!r} twice")
            seen.add(body)
            publisher, number = body.split(b":")[:2]
            if as_published and int(number) <= last.get(publisher, -1):
                self.fail(f"{queue} holds {body[:40]!r} behind number {last[publisher]} of the same publisher")
            last[publisher] = int(number)
        target = self.moves.get(queue)
        with self.lock:
            for (name, body), copy in self.copies.items():
                if name != queue or body in seen or copy.settled:
                    continue
                if copy.confirmed and not copy.settling and target is None:
                    self.fail(f"{queue} has lost {body[:40]!r}, which was confirmed")

    def holds_pair(self, source: list[bytes], target: list[bytes], name: str) -> None:
        """Both queues of a dead-letter pair were read: every message is in one of them, once."""
        for body in set(source) & set(target):
            self.fail(f"{body[:40]!r} is in {name} and in its dead-letter queue")
        where = self.moves[name]
        with self.lock:
            for (queue, body), copy in self.copies.items():
                if queue == name and copy.confirmed and body not in source and body not in target:
                    dead = self.copies.get((where, body))
                    if dead is None or not (dead.settling or dead.settled):
                        self.fail(f"{name} has lost {body[:40]!r} on the way to its dead-letter queue")

    def forget(self, queues: list[str]) -> None:
        """What is settled for good needs no memory, except that it must not come back: keep the last ones."""
        with self.lock:
            gone = [key for key, copy in self.copies.items() if key[0] in queues and copy.settled]
            for key in gone[: max(0, len(gone) - 20_000)]:
                del self.copies[key]
