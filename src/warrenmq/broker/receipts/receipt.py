"""A receipt: what became of one publish, and how that is said.

Duty: the facts, the outcome that follows from them, and their form as a message (``docs/receipts.md`` has the table).
Not here: gathering the facts (``publish/accounting.py``), when it is sent and how (``receipts.py``).
"""

from __future__ import annotations

import json
from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.queue.queue import Queue
from warrenmq.wire.content import Properties
from warrenmq.wire.fields import Field, Table

MOST: Final = 100  # queues that a receipt names; it counts all of them

# the outcomes
TAKEN: Final = "taken"  # every queue that it was routed to has it
DELAYED: Final = "delayed"  # it waits at a delayed exchange, and no queue has it yet
CANCELLED: Final = "cancelled"  # it took another message out of a schedule
REPLIED: Final = "replied"  # it was a direct reply, and somebody listened
DUPLICATE: Final = "duplicate"  # the exchange had taken it before, and remembers that
UNROUTABLE: Final = "unroutable"  # there is no queue for it
REFUSED: Final = "refused"  # some queue refused it
FAILED: Final = "failed"  # the disk or a queue failed before it was safe


@final
class Place:
    """A queue that a message was offered to, and what it did with it."""

    def __init__(self, queue: Queue, position: i64, durable: bool, cause: str) -> None:
        self.queue: Final = queue
        self.position: Final = position
        self.durable: Final = durable  # is it on disk there?
        self.cause: str = cause  # why it has not got it, "" when it has

    def shown(self) -> dict[str, object]:
        if self.cause:
            return {"queue": self.queue.name.name, "cause": self.cause}
        shown: dict[str, object] = {
            "queue": self.queue.name.name,
            "position": int(self.position),
            "durable": self.durable,
        }
        if self.queue.gone:
            shown["deleted"] = True  # since then, with all it had
        return shown


@final
class Wait:
    """A delayed exchange that a message reached: it waits there, or has cancelled what did."""

    def __init__(self, exchange: str, until: i64, durable: bool, cancelled: str) -> None:
        self.exchange: Final = exchange
        self.until: Final = until  # ms since 1970
        self.durable: Final = durable
        self.cancelled: Final = cancelled  # the id of the message that waits there no more; "" for one that waits now
        self.cause: str = ""  # why it does not wait after all

    def shown(self) -> dict[str, object]:
        if self.cause:
            return {"exchange": self.exchange, "cause": self.cause}
        if self.cancelled:
            return {"exchange": self.exchange, "cancelled": self.cancelled}
        return {"exchange": self.exchange, "until": int(self.until), "durable": self.durable}


@final
class Publish:
    """The publish that a receipt is about, by the names that its publisher knows."""

    def __init__(
        self, exchange: str, routing_key: str, message_id: str | None, correlation_id: str | None, sequence: i64
    ) -> None:
        self.exchange: Final = exchange
        self.routing_key: Final = routing_key
        self.message_id: Final = message_id
        self.correlation_id: Final = correlation_id
        self.sequence: Final = sequence  # its number since confirm.select or tx.select; 0 without either


@final
class Receipt:
    """The report about one publish. ``vhost`` and ``queue``, or ``address``, are where it goes."""

    def __init__(
        self, publish: Publish, vhost: str, queue: str, address: str, persistent: bool, places: list[Place]
    ) -> None:
        self.publish: Final = publish
        self.vhost: Final = vhost
        self.queue: Final = queue
        self.address: Final = address  # of a channel that listens for replies
        self.persistent: Final = persistent  # was the message? Then the receipt is
        self.places: Final = places
        self.waits: list[Wait] = []
        self.replied: bool = False
        self.duplicate_of: i64 = 0  # the message that its exchange took before
        self.least: i64 = 0  # queues that had to take it (x-confirm-min-queues)
        self.confirms: bool = False  # is the channel in confirm mode?
        self.nacks_unroutable: bool = False  # does the vhost?
        self.committed: bool = False  # by tx.commit: what it says comes true with the next sync, if not with this one
        self.batch: i64 = 0  # the log's, with which all it says is on disk
        self._failed: bool = False

    def on_disk(self) -> bool:
        """Does it speak of anything on disk? Then it is not sent before that is there."""
        for place in self.places:
            if place.durable and not place.cause:
                return True
        for wait in self.waits:
            if wait.durable:
                return True
        return False

    def not_written(self, reason: str) -> None:
        """The log failed: nothing is promised of what had to be on disk."""
        self._failed = True
        cause = f"not written: {reason}"
        for place in self.places:
            if place.durable and not place.cause:
                place.cause = cause
        for wait in self.waits:
            if wait.durable:
                wait.cause = cause

    def _judge_queues(self) -> None:
        """A queue that failed before what it took was safe has not got it."""
        for place in self.places:
            if place.queue.failed and not place.cause:
                place.cause = "the queue failed"
                self._failed = True

    def _took(self) -> i64:
        took: i64 = 0
        for place in self.places:
            if not place.cause:
                took += 1
        return took

    def _outcome(self, took: i64) -> str:
        if self._failed:
            return FAILED
        if self.duplicate_of:
            return DUPLICATE
        if took < len(self.places):
            return REFUSED
        if self.places:
            return TAKEN
        if self.waits:
            return CANCELLED if self.waits[0].cancelled else DELAYED
        return REPLIED if self.replied else UNROUTABLE

    def _causes(self, outcome: str, took: i64) -> list[str]:
        causes: list[str] = []
        if outcome == UNROUTABLE:
            causes.append(f"no queue for routing key '{self.publish.routing_key}' of {_named(self.publish.exchange)}")
        for place in self.places:
            if place.cause and len(causes) < MOST:
                causes.append(f"queue '{place.queue.name.name}': {place.cause}")
        for wait in self.waits:
            if wait.cause:
                causes.append(f"exchange '{wait.exchange}': {wait.cause}")
        if self.duplicate_of:
            said = f"duplicate of message {self.duplicate_of}"
            causes.append(f"{said}, which was not written" if outcome == FAILED else said)
        if took < self.least:
            causes.append(f"{took} of at least {self.least} queues took it (x-confirm-min-queues)")
        return causes

    def _confirm(self, outcome: str, took: i64) -> str | None:
        """What the publisher's confirm says, or would have said had the channel lived."""
        if not self.confirms:
            return None
        refused = outcome == FAILED or outcome == REFUSED or took < self.least
        return "nack" if refused or (outcome == UNROUTABLE and self.nacks_unroutable) else "ack"

    def content(self, now: i64) -> tuple[Properties, bytes]:
        """Properties and body of the message that says all of it."""
        self._judge_queues()
        publish = self.publish
        took = self._took()
        outcome = self._outcome(took)
        confirm = self._confirm(outcome, took)
        cause = "; ".join(self._causes(outcome, took))
        named = self.places
        if len(named) > MOST:  # those that have not got it first
            named = [place for place in self.places if place.cause]
            named.extend([place for place in self.places if not place.cause])
        queues = [place.shown() for place in named[:MOST]]
        delayed = [wait.shown() for wait in self.waits]
        sequence = int(publish.sequence) if publish.sequence else None
        body: dict[str, object] = {
            "outcome": outcome,
            "confirm": confirm,
            "cause": cause,
            "exchange": publish.exchange,
            "routing_key": publish.routing_key,
            "message_id": publish.message_id,
            "correlation_id": publish.correlation_id,
            "sequence": sequence,
            "took": int(took),
            "refused": len(self.places) - int(took),
            "queues": queues,
            "delayed": delayed,
        }
        if self.duplicate_of:
            body["duplicate_of"] = int(self.duplicate_of)
        headers: Table = {"x-receipt-outcome": Field("S", outcome)}
        if confirm is not None:
            headers["x-receipt-confirm"] = Field("S", confirm)
        if cause:
            headers["x-receipt-cause"] = Field("S", cause)
        if sequence is not None:
            headers["x-receipt-sequence"] = Field("l", sequence)
        if publish.message_id is not None:
            headers["x-receipt-message-id"] = Field("S", publish.message_id)
        properties = Properties(
            content_type="application/json",
            headers=headers,
            delivery_mode=2 if self.persistent else 1,
            correlation_id=publish.correlation_id,
            timestamp=int(now // 1000),
            type="receipt",
        )
        return properties, json.dumps(body).encode()


def _named(exchange: str) -> str:
    return f"exchange '{exchange}'" if exchange else "the default exchange"
