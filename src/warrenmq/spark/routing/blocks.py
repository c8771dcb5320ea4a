"""Verdicts for blocks of rows in Arrow, each distinct set of facts judged once in a worker.

Duty: to find the verdict that is known for what a row's facts are numbered (``seen.py``), and to judge what is new,
without a row of Python for each message. Not here: what a verdict depends on (``facts.py``), where the rows come from
(``reader.py``) and the verdict (``judge.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from warrenmq.spark.routing.definitions import Plan
from warrenmq.spark.routing.facts import Facts
from warrenmq.spark.routing.ids import Ids
from warrenmq.spark.routing.judge import arrays, judge_rows
from warrenmq.spark.routing.lexicon import BITS
from warrenmq.spark.routing.outcome import VERDICT_NAMES
from warrenmq.spark.routing.seen import Seen
from warrenmq.spark.worker import freeze_imports
from warrenmq.supposing.path import Verdict

if TYPE_CHECKING:
    from warrenmq.spark.routing.ids import Numbers

# So many distinct facts are remembered; beyond that all is forgotten, so that unique keys cannot fill the memory.
REMEMBERED = 1 << 20


class Verdicts:
    """The verdicts of one worker under one plan, on what it has seen."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.forget()

    def forget(self) -> None:
        self.seen = Seen(self.plan)
        self.judged = Ids()
        self.verdicts: dict[tuple[object, ...], int] = {}
        self.columns = arrays([])
        self._verdict: Numbers = np.empty(0, np.int64)  # by number of the judged
        self._last: tuple[Sequence[pa.Array], pa.Array] | None = None

    def of(self, block: pa.Table, wanted: Sequence[int] = range(len(VERDICT_NAMES))) -> list[pa.Array]:
        """The columns of ``outcome.VERDICT`` for a block, or those of them that are wanted."""
        index = self.index(block)
        return [self.columns[at].take(index) for at in wanted]

    def column(self, facts: Sequence[pa.Array], names: Sequence[str], wanted: int) -> pa.Array:
        """One of the columns; those of the same facts are asked for one after the other, and judged once."""
        if self._last is None or not _same(self._last[0], facts):
            index = self.index(pa.Table.from_arrays(list(facts), names=list(names)))
            self._last = facts, index
        return self.columns[wanted].take(self._last[1])

    def index(self, block: pa.Table) -> pa.Array:
        """Where in ``columns`` the verdicts on a block are; what is new is judged."""
        if len(self.seen) + len(self.judged) > REMEMBERED:
            self.forget()
        return pa.array(self._numbers(Facts(self.seen, block)))

    def _numbers(self, facts: Facts) -> Numbers:
        """Which verdict each row gets; what is new is judged."""
        judged = self.judged.of(pa.array((facts.contexts << (BITS + 1)) | facts.keys))
        known = len(self._verdict)
        if len(self.judged) > known:
            unknown = np.flatnonzero(judged >= known)[::-1]
            first = np.empty(len(self.judged) - known, np.int64)
            first[judged[unknown] - known] = unknown  # the last to be written, the first of its kind, stays
            self._verdict = np.concatenate((self._verdict, self._judge(facts, first)))
        return self._verdict[judged]

    def _judge(self, facts: Facts, rows: Numbers) -> Numbers:
        """Places of these rows' verdicts in ``columns``; many are alike, and kept once."""
        numbers = []
        new: list[Verdict] = []
        for verdict in judge_rows(self.plan, facts.rows(rows)):
            alike = (*verdict[:1], tuple(verdict.queues), *verdict[2:])
            number = self.verdicts.setdefault(alike, len(self.verdicts))
            numbers.append(number)
            if number == len(self.columns[0]) + len(new):
                new.append(verdict)
        if new:
            self.columns = [pa.concat_arrays(pair) for pair in zip(self.columns, arrays(new), strict=True)]
        return np.array(numbers, np.int64)


# What a worker knows outlives a task, because the next task of the same query asks the same.
_known: dict[str, Verdicts] = {}


def known(plan: Plan) -> Verdicts:
    """What this process knows under this plan; of other plans nothing is kept."""
    digest = plan.digest + repr((plan.vhost, plan.user))
    verdicts = _known.get(digest)
    if verdicts is None:
        _known.clear()
        verdicts = _known[digest] = Verdicts(plan)
        freeze_imports("route")
    return verdicts


def _same(some: Sequence[pa.Array], others: Sequence[pa.Array]) -> bool:
    """Whether these are the same places in memory; the one is held, so that nothing else can have come there."""
    return [_where(column) for column in some] == [_where(column) for column in others]


def _where(column: pa.Array) -> list[int]:
    return [len(column), column.offset, *(0 if buffer is None else buffer.address for buffer in column.buffers())]
