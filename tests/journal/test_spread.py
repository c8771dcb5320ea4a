"""Columns that only some rows have a value in, laid out over all rows."""

from __future__ import annotations

import numpy
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from librt.strings import BytesWriter, write_i32_le
from mypy_extensions import i32

from warrenmq.journal.hashes import hash_of, hashes
from warrenmq.journal.parquet import Places

pytestmark = pytest.mark.pure

KINDS = (
    pa.int64(),
    pa.int32(),
    pa.string(),
    pa.binary(),
    pa.list_(pa.string()),
    pa.dictionary(pa.int32(), pa.string()),
)
VALUES = {pa.int64(): 7, pa.int32(): 8, pa.string(): "word", pa.binary(): b"", pa.list_(pa.string()): ["a", "", "b"]}


@given(st.data())
def test_every_row_has_what_it_had_before_the_rows_were_put_in_order(data: st.DataObject) -> None:
    has = data.draw(st.lists(st.booleans(), max_size=20))
    order = data.draw(st.none() | st.permutations(range(len(has))))
    rows = BytesWriter()
    for row, there in enumerate(has):
        if there:
            write_i32_le(rows, i32(row))
    places = Places(rows, len(has), None if order is None else numpy.array(order, numpy.int64))
    for kind in KINDS:
        one = VALUES.get(kind, "word")
        values = [data.draw(st.sampled_from([None, one, type(one)()])) for there in has if there]
        come = iter(values)
        expected = [next(come) if there else None for there in has]
        spread = places.spread(pa.array(values, kind))
        spread.validate(full=True)
        assert spread.type == kind
        assert spread.to_pylist() == (expected if order is None else [expected[row] for row in order])


@given(st.lists(st.binary(max_size=40), max_size=8), st.integers(0, 3))
def test_many_texts_have_the_hashes_that_each_has_alone(texts: list[bytes], skipped: int) -> None:
    column = pa.array(texts, pa.binary()).slice(skipped)
    assert hashes(column, b"seed").tolist() == [hash_of(text, b"seed") for text in texts[skipped:]]


def test_hashes_are_what_they_were_when_files_were_written_with_them() -> None:
    assert hash_of(b"", b"message_id") == 0x98FAA9CB723D51F0
    assert hash_of(b"order-4711", b"message_id") == 0xB0B8CA9906D8C7EB
    assert hash_of(b"x" * 24, b"header\0tenant") == 0xA3B6B4ABA79A7A45
