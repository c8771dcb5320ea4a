"""Verdicts for blocks of rows in Arrow, each distinct set of facts judged once in a worker.

Duty: to number what was seen, to find the verdict that is known for a number, and to judge what is new, without a row
of Python for each message. Not here: what a verdict depends on (``facts.py``), where the rows come from (``reader.py``)
and the verdict (``judge.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from warrenmq.spark.routing.definitions import Plan
from warrenmq.spark.routing.facts import Facts
from warrenmq.spark.routing.ids import Ids
from warrenmq.spark.routing.judge import OPTIONAL, arrays, judge_rows
from warrenmq.spark.routing.lexicon import BITS, Lexicon
from warrenmq.spark.routing.outcome import VERDICT_NAMES
from warrenmq.spark.routing.path import Verdict
from warrenmq.spark.worker import freeze_imports

if TYPE_CHECKING:
    from warrenmq.spark.routing.ids import Numbers

# So many distinct facts are remembered; beyond that all is forgotten, so that unique keys cannot fill the memory.
REMEMBERED = 1 << 20
Place = tuple[str, str | None, str]  # virtual host, user, exchange
IGNORING, WHOLE = 0, 1  # places in Verdicts.readers


class Verdicts:
    """What one worker knows under one plan: the facts it has seen, and the verdict on each."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.relevance = plan.path().relevance()
        self.header_names = pa.array(self.relevance.header_names, pa.string())
        self.forget()

    def forget(self) -> None:
        self.exchanges = Ids()
        self.keys = Ids()  # those of which every word may tell
        self.readers: list[Ids | Lexicon | None] = [None, self.keys]  # who numbers keys
        self.facts = [Ids() for _ in OPTIONAL] + [Ids()]  # the last is the throw of the dice
        self.contexts = Ids()
        self.judged = Ids()
        self.verdicts: dict[tuple[object, ...], int] = {}
        self.columns = arrays([])
        self._reader: Numbers = np.empty(0, np.int64)  # by context: which of the readers, -1 where nobody asked yet
        self._verdict: Numbers = np.empty(0, np.int64)  # by number of the judged
        self._lexicons: dict[frozenset[str], int] = {frozenset(): IGNORING}
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
        if len(self.exchanges) + len(self.keys) + len(self.contexts) + len(self.judged) > REMEMBERED:
            self.forget()
        return pa.array(self._numbers(Facts(self, block)))

    def readers_of(self, contexts: Numbers, place_of: Callable[[int], Place]) -> Numbers:
        """Who numbers the keys of these rows, as places in ``readers``."""
        self._reader = _grown(self._reader, len(self.contexts))
        new = np.flatnonzero(self._reader[contexts] < 0)
        for row in new[np.unique(contexts[new], return_index=True)[1]].tolist():
            words = self.plan.path().words(*place_of(row))
            self._reader[contexts[row]] = WHOLE if words is None else self._lexicon(words)
        return self._reader[contexts]

    def _lexicon(self, words: frozenset[str]) -> int:
        number = self._lexicons.get(words)
        if number is None:
            number = self._lexicons[words] = len(self.readers)
            self.readers.append(Lexicon(words))
        return number

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


def _grown(numbers: Numbers, size: int) -> Numbers:
    return np.concatenate((numbers, np.full(max(0, size - len(numbers)), -1)))
