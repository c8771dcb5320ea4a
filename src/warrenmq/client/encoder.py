"""Publishes and acknowledgements as octets, straight into one writer. Not here: when they are sent."""

from __future__ import annotations

from librt.strings import BytesWriter, write_i16_be, write_i32_be, write_i64_be
from mypy_extensions import i16, i32, i64

from warrenmq.wire.constants import FRAME_BODY, FRAME_END, FRAME_HEADER, FRAME_METHOD, FRAME_OVERHEAD
from warrenmq.wire.content import write_frame


def write_channel(out: BytesWriter, channel: i64) -> None:
    write_i16_be(out, i16(channel if channel < 0x8000 else channel - 0x10000))


def write_publish(out: BytesWriter, channel: i64, publish: bytes, header: bytes, body: bytes, frame_max: i64) -> None:
    """``publish``: the whole basic.publish frame. ``header``: a content header payload, whatever body size it names."""
    out.write(publish)
    size: i64 = len(body)
    out.append(FRAME_HEADER)
    write_channel(out, channel)
    write_i32_be(out, len(header))
    out.write(header[:4])
    write_i64_be(out, size)
    out.write(header[12:])
    out.append(FRAME_END)
    if size == 0:
        return
    most = frame_max - FRAME_OVERHEAD
    if frame_max == 0 or size <= most:
        write_frame(out, FRAME_BODY, channel, body)
        return
    at: i64 = 0
    while at < size:
        write_frame(out, FRAME_BODY, channel, body[at : at + most])
        at += most


def write_settlement(out: BytesWriter, channel: i64, method: i64, delivery_tag: i64, bits: i64) -> None:
    """basic.ack, basic.reject or basic.nack, by its id: all are a tag and one octet of bits."""
    out.append(FRAME_METHOD)
    write_channel(out, channel)
    write_i32_be(out, 13)
    write_i32_be(out, i32(method))
    write_i64_be(out, delivery_tag)
    out.append(int(bits))
    out.append(FRAME_END)
