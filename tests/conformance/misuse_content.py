"""Content methods whose frames are wrong: arguments, content header, field types in headers.

Every one comes with a short and with a long body (BODIES), and a malformed method also
with nothing behind it.
"""

from __future__ import annotations

import struct

from tests.conformance.misuse_messages import BODIES
from tests.conformance.steps import Case, Step, call, case, exchange, expect, frames, queue, silence
from tests.support.rawclient import BODY, HEADER, METHOD, header, longstr, payload, shortstr

PUBLISH = payload("basic.publish")[:4]
HASHED: tuple[Step, ...] = (
    exchange(kind="x-consistent-hash"),
    queue(),
    call("queue.bind", queue="m.q", exchange="m.x", routing_key="1"),
)


def arguments(to: bytes, key: bytes, bits: bytes = b"\x00") -> bytes:
    return PUBLISH + b"\x00\x00" + shortstr(to) + shortstr(key) + bits


def content(method: bytes, head: bytes, body: bytes) -> Step:
    return frames((METHOD, 1, method), (HEADER, 1, head), *([(BODY, 1, body)] if body else []))


def malformed(name: str, method: bytes, *setup: Step) -> list[Case]:
    """A basic.publish whose arguments are wrong, before its content and without."""
    return [case(name + size, *setup, content(method, header(len(body)), body)) for size, body in BODIES.items()] + [
        case(name + ", nothing behind it", *setup, frames((METHOD, 1, method)), silence)
    ]


def headed(name: str, flags: int, properties: bytes, weight: int = 0, class_id: int = 60) -> list[Case]:
    """A mandatory basic.publish whose content header is wrong."""
    method = payload("basic.publish", exchange="amq.direct", routing_key="m.none", mandatory=True)
    return [
        case(name + size, content(method, struct.pack(">HHQH", class_id, weight, len(body), flags) + properties, body))
        for size, body in BODIES.items()
    ]


WHOLE = arguments(b"m.x", b"key")
METHODS = [
    *malformed("a routing key that is not UTF-8", arguments(b"", b"k\xff")),
    *malformed("a routing key that is not UTF-8 to a consistent-hash exchange", arguments(b"m.x", b"k\xff"), *HASHED),
    *malformed("a routing key that is not UTF-8 to a missing exchange", arguments(b"m.none", b"k\xff")),
    *malformed("a routing key that is not UTF-8, with immediate", arguments(b"m.none", b"k\xff", b"\x02")),
    *malformed("a routing key that ends inside a character", arguments(b"", "kä".encode()[:-1])),
    *malformed("an overlong character in a routing key", arguments(b"", b"k\xc0\x80")),
    *malformed("an exchange name that is not UTF-8", arguments(b"m.\xff", b"k")),
    *malformed("octets behind the arguments of a publish", arguments(b"", b"k", b"\x00\x00")),
    *malformed("octets behind the arguments, and a key that is not UTF-8", arguments(b"", b"k\xff", b"\x00\x00")),
    *(
        each
        for cut in range(1, len(WHOLE) - 3)
        for each in malformed(f"the arguments of a publish without their last {cut} octets", WHOLE[:-cut])
    ),
    *malformed("bits of a publish that mean nothing", arguments(b"m.none", b"k", b"\xfc")),
    *malformed("a publish with a ticket", PUBLISH + b"\x12\x34" + arguments(b"m.none", b"k")[6:]),
    *malformed("a line break in the exchange name", arguments(b"m.\r\nnone", b"k")),
    *malformed("a zero in the routing key", arguments(b"m.none", b"k\x00")),
]

#: letter and name of each type, and the content of a value
VALUES: dict[str, bytes] = {
    "t, bool": b"\x02",
    "b, byte": b"\xff",
    "B, unsigned byte": b"\xff",
    "s, short": b"\xff\xfe",
    "u, unsigned short": b"\xff\xfe",
    "I, int": b"\xff" * 4,
    "i, unsigned int": b"\xff" * 4,
    "l, long": b"\xff" * 8,
    "L, unsigned long": b"\xff" * 8,
    "T, timestamp": b"\xff" * 8,
    "f, float": struct.pack(">f", 1.5),
    "d, double": struct.pack(">d", -1e300),
    "D, decimal": b"\x02\x00\x00\x01\x00",
    "S, long string": longstr(b"\xff"),
    "x, binary": longstr(b"\x00"),
    "V, void": b"",
    "A, array": longstr(b"L" + b"\x80" + bytes(7)),
    "F, table": longstr(b"\x01aL" + bytes(8)),
}
LETTERS: dict[str, bytes] = {name: name[:1].encode() + content for name, content in VALUES.items()}
NO_NUMBERS: dict[str, bytes] = {
    "a float that is infinite": b"f" + struct.pack(">f", float("inf")),
    "a float that is no number": b"f" + struct.pack(">f", float("nan")),
    "a double that is infinite": b"d" + struct.pack(">d", float("-inf")),
    "a double that is no number": b"d" + struct.pack(">d", float("nan")),
    "an infinite double in an array": b"A" + longstr(b"d" + struct.pack(">d", float("inf"))),
    "an infinite double in a table": b"F" + longstr(b"\x01ad" + struct.pack(">d", float("inf"))),
}


def table_of(value: bytes) -> bytes:
    return longstr(shortstr("a") + value)


#: The header that makes a broker write the others anew.
BCC = shortstr("BCC") + b"A" + longstr(b"")

HEADERS = [
    *headed("a content header of another class", 0, b"", class_id=50),
    *headed("a content header with a weight", 0, b"", weight=1),
    *headed("octets behind the properties", 0, b"\x00"),
    *headed("properties cut short", 0x8000, b"\x05ab"),
    *headed("a property flag without its property", 0x0004, b""),
    *headed("property flags that go on", 0x0001, b"\x00\x00"),
    *headed("headers longer than the frame", 0x2000, b"\x00\x00\x00\x10\x01aI"),
    *headed("headers with a value cut short", 0x2000, longstr(b"\x01aI\x00")),
    *headed("headers with a name cut short", 0x2000, longstr(b"\x05a")),
    *headed("a content type that is not UTF-8", 0x8000, shortstr(b"\xff")),
    *headed("a user-id that is not UTF-8", 0x0010, shortstr(b"\xff")),
    *headed("an expiration that is not UTF-8", 0x0100, shortstr(b"\xff")),
    *headed("a reply-to that is not UTF-8", 0x0200, shortstr(b"\xff")),
    *(
        case(
            "a CC key that is not UTF-8 matches" + size,
            queue(),
            call("queue.bind", queue="m.q", exchange="amq.topic", routing_key="m.cc.*"),
            content(
                payload("basic.publish", exchange="amq.topic", routing_key="m.none", mandatory=True),
                header(len(body), headers={"CC": [b"m.cc.\xff"]}),
                body,
            ),
            call("basic.get", queue="m.q"),
        )
        for size, body in BODIES.items()
    ),
    *(
        case(
            "a routing key that is not UTF-8 matches" + size,
            queue(),
            call("queue.bind", queue="m.q", exchange="amq.topic", routing_key="m.cc.*"),
            content(arguments(b"amq.topic", b"m.cc.\xff"), header(len(body)), body),
            call("basic.get", queue="m.q"),
        )
        for size, body in BODIES.items()
    ),
    *headed("CC that is not UTF-8", 0x2000, longstr(shortstr("CC") + b"A" + longstr(b"S" + longstr(b"\xff")))),
    *(
        each
        for name, value in LETTERS.items()
        for each in headed(f"field type {name} in a header", 0x2000, table_of(value))
    ),
    *(
        each
        for name, value in LETTERS.items()
        for each in headed(
            f"field type {name} in a header that is written anew", 0x2000, longstr(shortstr("a") + value + BCC)
        )
    ),
    *(each for name, value in NO_NUMBERS.items() for each in headed(f"{name} in a header", 0x2000, table_of(value))),
    *headed("a field type that nobody knows in a header", 0x2000, table_of(b"Z\x00")),
    *headed("a field type that nobody knows in an array in a header", 0x2000, table_of(b"A" + longstr(b"Z\x00"))),
]

ARGUMENTS = [
    *(
        case(f"field type {name} in an argument", call("queue.declare", queue="m.q", arguments=table_of(value)))
        for name, value in LETTERS.items()
    ),
    *(
        case(
            f"{name} in an argument",
            call("queue.declare", queue="m.q", arguments=table_of(value)),
            expect("connection.close"),
        )
        for name, value in NO_NUMBERS.items()
    ),
    *(
        case(
            f"x-message-ttl of type L, {value}",
            call(
                "queue.declare",
                queue="m.q",
                arguments=longstr(shortstr("x-message-ttl") + b"L" + struct.pack(">Q", value)),
            ),
            call("queue.declare", queue="m.q", arguments={"x-message-ttl": 5}),
        )
        for value in (5, 2**31, 2**40, 2**63, 2**64 - 1)
    ),
    *(
        case(
            f"{key} of type L beyond 63 bits",
            call("queue.declare", queue="m.q", arguments=longstr(shortstr(key) + b"L" + b"\xff" * 8)),
            call("queue.declare", queue="m.q", arguments={key: 7}),
        )
        for key in ("x-expires", "x-max-length", "x-max-length-bytes", "x-max-priority", "x-queue-version")
    ),
    case(
        "a consumer priority of type L beyond 63 bits",
        queue(),
        call(
            "basic.consume",
            queue="m.q",
            consumer_tag="t",
            arguments=longstr(shortstr("x-priority") + b"L" + b"\xff" * 8),
        ),
    ),
]
FLOATS = (
    1000.0,
    1e22,
    1.5,
    1e-5,
    0.1,
    100.0,
    123456.0,
    1e15,
    12345678.9,
    5e-324,
    -0.0,
    0.0001,
    0.00012,
    1.2e6,
    2.0**53,
    1 / 3,
    -2e3,
)
TEXTS = [
    *(
        case(
            f"the float {value!r} in a text",
            queue(arguments={"x-message-ttl": 5}),
            call("queue.declare", queue="m.q", arguments={"x-message-ttl": value}),
        )
        for value in FLOATS
    ),
    *(
        case(
            f"the float {value!r} of 32 bits in a text",
            queue(arguments={"x-message-ttl": 5}),
            call(
                "queue.declare",
                queue="m.q",
                arguments=longstr(shortstr("x-message-ttl") + b"f" + struct.pack(">f", value)),
            ),
        )
        for value in (1000.0, 0.1, 1e22)
    ),
    case("a float where there was nothing", exchange(), exchange(arguments={"alternate-exchange": 1e3})),
    case("an exchange type called invalid", exchange(kind="invalid")),
]
CONTENT = [*TEXTS, *METHODS, *HEADERS, *ARGUMENTS]
