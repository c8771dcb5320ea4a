"""Longer conversations gone wrong: handshakes out of order, channels closed in the middle, content in pieces, tx."""

from __future__ import annotations

import struct

from tests.conformance.misuse_handshake import LOGGED_IN, START, TUNED, bare, login, tune_ok
from tests.conformance.steps import (
    LIMITED,
    Case,
    Step,
    call,
    case,
    exchange,
    expect,
    frames,
    open_channel,
    pub,
    queue,
    raw_method,
    send,
    silence,
    tell,
)
from tests.support.rawclient import BODY, HEADER, HEARTBEAT, METHOD, frame, header, longstr, payload, publish, table

STARTED: tuple[Step, ...] = (START, expect("connection.start"))
OPENED: Step = call("connection.open", 0, virtual_host="/")
TOLD = {"capabilities": {"authentication_failure_close": True}}
TO_Q = payload("basic.publish", routing_key="m.q")


def amqplain(values: dict[str, object]) -> Step:
    return login(table(values)[4:], "AMQPLAIN", client_properties=TOLD)


HANDSHAKES = [
    bare("a heartbeat before start-ok", *STARTED, frames((HEARTBEAT, 0, b"")), login(), expect("connection.tune"),
         tune_ok(), OPENED),
    bare("a method on a channel before start-ok", *STARTED, tell("channel.open", 1)),
    bare("a body before start-ok", *STARTED, frames((BODY, 0, b"x"))),
    bare("an unknown frame type before start-ok", *STARTED, frames((9, 0, b"x"))),
    bare("a wrong end octet before start-ok", *STARTED, send(frame(METHOD, 0, payload("connection.tune-ok"), end=0))),
    bare("secure-ok that nobody asked for", *STARTED, tell("connection.secure-ok", 0, response="x")),
    bare("an empty mechanism", *STARTED, login(mechanism="")),
    bare("a mechanism in lower case", *STARTED, login(mechanism="plain")),
    bare("another locale", *STARTED, tell("connection.start-ok", 0, mechanism="PLAIN", response="\0guest\0guest",
                                          locale="tlh"), expect("connection.tune"), tune_ok(), OPENED),
    bare("no locale", *STARTED, tell("connection.start-ok", 0, mechanism="PLAIN", response="\0guest\0guest"),
         expect("connection.tune"), tune_ok(), OPENED),
    bare("PLAIN on behalf of another", *STARTED, login("somebody\0guest\0guest"), expect("connection.tune"),
         tune_ok(), OPENED),
    bare("PLAIN with an empty user", *STARTED, login("\0\0guest", client_properties=TOLD)),
    bare("PLAIN with an empty password", *STARTED, login("\0guest\0", client_properties=TOLD)),
    bare("PLAIN with nothing", *STARTED, login("", client_properties=TOLD)),
    bare("PLAIN with a zero in the password", *STARTED, login("\0guest\0gu\0est", client_properties=TOLD)),
    bare("an unknown user, told", *STARTED, login("\0nobody\0x", client_properties=TOLD)),
    bare("AMQPLAIN with a wrong password", *STARTED, amqplain({"LOGIN": "guest", "PASSWORD": "wrong"})),
    bare("AMQPLAIN with a login that is a number", *STARTED, amqplain({"LOGIN": 5, "PASSWORD": "guest"})),
    bare("AMQPLAIN without a password", *STARTED, amqplain({"LOGIN": "guest"})),
    bare("AMQPLAIN with nothing", *STARTED, login(b"", "AMQPLAIN", client_properties=TOLD)),
    bare("AMQPLAIN with garbage", *STARTED, login(b"\x05LOG", "AMQPLAIN", client_properties=TOLD)),
    bare("AMQPLAIN with more", *STARTED, amqplain({"LOGIN": "guest", "PASSWORD": "guest", "x": 1}),
         expect("connection.tune"), tune_ok(), OPENED),
    bare("capabilities that are no table", *STARTED, login(client_properties={"capabilities": "none"}),
         expect("connection.tune"), tune_ok(), OPENED),
    bare("a capability that is no bool", *STARTED, login("\0guest\0no", client_properties={
        "capabilities": {"authentication_failure_close": 1}})),
    bare("start-ok cut short", *STARTED, frames((METHOD, 0, payload("connection.start-ok")[:9]))),
    bare("tune-ok twice", *TUNED, tune_ok()),
    bare("open on a channel", *TUNED, tell("connection.open", 1, virtual_host="/")),
    bare("close before open", *TUNED, call("connection.close", 0, reply_code=200)),
    bare("close-ok before open", *TUNED, tell("connection.close-ok", 0)),
    bare("open with capabilities and insist", *TUNED, call(
        "connection.open", 0, virtual_host="/", capabilities="x", insist=True)),
    bare("a vhost with a slash too many", *TUNED, call("connection.open", 0, virtual_host="//")),
    bare("a vhost that is not UTF-8", *TUNED, call("connection.open", 0, virtual_host=b"\xff")),
    bare("a heartbeat between tune-ok and open", *TUNED, frames((HEARTBEAT, 0, b"")), OPENED),
    bare("update-secret before open", *TUNED, tell("connection.update-secret", 0, new_secret="x")),
    bare("a publish before open", *TUNED, send(publish(1, "", "m.q", b"x"))),
    bare("tune-ok with a heartbeat of 65535", *LOGGED_IN, tune_ok(heartbeat=65535), OPENED),
    bare("everything at once", send(b"AMQP\x00\x00\x09\x01" + raw_method(
        0, "connection.start-ok", mechanism="PLAIN", response="\0guest\0guest", locale="en_US") + raw_method(
        0, "connection.tune-ok", channel_max=7, frame_max=131072) + raw_method(0, "connection.open", virtual_host="/")
        + raw_method(1, "channel.open")), expect("channel.open-ok")),
]

CHANNELS = [
    case("a close of the channel in the middle of content", frames((METHOD, 1, TO_Q), (HEADER, 1, header(3))),
         tell("channel.close", 1, reply_code=200), expect("connection.close")),
    case("a close of the channel where the header should be", frames((METHOD, 1, TO_Q)),
         tell("channel.close", 1, reply_code=200), expect("connection.close")),
    case("a heartbeat in the middle of content", queue(), frames(
        (METHOD, 1, TO_Q), (HEADER, 1, header(3)), (HEARTBEAT, 0, b""), (BODY, 1, b"abc")),
        call("basic.get", queue="m.q")),
    case("content of two channels interleaved", queue(), open_channel(2), frames(
        (METHOD, 1, TO_Q), (METHOD, 2, TO_Q), (HEADER, 2, header(3)), (HEADER, 1, header(2)), (BODY, 2, b"two"),
        (BODY, 1, b"on")), call("basic.qos", 2), call("basic.qos", 1), silence,
        call("queue.declare", queue="m.q", passive=True)),
    case("a method on another channel in the middle of content", queue(), open_channel(2), frames(
        (METHOD, 1, TO_Q), (HEADER, 1, header(3))), call("basic.qos", 2), frames((BODY, 1, b"abc")),
        silence, call("queue.declare", queue="m.q", passive=True)),
    case("a fault on another channel in the middle of content", queue(), open_channel(2), frames(
        (METHOD, 1, TO_Q), (HEADER, 1, header(3))), call("queue.declare", 2, queue="m.none", passive=True),
        frames((BODY, 1, b"abc")), silence, call("queue.declare", queue="m.q", passive=True)),
    case("a body behind a message without one", queue(), frames(
        (METHOD, 1, TO_Q), (HEADER, 1, header(0)), (BODY, 1, b"x"))),
    case("an empty body behind a message without one", queue(), frames(
        (METHOD, 1, TO_Q), (HEADER, 1, header(0)), (BODY, 1, b""))),
    case("a body of ten pieces", queue(), frames(
        (METHOD, 1, TO_Q), (HEADER, 1, header(10)), *[(BODY, 1, b"%d" % digit) for digit in range(10)]),
        call("basic.get", queue="m.q")),
    case("a body one octet too long in its last piece", queue(), frames(
        (METHOD, 1, TO_Q), (HEADER, 1, header(3)), (BODY, 1, b"ab"), (BODY, 1, b"cd"))),
    case("content behind a closed channel", call("queue.declare", queue="m.none", passive=True), pub("", "m.q", b"x"),
         expect("connection.close")),
    case("a method behind channel.close", tell("channel.close", 1, reply_code=200), expect("channel.close-ok"),
         tell("basic.qos", 1), expect("connection.close")),
    case("channel.close-ok on a channel never opened", tell("channel.close-ok", 7), silence),
    case("channel.flow-ok sent by the client", tell("channel.flow-ok", 1, active=True), silence),
    case("channel.open with an argument", tell("channel.open", 9, out_of_band="x"), expect("channel.open-ok")),
    case("basic.cancel-ok for nobody", tell("basic.cancel-ok", 1, consumer_tag="x"), silence),
    case("access.request for nothing", call("access.request", realm="")),
    case("recover-async is not answered", queue(), pub("", "m.q"), call("basic.get", queue="m.q"),
         tell("basic.recover-async", requeue=True), call("basic.qos")),
    case("qos with everything", call("basic.qos", prefetch_count=65535, global_=True)),
    case("a get from a queue named by nothing", call("basic.get", queue="")),
    case("a consume from a queue named by nothing", call("basic.consume", queue="")),
    case("a purge of a queue named by nothing", call("queue.purge", queue="")),
    case("a delete of a queue named by nothing", call("queue.delete", queue="")),
    case("a bind of a queue named by nothing", exchange(), call("queue.bind", queue="", exchange="m.x")),
    case("a queue named by nothing is the last declared", queue(), call("basic.get", queue="")),
    case("a queue named by nothing in a passive declare", queue(), call("queue.declare", queue="", passive=True)),
    case("a deleted queue named by nothing", queue(), call("queue.delete", queue="m.q"), call("basic.get", queue="")),
    case("a nowait declare that fails", tell("queue.declare", queue="m.none", passive=True, nowait=True),
         expect("channel.close")),
    case("a nowait consume of a missing queue", tell("basic.consume", queue="m.none", nowait=True),
         expect("channel.close")),
    case("a nowait cancel of an unknown tag", tell("basic.cancel", consumer_tag="x", nowait=True), call("basic.qos")),
    case("names of 255 octets", call("queue.delete", queue="q" * 255), call("exchange.delete", exchange="x" * 255)),
    case("a queue name with a line break", call("queue.declare", queue="m.\r\nq"), call("queue.delete", queue="m.q")),
    case("an exchange name with a line break", call("exchange.declare", exchange="m.\nx", type="direct"),
         call("exchange.delete", exchange="m.x")),
    case("a consumer tag with a line break", queue(), call("basic.consume", queue="m.q", consumer_tag="a\r\nb")),
]

TX = [
    case("an immediate publish in a transaction", call("tx.select"), pub("", "m.q", immediate=True),
         expect("connection.close")),
    case("a wrong user-id in a transaction", call("tx.select"), pub("", "m.q", user_id="x"), call("tx.commit")),
    case("a wrong CC in a transaction", call("tx.select"), pub("", "m.q", headers={"CC": 1}), call("tx.commit")),
    case("an internal exchange in a transaction", exchange(internal=True), call("tx.select"), pub("m.x", "k"),
         call("tx.commit")),
    case("no permission in a transaction", call("tx.select"), pub("forbidden", "k"), call("tx.commit"), user=LIMITED),
    case("an unknown tag nacked in a transaction", call("tx.select"), tell("basic.nack", delivery_tag=5),
         call("tx.commit")),
    case("an unknown tag rejected in a transaction", call("tx.select"), tell("basic.reject", delivery_tag=5),
         call("tx.commit")),
    case("tag 0 with multiple in a transaction and nothing outstanding", call("tx.select"),
         tell("basic.ack", delivery_tag=0, multiple=True), call("tx.commit")),
    case("all acked with tag 0 in a transaction", queue(), pub("", "m.q"), pub("", "m.q"), call("tx.select"),
         call("basic.get", queue="m.q"), call("basic.get", queue="m.q"),
         tell("basic.ack", delivery_tag=0, multiple=True), call("tx.commit"),
         call("queue.declare", queue="m.q", passive=True), call("basic.recover", requeue=True)),
    case("an ack that is rolled back, then recovered", queue(), pub("", "m.q"), call("tx.select"),
         call("basic.get", queue="m.q"), tell("basic.ack", delivery_tag=1), call("tx.rollback"),
         call("basic.recover", requeue=True), call("basic.get", queue="m.q")),
    case("recover does not see what a transaction acked", queue(), pub("", "m.q"), call("tx.select"),
         call("basic.get", queue="m.q"), tell("basic.ack", delivery_tag=1), call("basic.recover", requeue=True),
         call("tx.commit"), call("queue.declare", queue="m.q", passive=True)),
    case("a close with an open transaction", queue(), call("tx.select"), pub("", "m.q"),
         call("channel.close", reply_code=200), open_channel(1), call("queue.declare", queue="m.q", passive=True)),
    case("a full queue at commit", queue(arguments={"x-max-length": 0, "x-overflow": "reject-publish"}),
         call("tx.select"), pub("", "m.q"), call("tx.commit")),
    case("two messages for a queue with room for one at commit",
         queue(arguments={"x-max-length": 1, "x-overflow": "reject-publish"}), call("tx.select"), pub("", "m.q"),
         pub("", "m.q"), call("tx.commit"), open_channel(1)),
    case("a queue deleted before the commit", queue(), call("tx.select"), pub("", "m.q"),
         call("queue.delete", queue="m.q"), call("tx.commit")),
    case("a queue deleted before the commit of a mandatory message", queue(), call("tx.select"),
         pub("", "m.q", mandatory=True), call("queue.delete", queue="m.q"), call("tx.commit")),
    case("a queue declared between publish and commit", call("tx.select"), pub("", "m.q"), queue(), call("tx.commit"),
         call("queue.declare", queue="m.q", passive=True)),
    case("returns of one commit in order", call("tx.select"), pub("", "m.none", b"1", mandatory=True),
         pub("", "m.none", b"2", mandatory=True), call("tx.commit")),
    case("commit and rollback with arguments", call("tx.select"), frames((METHOD, 1, payload("tx.commit") + b"\x00"))),
    case("confirm.select cut short", frames((METHOD, 1, payload("confirm.select")[:4]))),
    case("a wrong type in a nested header in a transaction", call("tx.select"), frames(
        (METHOD, 1, TO_Q), (HEADER, 1, struct.pack(">HHQH", 60, 0, 0, 0x2000) + longstr(
            b"\x01aF" + longstr(b"\x01bZ")))), expect("connection.close")),
]
DIALOGUES: list[Case] = [*HANDSHAKES, *CHANNELS, *TX]
