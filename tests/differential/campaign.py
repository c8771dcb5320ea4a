"""Many sequences on both brokers, what was seen in them, and what did not agree.

Duty: running, counting and reporting. Not here: the rules of comparison (transcript.py, differences.py).

A difference is looked at again before it is reported, on both brokers and without haste: RabbitMQ's own
transcripts differ now and then (a dead letter and a publish that race for one queue). It counts as a
failure when no run of Warren agrees with any run of RabbitMQ. Quorum queues are the exception: there RabbitMQ's runs
differ so often that a few looks may miss the one Warren took, so what also differs among them is counted as open.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from random import Random

from tests.differential.connections import Address
from tests.differential.differences import known
from tests.differential.driver import Driver
from tests.differential.generator import CORE, Generator
from tests.differential.operations import Op, script
from tests.differential.shrink import shrink
from tests.differential.transcript import Transcript, broken_promises, first_difference, side_by_side

#: Pauses (seconds after each step) of the further looks at a difference.
LOOKS = (0.0, 0.003, 0.02)
_prefixes = itertools.count(1)


def fresh_prefix() -> str:
    """Unlike anything a sequence contains, so that it can be taken out of texts again; new for every run."""
    return f"z{os.getpid()}-{next(_prefixes)}."


@dataclass(frozen=True)
class Task:
    seed: int
    families: tuple[str, ...] = CORE
    length: int = 30

    def sequence(self) -> list[Op]:
        return Generator(Random(f"{self.seed} {self.families}"), self.families).sequence(self.length)


@dataclass
class Failure:
    task: Task | None
    sequence: list[Op]
    warren: Transcript
    rabbitmq: Transcript

    def text(self) -> str:
        at = first_difference(self.warren, self.rabbitmq)
        wrong = broken_promises(self.warren)
        head = f"{self.task}\n" if self.task else ""
        return (
            f"{head}{script(self.sequence)}\n\n"
            + side_by_side(("warren", "rabbitmq"), self.warren, self.rabbitmq, len(self.sequence) if at is None else at)
            + ("\nbroken promises: " + "; ".join(wrong) if wrong else "")
        )


@dataclass
class Tally:
    """How often everything happened (as RabbitMQ saw it)."""

    sequences: int = 0
    steps: int = 0
    on_open_channel: int = 0
    skipped: int = 0
    looked_again: int = 0
    undecided: int = 0
    unsteady: int = 0  # of these: RabbitMQ did the same each time, Warren did not
    skipped_open: int = 0  # sequences on which RabbitMQ differs from itself, and Warren from each of its runs
    late: int = 0
    operations: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    differences: Counter[str] = field(default_factory=Counter)

    def add(self, transcript: Transcript) -> None:
        self.sequences += 1
        for step in transcript.steps:
            if step.op.name == "finish":
                continue
            self.steps += 1
            self.skipped += step.skipped
            self.on_open_channel += step.open and not step.skipped
            for each in step.op.values["steps"] if step.op.name == "burst" else [step.op]:
                self.operations[each.name] += 1
            self.outcomes.update(step.counts)

    def text(self) -> str:
        def rows(counter: Counter[str]) -> str:
            return "\n".join(f"  {count:7}  {name}" for name, count in sorted(counter.items()))

        return (
            f"{self.sequences} sequences, {self.steps} steps, {self.on_open_channel} of them on an open channel, "
            f"{self.skipped} with nothing to settle; {self.looked_again} looked at again, {self.undecided} of them "
            f"open ({self.unsteady} only on Warren), {self.skipped_open} different each time, "
            f"{self.late} given up for lack of time\n"
            f"operations\n{rows(self.operations)}\n"
            f"outcomes\n{rows(self.outcomes)}\nknown differences met\n{rows(self.differences) or '        none'}"
        )


class Pair:
    """Warren and RabbitMQ side by side, one sequence at a time."""

    def __init__(self, warren: Address, rabbitmq: Address, users: dict[str, str] | None = None) -> None:
        self.warren = Driver(warren, users=users)
        self.rabbitmq = Driver(rabbitmq, users=users)
        self._threads = ThreadPoolExecutor(2)

    def close(self) -> None:
        self._threads.shutdown()
        self.warren.close()
        self.rabbitmq.close()

    def run(self, sequence: list[Op], pause: float = 0.0) -> tuple[Transcript, Transcript]:
        prefix = fresh_prefix()
        self.warren.pause = self.rabbitmq.pause = pause
        ran = [self._threads.submit(driver.run, sequence, prefix) for driver in (self.warren, self.rabbitmq)]
        return ran[0].result(), ran[1].result()

    def compare(self, task: Task | None, sequence: list[Op], tally: Tally) -> Failure | None:
        """None when they agree, also after a second look."""
        for _ in range(3):
            warren, rabbitmq = self.run(sequence)
            if not (warren.late or rabbitmq.late):
                break
        else:
            tally.late += 1
            return None
        tally.add(rabbitmq)
        if agree(warren, rabbitmq, tally):
            return None
        tally.looked_again += 1
        seen = [(warren, rabbitmq)]
        timed = any(each.name == "wait" for each in sequence)
        for pause in (0.0,) * 4 if timed else LOOKS:
            one, other = self.run(sequence, pause)
            if one.late or other.late:
                continue
            seen.append((one, other))
            if any(agree(each, judge, tally) for each, _ in seen for _, judge in seen):
                tally.undecided += 1
                tally.unsteady += not differ([judge for _, judge in seen])
                return None
        if len(seen) == 1:
            tally.late += 1
            return None
        if task is not None and "quorum" in task.families and differ([judge for _, judge in seen]):
            tally.skipped_open += 1
            return None
        warren, rabbitmq = seen[-1]
        return Failure(task, sequence, warren, rabbitmq)

    def fails(self, sequence: list[Op]) -> bool:
        return self.compare(None, sequence, Tally()) is not None

    def shrunk(self, failure: Failure, seconds: float = 60.0) -> Failure:
        small = shrink(failure.sequence, self.fails, seconds)
        again = self.compare(failure.task, small, Tally())
        return again or failure


def differ(transcripts: list[Transcript]) -> bool:
    return any(first_difference(transcripts[0], each) is not None for each in transcripts[1:])


def agree(warren: Transcript, rabbitmq: Transcript, tally: Tally) -> bool:
    """Whether two transcripts are the same but for the table of known differences."""
    wrong = broken_promises(warren)
    for left, right in zip(warren.steps, rabbitmq.steps, strict=False):
        if left.lines == right.lines:
            continue
        row = known(left, right)
        if row is None:
            return False
        tally.differences[row.name] += 1
        if row.ends:
            return True
    return not wrong and len(warren.steps) == len(rabbitmq.steps)


def run_tasks(
    pairs: list[Pair], tasks: Iterable[Task], tally: Tally, stop_at: int = 1, seconds: float = 1e9
) -> list[Failure]:
    """Plays the tasks, each pair on its own thread, until `stop_at` failures or the time is up."""
    failures: list[Failure] = []
    lock = threading.Lock()
    waiting = iter(tasks)
    deadline = time.monotonic() + seconds

    def work(pair: Pair) -> None:
        while True:
            with lock:
                task = next(waiting, None)
                if task is None or len(failures) >= stop_at or time.monotonic() > deadline:
                    return
            mine = Tally()
            failure = pair.compare(task, task.sequence(), mine)
            with lock:
                merge(tally, mine)
                if failure is not None:
                    failures.append(failure)

    with ThreadPoolExecutor(len(pairs)) as threads:
        for done in [threads.submit(work, pair) for pair in pairs]:
            done.result()
    return failures


def merge(total: Tally, part: Tally) -> None:
    for name in (
        "sequences",
        "steps",
        "on_open_channel",
        "skipped",
        "looked_again",
        "undecided",
        "unsteady",
        "skipped_open",
        "late",
    ):
        setattr(total, name, getattr(total, name) + getattr(part, name))
    for name in ("operations", "outcomes", "differences"):
        getattr(total, name).update(getattr(part, name))
