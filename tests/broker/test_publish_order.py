"""The stages of the publish path come in order: of two faults in one publish, the earlier stage speaks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.harness import Client, Core
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
    core.broker.max_message_size = 100
    admin = core.client()
    admin.call("exchange.declare", exchange="internal", type="fanout", internal=True)
    admin.call("exchange.declare", exchange="topics", type="topic")
    access = core.broker.access
    access.add_user("eve", "eve", [])
    access.set_permissions("eve", "/", ".*", "^(?!forbidden).*", ".*")
    access.set_topic_permissions("eve", "/", "topics", "^(?!secret).*", ".*")
    return core.client("eve", "eve")


def publish(client: Client, *faults: dict[str, object]) -> str:
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
    assert publish(eve) == ""


@pytest.mark.parametrize("stage", range(len(STAGES)), ids=[name for name, _, _ in STAGES])
def test_each_stage_refuses_its_fault(eve: Client, stage: int) -> None:
    _, fault, words = STAGES[stage]
    assert words in publish(eve, fault)


PAIRS = [
    (first, second)
    for first in range(len(STAGES))
    for second in range(first + 1, len(STAGES))
    if compatible(STAGES[first][1], STAGES[second][1])
]


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=[f"{STAGES[a][0]} before {STAGES[b][0]}" for a, b in PAIRS])
def test_of_two_faults_the_earlier_stage_speaks(eve: Client, first: int, second: int) -> None:
    assert STAGES[first][2] in publish(eve, STAGES[first][1], STAGES[second][1])
