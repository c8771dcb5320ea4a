"""Numbers for values, in the order in which they were first seen.

Duty: a column in Arrow becomes a column of numbers, equal where the values are, the same from block to block. The
values of a block are found or told apart in Arrow, so that Python looks only at new ones, once each. Not here: when to
forget.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]


class Ids:
    """A growing dictionary from values to small numbers."""

    def __init__(self) -> None:
        self.known: dict[Any, int] = {}
        self._values: list[pa.Array] = []  # the same, in Arrow

    def of(self, column: pa.Array) -> Numbers:
        """For a column without nulls."""
        if pa.types.is_dictionary(column.type):
            return spread(self.of(column.dictionary), column.indices)
        if not self.known or len(self.known) > len(column):  # a search would put all that is known into a table first
            return self._added(column)
        self._values = [pa.concat_arrays(self._values)]
        found = pc.fill_null(pc.index_in(column, value_set=self._values[0]), -1)
        numbers: Numbers = found.to_numpy(zero_copy_only=False).astype(np.int64)
        new = np.flatnonzero(numbers < 0)
        if len(new):
            numbers[new] = self._added(column.take(pa.array(new)))
        return numbers

    def _added(self, column: pa.Array) -> Numbers:
        known, before = self.known, len(self.known)
        encoded = column.dictionary_encode()
        values = encoded.dictionary
        numbers = np.array([known.setdefault(value, len(known)) for value in values.to_pylist()], np.int64)
        if len(known) > before:
            self._values.append(values.take(pa.array(np.flatnonzero(numbers >= before))))
        return spread(numbers, encoded.indices)

    def __len__(self) -> int:
        return len(self.known)


def spread(numbers: Numbers, indices: pa.Array) -> Numbers:
    """From the values of a dictionary to the rows."""
    found: Numbers = numbers[indices.to_numpy()]
    return found
