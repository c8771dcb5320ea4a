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
