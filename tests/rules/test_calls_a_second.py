"""A figure for the test log: how many calls a second the rules take, without sockets. It promises nothing."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import warrenmq
from warrenmq.testing.core import Core
from warrenmq.wire.content import Properties, content_frames, encode_header
from warrenmq.wire.methods import method_frame


def test_how_many_calls_a_second_the_rules_take(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    core = Core(tmp_path)
    client = core.client()
    client.call("queue.declare", queue="q")
    client.call("confirm.select")
    publish = method_frame(1, "basic.publish", routing_key="q") + content_frames(
        1, encode_header(Properties(), 1), b"x", 131072
    )
    take = method_frame(1, "basic.get", queue="q", no_ack=True)
    broker, connection = core.broker, client.connection
    rounds = 2000
    started = time.perf_counter()
    for _ in range(rounds):  # each call a turn of its own, answered
        for call in (publish, take):
            broker.begin_turn()
            connection.feed(call)
            broker.end_turn()
    took = time.perf_counter() - started
    client._collect()
    got = [each.name for each in client.take()]
    assert got.count("basic.ack") == got.count("basic.get-ok") == rounds
    with capsys.disabled():
        print(f"\nrules without sockets: {2 * rounds / took:,.0f} calls a second ({warrenmq.build_info()})")
