"""Policies hold for the exchanges that are there from the start, also when the broker starts again."""

from __future__ import annotations

from pathlib import Path

import pytest

from warrenmq.testing.core import Core

pytestmark = pytest.mark.pure


@pytest.mark.parametrize("clean", [True, False])
def test_a_policy_on_a_predeclared_exchange_is_in_force_after_a_restart(tmp_path: Path, clean: bool) -> None:
    core = Core(tmp_path)
    core.policy("^amq.direct$", "exchanges", alternate_exchange="amq.fanout")
    core.restart(clean)
    client = core.client()
    client.call("queue.declare", queue="q")
    client.call("queue.bind", queue="q", exchange="amq.fanout")
    client.publish("amq.direct", "nowhere", b"rescued")
    assert core.ready("q") == 1
