"""Numbers for routing keys by their telling words, a column at a time.

Duty: keys that differ only in words nobody names get one number, in Arrow and numpy: no key becomes a Python object,
and none is remembered, so that keys which are all different cost no memory. Not here: which words tell (``words.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warrenmq.spark.routing.ids import Ids, spread

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warrenmq.spark.routing.ids import Numbers

DOT = ord(".")
BITS = 40  # of a number; one more marks keys with too many words for that


class Lexicon:
    """Numbers for keys, equal for two keys where they have equally many words and differ only in words not known.

    A key is taken as pieces, each a word with the dot that follows it: ``a.b.`` is ``a.`` and ``b.``, which lie one
    after the other in Arrow's buffer of characters, so that pieces are found by their ends and nothing is copied.
    """

    def __init__(self, words: frozenset[str]) -> None:
        pieces = sorted(word + end for word in words for end in ("", ".") if word + end)
        self.pieces = pa.array(pieces, pa.string())
        self.places = {piece: place for place, piece in enumerate(pieces)}
        self.base = len(pieces) + 2  # and one for any other piece with a dot, one for any without
        self.deep = int((BITS - 1) / np.log2(self.base))  # so many pieces are told in one number
        self.longer = Ids()

    def of(self, keys: pa.Array) -> Numbers:
        if pa.types.is_dictionary(keys.type):
            return spread(self.of(keys.dictionary), keys.indices)
        if not len(keys):
            return np.empty(0, np.int64)
        codes, starts = self._coded(keys)
        counts = np.diff(starts)
        if 0 < counts[0] <= self.deep and (counts == counts[0]).all():  # nearly always: nothing to sort out then
            return self._joined(codes.reshape(len(keys), counts[0]).T)
        numbers = np.empty(len(keys), np.int64)
        for count in np.flatnonzero(np.bincount(counts)):
            rows = np.flatnonzero(counts == count)
            first = starts[rows]
            if count > self.deep:
                width = codes.itemsize * int(count)
                told = codes[first[:, None] + np.arange(count)].tobytes()
                column = pa.Array.from_buffers(pa.binary(width), len(rows), [None, pa.py_buffer(told)])
                numbers[rows] = (1 << BITS) | self.longer.of(column.cast(pa.binary()))
                continue
            numbers[rows] = self._joined(codes[first + np.arange(count)[:, None]])
        return numbers

    def _joined(self, codes: NDArray[np.int32]) -> Numbers:
        """One number for each key, of those of its pieces: the first of every key, the second, and so on."""
        numbers = np.ones(codes.shape[1], np.int64)  # so that a piece more is always a greater number
        for place in codes:
            numbers *= self.base
            numbers += place
        return numbers

    def _coded(self, keys: pa.Array) -> tuple[NDArray[np.int32], Numbers]:
        """A number for every piece of every key, and where among them each key's begin (and the last one's end)."""
        _, offsets, characters = keys.buffers()
        ends = np.frombuffer(offsets, np.int32)[keys.offset : keys.offset + len(keys) + 1]
        low, high = int(ends[0]), int(ends[-1])
        if high == low:
            return np.empty(0, np.int32), np.zeros(len(ends), np.int64)
        text = np.frombuffer(characters, np.uint8)[low:high]
        ends = ends - low
        cut = np.empty(len(text) + 1, np.bool_)
        cut[0] = True
        np.equal(text, DOT, out=cut[1:])
        cut[ends] = True
        cuts = np.flatnonzero(cut).astype(np.int32)
        pieces = pa.StringArray.from_buffers(len(cuts) - 1, pa.py_buffer(cuts), pa.py_buffer(text))
        if len(self.pieces) * 4 <= len(pieces):
            codes, unknown = _places(pc.index_in(pieces, value_set=self.pieces))
        else:  # the search would first put all that are known into a table, for few that are asked for
            encoded = pieces.dictionary_encode()
            place = [self.places.get(piece, -1) for piece in encoded.dictionary.to_pylist()]
            codes = np.array(place, np.int32)[encoded.indices.to_numpy()]
            unknown = np.flatnonzero(codes < 0)
        codes[unknown] = self.base - 2 + (text[cuts[unknown + 1] - 1] == DOT)
        return codes, _begins(cuts, ends)


def _begins(cuts: NDArray[np.int32], ends: NDArray[np.int32]) -> Numbers:
    """Where among the cuts each key begins."""
    each, rest = divmod(len(cuts) - 1, len(ends) - 1)
    if not rest and (cuts[::each] == ends).all():  # as many words in every key: no search
        return np.arange(0, len(cuts), each)
    return np.searchsorted(cuts, ends)


def _places(found: pa.Array) -> tuple[NDArray[np.int32], Numbers]:
    """What a search has found, writable, and where it found nothing."""
    validity, numbers = found.buffers()
    places = np.frombuffer(numbers, np.int32, len(found), found.offset * 4).copy()
    if not found.null_count:
        return places, np.empty(0, np.int64)
    there = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little")[found.offset :][: len(found)]
    return places, np.flatnonzero(there == 0)
