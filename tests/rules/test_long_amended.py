"""A very long body goes to the log as it comes, whatever interceptors do to its message."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.limits.gate import advance
from tests.rules.test_long_bodies import BODY, MIB
from tests.rules.test_long_letters import Traffic
from warrenmq.broker.extensions.interceptor import amended, load_interceptors
from warrenmq.broker.publish.unfinished import AT_ONCE
from warrenmq.broker.records import BasicMessage, Content
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import FRAME_MAX, Got
from warrenmq.wire.content import encode_header
from warrenmq.wire.methods import method_frame

pytestmark = pytest.mark.pure


class Reads:
    """Looks into the body, and lets it be."""

    name = "reads"

    def amend(self, message: BasicMessage) -> BasicMessage:
        properties = message.content.properties.copy()
        properties.app_id = str(message.content.body.count(b" "))
        return amended(message, properties)


class Shortens:
    """Makes another body of it."""

    name = "shortens"

    def amend(self, message: BasicMessage) -> BasicMessage:
        body = message.content.body[: 2 * MIB]
        content = Content(encode_header(message.content.properties, len(body)), body)
        return BasicMessage(message.exchange_name, message.routing_keys, content, message.id, True)


class Lengthens:
    """Makes a very long body of whatever came."""

    name = "lengthens"

    def amend(self, message: BasicMessage) -> BasicMessage:
        content = Content(encode_header(message.content.properties, len(BODY)), BODY)
        return BasicMessage(message.exchange_name, message.routing_keys, content, message.id, message.is_persistent)


reads, shortens, lengthens = Reads(), Shortens(), Lengthens()
SLICE = AT_ONCE + 2 * MIB  # octets of a turn, with what else is written in it


@pytest.mark.parametrize("name", ["timestamp", f"{__name__}:reads", f"{__name__}:shortens"])
def test_it_is_logged_as_it_comes_and_delivered_as_amended(tmp_path: Path, name: str) -> None:
    files = Traffic()
    core = Core(tmp_path, files)
    core.broker.interceptors = load_interceptors([name], "node", core.clock)
    client = core.client(persistent=True)
    client.declare("q")
    frames = client.published("", "q", BODY)
    files.take()
    written = []
    for start in range(0, len(frames), FRAME_MAX):
        client.feed(frames[start : start + FRAME_MAX])
        core.log.flush()
        written.append(files.take()[1])
    assert sum(written) > len(BODY) and max(written) < 4 * MIB
    got = client.call("basic.get", queue="q", no_ack=True)
    assert got.properties is not None
    if name == "timestamp":
        assert "timestamp_in_ms" in got.headers
    elif name.endswith("reads"):
        assert got.properties.app_id == str(len(BODY) // 8)
    assert got.body == (BODY[: 2 * MIB] if name.endswith("shortens") else BODY)


@pytest.fixture
def lengthening(tmp_path: Path) -> Iterator[tuple[Core, Traffic]]:
    files = Traffic()
    with Core(tmp_path, files) as core:
        core.broker.interceptors = load_interceptors([f"{__name__}:lengthens"], "node", core.clock)
        yield core, files


def slices(core: Core, files: Traffic) -> list[int]:
    """What was written in each turn until nothing more is to be done."""
    core.log.flush()
    written = [files.take()[1]]
    while core.broker.services.jobs.busy():
        advance(core, 1)
        core.log.flush()
        written.append(files.take()[1])
    return written


def names(got: list[Got]) -> list[str]:
    return [each.name for each in got]


@pytest.mark.parametrize("body", [b"", b"short", b"in many frames" * 100_000], ids=["none", "short", "long"])
def test_a_body_that_an_interceptor_makes_long_is_logged_some_a_turn(
    lengthening: tuple[Core, Traffic], body: bytes
) -> None:
    core, files = lengthening
    client, other = core.client(persistent=True), core.client(persistent=True)
    client.declare("q", durable=True)
    client.call("confirm.select")
    client.take()
    files.take()
    client.feed(client.published("", "q", body) + method_frame(1, "basic.get", queue="q", no_ack=True))
    assert core.ready("q") == 0
    other.declare("others", durable=True)  # nobody else waits
    written = slices(core, files)
    assert sum(written) > len(BODY) and max(written) < SLICE
    core.commit()
    got = client.take()
    assert sorted(names(got)) == ["basic.ack", "basic.get-ok"]  # what came behind it found it
    assert [each.body for each in got if each.name == "basic.get-ok"] == [BODY]


def test_it_is_returned_before_it_is_confirmed(lengthening: tuple[Core, Traffic]) -> None:
    core, files = lengthening
    client = core.client(persistent=True)
    client.call("exchange.declare", exchange="e", type="headers", durable=True)
    client.call("confirm.select")
    client.take()
    client.feed(client.published("e", "nowhere", b"x", mandatory=True))
    slices(core, files)
    core.commit()
    got = client.take()
    assert names(got) == ["basic.return", "basic.ack"] and got[0].body == BODY


def test_it_takes_part_in_a_transaction(lengthening: tuple[Core, Traffic]) -> None:
    core, files = lengthening
    client = core.client(persistent=True)
    client.declare("q", durable=True)
    client.call("tx.select")
    client.take()
    files.take()
    client.feed(client.published("", "q", b"x") + method_frame(1, "tx.commit"))
    assert max(slices(core, files)) < SLICE
    core.commit()
    assert names(client.take()) == ["tx.commit-ok"]
    assert client.call("basic.get", queue="q", no_ack=True).body == BODY


def test_what_is_deleted_meanwhile_refuses_it_as_if_it_came_now(lengthening: tuple[Core, Traffic]) -> None:
    core, files = lengthening
    client, other = core.client(persistent=True), core.client()
    client.call("exchange.declare", exchange="e", type="direct", durable=True)
    client.declare("q", durable=True)
    client.call("queue.bind", queue="q", exchange="e", routing_key="q")
    client.take()
    client.feed(client.published("e", "q", b"x"))
    other.call("exchange.delete", exchange="e")
    slices(core, files)
    (closed,) = client.take()
    assert (closed.name, closed["reply_code"]) == ("channel.close", 404)
    assert core.ready("q") == 0


@pytest.mark.parametrize("transaction", [False, True], ids=["at once", "in a transaction"])
def test_a_publisher_that_goes_has_published_what_was_there(
    lengthening: tuple[Core, Traffic], transaction: bool
) -> None:
    core, files = lengthening
    client = core.client(persistent=True)
    client.declare("q", durable=True)
    if transaction:
        client.call("tx.select")
    client.feed(client.published("", "q", b"x"))
    core.broker.begin_turn()
    client.connection.lost("gone")
    core.end_turn()
    slices(core, files)
    assert core.ready("q") == (0 if transaction else 1)
