"""Frames come out whole however they came in; what is no frame gets RabbitMQ 3.10's words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warrenmq.wire.content import frame
from warrenmq.wire.frames import Frame, FrameReader
from warrenmq.wire.replies import AmqpError

pytestmark = pytest.mark.pure

FRAMES = st.one_of(
    st.builds(Frame, st.just(1), st.integers(0, 65535), st.binary(min_size=4, max_size=60)),
    st.builds(Frame, st.just(2), st.integers(1, 65535), st.binary(min_size=12, max_size=60)),
    st.builds(Frame, st.just(3), st.integers(1, 65535), st.binary(max_size=60)),
    st.just(Frame(8, 0, b"")),
)


def all_of(reader: FrameReader) -> list[Frame]:
    frames = []
    while (one := reader.next()) is not None:
        frames.append(one)
    return frames


@given(st.lists(FRAMES, max_size=6), st.lists(st.integers(0, 400), max_size=8))
def test_however_the_network_cuts_the_stream_the_frames_are_the_same(frames: list[Frame], cuts: list[int]) -> None:
    stream = b"".join([frame(one.type, one.channel, one.payload) for one in frames])
    reader = FrameReader(4096)
    found = []
    edges = sorted({0, len(stream), *[cut for cut in cuts if cut < len(stream)]})
    for start, stop in zip(edges, edges[1:], strict=False):
        reader.feed(stream[start:stop])
        found += all_of(reader)
    assert found == frames
    assert reader.buffered == 0


@given(st.lists(FRAMES, min_size=1, max_size=3))
def test_byte_by_byte_a_frame_appears_with_its_last_octet(frames: list[Frame]) -> None:
    reader = FrameReader(4096)
    for one in frames:
        octets = frame(one.type, one.channel, one.payload)
        for at in range(len(octets)):
            assert reader.next() is None
            reader.feed(octets[at : at + 1])
        assert reader.next() == one
    assert reader.next() is None


def test_garbage_behind_a_frame_does_not_spoil_it() -> None:
    reader = FrameReader(4096)
    reader.feed(frame(3, 1, b"body") + b"\x63garbage that is no frame")
    assert reader.next() == Frame(3, 1, b"body")
    with pytest.raises(AmqpError):
        reader.next()


# RabbitMQ 3.10.8's own texts.
@pytest.mark.parametrize(
    ("octets", "text"),
    [
        (frame(7, 1, b"abc"), 'FRAME_ERROR - type 7, all octets = <<"abc">>: unknown_frame'),
        (frame(7, 1, b"a\x7f"), "FRAME_ERROR - type 7, all octets = <<97,127>>: unknown_frame"),
        (frame(7, 1, b'a\nb"\\\x1b'), 'FRAME_ERROR - type 7, all octets = <<"a\\nb\\"\\\\\\e">>: unknown_frame'),
        (frame(7, 1, "é☃".encode()), "FRAME_ERROR - type 7, all octets = <<195,169,226,152,131>>: unknown_frame"),
        (
            frame(7, 1, bytes(range(17))),
            "FRAME_ERROR - type 7, first 16 octets = <<0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15>>: unknown_frame",
        ),
        (
            frame(7, 1, b"\x01" + b"\xc8" * 20),
            "FRAME_ERROR - type 7, first 16 octets = <<1,200,200,200,200,200,200,200,200,200,200,200,200,\n"
            "                            200,200,200>>: unknown_frame",
        ),
        (frame(1, 1, b""), "FRAME_ERROR - type 1, all octets = <<>>: unknown_frame"),
        (frame(2, 0, b"abc"), 'FRAME_ERROR - type 2, all octets = <<"abc">>: unknown_frame'),
        (frame(2, 1, b"\x00\x3c\x00\x00\x00"), "FRAME_ERROR - type 2, all octets = <<0,60,0,0,0>>: unknown_frame"),
        (
            frame(2, 0, b"\x00\x3c" + b"\x00" * 10),
            "UNEXPECTED_FRAME - type 2, all octets = <<0,60,0,0,0,0,0,0,0,0,0,0>>",
        ),
        (frame(3, 0, b"abc"), 'UNEXPECTED_FRAME - type 3, all octets = <<"abc">>'),
        (frame(8, 0, b"abc"), 'FRAME_ERROR - type 8, all octets = <<"abc">>: unknown_frame'),
        (frame(8, 1, b"x"), 'FRAME_ERROR - type 8, all octets = <<"x">>: unknown_frame'),
        (frame(8, 1, b""), "UNEXPECTED_FRAME - type 8, all octets = <<>>"),
        (
            frame(3, 1, b"hello")[:-1] + b"\x41",
            'FRAME_ERROR - type 3, all octets = <<"hello">>: {invalid_frame_end_marker,65}',
        ),
        (
            frame(1, 1, b"\x00\x32\x00\x0a" + b"\x00" * 8)[:-1] + b"\xcc",
            "FRAME_ERROR - type 1, all octets = <<0,50,0,10,0,0,0,0,0,0,0,0>>: {invalid_frame_end_marker,\n"
            "                                                     204}",
        ),
        (
            frame(3, 1, b"h" * 300)[:-1] + b"\x41",
            'FRAME_ERROR - type 3, first 16 octets = <<"hhhhhhhhhhhhhhhh">>: {invalid_frame_end_marker,\n'
            "                                                   65}",
        ),
        (
            frame(3, 1, bytes([1, 201, 202, 200, 201, 202, 200, 201, 202, 200, 201, 202, 200, 201, 202, 200]))[:-1]
            + b"\x41",
            "FRAME_ERROR - type 3, all octets = <<1,201,202,200,201,202,200,201,202,200,201,202,200,201,\n"
            "                       202,200>>: {invalid_frame_end_marker,65}",
        ),
        (b"\x01\x00\x01\x00\x00\x10\x01", "FRAME_ERROR - type 1, all octets = <<>>: {frame_too_large,4097,4088}"),
        (
            b"\x01\x00\x01\xff\xff\xff\xff",
            "FRAME_ERROR - type 1, all octets = <<>>: {frame_too_large,4294967295,4088}",
        ),
    ],
)
def test_what_is_no_frame_gets_rabbitmqs_words(octets: bytes, text: str) -> None:
    for pieces in ([octets], [octets[at : at + 1] for at in range(len(octets))]):
        reader = FrameReader(4096)
        with pytest.raises(AmqpError) as caught:
            for piece in pieces:
                reader.feed(piece)
                reader.next()
        assert caught.value.text == text
        assert caught.value.hard
        assert (caught.value.class_id, caught.value.method_id) == (0, 0)


def test_latin_1_letters_are_shown_as_single_octets() -> None:
    reader = FrameReader()
    reader.feed(frame(7, 1, b"\xe9\xe8abc"))
    with pytest.raises(AmqpError) as caught:
        reader.next()
    said = caught.value.text.encode("utf-8", "surrogateescape")
    assert said == b'FRAME_ERROR - type 7, all octets = <<"\xe9\xe8abc">>: unknown_frame'


def test_a_payload_may_exceed_frame_max_less_eight_by_eight_octets_and_no_more() -> None:
    reader = FrameReader(4096)
    reader.feed(frame(3, 1, b"x" * 4096))
    assert reader.next() == Frame(3, 1, b"x" * 4096)
    reader.feed(frame(3, 1, b"x" * 4097)[:7])
    with pytest.raises(AmqpError):
        reader.next()


def test_without_a_limit_any_size_is_waited_for() -> None:
    reader = FrameReader()
    reader.feed(b"\x03\x00\x01\x7f\xff\xff\xff")
    assert reader.next() is None
