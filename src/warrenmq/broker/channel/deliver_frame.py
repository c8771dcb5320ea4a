"""basic.deliver on the wire: for consumers, and for the replies that come without a queue."""

from __future__ import annotations

from typing import Final, final

from librt.strings import write_i32_be, write_i64_be
from mypy_extensions import i32, i64

from warrenmq.broker.channel.output import Output
from warrenmq.broker.message import Message, shortstr
from warrenmq.wire.constants import FRAME_METHOD, ID_BASIC_DELIVER

BASIC_DELIVER: Final = ID_BASIC_DELIVER.to_bytes(4, "big")


@final
class DeliverFrame:
    """basic.deliver for one consumer tag: everything that does not change is encoded once."""

    def __init__(self, number: i64, tag: str) -> None:
        self._number: Final = number
        self._head: Final = bytes((FRAME_METHOD, (number >> 8) & 255, number & 255))
        consumer_tag = shortstr(tag)
        self._deliver: Final = BASIC_DELIVER + consumer_tag
        self._size: Final[i64] = len(BASIC_DELIVER) + len(consumer_tag) + 9  # delivery tag and redelivered

    def write(self, output: Output, tag: i64, redelivered: bool, message: Message) -> None:
        """The method and its content, into what goes out."""
        w = output.buffer
        suffix = message.origin.suffix  # exchange, routing key and the frame's end
        w.write(self._head)
        write_i32_be(w, i32(self._size + len(suffix) - 1))
        w.write(self._deliver)
        write_i64_be(w, tag)
        w.append(1 if redelivered else 0)
        w.write(suffix)
        output.write_content(self._number, message)
