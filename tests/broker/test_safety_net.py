"""A defect of the broker costs one client its connection, with 541 and a crash report, and nobody else anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.wire.constants import PROTOCOL_HEADER

pytestmark = pytest.mark.pure


@pytest.fixture
def core(tmp_path: Path) -> Core:
    core = Core(tmp_path)
    core.notes.crashes = []
    return core


def answers_still(core: Core) -> bool:
    core.notes.defect_at = set()
    return core.client().call("queue.declare", queue="q").name == "queue.declare-ok"


def test_a_defect_while_a_frame_is_taken_is_541_and_a_crash_report(core: Core) -> None:
    core.notes.defect_at = {"connection_opened"}
    client = CoreClient(core)
    client.feed(PROTOCOL_HEADER)
    client.send("connection.start-ok", 0, mechanism="PLAIN", response=b"\0guest\0guest", locale="en_US")
    client.send("connection.tune-ok", 0, channel_max=2047, frame_max=131072)
    client.send("connection.open", 0, virtual_host="/")
    assert client.story()[-1] == "connection.close 541"
    assert core.notes.crashes == ["internal_error: a defect at connection_opened"]
    assert answers_still(core)


def test_a_defect_while_a_refusal_is_told_is_541_and_a_crash_report(core: Core) -> None:
    client = core.client()
    core.notes.defect_at = {"channel_error"}
    assert client.call("queue.declare", queue="none", passive=True)["reply_code"] == 541
    assert core.notes.crashes == ["internal_error: a defect at channel_error"]
    assert answers_still(core)


def test_a_connection_that_cannot_even_be_closed_in_order_is_dropped(core: Core) -> None:
    client = core.client()
    core.notes.defect_at = {"channel_error", "connection_error"}
    client.send("queue.declare", queue="none", passive=True)
    assert client.sink.closed
    events = ["channel_error", "connection_error"]
    assert core.notes.crashes == [f"internal_error: a defect at {event}" for event in events]
    assert answers_still(core)
