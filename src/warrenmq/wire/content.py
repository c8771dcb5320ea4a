"""Content: the header with a message's properties, and the body in frames.

    content        = header-frame *body-frame
    header-payload = class-id(short) weight(short, 0) body-size(longlong) property-flags(short) *property
    property       = the value of each property whose flag is set, in the order of the table (``properties.py``)

Duty: encode and decode that payload, and cut bodies into frames. Not here: looking at it without decoding it
(``peek.py``), assembling content out of frames on a channel (that is the connection's).

As RabbitMQ 3.10 (asked): property strings need not be UTF-8 (kept as surrogate escapes), flag bits 1 and 0 are
ignored, and a payload that is too short or too long for its flags ends in 541 with the bare text INTERNAL_ERROR.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter, read_i64_be, write_i16_be, write_i32_be
from mypy_extensions import i16, i32, i64

from warrenmq.wire.constants import CLASS_BASIC, FRAME_BODY, FRAME_END, FRAME_HEADER, FRAME_OVERHEAD
from warrenmq.wire.fields import Table, decode_entries, write_table
from warrenmq.wire.octets import (
    Malformed,
    longstr_end,
    need,
    read_longlong,
    shortstr_end,
    write_longlong,
    write_octet,
    write_shortstr,
)
from warrenmq.wire.properties import (
    FLAG_APP_ID,
    FLAG_CLUSTER_ID,
    FLAG_CONTENT_ENCODING,
    FLAG_CONTENT_TYPE,
    FLAG_CORRELATION_ID,
    FLAG_DELIVERY_MODE,
    FLAG_EXPIRATION,
    FLAG_HEADERS,
    FLAG_MESSAGE_ID,
    FLAG_PRIORITY,
    FLAG_REPLY_TO,
    FLAG_TIMESTAMP,
    FLAG_TYPE,
    FLAG_USER_ID,
)
from warrenmq.wire.replies import INTERNAL_ERROR, AmqpError

HEADER_FIXED: Final = 14  # class, weight, body size, flags


@final
class Properties:
    """The fourteen properties of class basic; None when absent."""

    def __init__(
        self,
        content_type: str | None = None,
        content_encoding: str | None = None,
        headers: Table | None = None,
        delivery_mode: int | None = None,
        priority: int | None = None,
        correlation_id: str | None = None,
        reply_to: str | None = None,
        expiration: str | None = None,
        message_id: str | None = None,
        timestamp: int | None = None,
        type: str | None = None,
        user_id: str | None = None,
        app_id: str | None = None,
        cluster_id: str | None = None,
    ) -> None:
        self.content_type = content_type
        self.content_encoding = content_encoding
        self.headers = headers
        self.delivery_mode = delivery_mode
        self.priority = priority
        self.correlation_id = correlation_id
        self.reply_to = reply_to
        self.expiration = expiration
        self.message_id = message_id
        self.timestamp = timestamp
        self.type = type
        self.user_id = user_id
        self.app_id = app_id
        self.cluster_id = cluster_id

    def copy(self) -> Properties:
        """Another object with the same values; the headers table is copied too, its fields are shared."""
        headers = self.headers
        return Properties(
            self.content_type,
            self.content_encoding,
            None if headers is None else dict(headers),
            self.delivery_mode,
            self.priority,
            self.correlation_id,
            self.reply_to,
            self.expiration,
            self.message_id,
            self.timestamp,
            self.type,
            self.user_id,
            self.app_id,
            self.cluster_id,
        )

    def present(self) -> dict[str, object]:
        """Name -> value of the properties that are there, in wire order."""
        every: list[tuple[str, object]] = [
            ("content_type", self.content_type),
            ("content_encoding", self.content_encoding),
            ("headers", self.headers),
            ("delivery_mode", self.delivery_mode),
            ("priority", self.priority),
            ("correlation_id", self.correlation_id),
            ("reply_to", self.reply_to),
            ("expiration", self.expiration),
            ("message_id", self.message_id),
            ("timestamp", self.timestamp),
            ("type", self.type),
            ("user_id", self.user_id),
            ("app_id", self.app_id),
            ("cluster_id", self.cluster_id),
        ]
        return {name: value for name, value in every if value is not None}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Properties):
            return False
        return self.present() == other.present()

    def __hash__(self) -> int:
        return hash((self.message_id, self.correlation_id, self.timestamp, self.type))

    def __repr__(self) -> str:
        inside = ", ".join([f"{name}={value!r}" for name, value in self.present().items()])
        return f"Properties({inside})"


def refused() -> AmqpError:
    """What RabbitMQ 3.10 says to a content header it cannot parse: its channel crashes, and so reads the reply."""
    return AmqpError(INTERNAL_ERROR, "")


def body_size(header: bytes) -> i64:
    """Octets of body the header announces. A size beyond 2**63 comes back negative: more than any limit."""
    if len(header) < 12:
        raise refused()
    return read_i64_be(header, 4)


def property_flags(header: bytes) -> i64:
    if len(header) < HEADER_FIXED:
        raise refused()
    high: i64 = header[12]
    low: i64 = header[13]
    return high << 8 | low


# --- reading


def text(header: bytes, offset: i64, stop: i64) -> str:
    return header[offset + 1 : stop].decode("utf-8", "surrogateescape")


def decode_properties(header: bytes) -> Properties:
    """Every property of a content header payload."""
    flags = property_flags(header)
    properties = Properties()
    try:
        _fill(properties, header, flags)
    except Malformed:
        raise refused() from None
    return properties


def _fill(properties: Properties, header: bytes, flags: i64) -> None:
    end: i64 = len(header)
    at: i64 = HEADER_FIXED
    stop: i64 = 0
    if flags & FLAG_CONTENT_TYPE:
        stop = shortstr_end(header, at, end)
        properties.content_type = text(header, at, stop)
        at = stop
    if flags & FLAG_CONTENT_ENCODING:
        stop = shortstr_end(header, at, end)
        properties.content_encoding = text(header, at, stop)
        at = stop
    if flags & FLAG_HEADERS:
        stop = longstr_end(header, at, end)
        properties.headers = decode_entries(header, at + 4, stop, 0)
        at = stop
    if flags & FLAG_DELIVERY_MODE:
        need(at, 1, end)
        properties.delivery_mode = int(header[at])
        at += 1
    if flags & FLAG_PRIORITY:
        need(at, 1, end)
        properties.priority = int(header[at])
        at += 1
    if flags & FLAG_CORRELATION_ID:
        stop = shortstr_end(header, at, end)
        properties.correlation_id = text(header, at, stop)
        at = stop
    if flags & FLAG_REPLY_TO:
        stop = shortstr_end(header, at, end)
        properties.reply_to = text(header, at, stop)
        at = stop
    if flags & FLAG_EXPIRATION:
        stop = shortstr_end(header, at, end)
        properties.expiration = text(header, at, stop)
        at = stop
    if flags & FLAG_MESSAGE_ID:
        stop = shortstr_end(header, at, end)
        properties.message_id = text(header, at, stop)
        at = stop
    if flags & FLAG_TIMESTAMP:
        properties.timestamp = read_longlong(header, at, end)
        at += 8
    if flags & FLAG_TYPE:
        stop = shortstr_end(header, at, end)
        properties.type = text(header, at, stop)
        at = stop
    if flags & FLAG_USER_ID:
        stop = shortstr_end(header, at, end)
        properties.user_id = text(header, at, stop)
        at = stop
    if flags & FLAG_APP_ID:
        stop = shortstr_end(header, at, end)
        properties.app_id = text(header, at, stop)
        at = stop
    if flags & FLAG_CLUSTER_ID:
        stop = shortstr_end(header, at, end)
        properties.cluster_id = text(header, at, stop)
        at = stop
    if at != end:
        raise Malformed("content header longer than its flags say")


# --- writing


def encode_header(properties: Properties, body_size: int) -> bytes:
    """The payload of a content header frame."""
    values = BytesWriter()
    flags: i64 = 0
    content_type = properties.content_type
    if content_type is not None:
        flags |= FLAG_CONTENT_TYPE
        write_shortstr(values, content_type)
    content_encoding = properties.content_encoding
    if content_encoding is not None:
        flags |= FLAG_CONTENT_ENCODING
        write_shortstr(values, content_encoding)
    headers = properties.headers
    if headers is not None:
        flags |= FLAG_HEADERS
        write_table(values, headers)
    delivery_mode = properties.delivery_mode
    if delivery_mode is not None:
        flags |= FLAG_DELIVERY_MODE
        write_octet(values, delivery_mode)
    priority = properties.priority
    if priority is not None:
        flags |= FLAG_PRIORITY
        write_octet(values, priority)
    correlation_id = properties.correlation_id
    if correlation_id is not None:
        flags |= FLAG_CORRELATION_ID
        write_shortstr(values, correlation_id)
    reply_to = properties.reply_to
    if reply_to is not None:
        flags |= FLAG_REPLY_TO
        write_shortstr(values, reply_to)
    expiration = properties.expiration
    if expiration is not None:
        flags |= FLAG_EXPIRATION
        write_shortstr(values, expiration)
    message_id = properties.message_id
    if message_id is not None:
        flags |= FLAG_MESSAGE_ID
        write_shortstr(values, message_id)
    timestamp = properties.timestamp
    if timestamp is not None:
        flags |= FLAG_TIMESTAMP
        write_longlong(values, timestamp)
    type = properties.type
    if type is not None:
        flags |= FLAG_TYPE
        write_shortstr(values, type)
    user_id = properties.user_id
    if user_id is not None:
        flags |= FLAG_USER_ID
        write_shortstr(values, user_id)
    app_id = properties.app_id
    if app_id is not None:
        flags |= FLAG_APP_ID
        write_shortstr(values, app_id)
    cluster_id = properties.cluster_id
    if cluster_id is not None:
        flags |= FLAG_CLUSTER_ID
        write_shortstr(values, cluster_id)
    out = BytesWriter()
    write_i32_be(out, CLASS_BASIC << 16)  # class and weight
    write_longlong(out, body_size)
    out.append(int(flags >> 8))
    out.append(int(flags & 0xFF))
    out.write(values.getvalue())
    return out.getvalue()


def write_frame(out: BytesWriter, type: i64, channel: i64, payload: bytes) -> None:
    out.append(int(type))
    write_i16_be(out, i16(channel if channel < 0x8000 else channel - 0x10000))
    write_i32_be(out, i32(len(payload)))
    out.write(payload)
    out.append(FRAME_END)


def write_content(out: BytesWriter, channel: i64, header: bytes, body: bytes, frame_max: i64) -> None:
    """Header frame and body frames; no body frame for an empty body, one frame when ``frame_max`` is 0."""
    write_frame(out, FRAME_HEADER, channel, header)
    size: i64 = len(body)
    most: i64 = frame_max - FRAME_OVERHEAD
    if frame_max == 0 or size <= most:
        if size > 0:
            write_frame(out, FRAME_BODY, channel, body)
        return
    at: i64 = 0
    while at < size:
        write_frame(out, FRAME_BODY, channel, body[at : at + most])
        at += most


def content_frames(channel: int, header: bytes, body: bytes, frame_max: int) -> bytes:
    """Header frame and body frames as one piece."""
    out = BytesWriter()
    write_content(out, i64(channel), header, body, i64(frame_max))
    return out.getvalue()


def frame(type: int, channel: int, payload: bytes) -> bytes:
    """Any one frame."""
    out = BytesWriter()
    write_frame(out, i64(type), i64(channel), payload)
    return out.getvalue()
