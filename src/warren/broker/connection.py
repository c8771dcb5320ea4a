"""A client connection: bytes in, frames apart, to the channel they belong to; bytes out, once a turn.

Duty: the frame loop, content assembly, channels, output. The handshake and all channel-0 methods are in
``methods/handshake.py``; what a channel method does is in ``methods/``.

The loop inlines the common case, basic.publish with one header and at most one body frame, because it runs once per
message. Everything else takes the general way through ``decode_method``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from librt.strings import BytesWriter, read_i16_be, read_i32_be, read_i64_be
from mypy_extensions import i64

from warren.broker import publish
from warren.broker.channel import CLOSED, CLOSING, CROSSED, OPEN, Channel
from warren.broker.flow import SHOWN_FOR, Credit
from warren.broker.message import Message
from warren.broker.methods import handshake
from warren.broker.methods.table import handler
from warren.broker.publish import LOOKED_AT, Arrived
from warren.broker.records import Resource
from warren.broker.route import Route
from warren.broker.sink import Sink
from warren.broker.timers import Timer
from warren.wire import frames
from warren.wire.constants import FRAME_BODY, FRAME_END, FRAME_HEADER, FRAME_HEARTBEAT, FRAME_METHOD
from warren.wire.content import Quick, quick_properties
from warren.wire.fields import Table
from warren.wire.methods import decode_method, method_frame
from warren.wire.replies import AmqpError

if TYPE_CHECKING:
    from warren.broker.broker import Broker
    from warren.broker.queue.queue import Queue
    from warren.broker.vhost import VHost

# states, in order
HEADER: Final = 0  # waiting for the protocol header
STARTING: Final = 1  # sent connection.start
SECURING: Final = 2
TUNING: Final = 3  # sent connection.tune
OPENING: Final = 4  # got tune-ok
RUNNING: Final = 5
CLOSING_CONNECTION: Final = 6  # we sent connection.close
GONE: Final = 7

PUBLISH: Final = (60 << 16) | 40
ACK: Final = (60 << 16) | 80
WAIT_BODY: Final = 65536  # bodies up to here are waited for whole before the publish is looked at
FLUSH_AT: Final = 262144
INITIAL_FRAME_MAX: Final = 8192
NO_PROPERTIES: Final = Quick()
HEARTBEAT_FRAME: Final = b"\x08\x00\x00\x00\x00\x00\x00\xce"


@final
class Heartbeat(Timer):
    """Sends when nothing was sent for half the interval; gives up after two idle checks of a whole one."""

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self._connection: Final = connection
        self._sent: i64 = -1
        self._received: i64 = -1
        self._idle: i64 = 0
        self._half: bool = False

    def fire(self) -> None:
        connection = self._connection
        if connection.state >= GONE:
            return
        if connection.sent == self._sent:
            connection.write(HEARTBEAT_FRAME)
            connection.flush()
        self._sent = connection.sent
        self._half = not self._half
        if not self._half:
            if connection.received == self._received and not connection.reading_paused:
                self._idle += 1
                if self._idle >= 2:
                    connection.broker.note("warning", "missed_heartbeats", connection)
                    connection.lost("missed heartbeats from client, timeout: " + str(connection.heartbeat) + "s")
                    return
            else:
                self._idle = 0
            self._received = connection.received
        connection.arm_heartbeat()


@final
class Deadline(Timer):
    """Drops the connection: handshake timeout, grace after a close, the wait after a failed login."""

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self._connection: Final = connection

    def fire(self) -> None:
        connection = self._connection
        if connection.state < RUNNING:
            connection.broker.note("warning", "handshake_timeout", connection)
        connection.lost("timeout")


@final
class Connection:
    def __init__(self, broker: Broker, sink: Sink, peer: str, peer_port: i64, host: str, port: i64) -> None:
        self.broker: Final = broker
        self.sink: Final = sink
        self.peer: Final = peer
        self.peer_port: Final = peer_port
        self.name: Final = f"{peer}:{peer_port} -> {host}:{port}"
        self.connected_at: Final[i64] = broker.now
        self.peer_is_loopback: bool = True
        self.tls: bool = False
        self.tls_name: str = ""  # user name from the client certificate, for EXTERNAL
        self.state: i64 = HEADER
        self.username: str = ""
        self.mechanism: str = ""
        self.client_properties: Table = {}
        self.vhost: VHost | None = None
        self.channels: dict[int, Channel] = {}
        self.channel_max: i64 = broker.channel_max
        self.frame_max: i64 = broker.frame_max
        self.frame_limit: i64 = INITIAL_FRAME_MAX
        self.heartbeat: i64 = 0
        # capabilities of the client
        self.consumer_cancel_notify: bool = False
        self.connection_blocked: bool = False
        self.authentication_failure_close: bool = False
        self.exclusive_queues: list[Queue] = []
        self.routes: dict[bytes, Route] = {}
        self._access_generation: i64 = -1
        self._last_arguments: bytes = b""
        self._last_route: Route | None = None
        self._last_given: bytes = b""
        self._last_properties: Quick = NO_PROPERTIES
        self._last_number: i64 = 0
        self._last_channel: Channel | None = None
        # input
        self._rest: bytes = b""
        self._at: i64 = 0
        self._number: i64 = 0
        self.received: i64 = 0
        self.reading_paused: bool = False
        self.published: bool = False  # did the last input bring a publish?
        # output
        self.out: BytesWriter = BytesWriter()
        self.writable: bool = True
        self._flushing: bool = False
        self.sent: i64 = 0
        # flow control and alarms
        self.blocked: bool = False  # an alarm holds it
        self.told_blocked: bool = False
        self.in_flow: bool = False  # the log is behind: credit is used up
        self.flow_until: i64 = 0
        self._credit: Final = Credit()
        self._charged: bool = False
        self.heartbeat_timer: Final = Heartbeat(self)
        self.deadline: Final = Deadline(self)

    # -- input -------------------------------------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        """Bytes from the client. Never raises: a malformed client hurts only itself."""
        self.received += len(data)
        if self.state >= GONE:
            return
        if self._rest:
            data = self._rest + data
            self._rest = b""
        if self._access_generation != self.broker.access.generation:
            self._forget_routes()
        self._at = 0
        self.published = False
        while True:
            try:
                self._consume(data)
                break
            except AmqpError as error:
                if not self._raised(error):
                    self._at = len(data)
                    break
            except Exception as error:
                self.broker.crashed(self, error)
                self.close_with(AmqpError(541, ""))
                self._at = len(data)
                break
        if self._at < len(data) and self.state < GONE:
            self._rest = data[self._at :] if self._at else data
        if self.broker.blocking and self.published:
            self.block()

    def _consume(self, data: bytes) -> None:
        """Take complete frames from ``data`` from ``_at`` on; the frame of a handler that raises is taken already."""
        n: i64 = len(data)
        pos: i64 = self._at
        if self.state == HEADER:
            if n < 8:
                return
            self._at = 8
            pos = 8
            if not handshake.protocol_header(self, data[:8]):
                self._at = n
                return
        while n - pos >= 8:
            head: i64 = i64(read_i32_be(data, pos))
            size: i64 = i64(read_i32_be(data, pos + 3))
            kind: i64 = (head >> 24) & 255
            number: i64 = (head >> 8) & 0xFFFF
            if size < 0 or size > self.frame_limit:
                raise frames.frame_too_large(kind, size & 0xFFFFFFFF, self.frame_limit)
            end: i64 = pos + 7 + size
            if end >= n:
                break
            if data[end] != FRAME_END:
                raise frames.invalid_frame_end(kind, data[pos + 7 : end], data[end])
            self._number = number
            if kind == FRAME_METHOD and number != 0 and size >= 4 and self.state == RUNNING:
                channel = self._last_channel
                if channel is None or self._last_number != number:
                    channel = self.channels.get(number)
                    self._last_channel = channel
                    self._last_number = number
                if channel is not None and channel.state == OPEN and channel.content_method is None:
                    method: i64 = i64(read_i32_be(data, pos + 7))
                    if method == PUBLISH and not self.broker.interceptors.of_methods:
                        taken = self._publish(data, pos, end, n, channel)
                        if taken == 0:
                            break  # the rest of the message has not come yet
                        if taken > 0:
                            pos = taken
                            continue
                    elif method == ACK and size == 13 and not self.broker.interceptors.of_methods:
                        self._at = end + 1
                        pos = end + 1
                        if channel.committing == 0:
                            channel.basic_ack(read_i64_be(data, end - 9), (data[end - 1] & 1) != 0)
                            continue
            self._at = end + 1
            self._frame(kind, number, data[pos + 7 : end])
            pos = self._at
            if self.state >= GONE:
                return
        self._at = pos

    def _publish(self, data: bytes, pos: i64, end: i64, n: i64, channel: Channel) -> i64:
        """A publish in three frames, all here: take it and return the position behind it.

        0: wait for more. -1: not that simple, take the general way.
        """
        h: i64 = end + 1
        if h >= n:
            return 0
        if data[h] != FRAME_HEADER:
            return -1
        if n - h < 22:
            return 0
        number = channel.number
        if (i64(read_i16_be(data, h + 1)) & 0xFFFF) != number:
            return -1
        header_size: i64 = i64(read_i32_be(data, h + 3))
        if header_size < 14 or header_size > self.frame_limit or i64(read_i16_be(data, h + 7)) != 60:
            return -1
        size: i64 = read_i64_be(data, h + 11)
        if size < 0 or size > WAIT_BODY or size > self.broker.max_message_size or size > self.frame_limit:
            return -1
        header_end: i64 = h + 7 + header_size
        if header_end >= n:
            return 0
        if data[header_end] != FRAME_END:
            return -1
        last: i64 = header_end
        if size > 0:
            b: i64 = header_end + 1
            if b >= n:
                return 0
            if data[b] != FRAME_BODY:
                return -1
            if n - b < 8:
                return 0
            if (i64(read_i16_be(data, b + 1)) & 0xFFFF) != number or i64(read_i32_be(data, b + 3)) != size:
                return -1
            last = b + 7 + size
            if last >= n:
                return 0
            if data[last] != FRAME_END:
                return -1
        arguments = data[pos + 11 : end]
        self._at = last + 1
        if channel.committing:
            handler_while_committing()
        if arguments == self._last_arguments:
            route = self._last_route
        else:
            route = self.routes.get(arguments)
            self._last_arguments = arguments
            self._last_route = route
        content = data[h : last + 1]
        self.published = True
        properties = NO_PROPERTIES
        if header_size > 14 or read_i16_be(data, h + 19) != 0:
            properties = self._properties(data, h + 19, header_end, content[7 : 7 + header_size])
        if (
            route is not None
            and route.valid
            and (properties.flags & LOOKED_AT) == 0
            and route.static
            and channel.is_plain()
        ):
            message = Message(route.origin, self.broker.next_id(), content, number, header_size, size, False)
            publish.publish_plain(channel, route, message)
        else:
            self._last_arguments = b""
            publish.publish(channel, arguments, properties, Arrived(content, number, header_size, b"", [], size))
        return last + 1

    def _properties(self, data: bytes, start: i64, end: i64, header: bytes) -> Quick:
        """What the publish path asks of the properties; publishers repeat themselves, so the last is remembered."""
        given = data[start:end]
        if given != self._last_given:
            self._last_properties = quick_properties(header)
            self._last_given = given
        return self._last_properties

    def _frame(self, kind: i64, number: i64, payload: bytes) -> None:
        """One frame the general way."""
        frames.check_frame(kind, number, payload)
        if kind == FRAME_HEARTBEAT:
            return
        if number == 0:
            method = decode_method(payload)
            handshake.handle(self, method)
            return
        if self.state == CLOSING_CONNECTION:
            return
        if self.state != RUNNING:
            raise frames.unexpected_frame(kind, payload)  # channels come after connection.open
        channel = self.channels.get(number)
        if channel is None:
            self._open_channel(number, kind, payload)
            return
        if channel.state != OPEN:
            self._while_closing(channel, kind, payload)
        elif kind == FRAME_METHOD:
            if channel.content_method is not None:
                raise unexpected_frame(channel, "method")
            self._method(channel, payload)
        elif kind == FRAME_HEADER:
            self._content_header(channel, payload)
        else:
            self._content_body(channel, payload)

    def _open_channel(self, number: i64, kind: i64, payload: bytes) -> None:
        if kind != FRAME_METHOD:
            raise AmqpError(505, "expected method frame, got non method frame instead")
        method = decode_method(payload)
        if method.name != "channel.open":
            raise AmqpError(504, "expected 'channel.open'", method.spec.class_id, method.spec.method_id)
        if self.channel_max and len(self.channels) >= self.channel_max:
            raise AmqpError(
                530,
                f"number of channels opened ({len(self.channels)}) has reached the negotiated "
                f"channel_max ({self.channel_max})",
            )
        self.broker.check_channel_limits(self)
        self.channels[number] = Channel(number, self)
        self._last_channel = None
        self.broker.channels_opened += 1
        self.write(method_frame(number, "channel.open-ok"))

    def _while_closing(self, channel: Channel, kind: i64, payload: bytes) -> None:
        """After our channel.close everything is ignored but its answer, or a close that crossed it."""
        if kind != FRAME_METHOD or len(payload) < 4:
            return
        method: i64 = i64(read_i32_be(payload, 0))
        if method == (20 << 16) | 40:
            self.write(method_frame(channel.number, "channel.close-ok"))
            channel.state = CROSSED
        elif method == (20 << 16) | 41:
            self._drop_channel(channel)
        elif method == (20 << 16) | 10 and channel.state == CROSSED:
            self._drop_channel(channel)
            self._open_channel(channel.number, kind, payload)

    def _method(self, channel: Channel, payload: bytes) -> None:
        method = decode_method(payload)
        if self.broker.interceptors.of_methods:
            method = self.broker.intercept(channel, method)
        spec = method.spec
        try:
            if channel.committing and method.name != "channel.close":
                handler_while_committing()
            if spec.content:
                if method.name != "basic.publish":
                    handler(method.name)  # content that only a broker sends
                channel.content_method = method
                channel.content_arguments = method.payload()[4:] if self.broker.interceptors.of_methods else payload[4:]
                return
            self.broker.settle_down()  # what came before must show in the answer
            handler(method.name)(channel, method)
        except AmqpError as error:
            if error.class_id == 0 and error.code != 541:
                raise AmqpError(error.code, error.explanation, spec.class_id, spec.method_id) from None
            raise

    def _content_header(self, channel: Channel, payload: bytes) -> None:
        method = channel.content_method
        if method is None:
            raise AmqpError(505, "expected method frame, got non method frame instead")
        if channel.content_header is not None:
            raise unexpected_frame(channel, "header")
        class_id: i64 = i64(read_i16_be(payload, 0))
        if class_id != 60:
            raise AmqpError(
                505,
                f"expected content header for class 60, got one for class {class_id} instead",
                method.spec.class_id,
                method.spec.method_id,
            )
        size: i64 = read_i64_be(payload, 4)
        if size < 0 or size > self.broker.max_message_size:
            arguments = channel.content_arguments
            channel.content_method = None
            # the stages before the size come first; then it is refused before any body is buffered
            publish.known_route(channel, arguments, size if size > 0 else 0x7FFFFFFFFFFFFFFF)
            raise AmqpError(501, f"content body size {size} is not acceptable")
        channel.content_header = payload
        channel.content_size = size
        channel.content_left = size
        channel.content_chunks = []
        if size == 0:
            self._content_complete(channel)

    def _content_body(self, channel: Channel, payload: bytes) -> None:
        method = channel.content_method
        if method is None:
            raise AmqpError(505, "expected method frame, got non method frame instead")
        if channel.content_header is None:
            raise unexpected_frame(channel, "body")
        if len(payload) > channel.content_left:
            raise unexpected_frame(channel, "body")
        channel.content_left -= len(payload)
        channel.content_chunks.append(payload)
        if channel.content_left == 0:
            self._content_complete(channel)

    def _content_complete(self, channel: Channel) -> None:
        header = channel.content_header
        assert header is not None
        arguments = channel.content_arguments
        chunks = channel.content_chunks
        channel.content_method = None
        channel.content_header = None
        channel.content_chunks = []
        self.published = True
        arrived = Arrived(b"", channel.number, len(header), header, chunks, channel.content_size)
        publish.publish(channel, arguments, quick_properties(header), arrived)

    # -- errors ------------------------------------------------------------------------------------------------

    def _raised(self, error: AmqpError) -> bool:
        """Close the channel or the connection; says whether reading goes on."""
        channel = self.channels.get(self._number)
        if not error.hard and channel is not None and self.state == RUNNING:
            self.close_channel(channel, error)
            return True
        self.close_with(error)
        return error.code != 501

    def close_channel(self, channel: Channel, error: AmqpError) -> None:
        """Server-side channel.close; everything on the channel is ignored until close-ok."""
        self.broker.note_error("channel", self, channel.number, error)
        channel.flush_confirms()
        channel.content_method = None
        channel.content_header = None
        channel.state = CLOSING
        channel.terminate()
        channel.reply(
            method_frame(
                channel.number,
                "channel.close",
                reply_code=error.code,
                reply_text=error.text,
                class_id=error.class_id,
                method_id=error.method_id,
            )
        )

    def close_with(self, error: AmqpError) -> None:
        """Server-side connection.close."""
        if self.state >= CLOSING_CONNECTION:
            return
        if self.state == HEADER:
            self.lost("refused")
            return
        self.broker.note_error("connection", self, self._number, error)
        for channel in list(self.channels.values()):
            channel.flush_confirms()
        self.terminate()
        self.state = CLOSING_CONNECTION
        self.write(
            method_frame(
                0,
                "connection.close",
                reply_code=error.code,
                reply_text=error.text,
                class_id=error.class_id,
                method_id=error.method_id,
            )
        )
        self.flush()
        grace: i64 = 3000 if error.code == 501 else 30000
        self.broker.io_timers.arm(self.deadline, self.broker.io_now() + grace)

    def shut(self, code: i64, reason: str) -> None:
        """An operator, or the end of the broker, closes the connection."""
        self._number = 0
        self.close_with(AmqpError(code, reason))

    def channel_closed(self, channel: Channel) -> None:
        """The client closed a channel."""
        channel.flush_confirms()
        channel.state = CLOSED
        channel.terminate()
        channel.reply(method_frame(channel.number, "channel.close-ok"))
        self._drop_channel(channel)

    def _drop_channel(self, channel: Channel) -> None:
        channel.state = CLOSED
        self.channels.pop(channel.number, None)
        self._last_channel = None
        self.broker.channels_closed += 1

    def terminate(self) -> None:
        """Channels end, exclusive queues go."""
        for channel in list(self.channels.values()):
            channel.state = CLOSED
        for channel in list(self.channels.values()):
            channel.terminate()
            self.broker.channels_closed += 1
        self.channels.clear()
        self._last_channel = None
        for queue in list(self.exclusive_queues):
            queue.vhost.remove_queue(queue)
        self.exclusive_queues = []
        self._forget_routes()

    def lost(self, reason: str) -> None:
        """The transport is gone, or is to be dropped now."""
        if self.state == GONE:
            return
        self.terminate()
        self.flush()
        self.state = GONE
        self.broker.io_timers.cancel(self.heartbeat_timer)
        self.broker.io_timers.cancel(self.deadline)
        self.sink.close()
        self.broker.connection_gone(self, reason)

    # -- output ------------------------------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        self.out.write(data)
        self.wrote()

    def wrote(self) -> None:
        """Something is in the output buffer: flush at the end of the turn, or now if it is much."""
        if not self._flushing:
            self._flushing = True
            self.broker.flushing.append(self)
        if len(self.out) >= FLUSH_AT:
            self.flush()

    def flush(self) -> None:
        self._flushing = False
        size: i64 = len(self.out)
        if size == 0:
            return
        data = self.out.getvalue()
        if size > 65536:
            self.out = BytesWriter()
        else:
            self.out.truncate(0)
        self.sent += size
        if self.state < GONE:
            self.sink.write(data)

    def write_large(self, number: i64, message: Message) -> None:
        """A large body goes to the transport piece by piece, without being copied into the buffer."""
        w = self.out
        header = message.header()
        w.append(FRAME_HEADER)
        w.write(bytes(((number >> 8) & 255, number & 255)))
        w.write(len(header).to_bytes(4, "big"))
        w.write(header)
        w.append(FRAME_END)
        room: i64 = self.frame_max - 8
        chunks = message.chunks
        if chunks is None:
            chunks = [message.body()]
        for chunk in chunks:
            start: i64 = 0
            size: i64 = len(chunk)
            while start < size:
                piece = chunk if size <= room else chunk[start : start + room]
                w.append(FRAME_BODY)
                w.write(bytes(((number >> 8) & 255, number & 255)))
                w.write(len(piece).to_bytes(4, "big"))
                self.flush()
                w = self.out
                if self.state < GONE:
                    self.sent += len(piece)
                    self.sink.write(piece)
                w.append(FRAME_END)
                start += len(piece)
        self.wrote()

    def pause_writing(self) -> None:
        """The client does not read: nothing more is delivered to it, TCP holds the rest."""
        self.writable = False

    def resume_writing(self) -> None:
        self.writable = True
        for channel in self.channels.values():
            channel.wake_consumers()

    # -- reading on and off ------------------------------------------------------------------------------------

    def update_reading(self) -> None:
        """Alarms and flow control decide together whether the client is read."""
        pause = self.blocked or self.in_flow
        if pause and not self.reading_paused:
            self.reading_paused = True
            self.sink.pause_reading()
        elif not pause and self.reading_paused:
            self.reading_paused = False
            self.sink.resume_reading()

    def charge(self, batch: i64, size: i64) -> None:
        """A message of this connection goes to the log."""
        if not self._charged:
            self._charged = True
            self.broker.charged(self)
        if not self._credit.take(batch, size) and not self.in_flow:
            self.in_flow = True
            self.update_reading()

    def give_credit(self, batch: i64) -> bool:
        """The log got this far. Says whether no credit is outstanding any more."""
        settled = self._credit.give_back(batch)
        if self.in_flow and self._credit.enough():
            self.in_flow = False
            self.flow_until = self.broker.now + SHOWN_FOR
            self.update_reading()
        if settled:
            self._charged = False
        return settled

    def block(self) -> None:
        """An alarm is on and this client publishes: it is not read until the alarm clears, and told why."""
        if self.blocked or self.state != RUNNING:
            return
        self.blocked = True
        self.update_reading()
        if self.connection_blocked:
            self.told_blocked = True
            self.write(method_frame(0, "connection.blocked", reason=self.broker.blocking))

    def unblock(self) -> None:
        if not self.blocked:
            return
        self.blocked = False
        self.update_reading()
        if self.told_blocked:
            self.told_blocked = False
            self.write(method_frame(0, "connection.unblocked"))

    # -- helpers -----------------------------------------------------------------------------------------------

    def open_vhost(self) -> VHost:
        vhost = self.vhost
        assert vhost is not None
        return vhost

    def resource(self, kind: str, name: str) -> Resource:
        return Resource(self.open_vhost().name, kind, name)

    def impersonator(self) -> bool:
        return self.broker.access.has_tag(self.username, "impersonator")

    def _forget_routes(self) -> None:
        for route in self.routes.values():
            route.valid = False
        self.routes.clear()
        self._last_route = None
        self._last_arguments = b""
        self._access_generation = self.broker.access.generation

    def arm_heartbeat(self) -> None:
        if self.heartbeat > 0:
            self.broker.io_timers.arm(self.heartbeat_timer, self.broker.io_now() + self.heartbeat * 500)


def handler_while_committing() -> None:
    raise AmqpError(504, "unexpected command while processing 'tx.commit'")


def unexpected_frame(channel: Channel, got: str) -> AmqpError:
    method = channel.content_method
    assert method is not None
    expected = "header" if channel.content_header is None else "body"
    if expected == "header":
        text = f"expected content header for class {method.spec.class_id}, got non content header frame instead"
    else:
        text = "expected content body, got non content body frame instead"
    return AmqpError(505, text, method.spec.class_id, method.spec.method_id)
