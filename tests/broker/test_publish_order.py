"""The stages of the publish path come in order, as the page of code and its documentation say.

Of two faults in one publish the earlier stage speaks; and a message is followed through the functions of the stages.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest

from tests.broker.harness import Client, Core
from warrenmq.broker import broker, channel, outcomes, publish
from warrenmq.broker.interceptor import load_interceptors
from warrenmq.wire.content import Properties
from warrenmq.wire.fields import Field

# In order: the fault, what it does to the publish, and the words by which its refusal is known.
STAGES = [
    ("immediate", {"immediate": True}, "immediate=true"),
    ("size", {"body": b"x" * 101}, "message size 101 is larger than configured max size 100"),
    ("write permission", {"exchange": "forbidden"}, "refused for user 'eve'"),
    ("exchange lookup", {"exchange": "missing"}, "no exchange 'missing' in vhost '/'"),
    ("internal", {"exchange": "internal"}, "cannot publish to internal exchange"),
    ("topic permission", {"exchange": "topics", "routing_key": "secret"}, "access to topic 'secret'"),
    ("reply-to", {"reply_to": "amq.rabbitmq.reply-to"}, "fast reply consumer does not exist"),
    ("user-id", {"user_id": "adam"}, "user_id property set to 'adam'"),
    ("expiration", {"expiration": "soon"}, "invalid expiration 'soon'"),
    ("CC", {"CC": "not a list"}, "unacceptable_type_in_header"),
    ("delivery mode", {"delivery_mode": 9}, "delivery_mode_unknown"),
]
PROPERTIES = ("reply_to", "user_id", "expiration", "delivery_mode")


@pytest.fixture
def eve(tmp_path: Path) -> Client:
    core = Core(tmp_path)
    core.broker.limits.max_message_size = 100
    admin = core.client()
    admin.call("exchange.declare", exchange="internal", type="fanout", internal=True)
    admin.call("exchange.declare", exchange="topics", type="topic")
    access = core.broker.access
    access.add_user("eve", "eve", [])
    access.set_permissions("eve", "/", ".*", "^(?!forbidden).*", ".*")
    access.set_topic_permissions("eve", "/", "topics", "^(?!secret).*", ".*")
    return core.client("eve", "eve")


def published(client: Client, *faults: dict[str, object]) -> str:
    """Publish with these faults at once; what the refusal says."""
    wanted: dict[str, object] = {"exchange": "topics", "routing_key": "fine", "body": b"x"}
    for fault in reversed(faults):  # the earlier stage decides where both want the same field
        wanted.update(fault)
    properties = Properties()
    for name in PROPERTIES:
        setattr(properties, name, wanted.get(name))
    if "CC" in wanted:
        properties.headers = {"CC": Field("S", str(wanted["CC"]))}
    client.take()
    body = wanted["body"]
    assert isinstance(body, bytes)
    client.publish(
        str(wanted["exchange"]),
        str(wanted["routing_key"]),
        body,
        properties,
        immediate=wanted.get("immediate") is True,
    )
    closes = [got for got in client.take() if got.name.endswith(".close")]
    return str(closes[0]["reply_text"]) if closes else ""


def compatible(first: dict[str, object], second: dict[str, object]) -> bool:
    return not set(first) & set(second) or first == second


def test_a_publish_without_fault_passes_every_stage(eve: Client) -> None:
    assert published(eve) == ""


@pytest.mark.parametrize("stage", range(len(STAGES)), ids=[name for name, _, _ in STAGES])
def test_each_stage_refuses_its_fault(eve: Client, stage: int) -> None:
    _, fault, words = STAGES[stage]
    assert words in published(eve, fault)


PAIRS = [
    (first, second)
    for first in range(len(STAGES))
    for second in range(first + 1, len(STAGES))
    if compatible(STAGES[first][1], STAGES[second][1])
]


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=[f"{STAGES[a][0]} before {STAGES[b][0]}" for a, b in PAIRS])
def test_of_two_faults_the_earlier_stage_speaks(eve: Client, first: int, second: int) -> None:
    assert STAGES[first][2] in published(eve, STAGES[first][1], STAGES[second][1])


# -- the lists, and the way a message takes --------------------------------------------------------------------------


class Watching:
    """An interceptor of methods and messages that changes neither."""

    name = "watching"

    def intercept(self, method: object, channel: object) -> object:
        return method

    def amend(self, message: object) -> object:
        return message


FUNCTIONS: dict[str, Callable[..., object]] = {
    "interceptors": broker.Broker.intercept,
    "immediate": publish.refuse_immediate,
    "size": publish.check_size,
    "write permission": publish.check_write_permission,
    "exchange lookup": publish.lookup_exchange,
    "internal": publish.refuse_internal,
    "topic permission": publish.check_topic_permission,
    "reply-to": publish.check_reply_to,
    "user-id": publish.check_user_id,
    "expiration": publish.read_expiration,
    "sequence number": channel.Channel.take_seqno,
    "CC and BCC": publish.read_routing_keys,
    "delivery mode": publish.check_delivery_mode,
    "message interceptors": broker.Broker.amend,
    "route": publish.find_queues,
    "firehose": publish.tap,
    "deliver": outcomes.publish,
    "outcome": outcomes.settle,
}


def listed() -> list[str]:
    """The stages at the head of the page of code."""
    text = Path(__file__).parents[2].joinpath("src/warrenmq/broker/publish.py").read_text()
    return re.findall(r"^    (\S+(?: \S+)*)(?: {2,}.*)?$", text[: text.index("A test reads this list")], re.MULTILINE)


def test_the_page_of_code_lists_the_stages_that_the_documentation_lists() -> None:
    text = Path(__file__).parents[2].joinpath("docs/publishing.md").read_text()
    rows = [line[2:].partition(" | ")[0] for line in text.partition("\n## ")[0].splitlines() if line.startswith("| ")]
    assert len(rows) - 1 == len(listed())  # and the head of the table
    for row, name in zip(rows[1:], listed(), strict=True):
        assert re.match(rf"{re.escape(name)}\b", row), (row, name)


def test_the_faults_above_are_listed_in_the_order_of_the_stages() -> None:
    names = [next(one for one in listed() if one.startswith(name)) for name, _, _ in STAGES]
    assert names == [one for one in listed() if one in names]


@pytest.mark.pure
def test_a_message_takes_the_stages_in_the_order_of_the_list(tmp_path: Path) -> None:
    if not hasattr(publish.publish, "__code__"):
        pytest.skip("compiled functions cannot be followed: the uncompiled run does it")
    core = Core(tmp_path)
    core.broker.interceptors = load_interceptors([f"{__name__}:Watching"], "node", core.clock)
    client = core.client()
    client.call("queue.declare", queue="q")
    client.call("confirm.select")
    names = {function.__code__: name for name, function in FUNCTIONS.items()}
    met: list[str] = []

    def note(frame: FrameType, event: str, argument: object) -> None:
        name = names.get(frame.f_code)
        if event == "call" and name is not None and name not in met:
            met.append(name)

    properties = Properties()
    properties.headers = {"CC": Field("A", [Field("S", "nobody")])}
    sys.setprofile(note)
    try:
        client.publish("amq.topic", "q", b"x", properties, mandatory=True)
    finally:
        sys.setprofile(None)
    assert met == listed()
