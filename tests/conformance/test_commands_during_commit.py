"""What a channel answers to commands that arrive before its tx.commit is answered: RabbitMQ's answers, and ours.

Everything goes out in one write, so that the command is there before the queues have told RabbitMQ's channel that they
took the messages. Nearly always: RabbitMQ's processes may be scheduled so that a queue is faster. It is asked until it
gives the answer that Warren gave, and never gives anything but that or the answer of a commit that was over already.
"""

from __future__ import annotations

import pytest

from tests.support.brokers import RunningBroker, rabbitmq, warren  # noqa: F401 (fixtures)
from tests.support.rawclient import Frame, RawClient, method, publish

TRIES = 50
UNEXPECTED = "connection.close 504 CHANNEL_ERROR - unexpected command while processing 'tx.commit'"
COMMITS = {
    "persistent": publish(1, "", "commit.durable", b"x", delivery_mode=2),
    "transient": publish(1, "", "commit.transient", b"x"),
    "nothing": b"",
    "unroutable": publish(1, "", "commit.none", b"x"),
    "an acknowledgement": method(1, "basic.ack", delivery_tag=1),
}
WAITING = ("persistent", "transient")  # commits that queues have to answer
REFUSED = {
    "ack": (method(1, "basic.ack", delivery_tag=1), "60/80"),
    "ack of an unknown tag": (method(1, "basic.ack", delivery_tag=99), "60/80"),
    "nack": (method(1, "basic.nack", delivery_tag=1), "60/120"),
    "reject": (method(1, "basic.reject", delivery_tag=1), "60/90"),
    "publish": (publish(1, "", "commit.transient", b"y"), "60/40"),
    "publish without a body": (publish(1, "", "commit.transient"), "60/40"),
    "publish to no exchange": (publish(1, "none", "key", b"y"), "60/40"),
    "publish in many frames": (publish(1, "", "commit.transient", b"y" * 100, frame_max=18), "60/40"),
    "get": (method(1, "basic.get", queue="commit.transient", no_ack=True), "60/70"),
    "consume": (method(1, "basic.consume", queue="commit.transient"), "60/20"),
    "qos": (method(1, "basic.qos", prefetch_count=3), "60/10"),
    "recover": (method(1, "basic.recover", requeue=True), "60/110"),
    "declare": (method(1, "queue.declare", queue="commit.more"), "50/10"),
    "commit": (method(1, "tx.commit"), "90/20"),
    "rollback": (method(1, "tx.rollback"), "90/30"),
    "select": (method(1, "tx.select"), "90/10"),
    "confirm.select": (method(1, "confirm.select"), "85/10"),
    "flow": (method(1, "channel.flow", active=True), "20/20"),
    "close-ok": (method(1, "channel.close-ok"), "20/41"),
    "a method of brokers": (method(1, "basic.get-empty"), "60/72"),
}
CLOSE = method(1, "channel.close", reply_code=200)
END = method(0, "connection.close", reply_code=200)


def shown(frame: Frame) -> str:
    if not frame.name.endswith(".close"):
        return frame.name
    values = frame.values
    return f"{frame.name} {values['reply_code']} {values['reply_text']} {values['class_id']}/{values['method_id']}"


def answers(broker: RunningBroker, committed: str, command: bytes) -> list[str]:
    """What comes for a transaction, its commit and the command in one write, followed by the end of the connection."""
    with RawClient(broker.port) as client:
        client.handshake().open(1)
        client.call(1, "queue.declare", queue="commit.durable", durable=True, auto_delete=True)
        client.call(1, "queue.declare", queue="commit.transient", exclusive=True)
        client.publish(1, "", "commit.transient", b"outstanding")
        client.call(1, "basic.get", queue="commit.transient")
        client.call(1, "tx.select")
        before = len(client.frames)
        client.send(COMMITS[committed] + method(1, "tx.commit") + command)
        if committed not in WAITING:
            client.wait("basic.qos-ok")
        elif command == CLOSE:
            client.wait("channel.close-ok")
        elif command != END:
            client.wait("connection.close", "tx.commit-ok")  # the latter when RabbitMQ's queue was faster
        client.send(END)
        while (frame := client.read()) is not None and not frame.name.startswith("connection.close"):
            pass
        return [shown(frame) for frame in client.frames[before:] if frame.name != "connection.close-ok"]


def ask(broker: RunningBroker, committed: str, command: bytes, expected: list[str]) -> None:
    for _ in range(TRIES if not broker.is_warren else 1):
        found = answers(broker, committed, command)
        if found == expected:
            return
        assert not broker.is_warren and found[0] == "tx.commit-ok", found
    raise AssertionError(f"in {TRIES} tries RabbitMQ never said {expected}, but {found}")


@pytest.fixture(params=["warren", "rabbitmq"])
def asked(request: pytest.FixtureRequest) -> RunningBroker:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, RunningBroker)
    return found


@pytest.mark.parametrize("committed", WAITING)
@pytest.mark.parametrize("command", REFUSED)
def test_a_command_before_the_commit_is_answered_ends_the_connection(
    asked: RunningBroker, committed: str, command: str
) -> None:
    sent, ids = REFUSED[command]
    ask(asked, committed, sent, [f"{UNEXPECTED} {ids}"])


@pytest.mark.parametrize("committed", WAITING)
def test_a_second_open_is_refused_for_itself(asked: RunningBroker, committed: str) -> None:
    second = "connection.close 504 CHANNEL_ERROR - second 'channel.open' seen 20/10"
    ask(asked, committed, method(1, "channel.open"), [second])


@pytest.mark.parametrize("committed", WAITING)
def test_a_close_is_answered_and_the_commit_not_any_more(asked: RunningBroker, committed: str) -> None:
    ask(asked, committed, CLOSE, ["channel.close-ok"])


@pytest.mark.parametrize("committed", WAITING)
def test_the_end_of_the_connection_is_answered_and_the_commit_not_any_more(
    asked: RunningBroker, committed: str
) -> None:
    ask(asked, committed, END, [])


@pytest.mark.parametrize("committed", [name for name in COMMITS if name not in WAITING])
def test_a_commit_that_no_queue_has_to_answer_is_over_at_once(asked: RunningBroker, committed: str) -> None:
    ask(asked, committed, method(1, "basic.qos", prefetch_count=3), ["tx.commit-ok", "basic.qos-ok"])


@pytest.mark.parametrize("committed", WAITING)
def test_a_publish_counts_once_its_content_is_there(asked: RunningBroker, committed: str) -> None:
    """Its method alone may come while the commit is under way; the rest then belongs to the next transaction."""
    whole = publish(1, "", "commit.transient", b"later")
    first = len(method(1, "basic.publish", routing_key="commit.transient"))
    with RawClient(asked.port) as client:
        client.handshake().open(1)
        client.call(1, "queue.declare", queue="commit.durable", durable=True, auto_delete=True)
        client.call(1, "queue.declare", queue="commit.transient", exclusive=True)
        client.call(1, "tx.select")
        client.send(COMMITS[committed] + method(1, "tx.commit") + whole[:first])
        assert client.wait("tx.commit-ok").name == "tx.commit-ok"
        client.send(whole[first:])
        assert client.call(1, "tx.commit").name == "tx.commit-ok"
        counted = client.call(1, "queue.declare", queue="commit.transient", passive=True)
        assert counted.values["message_count"] == (2 if committed == "transient" else 1)


@pytest.mark.parametrize("committed", WAITING)
def test_what_was_committed_stays_whatever_came_behind(asked: RunningBroker, committed: str) -> None:
    name = "commit.stays"
    with RawClient(asked.port) as client:
        client.handshake().open(1)
        client.call(1, "queue.delete", queue=name)
        client.call(1, "queue.declare", queue=name, durable=True)
        client.call(1, "tx.select")
        mode = 2 if committed == "persistent" else 1
        client.send(publish(1, "", name, b"x", delivery_mode=mode) + method(1, "tx.commit") + method(1, "tx.rollback"))
        client.wait("connection.close", "tx.rollback-ok")
    with RawClient(asked.port) as client:
        client.handshake().open(1)
        assert client.call(1, "queue.declare", queue=name, passive=True).values["message_count"] == 1
        client.call(1, "queue.delete", queue=name)
