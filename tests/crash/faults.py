"""Wrong functions, each of which the crash test must notice. How one is planted: tests/support/planting.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.support import planting
from warrenmq.broker.channel.committing import Commit
from warrenmq.broker.channel.transaction import ACK
from warrenmq.broker.delivering import delivering
from warrenmq.broker.delivering.delivering import ACCEPTED, KEPT, SCHEDULED, WAITING
from warrenmq.broker.publish import outcomes
from warrenmq.broker.queue import paging
from warrenmq.broker.queue.classic import ClassicQueue
from warrenmq.broker.start import topology
from warrenmq.log.index import QueueIndex


@dataclass(frozen=True)
class Fault(planting.Fault):
    complaint: str  # some words of a sentence that must be among what is found broken


def nothing(right: Any, *arguments: Any) -> None:
    """Instead of whatever is done."""


def confirmed_at_once(
    right: Any, publishing: Any, exchange: Any, message: Any, queues: Any, outcome: int, *rest: Any
) -> None:
    now = ACCEPTED if outcome in (WAITING, SCHEDULED, KEPT) else outcome
    right(publishing, exchange, message, queues, now, *rest)


def as_after_a_clean_stop(
    right: Any, broker: Any, queue: Any, index: Any, delivered_up_to: int, clean: bool, leases: Any
) -> Any:
    return right(broker, queue, index, delivered_up_to, True, leases)


def first_queue_alone(right: Any, broker: Any, message: Any, queues: Any, body: Any) -> Any:
    return right(broker, message, [queue for queue in queues if queue.logs(message)][:1], body)


def neighbours_swapped(
    right: Any, broker: Any, queue: Any, index: Any, delivered_up_to: int, clean: bool, leases: Any
) -> Any:
    swapped = QueueIndex()
    for at in range(len(index)):
        other = at ^ 1 if at ^ 1 < len(index) else at
        swapped.add(index.positions[at], index.addresses[other], index.expiries[at], index.flags[at])
    return right(broker, queue, swapped, delivered_up_to, clean, leases)


def letter_stays(right: Any, self: Any, entry: Any, cause: int) -> None:
    if self.settings.dead_letter_exchange is None or self.gone:
        right(self, entry, cause)
    elif paging.recall(self, entry):
        self.counters.dead_lettering(1)
        self._dead_letters.add(self, self, entry, cause)


def acks_are_left_out(right: Any, self: Any, ack: Any) -> Any:
    return None if ack.what == ACK else right(self, ack)


FAULTS = (
    Fault("publishes are confirmed before they are on disk", outcomes.tell, confirmed_at_once, ""),
    Fault("acknowledgements are not logged", ClassicQueue._leave, nothing, "although its acknowledgement was on disk"),
    Fault("nothing comes back flagged", topology.load_queue, as_after_a_clean_stop, "without the redelivered flag"),
    Fault("half of a fanout is not logged", delivering._log_for_all, first_queue_alone, "lost"),
    Fault(
        "what is recovered comes back in the wrong order",
        topology.load_queue,
        neighbours_swapped,
        "of the same publisher",
    ),
    Fault("a dead letter also stays where it was", ClassicQueue.give_up, letter_stays, "dead-letter queue"),
    Fault(
        "a transaction is committed without its acknowledgements",
        Commit._begin,
        acks_are_left_out,
        "not what it acknowledged",
    ),
)
