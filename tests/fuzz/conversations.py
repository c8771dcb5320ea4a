"""Conversations for the fuzzer: valid ones, and what a broken or hostile client makes of them.

Duty: bytes. Every conversation comes from a seed, so a failure is repeated by its number. Not here: what the broker
must do with them (test_connection.py).
"""

from __future__ import annotations

import random
import struct

from warrenmq.wire.constants import PROTOCOL_HEADER
from warrenmq.wire.content import Properties, content_frames, encode_header
from warrenmq.wire.fields import Field, Table, from_python
from warrenmq.wire.methods import SPECS, method_frame

USER = b"\0fuzzer\0fuzzer"
NAMES = ["a", "b", "amq.direct", "amq.topic", "amq.headers", "", "nobody", "ü" * 20]
KEYS = ["a", "b", "a.b.c", "#", "*.b", "", "k" * 255, "amq.rabbitmq.reply-to"]
TYPES = ["direct", "fanout", "topic", "headers", "x-consistent-hash", "x-random", "x-delayed-message", "nonsense"]
ARGUMENTS: list[dict[str, object]] = [
    {},
    {"x-message-ttl": 0},
    {"x-max-length": 2},
    {"x-max-length": 1, "x-overflow": "reject-publish"},
    {"x-max-priority": 5},
    {"x-expires": 100},
    {"x-dead-letter-exchange": ""},
    {"x-single-active-consumer": True},
    {"x-queue-type": "stream"},
    {"x-message-ttl": "no number"},
    {"x-match": "any", "a": 1},
    {"x-delayed-type": "topic"},
    {"alternate-exchange": "b"},
    {"nested": {"list": [1, 2.5, None, "x", {"deep": [True]}]}},
]
SIZES = [0, 1, 4, 4088, 4089, 4096, 4097, 131064, 131072, 131073, 2**31, 2**32 - 1]
EXPIRATIONS = [None, None, None, "0", "5", "soon", "-1", ""]


def handshake(frame_max: int = 131072) -> list[bytes]:
    capabilities: Table = {
        name: Field("t", True)
        for name in ("consumer_cancel_notify", "connection.blocked", "authentication_failure_close")
    }
    return [
        PROTOCOL_HEADER,
        method_frame(
            0,
            "connection.start-ok",
            client_properties={"capabilities": Field("F", capabilities)},
            mechanism="PLAIN",
            response=USER,
            locale="en_US",
        ),
        method_frame(0, "connection.tune-ok", channel_max=20, frame_max=frame_max, heartbeat=0),
        method_frame(0, "connection.open", virtual_host="/"),
        method_frame(1, "channel.open"),
        method_frame(2, "channel.open"),
    ]


def conversation(chance: random.Random, length: int) -> list[bytes]:
    """A client that knows the protocol and asks for anything: one item per frame."""
    frames = handshake(chance.choice([4096, 131072]))
    for _ in range(length):
        frames.extend(_step(chance))
    if chance.random() < 0.3:
        frames.append(method_frame(0, "connection.close", reply_code=200, reply_text="bye"))
    return frames


def _step(chance: random.Random) -> list[bytes]:
    channel = chance.choice([1, 1, 2])
    pick = chance.choice
    what = chance.randrange(20)
    name, other, key, arguments = pick(NAMES), pick(NAMES), pick(KEYS), from_python(pick(ARGUMENTS))
    if what < 6:
        return publish(chance, channel)
    if what == 6:
        return [
            method_frame(
                channel,
                "queue.declare",
                queue=name,
                durable=pick([True, False]),
                exclusive=pick([True, False]),
                auto_delete=pick([True, False]),
                passive=chance.random() < 0.1,
                nowait=pick([True, False]),
                arguments=arguments,
            )
        ]
    if what == 7:
        return [method_frame(channel, "exchange.declare", exchange=name, type=pick(TYPES), arguments=arguments)]
    if what == 8:
        return [method_frame(channel, "queue.bind", queue=name, exchange=other, routing_key=key, arguments=arguments)]
    if what == 9:
        return [method_frame(channel, "exchange.bind", destination=name, source=other, routing_key=key)]
    if what == 10:
        return [method_frame(channel, "basic.get", queue=name, no_ack=pick([True, False]))]
    if what == 11:
        tag = pick(["", "", str(chance.randrange(1000))])
        return [method_frame(channel, "basic.consume", queue=name, consumer_tag=tag, no_ack=pick([True, False]))]
    if what == 12:
        return [method_frame(channel, "basic.ack", delivery_tag=chance.randrange(4), multiple=pick([True, False]))]
    if what == 13:
        many, back = pick([True, False]), pick([True, False])
        tag_number = chance.randrange(4)
        return [method_frame(channel, "basic.nack", delivery_tag=tag_number, multiple=many, requeue=back)]
    if what == 14:
        return [method_frame(channel, pick(["tx.select", "tx.commit", "tx.rollback", "confirm.select"]))]
    if what == 15:
        shared = {"global": pick([True, False])}
        return [method_frame(channel, "basic.qos", prefetch_count=chance.randrange(3), **shared)]
    if what == 16:
        return [method_frame(channel, pick(["queue.purge", "queue.delete"]), queue=name)]
    if what == 17:
        if chance.random() < 0.1:
            return [method_frame(channel, pick(["channel.close", "channel.close-ok", "channel.open", "channel.flow"]))]
        closing = method_frame(channel, pick(["channel.close", "channel.close-ok"]))
        return [method_frame(channel, "channel.close"), closing, method_frame(channel, "channel.open")][:: pick([1, 2])]
    if what == 18:
        return [method_frame(channel, "basic.cancel", consumer_tag=pick(["t", "u", "v"]))]
    return [b"\x08\x00\x00\x00\x00\x00\x00\xce"]


def publish(chance: random.Random, channel: int) -> list[bytes]:
    """A publish in three or more frames."""
    pick = chance.choice
    body = chance.randbytes(pick([0, 1, 5, 5, 5, 300, 5000]))
    headers = pick([None, None, {"CC": ["a", "b"]}, {"BCC": ["b"]}, {"x-delay": 5}, {"CC": "a"}, {"a": 1}])
    properties = Properties(
        delivery_mode=pick([None, None, 1, 2, 3]),
        headers=None if headers is None else from_python(headers),
        expiration=pick(EXPIRATIONS),
        priority=pick([None, 0, 9, 255]),
        reply_to=pick([None, None, None, "amq.rabbitmq.reply-to"]),
        user_id=pick([None, None, None, "fuzzer", "somebody"]),
    )
    method = method_frame(
        channel,
        "basic.publish",
        exchange=pick(NAMES),
        routing_key=pick(KEYS),
        mandatory=pick([True, False]),
        immediate=chance.random() < 0.005,
    )
    return [method, *_apart(content_frames(channel, encode_header(properties, len(body)), body, 4096))]


def _apart(data: bytes) -> list[bytes]:
    frames = []
    while data:
        size = int.from_bytes(data[3:7], "big") + 8
        frames.append(data[:size])
        data = data[size:]
    return frames


# -- breaking them ------------------------------------------------------------------------------------------------


def broken(chance: random.Random, frames: list[bytes]) -> bytes:
    """The conversation with one to four things wrong, mostly behind the handshake."""
    frames = list(frames)
    octets = False
    for _ in range(chance.randint(1, 4)):
        what = chance.randrange(11)
        at = chance.randrange(6, len(frames)) if chance.random() < 0.9 and len(frames) > 6 else chance.randrange(6)
        frame = bytearray(frames[at])
        if what == 0:
            frames.insert(at, bytes(frame))  # twice
        elif what == 1:
            other = chance.randrange(1, len(frames))
            frames[at], frames[other] = frames[other], frames[at]
        elif what == 2 and len(frames) > 7:
            del frames[at]
        elif what == 3:
            frame[1:3] = struct.pack(">H", chance.choice([0, 1, 2, 3, 19, 20, 65535]))
            frames[at] = bytes(frame)
        elif what == 4:
            frame[3:7] = struct.pack(">I", chance.choice(SIZES))
            frames[at] = bytes(frame)
        elif what == 5:
            frame[0] = chance.choice([0, 1, 2, 3, 4, 8, 65, 255])
            frames[at] = bytes(frame)
        elif what == 6:
            frame[-1] = chance.randrange(256)
            frames[at] = bytes(frame)
        elif what == 7 and len(frame) > 9:
            inside = chance.randrange(7, len(frame) - 1)
            frame[inside] ^= 1 << chance.randrange(8)
            frames[at] = bytes(frame)
        elif what == 8:
            frames.insert(at, strange_frame(chance))
        elif what == 9 and len(frame) > 15:  # the payload cut short, the frame sound
            payload = bytes(frame[7:-1])[: chance.randrange(len(frame) - 8)]
            frames[at] = bytes(frame[:3]) + struct.pack(">I", len(payload)) + payload + b"\xce"
        else:
            octets = True
    data = bytearray(b"".join(frames))
    if octets:
        where = chance.randrange(len(PROTOCOL_HEADER), len(data))
        how = chance.randrange(3)
        if how == 0:
            del data[where:]
        elif how == 1:
            data[where:where] = chance.randbytes(chance.randint(1, 50))
        else:
            data[where] ^= 1 << chance.randrange(8)
    return bytes(data)


def strange_frame(chance: random.Random) -> bytes:
    """A sound frame whose payload is not what the type says."""
    channel = chance.choice([0, 1, 2])
    what = chance.randrange(6)
    if what == 0:
        spec = chance.choice(SPECS)
        payload = struct.pack(">HH", spec.class_id, spec.method_id) + chance.randbytes(chance.randrange(40))
        return _frame(1, channel, payload)
    if what == 1:
        return _frame(1, channel, chance.randbytes(chance.randrange(30)))
    if what == 2:
        size = chance.choice([0, 1, 2**31, 2**31 + 1, 2**40, 2**63 - 1, 2**63, 2**64 - 1])
        weight = chance.choice([0, 0, 1, 65535])
        payload = struct.pack(">HHQH", chance.choice([60, 60, 60, 10, 65535]), weight, size, chance.randrange(65536))
        return _frame(2, channel, payload + chance.randbytes(chance.randrange(20)))
    if what == 3:
        return _frame(3, channel, chance.randbytes(chance.randrange(50)))
    if what == 4:
        return method_with_table(channel, nested(chance.choice([3, 100, 400]), chance.choice("FA")))
    return _frame(chance.randrange(256), chance.randrange(65536), chance.randbytes(chance.randrange(10)))


def nested(depth: int, letter: str) -> bytes:
    """A field table of tables, or of arrays, so deep."""
    inner = b""
    for _ in range(depth):
        if letter == "F":
            inner = b"\x01nF" + struct.pack(">I", len(inner)) + inner
        else:
            inner = b"A" + struct.pack(">I", len(inner)) + inner
    if letter == "A":
        inner = b"\x01n" + inner if inner else inner
    return struct.pack(">I", len(inner)) + inner


def method_with_table(channel: int, table: bytes) -> bytes:
    """queue.declare with raw arguments."""
    return _frame(1, channel, struct.pack(">HHH", 50, 10, 0) + b"\x01a\x00" + table)


def _frame(kind: int, channel: int, payload: bytes) -> bytes:
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + b"\xce"


def pieces(chance: random.Random, data: bytes) -> list[bytes]:
    """The same bytes as a network might bring them."""
    out = []
    at = 0
    longest = chance.choice([1, 7, 30, 1000])
    while at < len(data):
        size = chance.randint(1, longest)
        out.append(data[at : at + size])
        at += size
    return out
