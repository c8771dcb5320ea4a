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

REFUSED_COMMIT = (
    "channel.close reply_code=406 reply_text='PRECONDITION_FAILED - partial tx completion' class_id=90 method_id=20"
)


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


def unknown_method_is_named(warren: Step, rabbitmq: Step) -> bool:
    said = (
        "connection.close reply_code=503 reply_text='COMMAND_INVALID - unimplemented method' class_id=60 method_id=250"
    )
    return (
        warren.op.name == "raw"
        and warren.op.values["what"] == "unknown method"
        and f"{warren.op.connection}: {said}" in warren.lines
        and [line for line in warren.lines if said not in line]
        == [line for line in rabbitmq.lines if line != f"{warren.op.connection}: end of connection"]
    )


KNOWN = (
    Difference(
        "a method nobody knows is answered",
        "RabbitMQ's reader crashes on a method number it cannot decode and drops the socket without a word; Warren "
        "says 503 and closes (bad input gets a clear error)",
        unknown_method_is_named,
        ends=False,
    ),
    Difference(
        "a refused commit applies nothing",
        "tx.commit: both close the channel with 406 'partial tx completion'; RabbitMQ has then delivered "
        "what the other queues took and applied the acks, Warren has done neither",
        commit_is_all_or_nothing,
        ends=True,
    ),
)


def known(warren: Step, rabbitmq: Step) -> Difference | None:
    for each in KNOWN:
        if each.matches(warren, rabbitmq):
            return each
    return None
