"""The frame loop: bytes in, frames apart, each to the channel it belongs to.

Duty: frames and which method they carry. What a method does is in ``channel/methods/``; content in several frames is
put together in ``channel/assembly.py``.

The loop inlines the common cases, basic.publish with one header and at most one body frame and basic.ack, because they
come once per message. Everything else takes the general way through ``decode_method``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import read_i16_be, read_i32_be, read_i64_be
from mypy_extensions import i64

from warrenmq.broker.channel.channel import Channel
from warrenmq.broker.channel.methods.table import handler
from warrenmq.broker.channel.states import (
    CHANNEL_CLOSED,
    CHANNEL_CROSSED,
    CHANNEL_OPEN,
    CLOSING,
    GONE,
    HEADER,
    RUNNING,
    STARTING,
)
from warrenmq.broker.channel.transaction import command_while_committing
from warrenmq.broker.connection import handshake
from warrenmq.broker.connection.input import Input
from warrenmq.broker.extensions.interceptor import ChannelView
from warrenmq.broker.message import Message
from warrenmq.broker.publish.arrival import NOWHERE
from warrenmq.broker.publish.path import publish
from warrenmq.broker.services.pacing import LITTLE, METHOD
from warrenmq.broker.services.postponed import Postponed
from warrenmq.wire import frames
from warrenmq.wire.constants import (
    CLASS_BASIC,
    FRAME_BODY,
    FRAME_END,
    FRAME_HEADER,
    FRAME_HEARTBEAT,
    FRAME_METHOD,
    ID_BASIC_ACK,
    ID_BASIC_PUBLISH,
    ID_CHANNEL_CLOSE,
    ID_CHANNEL_CLOSE_OK,
    ID_CHANNEL_OPEN,
    SIZE_BASIC_ACK,
)
from warrenmq.wire.methods import PUBLISH, decode_method, method_frame
from warrenmq.wire.replies import CHANNEL_ERROR, INTERNAL_ERROR, NOT_ALLOWED, UNEXPECTED_FRAME, AmqpError

if TYPE_CHECKING:
    from warrenmq.broker.connection.dialogue import Dialogue

WAIT_BODY: Final = 65536  # bodies up to here are waited for whole before the publish is looked at


def consume(connection: Dialogue, data: bytes) -> None:
    """Take complete frames from ``data`` from ``input.at`` on; the frame of a handler that raises is taken already."""
    input = connection.input
    reading = connection.reading
    n: i64 = len(data)
    pos: i64 = input.at
    input.need = 8
    if connection.state == HEADER:
        if n < 8:
            return
        input.at = 8
        pos = 8
        if not handshake.protocol_header(connection, data[:8]):
            input.at = n
            return
    alarm = len(connection.services.pressure.reason) > 0
    while n - pos >= 8:
        if reading.stopped:
            input.need = 0
            break
        head: i64 = i64(read_i32_be(data, pos))
        size: i64 = i64(read_i32_be(data, pos + 3))
        kind: i64 = (head >> 24) & 255
        number: i64 = (head >> 8) & 0xFFFF
        if size < 0 or size > input.frame_limit:
            input.over = True
            raise frames.frame_too_large(kind, size & 0xFFFFFFFF, input.frame_limit)
        end: i64 = pos + 7 + size
        if end >= n:
            input.need = end + 1 - pos
            break
        if data[end] != FRAME_END:
            input.over = True
            raise frames.invalid_frame_end(kind, data[pos + 7 : end], data[end])
        input.number = number
        if kind == FRAME_METHOD and number != 0 and size >= 4 and connection.state == RUNNING:
            channel = input.last_channel
            if channel is None or input.last_number != number:
                channel = connection.channels.get(number)
                input.last_channel = channel
                input.last_number = number
            if channel is not None and channel.standing.state == CHANNEL_OPEN and channel.assembly.method is None:
                method: i64 = i64(read_i32_be(data, pos + 7))
                if method == ID_BASIC_PUBLISH and not alarm and not connection.broker.interceptors.of_methods:
                    taken = _publish(connection, input, data, pos, end, n, channel)
                    if taken == 0:
                        break  # the rest of the message has not come yet
                    if taken > 0:
                        pos = taken
                        continue
                elif (
                    method == ID_BASIC_ACK
                    and size == SIZE_BASIC_ACK
                    and (channel.tx is None or channel.answers.committing is None)
                    and not connection.broker.interceptors.of_methods
                ):
                    input.at = end + 1
                    pos = end + 1
                    if channel.tx is None:
                        channel.outstanding.ack(read_i64_be(data, end - 9), (data[end - 1] & 1) != 0)
                    else:
                        channel.tx.ack(read_i64_be(data, end - 9), (data[end - 1] & 1) != 0)
                    continue
        input.at = end + 1
        if alarm and (kind == FRAME_HEADER or kind == FRAME_BODY) and connection.services.pressure.short:
            connection.block()  # this frame is the last: only a message without a body gets through
        try:
            _frame(connection, kind, number, data[pos + 7 : end])
        except Postponed:
            input.at = pos
            input.need = 0
            connection.connections.again.add(connection)
            return
        pos = input.at
        if connection.state >= GONE or input.over:
            return
        if kind == FRAME_METHOD:
            turn = connection.services.turn
            turn.work_left -= METHOD
            if turn.work_left <= 0 and n - pos > LITTLE:
                connection.services.pacing.hold(connection)
    input.at = pos


def _wait(input: Input, size: i64) -> i64:
    """The message is not all here: wait until ``size`` bytes are."""
    input.need = size
    return 0


def _publish(connection: Dialogue, input: Input, data: bytes, pos: i64, end: i64, n: i64, channel: Channel) -> i64:
    """A publish in three frames, all here: take it and return the position behind it.

    0: wait for more. -1: not that simple, take the general way.
    """
    h: i64 = end + 1
    if h >= n:
        if not connection.memo.knows(data[pos + 11 : end]):
            return -1  # a malformed method is refused before its content comes
        return _wait(input, h + 1 - pos)
    if data[h] != FRAME_HEADER:
        return -1
    if n - h < 8:
        return _wait(input, h + 8 - pos)
    number = channel.number
    if (i64(read_i16_be(data, h + 1)) & 0xFFFF) != number:
        return -1
    header_size: i64 = i64(read_i32_be(data, h + 3))
    if header_size < 14 or header_size > input.frame_limit:
        return -1
    if n - h < 22:
        return _wait(input, h + 22 - pos)
    if i64(read_i32_be(data, h + 7)) != CLASS_BASIC << 16:  # class and weight
        return -1
    size: i64 = read_i64_be(data, h + 11)
    if size < 0 or size > WAIT_BODY or size > input.frame_limit or size > connection.limits.max_message_size:
        return -1
    header_end: i64 = h + 7 + header_size
    if header_end >= n:
        return _wait(input, header_end + 1 - pos)
    if data[header_end] != FRAME_END:
        return -1
    last: i64 = header_end
    if size > 0:
        b: i64 = header_end + 1
        if b >= n:
            return _wait(input, b + 1 - pos)
        if data[b] != FRAME_BODY:
            return -1
        if n - b < 8:
            return _wait(input, b + 8 - pos)
        if (i64(read_i16_be(data, b + 1)) & 0xFFFF) != number or i64(read_i32_be(data, b + 3)) != size:
            return -1
        last = b + 7 + size
        if last >= n:
            return _wait(input, last + 1 - pos)
        if data[last] != FRAME_END:
            return -1
    input.at = last + 1
    publishing = channel.publishing
    if publishing.uncommitted is not None and channel.answers.committing is not None:
        publishing.tally.turned_away()
        raise command_while_committing(PUBLISH)
    message = Message(NOWHERE, 0, data[h : last + 1], number, header_size, size, False)
    before = publishing.last_number
    try:
        publish(publishing, data[pos + 11 : end], message)
    except AmqpError as error:
        publishing.refused(before, data[pos + 11 : end], message, error)
        raise
    return last + 1


def _frame(connection: Dialogue, kind: i64, number: i64, payload: bytes) -> None:
    """One frame the general way."""
    frames.check_frame(kind, number, payload)
    if kind == FRAME_HEARTBEAT:
        return
    if number == 0:
        if connection.state == STARTING and kind == FRAME_METHOD:
            method = connection.connections.introductions.decoded(payload)
        else:
            method = decode_method(payload)
        handshake.handle(connection, method)
        return
    if connection.state == CLOSING:
        return
    if connection.state != RUNNING:
        raise frames.unexpected_frame(kind, payload)  # channels come after connection.open
    channel = connection.channels.get(number)
    if channel is None:
        _open_channel(connection, number, kind, payload)
        return
    if channel.standing.state != CHANNEL_OPEN:
        _while_closing(connection, channel, kind, payload)
    elif kind == FRAME_METHOD:
        if channel.assembly.method is not None:
            raise channel.assembly.unexpected_frame()
        _method(connection, channel, payload)
    elif kind == FRAME_HEADER:
        channel.assembly.header(channel, payload)
    else:
        channel.assembly.body(channel, payload)


def _open_channel(connection: Dialogue, number: i64, kind: i64, payload: bytes) -> None:
    if kind != FRAME_METHOD:
        raise AmqpError(UNEXPECTED_FRAME, "expected method frame, got non method frame instead")
    method = decode_method(payload)
    if method.name != "channel.open":
        raise AmqpError(CHANNEL_ERROR, "expected 'channel.open'", method.spec.class_id, method.spec.method_id)
    if connection.channel_max and len(connection.channels) >= connection.channel_max:
        raise AmqpError(
            NOT_ALLOWED,
            f"number of channels opened ({len(connection.channels)}) has reached the negotiated "
            f"channel_max ({connection.channel_max})",
        )
    connection.connections.check_channel_limit(connection.username)
    connection.channels[number] = Channel(number, connection)
    connection.input.last_channel = None
    connection.connections.channel_opened(connection.username)
    connection.write(method_frame(number, "channel.open-ok"))


def _while_closing(connection: Dialogue, channel: Channel, kind: i64, payload: bytes) -> None:
    """After our channel.close everything is ignored but its answer, or a close that crossed it."""
    if kind != FRAME_METHOD or len(payload) < 4:
        return
    method: i64 = i64(read_i32_be(payload, 0))
    if method == ID_CHANNEL_CLOSE:
        connection.write(method_frame(channel.number, "channel.close-ok"))
        channel.standing.enter(CHANNEL_CROSSED)
    elif method == ID_CHANNEL_CLOSE_OK:
        channel.standing.enter(CHANNEL_CLOSED)
        connection.drop_channel(channel)
    elif method == ID_CHANNEL_OPEN and channel.standing.state == CHANNEL_CROSSED:
        channel.standing.enter(CHANNEL_CLOSED)
        connection.drop_channel(channel)
        _open_channel(connection, channel.number, kind, payload)


def _method(connection: Dialogue, channel: Channel, payload: bytes) -> None:
    method = decode_method(payload)
    if connection.broker.interceptors.of_methods:
        sender = channel.publishing.sender
        view = ChannelView(
            channel.publishing.vhost.name, sender.username, sender.connection_name, int(sender.channel_number)
        )
        method = connection.broker.interceptors.intercept(method, view)
    spec = method.spec
    try:
        if channel.answers.committing is not None and not taken_while_committing(method.name):
            raise command_while_committing(spec)
        if spec.content:
            if method.name != "basic.publish":
                handler(method.name)  # content that only a broker sends
            rewritten = len(connection.broker.interceptors.of_methods) > 0
            channel.assembly.begin(method, method.payload()[4:] if rewritten else payload[4:])
            return
        connection.services.settle_down()  # what came before must show in the answer
        channel.answers.method_begins()
        handler(method.name)(channel, method)
    except AmqpError as error:
        if error.class_id == 0 and error.code != INTERNAL_ERROR:
            raise AmqpError(error.code, error.explanation, spec.class_id, spec.method_id) from None
        raise


def taken_while_committing(name: str) -> bool:
    """A channel may be closed meanwhile; a second open is refused for itself; a publish once its content is here."""
    return name == "channel.close" or name == "channel.open" or name == "basic.publish"
