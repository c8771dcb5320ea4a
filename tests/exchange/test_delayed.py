"""What a message may ask for in ``x-delay`` and ``x-deliver-at``."""

from __future__ import annotations

from decimal import Decimal

import pytest

from warrenmq.broker.exchange.delayed import IMMEDIATE, LONGEST, delay_of, deliver_at_of, has_to_wait
from warrenmq.wire.fields import Field
from warrenmq.wire.replies import AmqpError


@pytest.mark.parametrize("kind", list("bBsuIil"))
def test_every_integer_type_is_a_delay(kind: str) -> None:
    assert delay_of({"x-delay": Field(kind, 100)}) == 100


@pytest.mark.parametrize(
    "field, delay",
    [
        (Field("S", "100"), 100),
        (Field("S", "+100"), 100),
        (Field("S", "000000000000000000000000000000000000000000100"), 100),
        (Field("x", b"100"), 100),
        (Field("d", 1.9), 1),
        (Field("f", 100.5), 100),
        (Field("l", 4294967296), 4294967296),
        (Field("S", "4294967296"), 4294967296),
        (Field("l", (1 << 63) - 1), LONGEST),
        (Field("S", "9" * 5000), LONGEST),
        (Field("d", 1e300), LONGEST),
        (Field("d", float("inf")), LONGEST),
    ],
)
def test_strings_floats_and_long_delays_are_taken(field: Field, delay: int) -> None:
    assert delay_of({"x-delay": field}) == delay


@pytest.mark.parametrize(
    "field",
    [
        Field("I", 0),
        Field("I", -5),
        Field("S", "0"),
        Field("S", "-5"),
        Field("S", "-" + "9" * 5000),
        Field("d", 0.9),
        Field("d", -3.0),
        Field("d", float("nan")),
        Field("t", True),
        Field("T", 100),
        Field("D", Decimal(100)),
        Field("A", []),
        Field("F", {}),
        Field("V", None),
    ],
)
def test_zero_negative_and_other_types_mean_now(field: Field) -> None:
    assert delay_of({"x-delay": field}) == IMMEDIATE
    assert not has_to_wait({"x-delay": field}, 0)


def test_no_header_means_now() -> None:
    assert delay_of({}) == deliver_at_of({}) == IMMEDIATE


@pytest.mark.parametrize(
    "field, shown",
    [
        (Field("S", "soon"), "soon"),
        (Field("S", ""), ""),
        (Field("S", "1.5"), "1.5"),
        (Field("S", " 1"), " 1"),
        (Field("S", "1_000"), "1_000"),
        (Field("S", "٣"), "٣"),
        (Field("x", b"\xff"), "\\xff"),
    ],
)
def test_a_string_that_is_no_number_is_a_channel_error_that_names_it(field: Field, shown: str) -> None:
    with pytest.raises(AmqpError) as caught:
        delay_of({"x-delay": field})
    assert (caught.value.code, caught.value.hard) == (406, False)
    assert caught.value.explanation == f"invalid x-delay '{shown}': expected a number of milliseconds"


def test_a_delivery_time_is_a_timestamp_in_seconds_or_an_integer_in_milliseconds() -> None:
    assert deliver_at_of({"x-deliver-at": Field("T", 1_700_000_000)}) == 1_700_000_000_000
    assert deliver_at_of({"x-deliver-at": Field("l", 1_700_000_000_123)}) == 1_700_000_000_123
    assert deliver_at_of({"x-deliver-at": Field("T", (1 << 64) - 1)}) == LONGEST
    with pytest.raises(AmqpError, match="tomorrow"):
        deliver_at_of({"x-deliver-at": Field("S", "tomorrow")})


def test_a_delay_counts_before_a_delivery_time() -> None:
    late = Field("l", 1 << 50)
    assert not has_to_wait({"x-delay": Field("I", 0), "x-deliver-at": late}, 0)
    assert has_to_wait({"x-deliver-at": late}, 0)
