"""Makes a failing sequence small: fewer steps first, then plainer ones.

Duty: search. Not here: what "failing" means; that is asked of the caller, who runs both brokers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tests.differential.operations import Op

Fails = Callable[[list[Op]], bool]


def shrink(sequence: list[Op], fails: Fails, seconds: float = 60.0) -> list[Op]:
    """The smallest failing sequence found in the time; `sequence` itself must fail."""
    deadline = time.monotonic() + seconds

    def still(candidate: list[Op]) -> bool:
        return bool(candidate) and time.monotonic() < deadline and fails(candidate)

    current = list(sequence)
    while True:
        before = current
        current = unpack_bursts(current, still)
        current = without_steps(current, still)
        current = plainer_steps(current, still)
        if current == before or time.monotonic() >= deadline:
            return current


def without_steps(sequence: list[Op], still: Fails) -> list[Op]:
    """Leaves out runs of steps, halving their length."""
    size = max(1, len(sequence) // 2)
    while True:
        position = 0
        while position < len(sequence):
            candidate = sequence[:position] + sequence[position + size :]
            if still(candidate):
                sequence = candidate
            else:
                position += size
        if size == 1:
            return sequence
        size //= 2


def unpack_bursts(sequence: list[Op], still: Fails) -> list[Op]:
    for position in range(len(sequence) - 1, -1, -1):
        step = sequence[position]
        if step.name != "burst":
            continue
        candidate = sequence[:position] + step.values["steps"] + sequence[position + 1 :]
        if still(candidate):
            sequence = candidate
            continue
        inner: list[Op] = step.values["steps"]
        for index in range(len(inner) - 1, -1, -1):
            fewer = inner[:index] + inner[index + 1 :]
            candidate = [*sequence[:position], Op(step.channel, "burst", {"steps": fewer}), *sequence[position + 1 :]]
            if fewer and still(candidate):
                sequence, inner = candidate, fewer
    return sequence


def plainer_steps(sequence: list[Op], still: Fails) -> list[Op]:
    """Leaves out arguments, properties and table entries one by one."""
    for position in range(len(sequence)):
        for plain in plainer(sequence[position]):
            candidate = [*sequence[:position], plain, *sequence[position + 1 :]]
            if still(candidate):
                sequence = candidate
    return sequence


def plainer(step: Op) -> list[Op]:
    """The step with one thing less, for every thing that can go. Later ones assume the earlier ones stayed."""
    found = []
    for key, value in step.values.items():
        if key in ("queue", "steps", "body", "consumer_tag", "exchange", "type", "what", "verb", "path", "ms"):
            continue
        found.append(Op(step.channel, step.name, {name: each for name, each in step.values.items() if name != key}))
        if isinstance(value, dict):
            found += [Op(step.channel, step.name, {**step.values, key: less}) for less in smaller_tables(value)]
    return found


def smaller_tables(table: dict[str, Any]) -> list[dict[str, Any]]:
    found = []
    for key, value in table.items():
        found.append({name: each for name, each in table.items() if name != key})
        if isinstance(value, dict):
            found += [{**table, key: less} for less in smaller_tables(value)]
    return found
