"""The numbers of AMQP 0-9-1 framing. Nothing but names for them."""

from __future__ import annotations

from typing import Final

PROTOCOL_HEADER: Final = b"AMQP\x00\x00\x09\x01"

FRAME_METHOD: Final = 1
FRAME_HEADER: Final = 2
FRAME_BODY: Final = 3
FRAME_HEARTBEAT: Final = 8
FRAME_END: Final = 0xCE

FRAME_MIN_SIZE: Final = 4096  # lowest frame_max that may be negotiated (RabbitMQ up to 4.0)
FRAME_OVERHEAD: Final = 8  # type 1, channel 2, size 4, end octet 1
FRAME_SIZE_FUDGE: Final = 8  # RabbitMQ forgives payloads up to this much above frame_max - 8

CLASS_CONNECTION: Final = 10
CLASS_CHANNEL: Final = 20
CLASS_ACCESS: Final = 30
CLASS_EXCHANGE: Final = 40
CLASS_QUEUE: Final = 50
CLASS_BASIC: Final = 60
CLASS_CONFIRM: Final = 85
CLASS_TX: Final = 90

# class-id << 16 | method-id, of the methods that are recognized or written without going through the table of methods,
# because there are very many of them, or before anything is decoded; a test holds them to the table
ID_CHANNEL_OPEN: Final = 20 << 16 | 10
ID_CHANNEL_CLOSE: Final = 20 << 16 | 40
ID_CHANNEL_CLOSE_OK: Final = 20 << 16 | 41
ID_BASIC_PUBLISH: Final = 60 << 16 | 40
ID_BASIC_DELIVER: Final = 60 << 16 | 60
ID_BASIC_ACK: Final = 60 << 16 | 80
ID_BASIC_REJECT: Final = 60 << 16 | 90
ID_BASIC_NACK: Final = 60 << 16 | 120
SIZE_BASIC_ACK: Final = 13  # of the payload of a basic.ack, and of a basic.nack

# How the offset of a stream's message begins in its table of headers: the name as a short string, the letter of a
# signed 64 bit number, which follows.
STREAM_OFFSET_ENTRY: Final = b"\x0fx-stream-offsetl"
