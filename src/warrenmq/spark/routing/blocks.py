"""Verdicts for blocks of rows in Arrow, each distinct set of facts judged once in a worker.

Duty: to number what was seen, to find the verdict that is known for a number, and to judge what is new, without a row
of Python for each message. Not here: what a verdict depends on (``facts.py``), where the rows come from (``reader.py``)
and the verdict (``judge.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warrenmq.spark.routing.definitions import Plan
from warrenmq.spark.routing.facts import Facts
from warrenmq.spark.routing.judge import OPTIONAL, arrays, judge_rows
from warrenmq.spark.routing.outcome import VERDICT_NAMES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

# So many distinct facts are remembered; beyond that all is forgotten, so that unique keys cannot fill the memory.
REMEMBERED = 1 << 21


class Ids:
    """Numbers for values, in the order in which they were first seen."""

    def __init__(self, kind: pa.DataType) -> None:
        self.values = pa.array([], kind)

    def of(self, column: pa.Array) -> Numbers:
        found = np.array(pc.fill_null(pc.index_in(column, value_set=self.values), -1), np.int64)
        new = found < 0
        if new.any():
            unseen = column.filter(pa.array(new)).dictionary_encode()
            found[new] = len(self.values) + np.array(unseen.indices, np.int64)
            self.values = pa.concat_arrays([self.values, unseen.dictionary])
        return found

    def __len__(self) -> int:
        return len(self.values)


class Verdicts:
    """What one worker knows under one plan: the facts it has seen, and the verdict on each."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.relevance = plan.path().relevance()
        self.header_names = pa.array(self.relevance.header_names, pa.string())
        self.forget()

    def forget(self) -> None:
        self.exchanges = Ids(pa.string())
        self.keys = Ids(pa.string())
        self.facts = [Ids(pa.string()) for _ in OPTIONAL] + [Ids(pa.string())]  # the last is the throw of the dice
        self.contexts = Ids(pa.int64())
        self.judged = Ids(pa.int64())
        self.columns = arrays([])
        self.usual: Numbers = np.empty(0, np.int64)  # by key: the context it was first seen in
        self.verdict: Numbers = np.empty(0, np.int64)  # and its verdict there

    def of(self, block: pa.Table, wanted: Sequence[int] = range(len(VERDICT_NAMES))) -> list[pa.Array]:
        """The columns of ``outcome.VERDICT`` for a block, or those of them that are wanted."""
        if len(self.judged) + len(self.keys) > REMEMBERED:
            self.forget()
        facts = Facts(self, block)
        numbers = self._numbers(facts)
        index = pa.array(numbers)
        return [self.columns[at].take(index) for at in wanted]

    def _numbers(self, facts: Facts) -> Numbers:
        """Which verdict each row gets; what is new is judged."""
        # Nearly every key comes from one context, in which the verdict is found by the key alone: no second search.
        more = len(self.keys) + 1 - len(self.usual)
        self.usual = np.concatenate((self.usual, np.full(more, -1)))
        self.verdict = np.concatenate((self.verdict, np.full(more, -1)))
        numbers = self.verdict[facts.keys]
        rest = np.flatnonzero(self.usual[facts.keys] != facts.contexts)
        if len(rest):
            contexts, keys = facts.contexts[rest], facts.keys[rest]
            numbers[rest] = found = self.judged.of(pa.array((contexts << 32) | keys))
            known = len(self.columns[0])
            if len(self.judged) > known:
                unknown = np.flatnonzero(found >= known)[::-1]
                first = np.empty(len(self.judged) - known, np.int64)
                first[found[unknown] - known] = rest[unknown]  # the last to be written, the first of its kind, stays
                new = self._judge(facts, first)
                self.columns = [pa.concat_arrays(pair) for pair in zip(self.columns, new, strict=True)]
            unclaimed = self.usual[keys] < 0
            self.usual[keys[unclaimed]] = contexts[unclaimed]
            self.verdict[keys[unclaimed]] = found[unclaimed]
        return numbers

    def _judge(self, facts: Facts, rows: Numbers) -> list[pa.Array]:
        alike = (facts.contexts[rows] << 32) | facts.told_apart(rows)
        _, first, back = np.unique(alike, return_index=True, return_inverse=True)
        judged = arrays(judge_rows(self.plan, facts.rows(rows[first])))
        return [column.take(pa.array(back)) for column in judged]
