"""The clean-stop marker's numbers: what was written is what is read, wherever it stands."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from librt.strings import BytesWriter

from warrenmq.log.clean import Numbers, put

LEAST, MOST = -(1 << 63), (1 << 63) - 1
EDGES = [sign * (1 << bits) + more for bits in (6, 13, 20, 27, 62) for sign in (1, -1) for more in (-1, 0, 1)]
numbers = st.lists(st.one_of(st.integers(-200, 200), st.sampled_from([*EDGES, LEAST, MOST]), st.integers(LEAST, MOST)))


@pytest.mark.pure
@given(numbers, st.binary(max_size=9), st.binary(max_size=9))
def test_numbers_are_read_as_they_were_written(values: list[int], before: bytes, behind: bytes) -> None:
    out = BytesWriter()
    for value in values:
        put(out, value)
    data = before + out.getvalue() + behind
    reader = Numbers(data, len(before))
    assert [reader.next() for _ in values] == values
    assert reader.at == len(data) - len(behind)
