"""Misuse before the first channel: protocol header, login, tuning, connection.open, frames."""

from __future__ import annotations

import struct
from typing import Any

from tests.conformance.steps import Case, Step, call, case, drop, expect, frames, pub, send, tell
from tests.support.rawclient import BODY, HEADER, HEARTBEAT, METHOD, PROTOCOL_HEADER, frame, header, payload, table

START: Step = send(PROTOCOL_HEADER)
CLOSES_POLITELY = {"capabilities": {"authentication_failure_close": True}}


def login(response: str | bytes = "\0guest\0guest", mechanism: str = "PLAIN", **more: object) -> Step:
    return tell("connection.start-ok", 0, response=response, mechanism=mechanism, locale="en_US", **more)


def sized_login(size: int) -> Step:
    """A start-ok whose payload has exactly this many octets."""

    def start_ok(filler: int) -> bytes:
        return payload(
            "connection.start-ok",
            response="\0guest\0guest",
            mechanism="PLAIN",
            locale="en_US",
            client_properties={"filler": "x" * filler},
        )

    return frames((METHOD, 0, start_ok(size - len(start_ok(0)))))


def tune_ok(**values: int) -> Step:
    return tell("connection.tune-ok", 0, **{"channel_max": 2047, "frame_max": 131072, **values})


LOGGED_IN: tuple[Step, ...] = (START, expect("connection.start"), login(), expect("connection.tune"))
TUNED: tuple[Step, ...] = (*LOGGED_IN, tune_ok())


def bare(name: str, *steps: Step) -> Case:
    return case(name, *steps, start="bare", alone=False)


HANDSHAKE = [
    bare("a header of AMQP 0-8", send(b"AMQP\x01\x01\x08\x00"), expect("connection.start"), drop),
    bare(
        "a header of AMQP 0-8 as some clients write it", send(b"AMQP\x01\x01\x09\x01"), expect("connection.start"), drop
    ),
    *(
        bare(f"a header of {octets.hex()}", send(b"AMQP" + octets))
        for octets in (
            b"\x01\x01\x00\x08",
            b"\x00\x00\x08\x00",
            b"\x00\x01\x09\x01",
            b"\x00\x00\x09\x00",
            b"\x00\x01\x00\x09",
            b"\x03\x01\x00\x00",
            b"\x02\x01\x00\x00",
            b"\x01\x01\x08\x01",
            b"\x01\x00\x08\x00",
        )
    ),
    bare("a header in lower case", send(b"amqp\x00\x00\x09\x01")),
    bare("a header of AMQP 0-10", send(b"AMQP\x01\x01\x00\x0a")),
    bare("a header of AMQP 1.0", send(b"AMQP\x00\x01\x00\x00")),
    bare("a header of a later 0-9", send(b"AMQP\x00\x00\x09\x02")),
    bare("the header of plain 0-9 is accepted", send(b"AMQP\x01\x01\x00\x09"), expect("connection.start"), drop),
    bare("an HTTP request", send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")),
    bare("an unknown mechanism", START, expect("connection.start"), login(mechanism="GSSAPI")),
    bare("a mechanism that is not offered", START, expect("connection.start"), login(mechanism="EXTERNAL")),
    bare("a PLAIN response without zeros", START, expect("connection.start"), login("guestguest")),
    bare(
        "a wrong password, told",
        START,
        expect("connection.start"),
        login("\0guest\0wrong", client_properties=CLOSES_POLITELY),
    ),
    bare("a wrong password, client without the capability", START, expect("connection.start"), login("\0guest\0no")),
    bare(
        "AMQPLAIN logs in",
        START,
        expect("connection.start"),
        login(table({"LOGIN": "guest", "PASSWORD": "guest"})[4:], "AMQPLAIN"),
        expect("connection.tune"),
        tune_ok(),
        call("connection.open", 0, virtual_host="/"),
    ),
    bare(
        "AMQPLAIN without a login",
        START,
        expect("connection.start"),
        login(table({"PASSWORD": "guest"})[4:], "AMQPLAIN", client_properties=CLOSES_POLITELY),
    ),
    bare(
        "a start-ok of 4096 octets",
        START,
        expect("connection.start"),
        sized_login(4096),
        expect("connection.tune"),
        tune_ok(),
        call("connection.open", 0, virtual_host="/"),
    ),
    bare("a start-ok of 4097 octets", START, expect("connection.start"), sized_login(4097)),
    bare("a frame of 4097 octets before tune-ok", *LOGGED_IN, frames((METHOD, 0, bytes(4097)))),
    bare("frame_max below the minimum", *LOGGED_IN, tune_ok(frame_max=4095)),
    bare(
        "frame_max of exactly 4096", *LOGGED_IN, tune_ok(frame_max=4096), call("connection.open", 0, virtual_host="/")
    ),
    bare("frame_max above the server's", *LOGGED_IN, tune_ok(frame_max=131073)),
    bare("frame_max without limit", *LOGGED_IN, tune_ok(frame_max=0)),
    bare("channel_max without limit", *LOGGED_IN, tune_ok(channel_max=0)),
    bare("channel_max above the server's", *LOGGED_IN, tune_ok(channel_max=2048)),
    bare("an unknown vhost", *TUNED, call("connection.open", 0, virtual_host="m-nowhere")),
    bare("an empty vhost", *TUNED, call("connection.open", 0, virtual_host="")),
    bare("tune-ok before start-ok", START, expect("connection.start"), tune_ok()),
    bare("open before tune-ok", *LOGGED_IN, call("connection.open", 0, virtual_host="/")),
    bare("start-ok twice", *LOGGED_IN, login()),
    bare("channel.open before connection.open", *TUNED, tell("channel.open", 1), expect("connection.close")),
    bare("a close in the middle of the handshake", *LOGGED_IN, call("connection.close", 0, reply_code=200)),
    case("connection.open twice", call("connection.open", 0, virtual_host="/"), start="connection"),
    case(
        "an unsolicited connection.close-ok",
        tell("connection.close-ok", 0),
        call("channel.open", 1),
        start="connection",
    ),
    case(
        "connection.update-secret with another password",
        call("connection.update-secret", 0, new_secret="wrong", reason="rotation"),
        call("channel.open", 1),
        start="connection",
    ),
    case("connection.update-secret with nothing", call("connection.update-secret", 0), start="connection"),
    case(
        "connection.update-secret on a channel",
        tell("connection.update-secret", 1, new_secret="x"),
        expect("connection.close"),
    ),
    case(
        "connection.update-secret with the same password",
        call("connection.update-secret", 0, new_secret="guest", reason="rotation"),
        start="connection",
    ),
]

OPENED: dict[str, Any] = {"start": "connection"}
SLOW: dict[str, Any] = {"alone": False}
GARBAGE = b"\x00\x32\x00\x0a\x00\x00\x05hello"

FRAMES = [
    case("a wrong end octet", send(frame(METHOD, 1, payload("basic.qos"), end=0x00)), **SLOW),
    case("an unknown frame type", frames((4, 1, b"xyz"))),
    case("frame type zero", frames((0, 1, b""))),
    case("a heartbeat on a channel", frames((HEARTBEAT, 1, b""))),
    case("a heartbeat with a payload", frames((HEARTBEAT, 0, b"abc"))),
    case("a frame over frame_max", frames((METHOD, 1, payload("basic.qos") + b"\0" * 4090)), frame_max=4096, **SLOW),
    case(
        "a body frame over frame_max",
        send(
            b"".join(
                (
                    frame(METHOD, 1, payload("basic.publish", routing_key="m.q")),
                    frame(HEADER, 1, header(9000)),
                    frame(BODY, 1, b"x" * 4097),
                )
            )
        ),
        frame_max=4096,
        **SLOW,
    ),
    case("a header frame out of nowhere", frames((HEADER, 1, header(1)))),
    case("a body frame out of nowhere", frames((BODY, 1, b"x"))),
    case(
        "a method where the header should be",
        frames((METHOD, 1, payload("basic.publish", routing_key="m.q")), (METHOD, 1, payload("basic.qos"))),
    ),
    case(
        "a body where the header should be",
        frames((METHOD, 1, payload("basic.publish", routing_key="m.q")), (BODY, 1, b"x")),
    ),
    case(
        "a method where the body should be",
        frames(
            (METHOD, 1, payload("basic.publish", routing_key="m.q")),
            (HEADER, 1, header(3)),
            (METHOD, 1, payload("basic.qos")),
        ),
    ),
    case(
        "a second header where the body should be",
        frames(
            (METHOD, 1, payload("basic.publish", routing_key="m.q")), (HEADER, 1, header(3)), (HEADER, 1, header(3))
        ),
    ),
    case(
        "a header of another class",
        frames((METHOD, 1, payload("basic.publish", routing_key="m.q")), (HEADER, 1, header(3, class_id=50))),
    ),
    case(
        "a body longer than announced",
        frames((METHOD, 1, payload("basic.publish", routing_key="m.q")), (HEADER, 1, header(3)), (BODY, 1, b"four")),
    ),
    case(
        "an empty body frame is allowed",
        frames(
            (METHOD, 1, payload("basic.publish", routing_key="m.q")),
            (HEADER, 1, header(3)),
            (BODY, 1, b""),
            (BODY, 1, b"abc"),
        ),
    ),
    case(
        "a content header cut short",
        frames((METHOD, 1, payload("basic.publish", routing_key="m.q")), (HEADER, 1, b"\x00\x3c\x00")),
    ),
    case("an unknown class", frames((METHOD, 1, struct.pack(">HH", 77, 10)))),
    case("an unknown method of a known class", frames((METHOD, 1, struct.pack(">HH", 50, 77)))),
    case("a method of the old file class", frames((METHOD, 1, struct.pack(">HH", 70, 10)))),
    case("a method frame without a method", frames((METHOD, 1, b""))),
    case("a method frame of three bytes", frames((METHOD, 1, b"\x00\x32\x00"))),
    case("a method cut short", frames((METHOD, 1, payload("queue.declare", queue="m.q")[:12]))),
    case("a table that is longer than its frame", frames((METHOD, 1, GARBAGE + b"\x00\x00\x00\x00\x10"))),
    case(
        "a table with an unknown type letter",
        call("queue.declare", queue="m.q", arguments=b"\x00\x00\x00\x04\x01aZ\x00"),
    ),
    case("a queue name that is not UTF-8", call("queue.declare", queue=b"m.\xff\xfe")),
    case(
        "header and body frames on channel 0",
        frames((HEADER, 0, header(1)), (BODY, 0, b"x")),
        expect("connection.close"),
        **OPENED,
    ),
    case("basic.publish on channel 0", pub("", "m.q", channel=0), expect("connection.close"), **OPENED),
    case("queue.declare on channel 0", tell("queue.declare", 0, queue="m.q"), expect("connection.close"), **OPENED),
    case("channel.open on channel 0", tell("channel.open", 0), expect("connection.close"), **OPENED),
    case(
        "an unknown class on channel 0",
        frames((METHOD, 0, struct.pack(">HH", 77, 10))),
        expect("connection.close"),
        **OPENED,
    ),
    case("connection.open on channel 1", tell("connection.open", 1, virtual_host="/"), expect("connection.close")),
    case("connection.tune sent by the client", tell("connection.tune", 0), expect("connection.close"), **OPENED),
]
