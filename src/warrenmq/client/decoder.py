"""What came over the socket -> messages, events and replies, in batches.

Duty: one pass over each received block; deliveries and confirms are read in place, without a Frame or Method object.
Everything it makes lands in the Inbox of its channel, in the order it came. Grammar: ``wire/frames.py``,
``wire/methods.py`` (basic.deliver, basic.ack), ``wire/content.py``.
Not here: sockets, answering anything, or closing channels.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import read_i16_be, read_i32_be, read_i64_be
from mypy_extensions import i64

from warrenmq.client.confirms import Unconfirmed
from warrenmq.client.deliveries import StreamRange
from warrenmq.client.messages import Acked, Cancelled, Event, Message, Nacked, Returned
from warrenmq.wire.constants import (
    FRAME_BODY,
    FRAME_END,
    FRAME_HEADER,
    FRAME_METHOD,
    FRAME_OVERHEAD,
    FRAME_SIZE_FUDGE,
    ID_BASIC_ACK,
    ID_BASIC_DELIVER,
    ID_BASIC_NACK,
    SIZE_BASIC_ACK,
)
from warrenmq.wire.frames import check_frame, frame_too_large, invalid_frame_end
from warrenmq.wire.methods import Method, decode_method
from warrenmq.wire.octets import Malformed, need, shortstr_end
from warrenmq.wire.replies import COMMAND_INVALID, FRAME_ERROR, INTERNAL_ERROR, UNEXPECTED_FRAME, AmqpError

# the first four octets of a method payload: class and method id


@final
class Inbox:
    """The methods that the broker sent on one channel and nobody has read yet."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.events: list[Event] = []
        self.replies: list[Method | Message] = []  # answers to calls; a Message is basic.get-ok
        self.notices: list[Method] = []  # channel.close, channel.flow: to be dealt with by the channel
        self.cancelled: list[str] = []  # consumer tags the broker cancelled
        self.unconfirmed: Final = Unconfirmed()
        self.reading: StreamRange | None = None  # takes the deliveries instead of ``messages``
        # The content being assembled: its method, or the fields of a delivery, then header and body.
        self.method: Method | None = None
        self.delivery_tag: i64 = 0
        self.redelivered = False
        self.consumer_tag = ""
        self.exchange = ""
        self.routing_key = ""
        self.header: bytes | None = None
        self.parts: list[bytes] = []
        self.remaining: i64 = 0
        self.expecting: i64 = FRAME_METHOD
        # The last delivery's names as they stood on the wire: mostly the next one's are the same.
        self.names_before = b""
        self.names_behind = b""


@final
class Decoder:
    """The decoder of one connection. ``feed`` it the octets that the socket gave."""

    def __init__(self) -> None:
        self.frame_max: i64 = 0
        self.inboxes: dict[int, Inbox] = {}
        self.control: list[Method] = []  # methods of channel 0
        self.noticed = False  # some inbox has notices
        self.frames: i64 = 0  # frames seen, heartbeats too
        self._later: list[bytes] = []
        self._held: i64 = 0
        self._wanted: i64 = 7
        self._channel: i64 = -1
        self._inbox: Inbox | None = None

    def open(self, channel: int) -> Inbox:
        """Begin to listen on a channel. Frames of channels nobody listens on are dropped."""
        inbox = Inbox()
        self.inboxes[channel] = inbox
        self._channel = -1
        return inbox

    def close(self, channel: int) -> None:
        self.inboxes.pop(channel, None)
        self._channel = -1

    def feed(self, data: bytes) -> None:
        """Read every whole frame; keep the rest for the next call."""
        if self._held > 0:
            self._later.append(data)
            self._held += len(data)
            if self._held < self._wanted:
                return
            data = b"".join(self._later)
        end: i64 = len(data)
        at: i64 = 0
        self._wanted = 7
        while end - at >= 7:
            type: i64 = data[at]
            channel = i64(read_i16_be(data, at + 1)) & 0xFFFF
            size = i64(read_i32_be(data, at + 3)) & 0xFFFFFFFF
            if self.frame_max != 0 and size > self.frame_max - FRAME_OVERHEAD + FRAME_SIZE_FUDGE:
                raise frame_too_large(type, size, self.frame_max)
            stop = at + 7 + size
            if stop >= end:
                self._wanted = size + FRAME_OVERHEAD
                break
            last: i64 = data[stop]
            if last != FRAME_END:
                raise invalid_frame_end(type, data[at + 7 : stop], last)
            if type == FRAME_METHOD:
                inbox = self._inbox_of(channel)
                if inbox is not None and inbox.reading is not None:
                    behind = self._read(inbox, inbox.reading, data, at, stop, end)
                    if behind > at:
                        at = behind
                        continue
            self._frame(type, channel, data, at + 7, stop)
            at = stop + 1
        self._held = end - at
        if self._held == 0:
            self._later = []
        elif at == 0:
            self._later = [data]
        else:
            self._later = [data[at:]]

    def _read(self, inbox: Inbox, reading: StreamRange, data: bytes, at: i64, stop: i64, end: i64) -> i64:
        """A delivery of which nothing but the body is wanted, if it lies here whole and in three frames.

        ``at`` is where its method frame begins, ``stop`` that frame's last octet. Gives where the delivery ends, or
        ``at`` when it is anything else, which goes frame by frame and is refused there if it makes no sense.
        """
        if not reading.into.bare or inbox.expecting != FRAME_METHOD:
            return at
        # basic.deliver: consumer_tag:shortstr delivery_tag:longlong redelivered:bit exchange:shortstr ...
        if stop - at < 24 or i64(read_i32_be(data, at + 7)) != ID_BASIC_DELIVER:
            return at
        tag = at + 12 + i64(data[at + 11])
        if tag + 11 > stop:
            return at
        names = tag + 10 + i64(data[tag + 9])
        if names >= stop or names + 1 + i64(data[names]) != stop:
            return at
        header = stop + 8
        if header + 14 > end or data[stop + 1] != FRAME_HEADER:
            return at
        channel = read_i16_be(data, at + 1)
        size = i64(read_i32_be(data, stop + 4)) & 0xFFFFFFFF
        header_end = header + size
        body = header_end + 8
        if size < 14 or body > end or read_i16_be(data, stop + 2) != channel or data[header_end] != FRAME_END:
            return at
        body_size = read_i64_be(data, header + 4)
        if (
            data[header_end + 1] != FRAME_BODY
            or read_i16_be(data, header_end + 2) != channel
            or i64(read_i32_be(data, header_end + 4)) & 0xFFFFFFFF != body_size
        ):
            return at
        body_end = body + body_size
        if body_end >= end or data[body_end] != FRAME_END:
            return at
        most = self.frame_max - FRAME_OVERHEAD + FRAME_SIZE_FUDGE
        if self.frame_max != 0 and (size > most or body_size > most):
            return at
        self.frames += 3
        reading.put_bare(read_i64_be(data, tag), data, header, header_end, body, body_end)
        return body_end + 1

    def _frame(self, type: i64, channel: i64, data: bytes, at: i64, stop: i64) -> None:
        self.frames += 1
        if channel == 0:
            payload = data[at:stop]
            check_frame(type, channel, payload)
            if type == FRAME_METHOD:
                self.control.append(decode_method(payload))
            return
        inbox = self._inbox_of(channel)
        if inbox is None:
            return
        if type != inbox.expecting:
            check_frame(type, channel, data[at:stop])
            raise AmqpError(UNEXPECTED_FRAME, f"expected a frame of type {inbox.expecting}, got one of type {type}")
        if type == FRAME_BODY:
            self._body(inbox, data[at:stop])
        elif type == FRAME_HEADER:
            self._header(inbox, data[at:stop])
        else:
            self._method(inbox, data, at, stop)

    def _inbox_of(self, channel: i64) -> Inbox | None:
        if channel == self._channel:
            return self._inbox
        inbox = self.inboxes.get(int(channel))
        self._channel = channel
        self._inbox = inbox
        return inbox

    def _method(self, inbox: Inbox, data: bytes, at: i64, stop: i64) -> None:
        if stop - at < 4:
            check_frame(FRAME_METHOD, 1, data[at:stop])
        ids = i64(read_i32_be(data, at))
        if ids == ID_BASIC_DELIVER:
            self._deliver(inbox, data, at + 4, stop)
            return
        if (ids == ID_BASIC_ACK or ids == ID_BASIC_NACK) and stop - at == SIZE_BASIC_ACK:
            tag = read_i64_be(data, at + 4)
            multiple = data[at + 12] & 1 == 1
            inbox.unconfirmed.settle(tag, multiple, ids == ID_BASIC_ACK)
            if ids == ID_BASIC_ACK:
                inbox.events.append(Acked(tag, multiple))
            else:
                inbox.events.append(Nacked(tag, multiple))
            return
        method = decode_method(data[at:stop])
        name = method.spec.name
        if method.spec.content:
            inbox.method = method
            inbox.expecting = FRAME_HEADER
        elif name == "basic.cancel":
            inbox.cancelled.append(method.str("consumer_tag"))
            inbox.events.append(Cancelled(method.str("consumer_tag")))
        elif name == "channel.close" or name == "channel.flow":
            inbox.notices.append(method)
            self.noticed = True
        else:
            inbox.replies.append(method)

    def _deliver(self, inbox: Inbox, data: bytes, at: i64, stop: i64) -> None:
        """consumer_tag:shortstr delivery_tag:longlong redelivered:bit exchange:shortstr routing_key:shortstr"""
        try:
            middle = shortstr_end(data, at, stop)
            need(middle, 9, stop)
            before = data[at:middle]
            if before != inbox.names_before:
                inbox.consumer_tag = before[1:].decode("utf-8", "surrogateescape")
                inbox.names_before = before
            behind = data[middle + 9 : stop]
            if behind != inbox.names_behind:
                size: i64 = len(behind)
                cut = shortstr_end(behind, 0, size)
                if shortstr_end(behind, cut, size) != size:
                    raise Malformed("arguments longer than the method")
                inbox.exchange = behind[1:cut].decode("utf-8", "surrogateescape")
                inbox.routing_key = behind[cut + 1 :].decode("utf-8", "surrogateescape")
                inbox.names_behind = behind
        except Malformed:
            decode_method(data[at - 4 : stop])  # says it in RabbitMQ's words
            raise
        inbox.delivery_tag = read_i64_be(data, middle)
        inbox.redelivered = data[middle + 8] & 1 == 1
        inbox.method = None
        inbox.expecting = FRAME_HEADER

    def _header(self, inbox: Inbox, header: bytes) -> None:
        if len(header) < 14:
            check_frame(FRAME_HEADER, 1, header)
            raise AmqpError(INTERNAL_ERROR, "")
        inbox.header = header
        inbox.remaining = read_i64_be(header, 4)
        if inbox.remaining == 0:
            self._complete(inbox, header, b"")
        else:
            inbox.expecting = FRAME_BODY

    def _body(self, inbox: Inbox, body: bytes) -> None:
        header = inbox.header
        assert header is not None
        inbox.remaining -= len(body)
        if inbox.remaining < 0:
            raise AmqpError(FRAME_ERROR, "content body frame exceeds remaining content size")
        if inbox.remaining > 0:
            inbox.parts.append(body)
            return
        parts = inbox.parts
        if len(parts) > 0:
            parts.append(body)
            body = b"".join(parts)
            inbox.parts = []
        self._complete(inbox, header, body)

    def _complete(self, inbox: Inbox, header: bytes, body: bytes) -> None:
        inbox.expecting = FRAME_METHOD
        inbox.header = None
        method = inbox.method
        if method is None:
            reading = inbox.reading
            if reading is not None:
                reading.put(inbox.delivery_tag, inbox.redelivered, inbox.exchange, inbox.routing_key, header, body)
                return
            inbox.messages.append(
                Message(
                    inbox.delivery_tag,
                    inbox.redelivered,
                    inbox.exchange,
                    inbox.routing_key,
                    header,
                    body,
                    inbox.consumer_tag,
                )
            )
            return
        inbox.method = None
        exchange = method.str("exchange")
        routing_key = method.str("routing_key")
        if method.spec.name == "basic.return":
            code = method.int("reply_code")
            inbox.events.append(Returned(code, method.str("reply_text"), exchange, routing_key, header, body))
        elif method.spec.name == "basic.get-ok":
            tag = method.int("delivery_tag")
            left = method.int("message_count")
            inbox.replies.append(
                Message(i64(tag), method.bit("redelivered"), exchange, routing_key, header, body, "", i64(left))
            )
        else:
            raise AmqpError(COMMAND_INVALID, "unimplemented method", method.spec.class_id, method.spec.method_id)
