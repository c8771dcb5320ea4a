"""Deliveries of a stream become columns: the same ones however they are read, cut and asked for."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.client.test_decoder import content
from warrenmq.client.decoder import Decoder
from warrenmq.client.deliveries import Deliveries, StreamRange
from warrenmq.client.offsets import stream_offset, stream_offsets
from warrenmq.wire.content import Properties, content_frames, encode_header, frame
from warrenmq.wire.fields import Field
from warrenmq.wire.methods import method_frame
from warrenmq.wire.replies import AmqpError

pytestmark = pytest.mark.pure

ENTRY = b"\x0fx-stream-offsetl"
ALL = ["body", "offset", "exchange", "routing_key", "redelivered", "header"]
BARE = ["body", "offset"]

# What a publisher may have put before the broker's entry: the same octets in a value, the entry of another stream.
BEFORE = st.sampled_from(
    [
        {},
        {"a": Field("S", "b")},
        {"a": Field("S", (ENTRY + struct.pack(">q", 3)).decode())},
        {"x-stream-offset": Field("S", "none")},
        {"x-stream-offset": Field("l", 6)},
        {"x-stream-offsex": Field("l", 4)},
        {"t": Field("F", {"x-stream-offset": Field("l", 5)})},
    ]
)


def header_of(before: dict[str, Field], offset: int | None, size: int, **properties: str) -> bytes:
    """A content header with the broker's entry behind all others."""
    whole = encode_header(Properties(headers=before, **properties), size)  # type: ignore[arg-type]
    if offset is None:
        return whole
    at = 14 + sum(1 + len(properties.get(name, "")) for name in properties if name.startswith("content"))
    (length,) = struct.unpack(">I", whole[at : at + 4])
    end = at + 4 + length
    entry = ENTRY + struct.pack(">q", offset)
    return whole[:at] + struct.pack(">I", length + len(entry)) + whole[at + 4 : end] + entry + whole[end:]


def carried(before: dict[str, Field], offset: int | None) -> int | None:
    """What a message says where it stands: the broker's entry; where that is missing, whatever there is."""
    own = before.get("x-stream-offset")
    return 6 if offset is None and own == Field("l", 6) else offset


def delivery(tag: int, body: bytes, header: bytes, key: str, frame_max: int) -> bytes:
    deliver = method_frame(
        1, "basic.deliver", consumer_tag="c", delivery_tag=tag, redelivered=tag % 2 == 1, exchange="x", routing_key=key
    )
    return deliver + content_frames(1, header, body, frame_max)


DELIVERIES = st.lists(
    st.tuples(
        st.binary(max_size=40),
        st.one_of(st.none(), st.integers(0, 30)),
        BEFORE,
        st.sampled_from([{}, {"content_type": "text"}, {"content_encoding": "", "message_id": "m"}]),
        st.sampled_from(["", "k"]),
        st.sampled_from([0, 20]),  # of a frame: a body in one piece, or in several
    ),
    max_size=8,
)


def rows(taken: Deliveries) -> list[tuple[bytes, int | None]]:
    taken.bodies.pad(taken.rows)
    taken.offsets.pad(taken.rows)
    ends = struct.unpack(f"<{taken.rows + 1}i", taken.bodies.ends.getvalue())
    data = taken.bodies.data.getvalue()
    offsets = struct.unpack(f"<{taken.rows}q", taken.offsets.data.getvalue())
    return [(data[a:b], offset) for a, b, offset in zip(ends, ends[1:], offsets, strict=False)]


def read(octets: bytes, step: int, names: list[str], start: int, end: int, allowed: int) -> tuple[object, ...]:
    decoder = Decoder()
    reading = StreamRange(Deliveries(names), start, end)
    reading.allowed = allowed
    decoder.open(1).reading = reading
    for at in range(0, len(octets), step):
        decoder.feed(octets[at : at + step])
    return rows(reading.into), reading.at, reading.gap, reading.delivery_tag, reading.fresh, decoder.frames


@given(DELIVERIES, st.integers(0, 10), st.integers(0, 25), st.integers(0, 1), st.integers(1, 70))
def test_bodies_alone_are_the_same_rows_as_all_columns_and_as_messages(
    given: list[tuple[bytes, int | None, dict[str, Field], dict[str, str], str, int]],
    start: int,
    length: int,
    allowed: int,
    step: int,
) -> None:
    end = start + length
    octets = b""
    expected: list[tuple[bytes, int]] = []
    at, gap = start, -1
    for tag, (body, offset, before, properties, key, frame_max) in enumerate(given, 1):
        octets += delivery(tag, body, header_of(before, offset, len(body), **properties), key, frame_max)
        offset = carried(before, offset)
        if offset is None or offset < at:
            continue
        if min(offset, end) > at + allowed and gap < 0:
            gap = at
        if offset < end:
            expected.append((body, offset))
        at = min(offset + 1, end)

    for names in (BARE, ALL):
        for size in (len(octets) + 1, step, 1):
            found = read(octets, size, names, start, end, allowed)
            assert found[:5] == (expected, at, gap, len(given), bool(given)), (names, size)
            assert found == read(octets, len(octets) + 1, ALL, start, end, allowed)

    decoder = Decoder()
    inbox = decoder.open(1)
    decoder.feed(octets)
    known = [carried(before, offset) for _, offset, before, *_ in given]
    assert stream_offsets(inbox.messages) == [-1 if offset is None else offset for offset in known]


def test_a_part_that_nobody_asked_for_is_not_kept() -> None:
    octets = b"".join(delivery(n, b"body", header_of({}, n, 4), "k", 0) for n in range(3))
    decoder = Decoder()
    reading = StreamRange(Deliveries(["redelivered"]), 0, 3)
    decoder.open(1).reading = reading
    decoder.feed(octets)
    taken = reading.into
    assert (taken.rows, taken.redelivered, taken.octets) == (3, [False, True, False], 0)
    assert (taken.exchanges, taken.routing_keys, taken.headers, taken.offsets.rows) == ([], [], [], 0)


def test_the_offset_of_a_malformed_header_is_what_the_broker_put_last() -> None:
    header = header_of({"a": Field("S", "b")}, 7, 0)
    broken = header.replace(b"\x01aS", b"\x01a?")
    assert stream_offset(header, 0, len(header)) == 7
    assert stream_offset(broken, 0, len(broken)) == 7
    assert stream_offset(broken, 0, len(broken) - 1) == -1
    assert stream_offset(header[:13], 0, 13) == -1


DELIVER = method_frame(1, "basic.deliver", consumer_tag="c", delivery_tag=1, exchange="x", routing_key="k")
HEADER = frame(2, 1, header_of({}, 0, 4))


@pytest.mark.parametrize("names", [BARE, ALL], ids=["bodies alone", "all columns"])
@pytest.mark.parametrize(
    ("octets", "code"),
    [
        (HEADER, 505),
        (DELIVER + DELIVER, 505),
        (DELIVER + HEADER + DELIVER, 505),
        (DELIVER + DELIVER + HEADER + frame(3, 1, b"body"), 505),
        (DELIVER + HEADER[:-1] + b"\x00" + frame(3, 1, b"body"), 501),
        (DELIVER + HEADER + frame(3, 1, b"body")[:-1] + b"\x00", 501),
        (DELIVER + HEADER + frame(3, 1, b"bodies"), 501),
        (DELIVER + frame(2, 1, HEADER[7:19]) + frame(3, 1, b"body"), 541),
        (DELIVER + frame(2, 1, header_of({}, 0, 5000)) + frame(3, 1, b"x" * 5000), 501),
        (DELIVER + frame(2, 1, header_of({"a": Field("S", "x" * 5000)}, 0, 4)) + frame(3, 1, b"body"), 501),
        (frame(1, 1, DELIVER[7:-2]) + HEADER + frame(3, 1, b"body"), 501),
        (frame(1, 1, DELIVER[7:-1] + b"x") + HEADER + frame(3, 1, b"body"), 501),
        (content(1, "basic.publish", b""), 503),
    ],
)
def test_octets_that_make_no_sense_are_refused_whatever_is_asked_for(
    names: list[str], octets: bytes, code: int
) -> None:
    decoder = Decoder()
    decoder.frame_max = 4096
    reading = StreamRange(Deliveries(names), 0, 9)
    decoder.open(1).reading = reading
    good = delivery(1, b"good", header_of({}, 0, 4), "k", 0)
    with pytest.raises(AmqpError) as caught:
        decoder.feed(good + octets)
    assert caught.value.code == code
    assert rows(reading.into) == [(b"good", 0)]


@pytest.mark.parametrize("names", [BARE, ALL], ids=["bodies alone", "all columns"])
@pytest.mark.parametrize("number", [1, 2])
def test_a_frame_of_another_channel_completes_nothing(names: list[str], number: int) -> None:
    frames = [DELIVER, HEADER, frame(3, 1, b"body")]
    frames[number] = frames[number][:2] + b"\x02" + frames[number][3:]
    decoder = Decoder()
    reading = StreamRange(Deliveries(names), 0, 9)
    decoder.open(1).reading = reading
    if number == 1:
        with pytest.raises(AmqpError):
            decoder.feed(b"".join(frames))
    else:
        decoder.feed(b"".join(frames))
    assert not reading.fresh and rows(reading.into) == []


def test_what_else_comes_between_deliveries_stays_in_order() -> None:
    decoder = Decoder()
    inbox = decoder.open(1)
    other = decoder.open(2)
    inbox.reading = reading = StreamRange(Deliveries(BARE), 0, 9)
    first, second = (delivery(n + 1, b"body", header_of({}, n, 4), "k", 0) for n in range(2))
    behind = content(2, "basic.deliver", b"other", consumer_tag="c", delivery_tag=1)
    cut = len(DELIVER)
    decoder.feed(
        first
        + method_frame(1, "basic.cancel", consumer_tag="c")
        + second[:cut]
        + behind  # of another channel, between the frames of this one
        + second[cut:]
        + method_frame(1, "channel.close", reply_code=404)
    )
    assert rows(reading.into) == [(b"body", 0), (b"body", 1)]
    assert inbox.cancelled == ["c"] and [method.name for method in inbox.notices] == ["channel.close"]
    assert [message.body for message in other.messages] == [b"other"]
