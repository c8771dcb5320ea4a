"""The stages of the publish path come in order: of two faults in one publish, the earlier stage speaks."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType

import pytest

from warrenmq.broker.extensions.interceptor import load_interceptors
from warrenmq.broker.publish.stages import STAGES
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.wire.content import Properties
from warrenmq.wire.fields import from_python

# In order: the fault, what it does to the publish, and the words by which its refusal is known.
pytestmark = pytest.mark.pure

FAULTS: list[tuple[str, dict[str, object], str]] = [
    ("immediate", {"immediate": True}, "immediate=true"),
    ("size", {"body": b"x" * 101}, "message size 101 is larger than configured max size 100"),
    ("write permission", {"exchange": "forbidden"}, "refused for user 'eve'"),
    ("exchange lookup", {"exchange": "missing"}, "no exchange 'missing' in vhost '/'"),
    ("internal", {"exchange": "internal"}, "cannot publish to internal exchange"),
    ("topic permission", {"exchange": "topics", "routing_key": "secret"}, "access to topic 'secret'"),
    ("reply-to", {"reply_to": "amq.rabbitmq.reply-to"}, "fast reply consumer does not exist"),
    ("user-id", {"user_id": "adam"}, "user_id property set to 'adam'"),
    ("expiration", {"expiration": "soon"}, "invalid expiration 'soon'"),
    ("CC and BCC", {"CC": "not a list"}, "unacceptable_type_in_header"),
    ("delivery mode", {"delivery_mode": 9}, "delivery_mode_unknown"),
    ("receipt", {"x-receipt": ""}, "invalid x-receipt ''"),
]
HEADERS = ("CC", "x-receipt", "x-delay")
PROPERTIES = ("reply_to", "user_id", "expiration", "delivery_mode")


@pytest.fixture
def core(tmp_path: Path) -> Core:
    core = Core(tmp_path)
    core.broker.services.limits.max_message_size = 100
    return core


@pytest.fixture
def eve(core: Core) -> CoreClient:
    admin = core.client()
    admin.call("exchange.declare", exchange="internal", type="fanout", internal=True)
    admin.call("exchange.declare", exchange="topics", type="topic")
    access = core.broker.registry.access
    access.add_user("eve", "eve", [])
    access.set_permissions("eve", "/", ".*", "^(?!forbidden).*", ".*")
    access.set_topic_permissions("eve", "/", "topics", "^(?!secret).*", ".*")
    return core.client("eve", "eve")


def publish(client: CoreClient, *faults: dict[str, object]) -> str:
    """Publish with these faults at once; what the refusal says."""
    wanted: dict[str, object] = {"exchange": "topics", "routing_key": "fine", "body": b"x"}
    for fault in reversed(faults):  # the earlier stage decides where both want the same field
        wanted.update(fault)
    properties = Properties()
    for name in PROPERTIES:
        setattr(properties, name, wanted.get(name))
    properties.headers = from_python({name: wanted[name] for name in HEADERS if name in wanted})
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


def test_a_publish_without_fault_passes_every_stage(eve: CoreClient) -> None:
    assert publish(eve) == ""


@pytest.mark.parametrize("stage", range(len(FAULTS)), ids=[name for name, _, _ in FAULTS])
def test_each_stage_refuses_its_fault(eve: CoreClient, stage: int) -> None:
    _, fault, words = FAULTS[stage]
    assert words in publish(eve, fault)


PAIRS = [
    (first, second)
    for first in range(len(FAULTS))
    for second in range(first + 1, len(FAULTS))
    if compatible(FAULTS[first][1], FAULTS[second][1])
]


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=[f"{FAULTS[a][0]} before {FAULTS[b][0]}" for a, b in PAIRS])
def test_of_two_faults_the_earlier_stage_speaks(eve: CoreClient, first: int, second: int) -> None:
    assert FAULTS[first][2] in publish(eve, FAULTS[first][1], FAULTS[second][1])


@pytest.mark.parametrize("mode", [0, 1, 2, 3, 255])
def test_a_delivery_mode_is_1_or_2(eve: CoreClient, mode: int) -> None:
    refused = f"PRECONDITION_FAILED - invalid message: {{delivery_mode_unknown,{mode}}}"
    assert publish(eve, {"delivery_mode": mode}) == ("" if mode in (1, 2) else refused)


def test_a_user_id_is_ones_own_unless_one_may_be_anybody(core: Core, eve: CoreClient) -> None:
    assert publish(eve, {"user_id": "eve"}) == ""
    assert "user_id property set to 'adam' but authenticated user was 'eve'" in publish(eve, {"user_id": "adam"})
    access = core.broker.registry.access
    access.add_user("ann", "ann", ["impersonator"])
    access.set_permissions("ann", "/", ".*", ".*", ".*")
    ann = core.client("ann", "ann")
    assert publish(ann, {"user_id": "ann"}) == "" and publish(ann, {"user_id": "adam"}) == ""


def test_a_topic_permission_is_of_topic_exchanges_alone(core: Core, eve: CoreClient) -> None:
    core.broker.registry.access.set_topic_permissions("eve", "/", "amq.direct", "^(?!secret).*", ".*")
    assert publish(eve, {"exchange": "amq.direct", "routing_key": "secret"}) == ""


@pytest.mark.parametrize("stage", ["user-id", "expiration", "delivery mode"])
@pytest.mark.parametrize("delay", ["1000", 1000], ids=["as a string", "as a number"])
def test_a_message_with_a_delay_passes_the_other_stages_too(
    core: Core, eve: CoreClient, stage: str, delay: object
) -> None:
    arguments = {"x-delayed-type": "fanout"}
    core.client().call("exchange.declare", exchange="later", type="x-delayed-message", arguments=arguments)
    _, wanted, words = next(each for each in FAULTS if each[0] == stage)
    assert words in publish(eve, wanted, {"exchange": "later", "x-delay": delay})


def test_every_stage_that_refuses_has_its_fault_here() -> None:
    assert [name for name, _, _ in FAULTS] == [stage.name for stage in STAGES if stage.code]


class Watching:
    """An interceptor of methods and messages that changes neither."""

    name = "watching"

    def intercept(self, method: object, channel: object) -> object:
        return method

    def amend(self, message: object) -> object:
        return message


@pytest.mark.uncompiled
def test_a_message_takes_the_stages_in_the_order_of_the_list(tmp_path: Path) -> None:
    core = Core(tmp_path)
    core.broker.interceptors = load_interceptors([f"{__name__}:Watching"], "node", core.clock)
    core.policy("^amq.topic$", "exchanges", deduplication_window=1000)
    client = core.client()
    client.call("queue.declare", queue="q")
    client.call("confirm.select")
    names = {stage.function: stage.name for stage in STAGES}
    met: list[str] = []

    def note(frame: FrameType, event: str, argument: object) -> None:
        name = names.get(frame.f_code.co_name)
        if event == "call" and name is not None and name not in met and "warrenmq" in frame.f_code.co_filename:
            met.append(name)

    properties = Properties(message_id="4711")
    properties.headers = from_python({"CC": ["nobody"], "x-receipt": "q"})
    sys.setprofile(note)
    try:
        client.publish("amq.topic", "q", b"x", properties, mandatory=True)
    finally:
        sys.setprofile(None)
    assert met == [stage.name for stage in STAGES]


def test_the_documentation_has_the_stages_in_this_order() -> None:
    page = Path(__file__).parents[2] / "docs" / "publishing.md"
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|[^|]*\|$", page.read_text(), re.MULTILINE)
    names = [stage.name for stage in STAGES]
    assert [name for name, _ in rows if name in names] == names
    codes = dict(rows)
    for stage in STAGES:
        assert not stage.code or codes[stage.name].startswith(str(stage.code)), stage.name
