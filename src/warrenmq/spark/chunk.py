"""Rows under way, and what became of each.

Duty: the outcome of every row of a chunk, and which of them the broker speaks of: by sequence number, or by the message
it sends back. Not here: sending, and what to do about it (``publisher.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from warrenmq.client import Returned
from warrenmq.spark.encode import Rows

if TYPE_CHECKING:
    import pyarrow as pa

CONFIRMED = "confirmed"
RETURNED = "returned"
NACKED = "nacked"
REFUSED = "refused"
INVALID = "invalid"  # the row cannot be said in AMQP; it was not sent
PENDING = ""

UNLIKE, ALIKE, SAME = range(3)  # how like a returned message a row is


class Chunk:
    """Some rows under way, and what became of each. ``rows`` are made when they are asked for: mostly nobody does."""

    def __init__(
        self, batch: pa.RecordBatch, ids: list[str], make: Callable[[pa.RecordBatch, list[str]], Rows]
    ) -> None:
        count = batch.num_rows
        self.batch = batch
        self.ids = ids  # for rows that have none
        self.outcomes = [PENDING] * count
        self.pending = count
        self._singly = False  # some row was settled by itself, not in line with those before it
        self.codes: dict[int, int] = {}
        self.texts: dict[int, str] = {}
        self.first = 0  # sequence number of the first row sent
        self.sent: Sequence[int] = ()  # rows sent, in order: their sequence numbers follow one another
        self._make = make
        self._rows: Rows | None = None
        self._waiting: dict[tuple[str, str, str], list[int]] | None = None

    @property
    def rows(self) -> Rows:
        if self._rows is None:
            self._rows = self._make(self.batch, self.ids)
        return self._rows

    def settle(self, row: int, outcome: str, code: int | None = None, text: str | None = None) -> None:
        self._singly = True
        self.pending -= self.outcomes[row] == PENDING
        self.outcomes[row] = outcome
        if code is not None:
            self.codes[row] = code
        if text is not None:
            self.texts[row] = text

    def settle_sent(self, start: int, stop: int, outcome: str) -> None:
        """Of the rows sent, these, which come behind those settled so before; what one has already been told stands."""
        if not self._singly and len(self.sent) == len(self.outcomes):
            self.outcomes[start:stop] = [outcome] * (stop - start)
            self.pending -= stop - start
            return
        for row in self.sent[start:stop]:
            if self.outcomes[row] == PENDING:
                self.settle(row, outcome)

    def find(self, event: Returned, message_id: str) -> tuple[int, int]:
        """The first row that may be the one returned, and how like it is; (0, UNLIKE) when there is none.

        A return carries no sequence number, but the whole message, and returns come in the order of publishing. Rows
        with one id are told apart by exchange, key, headers and body; rows that are the same in all of that are the
        same message, whichever of them it was.
        """
        if self._waiting is None:
            self._waiting = {}
            rows = self.rows
            for row in range(len(rows.bodies) - 1, -1, -1):  # the last of each list is the first of the rows
                key = (rows.message_ids[row], rows.exchanges[row], rows.routing_keys[row])
                self._waiting.setdefault(key, []).append(row)
        waiting = self._waiting.get((message_id, event.exchange, event.routing_key), [])
        while waiting and self.outcomes[waiting[-1]] != PENDING:
            waiting.pop()
        found, likeness = 0, UNLIKE
        for row in reversed(waiting):
            if self.outcomes[row] == PENDING and self.rows.bodies[row] == event.body:
                if self.rows.headers[row] == event.header:
                    return row, SAME
                if likeness == UNLIKE:  # the broker takes BCC out of what it returns
                    found, likeness = row, ALIKE
        return found, likeness

    def named(self, message_id: str) -> list[int]:
        """The rows of this id that nothing is known about yet."""
        ids = self.rows.message_ids
        return [row for row in self.sent if ids[row] == message_id and self.outcomes[row] == PENDING]

    @property
    def last(self) -> int:
        return self.first + len(self.sent) - 1

    def failures(self) -> list[int]:
        if self.outcomes.count(CONFIRMED) == len(self.outcomes):
            return []
        return [row for row, outcome in enumerate(self.outcomes) if outcome != CONFIRMED]
