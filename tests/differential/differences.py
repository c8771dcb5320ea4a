"""Where Warren differs from RabbitMQ 3.10 on purpose: the whole list, each with its reason.

Duty: recognise exactly these, and say why. Everything else that differs is a failure. A row matches one kind of
step by its own words; there are no wildcards. After a row that leaves the two brokers in different states the
rest of that sequence is not compared (`ends`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.differential.operations import Op
from tests.differential.transcript import Step

REFUSED_COMMIT = "channel.close reply_code=406 reply_text='PRECONDITION_FAILED - partial tx completion' class_id=90 method_id=20"


@dataclass(frozen=True)
class Difference:
    name: str
    reason: str
    matches: Callable[[Step, Step], bool]  # (Warren's step, RabbitMQ's step)
    ends: bool


def last_of(op: Op) -> Op:
    steps: list[Op] = op.values["steps"] if op.name == "burst" else [op]
    return steps[-1]


def commit_is_all_or_nothing(warren: Step, rabbitmq: Step) -> bool:
    line = f"{warren.op.channel}: {REFUSED_COMMIT}"
    return last_of(warren.op).name == "tx.commit" and line in warren.lines and line in rabbitmq.lines


KNOWN = (
    Difference(
        "a refused commit applies nothing",
        "spec.md §18, tx.commit: both close the channel with 406 'partial tx completion'; RabbitMQ has then delivered what "
        "the other queues took and applied the acks, Warren has done neither",
        commit_is_all_or_nothing, ends=True,
    ),
)


def known(warren: Step, rabbitmq: Step) -> Difference | None:
    for each in KNOWN:
        if each.matches(warren, rabbitmq):
            return each
    return None
