"""The journal, the ledger and the broker agree where several of Warren's own features meet in one history.

Dead letters that are delayed into a stream, leases that run out while their queue is deleted, transactions whose
publishes are duplicates, priorities with limits, letters that stay until their target takes them, retries with
deadlines, receipts, least queues, policies that change meanwhile: by fixed seeds, so that every run is the same one.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.journal.elsewhere import ONCE
from tests.journal.elsewhere import STEPS as STEPS_ELSEWHERE
from tests.journal.test_replay import LETTERS, STREAM, History, check, check_after
from warrenmq.broker.definitions.policy_changes import set_policy
from warrenmq.broker.policy.policy import parse_policy
from warrenmq.testing.core import Core
from warrenmq.testing.faults import FaultyDisk
from warrenmq.wire.fields import from_python

pytestmark = pytest.mark.pure

INTO_STREAM = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": STREAM}
SURE = {"x-queue-type": "quorum", "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"}
QUEUES: dict[str, dict[str, object]] = {
    "letters": {},
    "strict": {"x-max-length": 3, "x-overflow": "reject-publish"},
    "ranked full": {"x-max-priority": 3, "x-max-length": 3, **LETTERS},
    "sure full": {
        **SURE,
        "x-max-length": 2,
        "x-delivery-limit": 1,
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": "strict",
    },
    "sure patient": {**SURE, "x-delivery-limit": 2, **LETTERS},
    "sure stream": {**SURE, "x-message-ttl": 600, **INTO_STREAM},
    "into later": {"x-message-ttl": 700, "x-dead-letter-exchange": "later", "x-dead-letter-routing-key": STREAM},
    "late patient": {"x-ack-deadline": 400, **LETTERS},
    "late": {"x-queue-type": "quorum", "x-ack-deadline": 300, "x-delivery-limit": 2, **LETTERS},
    "lone": {"x-single-active-consumer": True, "x-message-ttl": 900, **LETTERS},
    "octets": {"x-max-length-bytes": 2, **INTO_STREAM},
}
RECEIPTS = "receipts"
POLICIES: list[dict[str, object]] = [
    {"max-length": 1},
    {"message-ttl": 300},
    {"max-length": 2, "message-ttl": 0},
    {"retry-delay": 200, "retry-limit": 1, "ack-deadline": 250},
]
FLAGS = ("consume", "get")  # without acknowledgements?
NONE = ("cancel", "purge", "delete", "leave")
NUMBERS = {"stream": (1, 3), "read": (0, 4), "lease": (1, 3), "wait": (1, 1500), "undo": (0, 10), "two": (0, 2)}
NUMBERS |= dict.fromkeys(("transaction", "rolled back", "once, committed"), (1, 3))
STEPS = [
    *("publish", "publish", "publish", "transient", "fanout", "stream", "read", "lease", "lease", "settle"),
    *("give back", "reject", "release", "consume", "consume", "cancel", "get", "get", "ack", "ack all", "nack"),
    *("requeue", "requeue", "recover", "purge", "delete", "wait", "wait", "leave", "transaction", "rolled back"),
    *("receipt", "receipt", "two", "once, committed", "policy", *STEPS_ELSEWHERE),
]
Step = tuple[str, str, int | bool | None]


def set_named(core: Core, name: str, pattern: str, definition: dict[str, object]) -> None:
    core.broker.begin_turn()
    value = {"pattern": pattern, "definition": definition, "apply-to": "queues", "priority": 0}
    for _ in set_policy(core.broker, parse_policy("/", name, value, False), False):
        pass
    core.end_turn()


class Mixed(History):
    """A history with the steps of this module too."""

    def __init__(self, folder: Path, disk: FaultyDisk | None) -> None:
        super().__init__(folder, disk, queues=QUEUES)
        set_named(self.core, "patient", "patient$", {"retry-delay": 500, "retry-limit": 2})
        self.publisher.send("queue.declare", queue=RECEIPTS, durable=True)
        self.publisher.open(4, "confirm.select")
        self.way_into_stream()

    def way_into_stream(self) -> None:
        arguments = {"x-delayed-type": "direct"}
        self.publisher.send(
            "exchange.declare", exchange="later", type="x-delayed-message", durable=True, arguments=arguments
        )
        self.publisher.send("queue.bind", queue=STREAM, exchange="later", routing_key=STREAM)

    def step(self, what: str, queue: str, how: int | bool | None) -> None:
        number = int(how or 0)
        if what == "receipt":
            exchange, key = ("amq.fanout", "") if number == 3 else ("", queue)
            self.with_headers(exchange, key, {"x-receipt": RECEIPTS}, 1, 1 + number % 2)
        elif what == "two":
            self.with_headers("amq.fanout", "", {"x-confirm-min-queues": number + 1}, 4, 2)
        elif what == "once, committed":
            for n in range(number):
                self.elsewhere.publish(ONCE, queue, queue, f"once {n}", delivery_mode=1 + n % 2, channel=2)
            self.publisher.send("tx.commit" if number != 2 else "tx.rollback", 2)
        elif what == "policy":
            set_named(self.core, "changing", f"^{queue}$", POLICIES[number])
        else:
            super().step(what, queue, how)
            if what == "delayed exchange deleted":
                self.way_into_stream()
        self.core.settle()
        self.look()

    def with_headers(self, exchange: str, key: str, headers: dict[str, object], channel: int, mode: int) -> None:
        self.count += 1
        id, packed = f"m{self.count}", from_python(headers)
        publish = self.publisher.publish
        publish(exchange, key, b"x", channel=channel, message_id=id, headers=packed, delivery_mode=mode)


def history(rng: random.Random) -> list[Step]:
    few = rng.sample(sorted(QUEUES), rng.randrange(2, 6))  # so that steps meet
    found: list[Step] = []
    for _ in range(rng.randrange(15, 60)):
        what = rng.choice(STEPS)
        how: int | bool | None = rng.randint(*NUMBERS.get(what, (0, 3)))
        if what in FLAGS:
            how = rng.random() < 0.5
        elif what in NONE:
            how = None
        found.append((what, rng.choice(few), how))
    return found


@pytest.mark.parametrize("seed", range(16))
def test_the_journal_the_ledger_and_the_broker_agree_where_features_meet(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    told = Mixed(tmp_path, None)
    for step in history(rng):
        told.step(*step)
    check(told)
    check_after(told, clean=seed % 2 == 0)
    told.core.crash()


@pytest.mark.parametrize("seed", range(8))
def test_they_agree_after_a_failing_disk_too(seed: int, tmp_path: Path) -> None:
    rng = random.Random(1000 + seed)
    steps = history(rng)
    for _ in range(3):
        steps.insert(rng.randrange(len(steps)), (rng.choice(("disk fails", "disk mended")), "letters", None))
    told = Mixed(tmp_path, FaultyDisk())
    for step in [*steps, ("disk mended", "letters", None)]:
        told.step(*step)
    told.core.advance(60_000)
    check_after(told, clean=False, all_taken=False)
    told.core.crash()
