"""Hashes of many texts at once, the same on every machine and for ever: they stand in files.

Duty: 64 bits for each value of an Arrow column, and for one value alone, with a seed for what the value is. Words of
eight octets are mixed in one after the other, those of all values that have so many together. Not here: what is
hashed (``index``). Two values may have the same hash: whoever finds one looks at the value itself.
"""

from __future__ import annotations

from typing import Any

import numpy
import pyarrow as pa

Hashes = numpy.ndarray[Any, numpy.dtype[numpy.uint64]]

FIRST = numpy.uint64(0x9E3779B97F4A7C15)
SECOND = numpy.uint64(0xBF58476D1CE4E5B9)
THIRD = numpy.uint64(0x94D049BB133111EB)
WORD = 8
SLICE = 1 << 16  # values that are taken apart together
INSIDE = numpy.array([(1 << 8 * octets) - 1 for octets in range(WORD + 1)], numpy.uint64)  # of a word with so many


def hash_of(value: bytes, seed: bytes) -> int:
    """Of one value; ``seed`` says what it is, so that a message_id is not taken for a correlation_id."""
    return int(hashes(pa.array([value], pa.binary()), seed)[0])


def hashes(values: pa.Array, seed: bytes) -> Hashes:
    """Of a column of texts or octets without missing values."""
    column = values.cast(pa.binary())
    _, ends, data = column.buffers()
    bounds = numpy.frombuffer(ends, numpy.int32)[column.offset : column.offset + len(column) + 1].astype(numpy.int64)
    octets = numpy.frombuffer(b"" if data is None else data, numpy.uint8)
    start = FIRST
    for octet in seed:
        start = _mixed(numpy.array([start ^ numpy.uint64(octet)], numpy.uint64))[0]
    words = _words(octets)
    found = numpy.empty(len(column), numpy.uint64)
    for first in range(0, len(column), SLICE):
        part = bounds[first : first + SLICE + 1]
        found[first : first + SLICE] = _of_slice(words, part[:-1], part[1:] - part[:-1], start)
    return found


def _words(octets: Any) -> Any:
    """The word that begins at each octet, zeros behind the last one: a view, in which words overlap."""
    padded = numpy.zeros(len(octets) + WORD, numpy.uint8)
    padded[: len(octets)] = octets
    return numpy.ndarray((len(octets) + 1,), "<u8", padded, strides=(1,))


def _of_slice(words: Any, starts: Any, lengths: Any, seed: numpy.uint64) -> Hashes:
    found = _mixed(lengths.astype(numpy.uint64) ^ seed)
    which = numpy.arange(len(found))  # those that have a further word
    begin = 0
    while True:
        rest = lengths[which] - begin
        if rest.min(initial=1) <= 0:
            which, rest = which[rest > 0], rest[rest > 0]
        if not len(which):
            return found
        word = words[starts[which] + begin] & INSIDE[numpy.minimum(rest, WORD)]
        found[which] = _mixed(found[which] ^ word)
        begin += WORD


def _mixed(state: Hashes) -> Hashes:
    """Every bit of the state on every other: splitmix64's finish."""
    with numpy.errstate(over="ignore"):
        state = state + FIRST
        state = (state ^ (state >> numpy.uint64(30))) * SECOND
        state = (state ^ (state >> numpy.uint64(27))) * THIRD
        return state ^ (state >> numpy.uint64(31))
