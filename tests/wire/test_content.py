"""Content headers and bodies: whole, in pieces, and the cheap questions agree with the full decode."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.strategies import PROPERTIES
from warrenmq.wire.content import (
    Properties,
    body_size,
    content_frames,
    decode_properties,
    encode_header,
    frame,
    property_flags,
)
from warrenmq.wire.fields import Field, from_python
from warrenmq.wire.frames import FrameReader
from warrenmq.wire.peek import (
    MARK_BCC,
    MARK_CC,
    MARK_DELAY,
    MARK_DELAY_OTHER,
    MARK_DELIVER_AT,
    MARK_LEAST,
    MARK_RECEIPT,
    peek_properties,
)
from warrenmq.wire.properties import FLAG_HEADERS
from warrenmq.wire.replies import AmqpError

pytestmark = pytest.mark.pure


@given(PROPERTIES, st.integers(0, 2**63 - 1))
def test_what_is_encoded_decodes_to_the_same_properties(properties: Properties, size: int) -> None:
    header = encode_header(properties, size)
    assert decode_properties(header) == properties
    assert body_size(header) == size
    assert encode_header(decode_properties(header), size) == header


@given(PROPERTIES)
def test_a_header_cut_or_stretched_is_refused_with_541_as_rabbitmq_3_10_does(properties: Properties) -> None:
    header = encode_header(properties, 5)
    for wrong in [header[:size] for size in range(len(header))] + [header + b"\x00"]:
        for ask in (decode_properties, peek_properties):
            with pytest.raises(AmqpError) as caught:
                ask(wrong)
            assert (caught.value.code, caught.value.text) == (541, "INTERNAL_ERROR")


@given(PROPERTIES)
def test_quick_answers_are_those_of_the_full_decode(properties: Properties) -> None:
    header = encode_header(properties, 0)
    quick = peek_properties(header)
    assert quick.delivery_mode == (properties.delivery_mode or 0)
    assert quick.priority == (-1 if properties.priority is None else properties.priority)
    assert quick.expiration == properties.expiration
    assert quick.reply_to == properties.reply_to
    assert quick.user_id == properties.user_id
    assert quick.message_id == properties.message_id
    assert quick.correlation_id == properties.correlation_id
    assert quick.flags == property_flags(header)
    assert quick.marks == marks(properties)


MARKS = {
    "CC": MARK_CC,
    "BCC": MARK_BCC,
    "x-delay": MARK_DELAY,
    "x-deliver-at": MARK_DELIVER_AT,
    "x-receipt": MARK_RECEIPT,
    "x-confirm-min-queues": MARK_LEAST,
}


def marks(properties: Properties) -> int:
    found = 0
    for name in properties.headers or {}:
        found |= MARKS.get(name, MARK_DELAY_OTHER if name.startswith("x-delay") else 0)
    return found


SPECIAL = st.sampled_from(
    ["CC", "BCC", "x-delay", "x-deliver-at", "x-delay-id", "x-delay-cancel", "x-delay-every", "x-delay-cron"]
    + ["x-delay-count", "cc", "C", "B", "BC", "BCCC", "CCC", "x-dela", "x-deliver-a", "x-deliver-att", "x-death", ""]
)


@given(st.lists(SPECIAL, unique=True), PROPERTIES)
def test_special_headers_are_found_among_others_and_only_at_the_top(names: list[str], properties: Properties) -> None:
    inside = {name: Field("S", "x") for name in ("CC", "BCC", "x-delay")}
    headers = {name: Field("l", 5) for name in names}
    headers["nested"] = Field("F", inside)
    headers["list"] = Field("A", [Field("F", inside)])
    properties.headers = headers
    header = encode_header(properties, 0)
    assert peek_properties(header).marks == marks(properties)


def test_a_message_without_headers_has_no_marks() -> None:
    assert peek_properties(encode_header(Properties(content_type="CC"), 0)).marks == 0


@pytest.mark.parametrize(
    "headers",
    [b"\x01aZ123", b"\x01aF\x00\x00\x00\x03\x01bZ", b"\x01aA\x00\x00\x00\x01Z", b"\x01aS\x00\x00\x00\x09abc", b"\x09a"],
)
def test_malformed_headers_are_refused_even_when_nested(headers: bytes) -> None:
    start = encode_header(Properties(), 0)[:12]
    header = start + FLAG_HEADERS.to_bytes(2, "big") + len(headers).to_bytes(4, "big") + headers
    for ask in (decode_properties, peek_properties):
        with pytest.raises(AmqpError) as caught:
            ask(header)
        assert caught.value.text == "INTERNAL_ERROR"


@pytest.mark.parametrize("flags", [1, 2, 3])
def test_the_two_lowest_flag_bits_are_ignored_as_rabbitmq_3_10_does(flags: int) -> None:
    header = encode_header(Properties(), 0)[:12] + flags.to_bytes(2, "big")
    assert decode_properties(header) == Properties()
    assert peek_properties(header).flags == flags


@given(st.binary(max_size=200), st.integers(9, 64))
def test_a_body_is_cut_at_frame_max_and_comes_together_again(body: bytes, frame_max: int) -> None:
    header = encode_header(Properties(message_id="m"), len(body))
    reader = FrameReader()
    reader.feed(content_frames(3, header, body, frame_max))
    first = reader.next()
    assert first is not None and (first.type, first.channel, first.payload) == (2, 3, header)
    pieces = []
    while (piece := reader.next()) is not None:
        assert piece.type == 3
        assert 0 < len(piece.payload) <= frame_max - 8
        pieces.append(piece.payload)
    assert b"".join(pieces) == body
    assert len(pieces) == -(-len(body) // (frame_max - 8))


def test_an_empty_body_has_no_frame_and_frame_max_zero_means_one_frame() -> None:
    header = encode_header(Properties(), 0)
    assert content_frames(1, header, b"", 4096) == frame(2, 1, header)
    assert content_frames(1, header, b"x" * 9000, 0) == frame(2, 1, header) + frame(3, 1, b"x" * 9000)


def test_channel_numbers_use_all_sixteen_bits() -> None:
    assert frame(3, 65535, b"x") == b"\x03\xff\xff\x00\x00\x00\x01x\xce"
    assert frame(8, 0, b"") == b"\x08\x00\x00\x00\x00\x00\x00\xce"


def test_a_size_beyond_63_bits_is_negative_and_so_beyond_any_limit() -> None:
    assert body_size(encode_header(Properties(), 2**64 - 1)) < 0


def test_a_copy_shares_nothing_that_changes() -> None:
    original = Properties(headers=from_python({"a": 1}), priority=3)
    copy = original.copy()
    assert copy == original
    assert copy.headers is not None
    copy.headers["b"] = Field("V", None)
    copy.priority = 4
    assert original == Properties(headers=from_python({"a": 1}), priority=3)
    assert copy != original


@pytest.mark.parametrize(
    ("headers", "delay"),
    [
        ([("x-delay", Field("I", 7))], 7),
        ([("x-delay", Field("l", 1 << 40))], 1 << 40),
        ([("a", Field("S", "x-delay")), ("x-delay", Field("I", 7)), ("b", Field("t", True))], 7),
        ([("x-delay", Field("I", 0))], -1),
        ([("x-delay", Field("I", -5))], -1),
        ([("x-delay", Field("l", -5))], -1),
        ([("x-delay", Field("S", "7"))], -1),
        ([("x-delay", Field("B", 7))], -1),
        ([("x-delays", Field("I", 7))], -1),
        ([("a", Field("F", {"x-delay": Field("I", 7)}))], -1),
    ],
)
def test_a_delay_that_is_a_plain_number_is_read_at_a_glance(headers: list[tuple[str, Field]], delay: int) -> None:
    assert peek_properties(encode_header(Properties(headers=dict(headers)), 0)).delay == delay


def test_a_delay_given_twice_takes_more_than_a_glance() -> None:
    one = b"\x07x-delayI\x00\x00\x00\x05"
    table = len(one * 2).to_bytes(4, "big") + one * 2
    header = b"\x00\x3c\x00\x00" + bytes(8) + b"\x20\x00" + table
    assert peek_properties(header).delay == -1
