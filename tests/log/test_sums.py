"""The sums of records: what they are, whoever computes them."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warrenmq.log.sums import SHORT, short_total, total


@given(st.binary(max_size=300))
def test_the_sum_of_few_octets_is_adler_32(data: bytes) -> None:
    assert short_total(data) == zlib.adler32(data)


@pytest.mark.parametrize("octet", [0, 1, 127, 128, 255])
def test_the_sum_of_few_octets_is_adler_32_at_every_length(octet: int) -> None:
    """All ones are what would overflow first, if anything did."""
    for size in [*range(100), SHORT - 33, SHORT - 32, SHORT - 1]:
        data = bytes([octet]) * size
        assert short_total(data) == zlib.adler32(data), size


def test_the_sum_of_few_octets_counts_each_at_its_place() -> None:
    for place in range(100):
        data = bytes(place) + b"\xff" + bytes(99 - place)
        assert short_total(data) == zlib.adler32(data), place


@pytest.mark.parametrize("size", [0, 1, SHORT - 1])
def test_short_bodies_are_summed_with_adler_32(size: int) -> None:
    data = bytes(range(256)) * 8
    assert total(data[:size]) == zlib.adler32(data[:size])


@pytest.mark.parametrize("size", [SHORT, 3 * SHORT])
def test_long_bodies_are_summed_with_crc_32(size: int) -> None:
    data = bytes(range(256)) * 24
    assert total(data[:size]) == zlib.crc32(data[:size])
