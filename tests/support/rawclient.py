"""A tiny AMQP 0-9-1 driver that sends anything and records every frame that comes back.

Duty: build frames and methods, also wrong ones; record replies in order; render them so that two
brokers can be compared byte for byte. Not here: any rule of the protocol; it never objects.

On purpose it shares no code with `warrenmq.wire`: an error there must not be able to hide itself.
"""

from __future__ import annotations

import hashlib
import re
import socket
import struct
import time
from dataclasses import dataclass, field

METHOD, HEADER, BODY, HEARTBEAT = 1, 2, 3, 8
LONG_BODY = 8192  # longer ones stand in a transcript as their hash
PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"

#: name -> (class, method, arguments). o octet, h short, l long, q longlong, s shortstr, S longstr, b bit, t table
METHODS: dict[str, tuple[int, int, str]] = {
    "connection.start": (10, 10, "version_major:o version_minor:o server_properties:t mechanisms:S locales:S"),
    "connection.start-ok": (10, 11, "client_properties:t mechanism:s response:S locale:s"),
    "connection.secure": (10, 20, "challenge:S"),
    "connection.secure-ok": (10, 21, "response:S"),
    "connection.tune": (10, 30, "channel_max:h frame_max:l heartbeat:h"),
    "connection.tune-ok": (10, 31, "channel_max:h frame_max:l heartbeat:h"),
    "connection.open": (10, 40, "virtual_host:s capabilities:s insist:b"),
    "connection.open-ok": (10, 41, "known_hosts:s"),
    "connection.close": (10, 50, "reply_code:h reply_text:s class_id:h method_id:h"),
    "connection.close-ok": (10, 51, ""),
    "connection.blocked": (10, 60, "reason:s"),
    "connection.unblocked": (10, 61, ""),
    "connection.update-secret": (10, 70, "new_secret:S reason:s"),
    "connection.update-secret-ok": (10, 71, ""),
    "channel.open": (20, 10, "out_of_band:s"),
    "channel.open-ok": (20, 11, "channel_id:S"),
    "channel.flow": (20, 20, "active:b"),
    "channel.flow-ok": (20, 21, "active:b"),
    "channel.close": (20, 40, "reply_code:h reply_text:s class_id:h method_id:h"),
    "channel.close-ok": (20, 41, ""),
    "access.request": (30, 10, "realm:s exclusive:b passive:b active:b write:b read:b"),
    "access.request-ok": (30, 11, "ticket:h"),
    "exchange.declare": (
        40,
        10,
        "ticket:h exchange:s type:s passive:b durable:b auto_delete:b internal:b nowait:b arguments:t",
    ),
    "exchange.declare-ok": (40, 11, ""),
    "exchange.delete": (40, 20, "ticket:h exchange:s if_unused:b nowait:b"),
    "exchange.delete-ok": (40, 21, ""),
    "exchange.bind": (40, 30, "ticket:h destination:s source:s routing_key:s nowait:b arguments:t"),
    "exchange.bind-ok": (40, 31, ""),
    "exchange.unbind": (40, 40, "ticket:h destination:s source:s routing_key:s nowait:b arguments:t"),
    "exchange.unbind-ok": (40, 51, ""),
    "queue.declare": (50, 10, "ticket:h queue:s passive:b durable:b exclusive:b auto_delete:b nowait:b arguments:t"),
    "queue.declare-ok": (50, 11, "queue:s message_count:l consumer_count:l"),
    "queue.bind": (50, 20, "ticket:h queue:s exchange:s routing_key:s nowait:b arguments:t"),
    "queue.bind-ok": (50, 21, ""),
    "queue.purge": (50, 30, "ticket:h queue:s nowait:b"),
    "queue.purge-ok": (50, 31, "message_count:l"),
    "queue.delete": (50, 40, "ticket:h queue:s if_unused:b if_empty:b nowait:b"),
    "queue.delete-ok": (50, 41, "message_count:l"),
    "queue.unbind": (50, 50, "ticket:h queue:s exchange:s routing_key:s arguments:t"),
    "queue.unbind-ok": (50, 51, ""),
    "basic.qos": (60, 10, "prefetch_size:l prefetch_count:h global_:b"),
    "basic.qos-ok": (60, 11, ""),
    "basic.consume": (60, 20, "ticket:h queue:s consumer_tag:s no_local:b no_ack:b exclusive:b nowait:b arguments:t"),
    "basic.consume-ok": (60, 21, "consumer_tag:s"),
    "basic.cancel": (60, 30, "consumer_tag:s nowait:b"),
    "basic.cancel-ok": (60, 31, "consumer_tag:s"),
    "basic.publish": (60, 40, "ticket:h exchange:s routing_key:s mandatory:b immediate:b"),
    "basic.return": (60, 50, "reply_code:h reply_text:s exchange:s routing_key:s"),
    "basic.deliver": (60, 60, "consumer_tag:s delivery_tag:q redelivered:b exchange:s routing_key:s"),
    "basic.get": (60, 70, "ticket:h queue:s no_ack:b"),
    "basic.get-ok": (60, 71, "delivery_tag:q redelivered:b exchange:s routing_key:s message_count:l"),
    "basic.get-empty": (60, 72, "cluster_id:s"),
    "basic.ack": (60, 80, "delivery_tag:q multiple:b"),
    "basic.reject": (60, 90, "delivery_tag:q requeue:b"),
    "basic.recover-async": (60, 100, "requeue:b"),
    "basic.recover": (60, 110, "requeue:b"),
    "basic.recover-ok": (60, 111, ""),
    "basic.nack": (60, 120, "delivery_tag:q multiple:b requeue:b"),
    "confirm.select": (85, 10, "nowait:b"),
    "confirm.select-ok": (85, 11, ""),
    "tx.select": (90, 10, ""),
    "tx.select-ok": (90, 11, ""),
    "tx.commit": (90, 20, ""),
    "tx.commit-ok": (90, 21, ""),
    "tx.rollback": (90, 30, ""),
    "tx.rollback-ok": (90, 31, ""),
}
NAMES = {(class_id, method_id): name for name, (class_id, method_id, _) in METHODS.items()}

#: flag -> (property, type)
PROPERTIES: list[tuple[int, str, str]] = [
    (0x8000, "content_type", "s"),
    (0x4000, "content_encoding", "s"),
    (0x2000, "headers", "t"),
    (0x1000, "delivery_mode", "o"),
    (0x0800, "priority", "o"),
    (0x0400, "correlation_id", "s"),
    (0x0200, "reply_to", "s"),
    (0x0100, "expiration", "s"),
    (0x0080, "message_id", "s"),
    (0x0040, "timestamp", "q"),
    (0x0020, "type", "s"),
    (0x0010, "user_id", "s"),
    (0x0008, "app_id", "s"),
    (0x0004, "cluster_id", "s"),
]

_STRUCTS = {"o": ">B", "h": ">H", "l": ">I", "q": ">Q"}


# ------------------------------------------------------------------------------------------ writing


@dataclass(frozen=True)
class Typed:
    """A table value whose wire letter matters: Typed("b", 5)."""

    letter: str
    value: object


def shortstr(text: str | bytes) -> bytes:
    data = text.encode() if isinstance(text, str) else text
    return struct.pack(">B", len(data)) + data


def longstr(text: str | bytes) -> bytes:
    data = text.encode() if isinstance(text, str) else text
    return struct.pack(">I", len(data)) + data


def value(item: object) -> bytes:
    if isinstance(item, Typed):
        letter, inner = item.letter, item.value
        formats = {
            "b": ">b",
            "B": ">B",
            "s": ">h",
            "u": ">H",
            "I": ">i",
            "i": ">I",
            "l": ">q",
            "T": ">Q",
            "f": ">f",
            "d": ">d",
        }
        if letter in formats:
            return letter.encode() + struct.pack(formats[letter], inner)
        if letter in "Sx":
            return letter.encode() + longstr(inner)  # type: ignore[arg-type]
        return letter.encode() + bytes(inner)  # type: ignore[call-overload,no-any-return]  # raw
    if item is None:
        return b"V"
    if isinstance(item, bool):
        return b"t" + bytes([item])
    if isinstance(item, int):
        return b"I" + struct.pack(">i", item) if -(2**31) <= item < 2**31 else b"l" + struct.pack(">q", item)
    if isinstance(item, float):
        return b"d" + struct.pack(">d", item)
    if isinstance(item, (str, bytes)):
        return b"S" + longstr(item)
    if isinstance(item, dict):
        return b"F" + table(item)
    if isinstance(item, (list, tuple)):
        return b"A" + longstr(b"".join(value(each) for each in item))
    raise TypeError(item)


def table(values: dict[str, object]) -> bytes:
    return longstr(b"".join(shortstr(key) + value(item) for key, item in values.items()))


def payload(name: str, **values: object) -> bytes:
    """A method frame's payload; what is not given is 0, '', False or {}."""
    class_id, method_id, signature = METHODS[name]
    out = struct.pack(">HH", class_id, method_id)
    bits: list[bool] = []
    arguments = [part.split(":") for part in signature.split()]
    unknown = set(values) - {argument for argument, _ in arguments}
    assert not unknown, unknown
    for argument, kind in arguments:
        if kind == "b":
            bits.append(bool(values.get(argument, False)))
            continue
        out += _pack_bits(bits)
        bits = []
        out += _pack(kind, values.get(argument))
    return out + _pack_bits(bits)


def _pack_bits(bits: list[bool]) -> bytes:
    return bytes([sum(1 << position for position, bit in enumerate(bits) if bit)]) if bits else b""


def _pack(kind: str, item: object) -> bytes:
    if kind == "s":
        return shortstr(item or "")  # type: ignore[arg-type]
    if kind == "S":
        return longstr(item or "")  # type: ignore[arg-type]
    if kind == "t":
        return item if isinstance(item, bytes) else table(item or {})  # type: ignore[arg-type]
    return struct.pack(_STRUCTS[kind], item or 0)


def frame(kind: int, channel: int, data: bytes, end: int = 0xCE) -> bytes:
    return struct.pack(">BHI", kind, channel, len(data)) + data + bytes([end])


def method(channel: int, name: str, **values: object) -> bytes:
    return frame(METHOD, channel, payload(name, **values))


def header(body_size: int, class_id: int = 60, weight: int = 0, **properties: object) -> bytes:
    """A content header's payload."""
    flags, data = 0, b""
    known = {name for _, name, _ in PROPERTIES}
    assert set(properties) <= known, properties
    for flag, name, kind in PROPERTIES:
        if name in properties:
            flags |= flag
            item = properties[name]
            data += table(item) if kind == "t" and isinstance(item, dict) else _pack(kind, item)
    return struct.pack(">HHQH", class_id, weight, body_size, flags) + data


def publish(
    channel: int,
    exchange: str,
    routing_key: str,
    body: bytes = b"",
    mandatory: bool = False,
    immediate: bool = False,
    frame_max: int = 131072,
    **properties: object,
) -> bytes:
    """A whole publish: method, header and body frames."""
    out = method(
        channel, "basic.publish", exchange=exchange, routing_key=routing_key, mandatory=mandatory, immediate=immediate
    )
    out += frame(HEADER, channel, header(len(body), **properties))  # type: ignore[arg-type]
    for start in range(0, len(body), frame_max - 8):
        out += frame(BODY, channel, body[start : start + frame_max - 8])
    return out


# ------------------------------------------------------------------------------------------ reading


@dataclass(frozen=True)
class Frame:
    kind: int
    channel: int
    data: bytes

    @property
    def name(self) -> str:
        if self.kind == METHOD:
            ids = struct.unpack(">HH", self.data[:4])
            return NAMES.get(ids, f"method {ids}")
        return {HEADER: "header", BODY: "body", HEARTBEAT: "heartbeat"}.get(self.kind, f"frame type {self.kind}")

    @property
    def values(self) -> dict[str, object]:
        """The method's arguments (tables stay raw bytes)."""
        if self.kind != METHOD or self.name not in METHODS:
            return {}
        position, bit = 4, 0
        found: dict[str, object] = {}
        for part in METHODS[self.name][2].split():
            argument, kind = part.split(":")
            item: object
            if kind == "b":
                item = bool(self.data[position] >> bit & 1)
                bit += 1
                found[argument] = item
                continue
            if bit:
                position, bit = position + 1, 0
            if kind == "s":
                end = position + 1 + self.data[position]
                item = self.data[position + 1 : end].decode("utf-8", "backslashreplace")
            elif kind in "St":
                end = position + 4 + int(struct.unpack_from(">I", self.data, position)[0])
                raw = self.data[position + 4 : end]
                item = raw if kind == "t" else raw.decode("utf-8", "backslashreplace")
            else:
                end = position + struct.calcsize(_STRUCTS[kind])
                item = int(struct.unpack_from(_STRUCTS[kind], self.data, position)[0])
            found[argument], position = item, end
        return found

    def text(self, argument: str) -> str:
        return str(self.values[argument])

    def number(self, argument: str) -> int:
        found = self.values[argument]
        assert isinstance(found, int)
        return found


#: Names the server makes up: same shape and length on both brokers, other characters each time.
_GENERATED = re.compile(rb"amq\.(gen|ctag)-[A-Za-z0-9_-]{22}")


def normalised(received: Frame) -> Frame:
    """What may differ between two runs of one RabbitMQ is levelled: made-up names, server-properties."""
    data = _GENERATED.sub(lambda found: b"amq." + found.group(1) + b"-" + b"x" * 22, received.data)
    if received.name == "connection.start":
        raw = received.values["server_properties"]
        assert isinstance(raw, bytes)
        data = data[:6] + b"{}" + data[10 + len(raw) :]
    return Frame(received.kind, received.channel, data)


def rendered(received: Frame) -> str:
    """One readable line that still holds every byte (a long body: its hash): arguments for people, hex to compare."""
    level = normalised(received)
    words = [f"{level.channel} {level.name}"]
    if level.kind == BODY and len(level.data) > LONG_BODY:
        return " ".join(words) + f" | {len(level.data)} octets, sha256 {hashlib.sha256(level.data).hexdigest()}"
    if level.kind == METHOD and level.name != "connection.start":
        words += [f"{key}={item!r}" for key, item in level.values.items()]
    return " ".join(words) + f" | {level.data.hex()}"


class CloseLost(TimeoutError):
    """Our channel.close, which crossed the broker's, was never answered.

    RabbitMQ does that once in some thousand times: its channel's process had died of the error with ours unread.
    """


@dataclass
class RawClient:
    """One connection. `frames` holds everything received, in order; heartbeats are left out of it."""

    port: int
    timeout: float = 60.0  # bounds hanging, nothing else
    frames: list[Frame] = field(default_factory=list)
    raw: bytes = b""
    ended: bool = False
    #: channels we opened and nobody closed yet
    open_channels: set[int] = field(default_factory=set)
    heartbeats: int = 0
    answer_closes: bool = True

    def __post_init__(self) -> None:
        self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=self.timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = b""

    def __enter__(self) -> RawClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    # -- sending

    def send(self, data: bytes) -> None:
        """Bytes as they are. A connection the server has dropped is not an error here."""
        try:
            self.socket.sendall(data)
        except OSError:
            pass

    def send_method(self, channel: int, name: str, **values: object) -> None:
        self.send(method(channel, name, **values))

    def call(self, channel: int, name: str, **values: object) -> Frame:
        """A method that is answered: its `-ok` (or the close that came instead)."""
        self.send_method(channel, name, **values)
        answers = {"basic.get": ("basic.get-ok", "basic.get-empty")}.get(name, (name + "-ok",))
        return self.wait(*answers, channel=channel)

    def publish(self, channel: int, exchange: str, routing_key: str, body: bytes = b"", **more: object) -> None:
        self.send(publish(channel, exchange, routing_key, body, **more))  # type: ignore[arg-type]

    # -- the usual beginning

    def handshake(
        self,
        username: str = "guest",
        password: str = "guest",
        vhost: str = "/",
        channel_max: int = 2047,
        frame_max: int = 131072,
        heartbeat: int = 0,
        capabilities: tuple[str, ...] = (
            "authentication_failure_close",
            "consumer_cancel_notify",
            "basic.nack",
            "publisher_confirms",
            "connection.blocked",
        ),
    ) -> RawClient:
        self.send(PROTOCOL_HEADER)
        self.wait("connection.start")
        self.start_ok(username, password, capabilities)
        if self.wait("connection.tune").name != "connection.tune":
            return self  # who is refused need not wait until the broker hangs up
        self.send_method(0, "connection.tune-ok", channel_max=channel_max, frame_max=frame_max, heartbeat=heartbeat)
        self.call(0, "connection.open", virtual_host=vhost)
        return self

    def start_ok(self, username: str, password: str, capabilities: tuple[str, ...] = ()) -> None:
        self.send_method(
            0,
            "connection.start-ok",
            mechanism="PLAIN",
            response=f"\0{username}\0{password}",
            locale="en_US",
            client_properties={"capabilities": dict.fromkeys(capabilities, True)},
        )

    def open(self, channel: int = 1) -> RawClient:
        self.open_channels.add(channel)
        self.call(channel, "channel.open")
        return self

    # -- receiving

    def read(self, timeout: float | None = None) -> Frame | None:
        """The next frame, recorded; None at the end of the connection. TimeoutError when nothing comes."""
        deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
        while True:
            if len(self._buffer) >= 7 and not self._buffer.startswith(b"AMQP"):
                kind, channel, size = struct.unpack_from(">BHI", self._buffer)
                if len(self._buffer) >= size + 8:
                    assert self._buffer[size + 7] == 0xCE, self._buffer[: size + 8]
                    data = self._buffer[7 : size + 7]
                    self._buffer = self._buffer[size + 8 :]
                    received = Frame(kind, channel, data)
                    if kind == HEARTBEAT:
                        self.heartbeats += 1
                        continue
                    self._note(received)
                    return received
            if self.ended:
                return None
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise TimeoutError(f"nothing came; so far: {[each.name for each in self.frames]}")
            self.socket.settimeout(remaining)
            try:
                chunk = self.socket.recv(65536)
            except TimeoutError:
                continue
            except OSError:
                chunk = b""
            self.raw += chunk
            self._buffer += chunk
            if not chunk:
                self.ended = True

    def _note(self, received: Frame) -> None:
        """Records a frame and answers closes, as the protocol asks of every client."""
        self.frames.append(received)
        if received.name in ("channel.close", "channel.close-ok"):
            self.open_channels.discard(received.channel)
        if self.answer_closes and received.name in ("channel.close", "connection.close"):
            self.send_method(received.channel, received.name + "-ok")

    def wait(self, *names: str, channel: int | None = None) -> Frame:
        """Reads until one of these methods comes; a close of the channel or connection ends the wait too."""
        while True:
            received = self.read()
            if received is None:
                return Frame(METHOD, 0, struct.pack(">HH", 0, 0))
            if received.name in names and channel in (None, received.channel):
                return received
            if received.name == "connection.close" or (
                received.name == "channel.close" and channel in (None, received.channel)
            ):
                return received

    def wait_message(self, *names: str) -> tuple[Frame, bytes, bytes]:
        """A method that carries content, its header payload and its body."""
        first = self.wait(*(names or ("basic.deliver", "basic.get-ok", "basic.return")))
        assert first.name in ("basic.deliver", "basic.get-ok", "basic.return"), rendered(first)
        head = self.read()
        assert head is not None and head.kind == HEADER
        size = int(struct.unpack_from(">Q", head.data, 4)[0])
        body = b""
        while len(body) < size:
            part = self.read()
            assert part is not None and part.kind == BODY
            body += part.data
        return first, head.data, body

    def quiet(self, seconds: float = 0.3) -> None:
        """Reads until nothing has come for `seconds`. For promises of silence; everything else waits for a frame."""
        try:
            while self.read(seconds) is not None:
                pass
        except TimeoutError:
            pass

    def finish(self) -> list[Frame]:
        """Fences every open channel, then the connection, so that no answer is still on its way."""
        for channel in sorted(self.open_channels):
            if not self.ended:
                self.send_method(channel, "channel.close", reply_code=200, reply_text="done")
                crossed = False
                try:
                    while self.wait("channel.close-ok", channel=channel).name == "channel.close":
                        # The two closes crossed. Ours is answered all the same, but RabbitMQ's reader, which answers
                        # connection.close, has forgotten the channel and does not wait for that answer.
                        crossed = True
                except TimeoutError as error:
                    raise CloseLost(str(error)) if crossed else error from None
        if not self.ended and not any(each.name == "connection.close" for each in self.frames):
            self.send_method(0, "connection.close", reply_code=200, reply_text="done")
            self.wait("connection.close-ok")  # RabbitMQ leaves it to the client to close the socket after this
        if self.frames and self.frames[-1].name != "connection.close-ok":
            while self.read() is not None:
                pass
        self.socket.close()
        return self.frames

    def transcript(self) -> list[str]:
        """Everything received, channel by channel: two channels are two processes in RabbitMQ, so only the
        order within one is a promise. A protocol header in answer (a refused version) is a line of its own."""
        lines = [rendered(each) for each in sorted(self.frames, key=lambda each: each.channel)]
        if self._buffer:
            lines.append(f"bytes | {self._buffer.hex()}")
        return [*lines, "end of connection"] if self.ended else lines
