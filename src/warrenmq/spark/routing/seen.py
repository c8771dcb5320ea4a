"""What one worker has seen under one plan, by number, from block to block.

Duty: numbers for exchanges, keys, facts and contexts, and who numbers the keys of a context. Not here: which facts a
row has (``facts.py``), and the verdicts on them (``blocks.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from warrenmq.spark.routing.definitions import Plan
from warrenmq.spark.routing.ids import Ids
from warrenmq.spark.routing.judge import OPTIONAL
from warrenmq.spark.routing.lexicon import Lexicon

if TYPE_CHECKING:
    from warrenmq.spark.routing.ids import Numbers

Place = tuple[str, str | None, str]  # virtual host, user, exchange
IGNORING, WHOLE = 0, 1  # places in Seen.readers


class Seen:
    """The numbers of what has been seen."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.relevance = plan.path().relevance()
        self.header_names = pa.array(self.relevance.header_names, pa.string())
        self.exchanges = Ids()
        self.keys = Ids()  # those of which every word may tell
        self.readers: list[Ids | Lexicon | None] = [None, self.keys]  # who numbers keys
        self.facts = [Ids() for _ in OPTIONAL] + [Ids()]  # the last is the throw of the dice
        self.contexts = Ids()
        self._reader: Numbers = np.empty(0, np.int64)  # by context: which of the readers, -1 where nobody asked yet
        self._lexicons: dict[frozenset[str], int] = {frozenset(): IGNORING}

    def __len__(self) -> int:
        return len(self.exchanges) + len(self.keys) + len(self.contexts)

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


def _grown(numbers: Numbers, size: int) -> Numbers:
    return np.concatenate((numbers, np.full(max(0, size - len(numbers)), -1)))
